"""Many passages: the Ray Data graph that fills spaces, draw → embed, a pool of actors each, streaming."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.embedding.base import PictureSpec
from vrag_ray.embedding.model_embedder import CALLS_AT_ONCE
from vrag_ray.ingest.machine import ACTOR_CPUS, usable_cpus, without_ray_data_output
from vrag_ray.ingest.progress import Counts, SharedBoard
from vrag_ray.ingest.spaces.manifest import CollectionState, ReadPassages
from vrag_ray.ingest.spaces.material import EmbedderTraits
from vrag_ray.ingest.spaces.stages import Draw, EmbedSpace

if TYPE_CHECKING:
    import pyarrow as pa

DRAWN_AT_ONCE = 4
"""Passages of one call of a drawing actor: pictures leave it soon, so that embedding starts and few are in memory."""
MOST_ROWS_OF_A_BLOCK = 256


@dataclass(frozen=True, slots=True)
class SpaceToFill:
    name: str
    config: SpaceConfig
    traits: EmbedderTraits


@dataclass(frozen=True, slots=True)
class Filling:
    """The passages of ``manifest``, and spaces whose embedders want pictures of one size.

    ``spec`` says that size, None for words alone; ``stages`` are the names under which progress is reported.
    """

    manifest: pa.Table
    state: CollectionState
    settings: Settings
    spec: PictureSpec | None
    spaces: tuple[SpaceToFill, ...]
    stages: tuple[str, ...]


class GraphFill:
    """Blocks of embedded passages, by actors."""

    def __init__(self, filling: Filling) -> None:
        self._filling = filling
        self._board = SharedBoard(filling.stages, by_file=False)

    def read(self) -> Counts:
        """What the stages have done so far."""
        return self._board.read()

    def __iter__(self) -> Iterator[pa.Table]:
        import ray.data
        from ray.data import ActorPoolStrategy

        filling, manifest = self._filling, self._filling.manifest
        without_ray_data_output()
        readers = max(1, usable_cpus() // 2)
        rows = min(MOST_ROWS_OF_A_BLOCK, max(DRAWN_AT_ONCE, math.ceil(manifest.num_rows / (8 * readers))))
        blocks = [manifest.slice(start, rows) for start in range(0, manifest.num_rows, rows)]
        graph = ray.data.from_arrow(blocks).map_batches(
            ReadPassages,
            fn_constructor_args=(filling.state,),
            compute=ActorPoolStrategy(min_size=1, max_size=readers),
            batch_size=None,
            batch_format="pyarrow",
            num_cpus=ACTOR_CPUS,
        )
        if filling.spec is not None:
            graph = graph.map_batches(
                Draw,
                fn_constructor_args=(filling.state.root, filling.settings, filling.spec, self._board),
                compute=ActorPoolStrategy(size=min(readers, len(blocks))),
                batch_size=DRAWN_AT_ONCE,
                batch_format="pyarrow",
                num_cpus=ACTOR_CPUS,
            )
        for space in filling.spaces:
            graph = graph.map_batches(
                EmbedSpace,
                fn_constructor_args=(space.name, space.config, space.traits.id, self._board),
                fn_constructor_kwargs={
                    "last": space is filling.spaces[-1],
                    "drawn": filling.spec is not None,
                    "threads": max(1, usable_cpus() // (space.config.actors or 1)),
                },
                # The processor works for the next batch on the CPU while the model computes this one.
                compute=ActorPoolStrategy(
                    size=(space.config.actors or 1),
                    max_concurrent_calls_per_actor=CALLS_AT_ONCE,
                    enable_true_multi_threading=True,
                ),
                batch_size=space.config.batch_size,
                batch_format="pyarrow",
                num_cpus=ACTOR_CPUS,
                num_gpus=space.config.num_gpus or None,
            )
        yield from graph.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
