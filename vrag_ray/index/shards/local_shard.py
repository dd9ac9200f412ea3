"""The whole collection as one shard in this process: for one user's searches, which need no cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from vrag_ray.config import IndexConfig
from vrag_ray.index.shards.shard_index import ShardIndex, ShardStatus, SpaceSpec, load_shard
from vrag_ray.index.shards.shards import FanOut, PageQuery
from vrag_ray.index.shards.space_index import PageTraits, QueryVectors
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter


class LocalShard:
    """Implements ``Shards`` with indexes of this process, on the GPU that it sees where ``index.num_gpus`` allows. A
    version that cannot be loaded raises where it is loaded: there is no other replica that could answer."""

    total = 1

    def __init__(self, root: str, config: IndexConfig) -> None:
        self._files = CollectionFiles(root)
        self._config = config
        self._indexes: dict[int, ShardIndex] = {}

    @property
    def healthy(self) -> int:
        return int(bool(self._indexes))

    def statuses(self) -> list[ShardStatus]:
        newest = self._indexes.get(max(self._indexes, default=0))
        return [] if newest is None else list(newest.statuses)

    def problems(self) -> tuple[str, ...]:
        return ()

    async def load(self, version: int, spaces: Sequence[SpaceSpec]) -> None:
        if version not in self._indexes:
            earlier = self._indexes.get(max(self._indexes, default=0))
            self._indexes[version] = await asyncio.to_thread(
                load_shard, self._files, version, spaces, self._config, earlier=earlier
            )

    async def keep_only(self, version: int) -> None:
        self._indexes = {number: index for number, index in self._indexes.items() if number == version}

    async def nearest(
        self, version: int, space: str, queries: QueryVectors, k: int, filter: SearchFilter | None
    ) -> FanOut:
        return FanOut(await asyncio.to_thread(self._index(version).nearest, space, queries, k, filter), 1, ())

    async def page_traits(
        self, version: int, space: str, pages: Sequence[PageQuery], queries: QueryVectors
    ) -> list[PageTraits | None]:
        pairs = [(page.passage_id, page.query) for page in pages]
        return await asyncio.to_thread(self._index(version).page_traits, space, pairs, queries)

    def close(self) -> None:
        self._indexes = {}

    def _index(self, version: int) -> ShardIndex:
        if version not in self._indexes:
            raise VragError(f"version {version} of {self._files.root} is not loaded")
        return self._indexes[version]
