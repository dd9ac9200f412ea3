"""What a retriever needs of the shards of one collection, wherever they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.shards.shard_index import ShardStatus, SpaceSpec
from vrag_ray.index.shards.space_index import PageTraits, QueryVectors
from vrag_ray.types.filters import SearchFilter


@dataclass(frozen=True, slots=True)
class FanOut:
    """Merged windows of each query, the number of shards that answered, and why the others did not."""

    results: list[list[Scored]]
    shards_ok: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PageQuery:
    """A page, by its first passage, and the number of the query whose heat map is made; None for its hash alone."""

    passage_id: str
    doc_id: str
    query: int | None


class Shards(Protocol):
    """The vector indexes of one collection: actors of a cluster (``ShardPool``), or this process (``LocalShard``)."""

    @property
    def total(self) -> int: ...
    @property
    def healthy(self) -> int: ...
    def statuses(self) -> list[ShardStatus]: ...
    def problems(self) -> tuple[str, ...]: ...
    async def load(self, version: int, spaces: Sequence[SpaceSpec]) -> None: ...
    async def keep_only(self, version: int) -> None: ...
    async def nearest(
        self, version: int, space: str, queries: QueryVectors, k: int, filter: SearchFilter | None
    ) -> FanOut:
        """The ``k`` best windows of each query in a space, by (-score, id)."""
        ...

    async def page_traits(
        self, version: int, space: str, pages: Sequence[PageQuery], queries: QueryVectors
    ) -> list[PageTraits | None]:
        """What a space tells of each page; None where it tells nothing."""
        ...

    def close(self) -> None: ...
