"""A few passages without a graph: the same stages, one after another in a single process.

Starting the actors of a graph takes some ten CPU seconds, which the pages of one more document are not worth. The
process is not the caller's, so that the memory of the models is given back, unless the model is small: ``minilm``, or
a factory's that uses no GPU, embeds a few texts in the process of the caller, which then needs no Ray. On a single
machine ``minilm`` embeds any number of texts there: its threads fill the cores as well as those of actors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import TYPE_CHECKING

from vrag_ray.config import Engine, SpaceConfig
from vrag_ray.ingest.machine import ACTOR_CPUS, has_more_machines, usable_cpus
from vrag_ray.ingest.progress import Counts, ProgressBoard, StageCount
from vrag_ray.ingest.spaces.graph import Filling
from vrag_ray.ingest.spaces.manifest import ReadPassages
from vrag_ray.ingest.spaces.stages import Draw, EmbedSpace
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    import pyarrow as pa

MOST_PASSAGES = 24
MOST_TEXTS = 256
"""About those of the pages that are decoded without a graph (``small_jobs``): five seconds with ``minilm``."""


def can_run_here(config: SpaceConfig) -> bool:
    """Whether the model of a space may be loaded in the caller's process. A GPU that is set is given, or refused, by
    the placement of actors."""
    return (config.is_minilm or config.is_factory) and not config.num_gpus and config.device != "cuda"


def runs_here(filling: Filling) -> bool:
    """Whether the caller's process embeds the passages, which are texts."""
    configs = [space.config for space in filling.spaces]
    if filling.spec is not None or _has_actors(filling) or not all(can_run_here(config) for config in configs):
        return False
    return filling.manifest.num_rows <= MOST_TEXTS or (
        all(config.is_minilm for config in configs) and not has_more_machines()
    )


def is_small(filling: Filling) -> bool:
    """Whether few passages may be embedded by one process. vLLM, and a number of actors that was set, take actors."""
    few = filling.manifest.num_rows <= MOST_PASSAGES and not _has_actors(filling)
    return few and all(space.config.engine is Engine.TRANSFORMERS for space in filling.spaces)


def _has_actors(filling: Filling) -> bool:
    configured = (filling.settings.ingest.concurrency, *(space.config.actors for space in filling.spaces))
    return any(configured)


class _SingleProcessFill:
    def __init__(self, filling: Filling) -> None:
        self._filling = filling
        self._counts = Counts(stages=dict.fromkeys(filling.stages, StageCount()))

    def read(self) -> Counts:
        """What the stages had done when the last block came."""
        return self._counts


class FillHere(_SingleProcessFill):
    """Blocks of embedded passages, by this process."""

    def __iter__(self) -> Iterator[pa.Table]:
        on_cpu = (
            replace(space, config=with_changes(space.config, {"device": "cpu"})) for space in self._filling.spaces
        )
        for block, counts in _embedded(replace(self._filling, spaces=tuple(on_cpu)), os.cpu_count() or 1):
            self._counts = counts
            yield block


class FewFill(_SingleProcessFill):
    """Blocks of embedded passages, by one Ray task."""

    def __iter__(self) -> Iterator[pa.Table]:
        import ray
        from ray.exceptions import RayError

        # A process that has held a model ends after it.
        task = ray.remote(max_calls=1)(_embedded).options(
            num_cpus=ACTOR_CPUS,
            num_gpus=_share([space.config.num_gpus or 0.0 for space in self._filling.spaces]) or None,
            max_retries=0,
            num_returns="streaming",
        )
        blocks = task.remote(self._filling, usable_cpus())
        is_over = False
        try:
            for reference in blocks:
                block, self._counts = ray.get(reference)
                yield block
            is_over = True
        except RayError:
            is_over = True
            raise
        finally:
            # A caller that stops early leaves no model at work. A task that is over is left alone: Ray 2.60 may end the
            # caller's process where the last reply of a task comes after its cancellation.
            if not is_over:
                ray.cancel(blocks)


def _share(shares: Sequence[float]) -> float:
    """Of one process that does what one process a share would do: their sum, or one card if that is enough."""
    return max(*shares, min(1.0, sum(shares)))


def _embedded(filling: Filling, threads: int) -> Iterator[tuple[pa.Table, Counts]]:
    board = ProgressBoard(filling.stages, by_file=False)
    drawn = filling.spec is not None
    embedders = [
        EmbedSpace(
            space.name,
            space.config,
            space.traits.id,
            board,
            last=space is filling.spaces[-1],
            drawn=drawn,
            threads=threads,
        )
        for space in filling.spaces
    ]
    rows = max(space.config.batch_size for space in filling.spaces)
    read = ReadPassages(filling.state)
    with ExitStack() as stack:
        draw: Draw | None = None
        if filling.spec is not None:
            draw = stack.enter_context(closing(Draw(filling.state.root, filling.settings, filling.spec, board)))
        for start in range(0, filling.manifest.num_rows, rows):
            block = read(filling.manifest.slice(start, rows))
            if draw is not None:
                block = draw(block)
            for embed in embedders:
                block = embed(block)
            yield block, board.read()
