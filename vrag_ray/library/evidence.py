"""What agents read of a collection that this process opens for them, as in training: evidence, and a cache over it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.agent.ports import EvidenceSource, Pages, Retriever
from vrag_ray.caching import SingleFlight, SizedLRU
from vrag_ray.config import Settings
from vrag_ray.types import HYBRID, Document, Locator, PageText, Query, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    from vrag_ray.index.search.retriever import ShardedRetriever
    from vrag_ray.library.library import Library

A = TypeVar("A")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Search = tuple[tuple[str | Query, ...], int, str]
"""Its queries, ``top_k`` and mode."""
MOST_CACHED = 50_000
"""Searches, and pages."""
MOST_PICTURE_BYTES = 1 << 30
"""Of the pictures in the cache."""


class CollectionEvidence:
    """The evidence of one collection that this process opens: ``source`` searches it and reads its pages.

    Hits, pages and pictures are cached, as the collection does not change: the runs of one question, and the steps that
    ask it again, search for the same things.
    """

    def __init__(self, retriever: ShardedRetriever, library: Library, search: Retriever) -> None:
        """``search`` answers in place of ``retriever``, which it is made of: with a reranker after it."""
        self.retriever = retriever
        self._library = library
        self._cached = CachedRetriever(search)
        self.source = EvidenceSource(self._cached, CachedPages(library))

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
    def documents(self) -> Sequence[Document]:
        return self.retriever.collection.documents()

    async def close(self) -> None:
        # Runs that were cancelled wait for none of these searches any more.
        await self._cached.cancel()
        self._library.close()
        await self.retriever.close()


class CachedRetriever:
    """``Retriever`` that caches the answers of another; those of searches with a filter or a picture are not cached."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self._answers: SizedLRU[Search, SearchAnswer] = SizedLRU(MOST_CACHED)
        # Runs of a group search for the same at the same time.
        self._searching: SingleFlight[Search, SearchAnswer] = SingleFlight()

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        if filter is not None or any(Query.of(query).picture is not None for query in queries):
            return await self._retriever.search(queries, top_k=top_k, mode=mode, filter=filter)
        search = (tuple(queries), top_k, mode)
        cached = self._answers.get(search)
        if cached is not None:
            return cached
        return await self._searching.result(search, lambda: self._answer(*search))

    async def _answer(self, queries: tuple[str | Query, ...], top_k: int, mode: str) -> SearchAnswer:
        answer = await self._retriever.search(queries, top_k=top_k, mode=mode)
        # With a part of the collection missing for the moment, the next run may find more.
        if answer.shards_ok == answer.shards_total:
            self._answers.put((queries, top_k, mode), answer)
        return answer

    async def cancel(self) -> None:
        """End the searches that are under way."""
        await self._searching.cancel()


class CachedPages:
    """``Pages`` that caches those of another."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._drawn: SizedLRU[PictureRequest, Picture] = SizedLRU(MOST_PICTURE_BYTES, lambda picture: len(picture.png))
        self._read: SizedLRU[tuple[str, str], PageText] = SizedLRU(MOST_CACHED)

    async def page_texts(self, pages: Sequence[tuple[str, Locator]]) -> Sequence[PageText | VragError]:
        return await _through(self._read, pages, lambda page: (page[0], page[1].key), self._pages.page_texts)

    async def pictures(self, requests: Sequence[PictureRequest]) -> Sequence[Picture | VragError]:
        return await _through(self._drawn, requests, lambda request: request, self._pages.pictures)


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
