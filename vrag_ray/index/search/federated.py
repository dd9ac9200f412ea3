"""Several collections side by side: searched each on its own, or as one where their vectors can be compared."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import IndexConfig
from vrag_ray.index.search.joint_search import search_each
from vrag_ray.index.search.modes import common_mode
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.index.search.snapshot import parts_of
from vrag_ray.types import HYBRID, NotFoundError, Query, SearchAnswer, VragError
from vrag_ray.types.collection_names import chosen_names, single_name
from vrag_ray.types.filters import SearchFilter


class Member(Protocol):
    """One collection of several."""

    async def retriever(self) -> ShardedRetriever:
        """Raises VragError, with the reason, while it is not ready."""
        ...


class FederatedRetriever:
    """The collections of one service; the first of ``members`` is meant where none is named."""

    def __init__(self, members: Mapping[str, Member], index: IndexConfig) -> None:
        """``index`` says how legs are fused."""
        self._members = members
        self._index = index

    def choose(self, names: Sequence[str] = ()) -> ChosenCollections:
        """A ``Retriever`` of these collections. Raises UnknownCollectionError."""
        return ChosenCollections(tuple(self._members[name] for name in chosen_names(self._members, names)), self._index)

    async def member(self, name: str = "") -> ShardedRetriever:
        """The retriever of one collection, by default of the first.

        Raises UnknownCollectionError, and VragError while it is not ready.
        """
        return await self._members[single_name(self._members, name)].retriever()

    async def check(self, names: Sequence[str], mode: str = HYBRID, filter: SearchFilter | None = None) -> None:
        """Raise what a search of these collections in this mode and with this filter would raise."""
        retrievers = [await self._members[name].retriever() for name in chosen_names(self._members, names)]
        non_empty = [opened.snapshot for opened in retrievers if not opened.snapshot.is_empty]
        if non_empty:
            common_mode(mode, non_empty)
            parts_of(non_empty, filter)

    async def embed(self, texts: Sequence[str], *, queries: bool) -> NDArray[np.float32]:
        """As ``ShardedRetriever.embed``: all collections share the embedder of texts."""
        return await (await self.member()).embed(texts, queries=queries)

    async def heat(self, query: str | Query, doc_id: str, page: int) -> NDArray[np.float32]:
        """As ``ShardedRetriever.heat``, of the first collection that has the document and can tell."""
        problem: VragError | None = None
        for member in self._members.values():
            try:
                retriever = await member.retriever()
                document = retriever.collection.document(doc_id)
            except VragError as error:
                # It is not there, or the collection is not ready.
                problem = problem if problem is not None and isinstance(error, NotFoundError) else error
                continue
            try:
                return await retriever.heat(query, document.doc_id, page)
            except NotFoundError as error:
                # Of the collection that has the document: that says more.
                problem = error
        raise problem or NotFoundError(f"document {doc_id} is in no collection here")


@dataclass(frozen=True, slots=True)
class ChosenCollections:
    """``Retriever`` over one collection or several. ``search_each`` says how several are merged."""

    _members: tuple[Member, ...]
    _index: IndexConfig

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        [answer] = await self.search_each([queries], top_k=top_k, mode=mode, filter=filter)
        return answer

    async def search_each(
        self,
        groups: Sequence[Sequence[str | Query]],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> list[SearchAnswer]:
        """The queries of several callers, as one search: an answer for each caller."""
        retrievers = await asyncio.gather(*(member.retriever() for member in self._members))
        snapshots = [retriever.snapshot for retriever in retrievers]
        return await search_each(snapshots, groups, top_k=top_k, mode=mode, filter=filter, index=self._index)
