"""A collection as training sees it: the same retriever and the same pictures as in serving, in this process's care.

A collection does not change while it is trained on, so what was found or drawn once is kept: the runs of one question,
and the steps that ask it again, look for the same things.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.caching import SharedCalls
from vrag_ray.config import Settings
from vrag_ray.training.config import WorldConfig
from vrag_ray.types import Document, Locator, PageText, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    from vrag_ray.index.search.retriever import ShardedRetriever
    from vrag_ray.library.library import Library

A = TypeVar("A")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
KEPT = 50_000
"""Searches, pictures and pages that are kept at most; then they are forgotten."""


class CollectionEvidence:
    """``EvidenceSource`` over one version of a collection. Needs a running Ray; made by ``open``."""

    def __init__(self, retriever: ShardedRetriever, library: Library) -> None:
        self._retriever = retriever
        self._library = library
        self._found: dict[tuple[str, int], SearchAnswer] = {}
        # Runs of a group search for the same at the same time.
        self._asking: SharedCalls[tuple[str, int], SearchAnswer] = SharedCalls()
        self._drawn: dict[PictureRequest, Picture] = {}
        self._read: dict[tuple[str, str], PageText] = {}

    @classmethod
    async def open(cls, world: WorldConfig) -> CollectionEvidence:
        """Start the shards and load them. Raises VragError where the collection is empty or cannot be read."""
        from vrag_ray.index.search.retriever import ShardedRetriever
        from vrag_ray.library.library import Library

        settings = Settings(
            collection=world.collection,
            corpus=world.corpus,
            embedder=world.embedder,
            index=world.index,
            agent=world.agent,
        )
        retriever = await ShardedRetriever.start(settings)
        if not retriever.collection.documents():
            await retriever.close()
            raise VragError(f"the collection {world.collection} is empty: fill it with `vrag ingest` first")
        return cls(retriever, Library(settings, retriever.refresh))

    @property
    def documents(self) -> Sequence[Document]:
        return self._retriever.collection.documents()

    async def search(self, query: str, *, top_k: int, filter: SearchFilter | None) -> SearchAnswer:
        if filter is not None:
            return await self._retriever.search([query], top_k=top_k, filter=filter)
        key = (query, top_k)
        if key in self._found:
            return self._found[key]
        return await self._asking.result(key, lambda: self._search(query, top_k))

    async def _search(self, query: str, top_k: int) -> SearchAnswer:
        answer = await self._retriever.search([query], top_k=top_k)
        # With a part of the collection missing for the moment, the next run may find more.
        if answer.shards_ok == answer.shards_total:
            if len(self._found) >= KEPT:
                self._found.clear()
            self._found[query, top_k] = answer
        return answer

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return await _kept(pages, self._read, lambda page: (page[0], page[1].key), self._library.page_texts)

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return await _kept(requests, self._drawn, lambda request: request, self._library.pictures)

    async def close(self) -> None:
        # Runs that were cancelled wait for none of them any more.
        await self._asking.cancel()
        self._library.close()
        await self._retriever.close()


async def _kept(
    asked: Sequence[A],
    kept: dict[K, V],
    key: Callable[[A], K],
    fetch: Callable[[Sequence[A]], Awaitable[Sequence[V | VragError]]],
) -> Sequence[V | VragError]:
    """Each of ``asked`` from ``kept``, else fetched; what failed is not kept."""
    missing = {key(one): one for one in asked if key(one) not in kept}
    refused: dict[K, VragError] = {}
    if missing:
        fetched = await fetch(tuple(missing.values()))
        if len(kept) + len(missing) > KEPT:
            asked_keys = {key(one) for one in asked}
            for old in [one for one in kept if one not in asked_keys]:
                del kept[old]
        for name, value in zip(missing, fetched, strict=True):
            if isinstance(value, VragError):
                refused[name] = value
            else:
                kept[name] = value
    return [refused[key(one)] if key(one) in refused else kept[key(one)] for one in asked]
