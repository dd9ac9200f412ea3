"""What agents read of a collection that this process opens for them, as in training: evidence, and a cache over it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.caching import SingleFlight, SizedLRU
from vrag_ray.config import Settings
from vrag_ray.types import Document, Locator, PageText, Query, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    from vrag_ray.index.search.retriever import Retriever, ShardedRetriever
    from vrag_ray.library.library import Library

A = TypeVar("A")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
MOST_CACHED = 50_000
"""Searches, and pages, of ``CachedEvidence``."""
MOST_PICTURE_BYTES = 1 << 30
"""Of the pictures in it."""


class CollectionEvidence:
    """``EvidenceSource`` over one collection that this process opens: what a search finds, and what its pages show."""

    def __init__(self, retriever: ShardedRetriever, library: Library, search: Retriever) -> None:
        """``search`` answers in place of ``retriever``, which it is made of: with a reranker after it."""
        self._retriever, self._library, self._search = retriever, library, search

    @classmethod
    async def open(cls, settings: Settings) -> CollectionEvidence:
        """Start the shards, on a running Ray, and load them.

        Raises VragError where the collection is empty or cannot be read.
        """
        from vrag_ray.index.search.retriever import ShardedRetriever
        from vrag_ray.library.library import Library
        from vrag_ray.library.reranked import reranked, reranker_of

        retriever = await ShardedRetriever.start(settings)
        if not retriever.collection.documents():
            await retriever.close()
            raise VragError(f"the collection {settings.collection} is empty: fill it with `vrag ingest` first")
        library = Library(settings)
        return cls(retriever, library, reranked(settings, retriever, library, await reranker_of(settings)))

    @property
    def retriever(self) -> ShardedRetriever:
        """What searches the collection, with its shards and embedders."""
        return self._retriever

    @property
    def documents(self) -> Sequence[Document]:
        return self._retriever.collection.documents()

    async def search(
        self, query: str, *, top_k: int, filter: SearchFilter | None, picture: bytes | None = None
    ) -> SearchAnswer:
        sent = query if picture is None else Query(query, picture)
        return await self._search.search([sent], top_k=top_k, filter=filter)

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return await self._library.page_texts(pages)

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return await self._library.pictures(requests)

    async def close(self) -> None:
        self._library.close()
        await self._retriever.close()


class CachedEvidence:
    """``EvidenceSource`` that caches hits, pages and pictures of a collection that does not change.

    The runs of one question, and the steps that ask it again, search for the same things.
    """

    def __init__(self, evidence: CollectionEvidence) -> None:
        self._evidence = evidence
        self._answers: SizedLRU[tuple[str, int], SearchAnswer] = SizedLRU(MOST_CACHED)
        # Runs of a group search for the same at the same time.
        self._searching: SingleFlight[tuple[str, int], SearchAnswer] = SingleFlight()
        self._drawn: SizedLRU[PictureRequest, Picture] = SizedLRU(MOST_PICTURE_BYTES, lambda picture: len(picture.png))
        self._read: SizedLRU[tuple[str, str], PageText] = SizedLRU(MOST_CACHED)

    @property
    def retriever(self) -> ShardedRetriever:
        return self._evidence.retriever

    @property
    def documents(self) -> Sequence[Document]:
        return self._evidence.documents

    async def search(
        self, query: str, *, top_k: int, filter: SearchFilter | None, picture: bytes | None = None
    ) -> SearchAnswer:
        """Searches with a filter or a picture are not cached."""
        if filter is not None or picture is not None:
            return await self._evidence.search(query, top_k=top_k, filter=filter, picture=picture)
        cached = self._answers.get((query, top_k))
        if cached is not None:
            return cached
        return await self._searching.result((query, top_k), lambda: self._search(query, top_k))

    async def _search(self, query: str, top_k: int) -> SearchAnswer:
        answer = await self._evidence.search(query, top_k=top_k, filter=None)
        # With a part of the collection missing for the moment, the next run may find more.
        if answer.shards_ok == answer.shards_total:
            self._answers.put((query, top_k), answer)
        return answer

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return await _through(self._read, pages, lambda page: (page[0], page[1].key), self._evidence.page_texts)

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return await _through(self._drawn, requests, lambda request: request, self._evidence.pictures)

    async def close(self) -> None:
        # Runs that were cancelled wait for none of them any more.
        await self._searching.cancel()
        await self._evidence.close()


async def _through(
    cache: SizedLRU[K, V],
    requests: Sequence[A],
    key: Callable[[A], K],
    fetch: Callable[[Sequence[A]], Awaitable[Sequence[V | VragError]]],
) -> Sequence[V | VragError]:
    """Each of ``requests`` from ``cache``, else fetched, each once; failures are not cached."""
    known: dict[K, V | VragError] = {}
    missing: dict[K, A] = {}
    for request in requests:
        cached = cache.get(key(request))
        if cached is None:
            missing[key(request)] = request
        else:
            known[key(request)] = cached
    if missing:
        for name, value in zip(missing, await fetch(tuple(missing.values())), strict=True):
            known[name] = value
            if not isinstance(value, VragError):
                cache.put(name, value)
    return [known[key(request)] for request in requests]
