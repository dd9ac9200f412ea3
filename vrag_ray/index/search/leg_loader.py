"""Embedders of legs, loaded once for all collections and versions that are served with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Embedder
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.index.search.titles import TitleVectors
from vrag_ray.index.search.vector_leg import VectorLeg, leg_of, reads_words_alone
from vrag_ray.index.storage.spaces import SpaceRecord
from vrag_ray.types import TEXT, VragError
from vrag_ray.types.copies import with_changes

P = ParamSpec("P")
T = TypeVar("T")
_NOT_THE_EMBEDDERS = ("batch", "actors", "num_gpus", "binary", "exhaustive_below", "candidates", "weight")
"""Settings of a space that say how it is filled and searched: embedders that differ in these alone are the same."""


class LegLoader:
    """An embedder of a space, with the vectors that it made of titles, is shared as long as a served collection has it,
    and let go of after that.

    ``space`` is called in its one thread, by ``run``.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedders")
        self._embedders: WeakValueDictionary[SpaceConfig, Embedder] = WeakValueDictionary()
        self._titles: WeakValueDictionary[SpaceConfig, TitleVectors] = WeakValueDictionary()

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """In a thread of its own: a model that takes minutes must not hold the threads that searches need."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))

    def space(self, record: SpaceRecord, config: SpaceConfig) -> VectorLeg:
        """The leg of one of a collection's spaces. Raises VragError as ``space_embedder``, and where the embedder is
        not the one that filled the space."""
        embedder, titles = self._loaded(record.name, config)
        if embedder.id != record.embedder_id:
            raise VragError(
                f"it holds vectors of {record.embedder_id} and spaces.{record.name} is set to {embedder.id}: "
                f"`vrag embed --space {record.name} --rebuild` makes it anew"
            )
        return leg_of(record.name, config, embedder, titles)

    def unfilled(self, name: str, config: SpaceConfig) -> VectorLeg:
        """The leg of a space that is not there yet. Raises VragError as ``space_embedder``."""
        return leg_of(name, config, *self._loaded(name, config))

    def _loaded(self, name: str, config: SpaceConfig) -> tuple[Embedder, TitleVectors | None]:
        defaults = {setting: SpaceConfig.model_fields[setting].default for setting in _NOT_THE_EMBEDDERS}
        key = with_changes(config, defaults)
        embedder = self._embedders.get(key)
        if embedder is None:
            embedder = space_embedder(config)
            # One whose class takes no weak references is not shared.
            with suppress(TypeError):
                self._embedders[key] = embedder
        titles = None
        if name == TEXT or reads_words_alone(embedder):
            titles = self._titles.get(key) or TitleVectors(embedder)
            self._titles[key] = titles
        return embedder, titles
