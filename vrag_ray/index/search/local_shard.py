"""The whole collection as one shard in this process: for one user's searches, which need no cluster."""

from __future__ import annotations

import asyncio
import os

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import IndexConfig
from vrag_ray.index.search.shard import ShardIndex, load_index
from vrag_ray.index.search.shard_pool import FanOut, ShardStatus
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter


class LocalShard:
    """Implements ``Shards`` with one FAISS index on the CPU. A version that cannot be loaded raises where it is
    loaded: there is no other replica that could answer."""

    total = 1

    def __init__(self, root: str, embedder_id: str, config: IndexConfig) -> None:
        self._files = CollectionFiles(root)
        self._embedder_id = embedder_id
        self._threads = config.threads or os.cpu_count() or 1
        self._indexes: dict[int, ShardIndex] = {}

    @property
    def healthy(self) -> int:
        return int(bool(self._indexes))

    def statuses(self) -> list[ShardStatus]:
        newest = self._indexes.get(max(self._indexes, default=0))
        return [] if newest is None else [ShardStatus(newest.size, newest.dim, newest.bytes_per_vector)]

    def problems(self) -> tuple[str, ...]:
        return ()

    async def load(self, version: int) -> None:
        if version not in self._indexes:
            self._indexes[version] = await asyncio.to_thread(
                load_index, self._files, version, self._embedder_id, threads=self._threads
            )

    async def keep_only(self, version: int) -> None:
        self._indexes = {number: index for number, index in self._indexes.items() if number == version}

    async def search(self, version: int, queries: NDArray[np.float32], k: int, wanted: SearchFilter | None) -> FanOut:
        if version not in self._indexes:
            raise VragError(f"version {version} of {self._files.root} is not loaded")
        return FanOut(await asyncio.to_thread(self._indexes[version].search, queries, k, wanted), 1, ())

    def close(self) -> None:
        self._indexes = {}
