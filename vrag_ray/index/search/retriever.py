"""The retriever: dense leg over shard actors, lexical leg over Lance, fused, grouped by page and hydrated."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import Settings
from vrag_ray.embedding.base import Content, stacked
from vrag_ray.embedding.registry import LoadedEmbedder, load_embedder
from vrag_ray.index.search.fusion import Leg, best_windows
from vrag_ray.index.search.legs import LEAST_READABLE, lexical_leg, query_notices, rank
from vrag_ray.index.search.local_shard import LocalShard
from vrag_ray.index.search.shard_pool import FanOut, ShardPool, ShardStatus
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.rows import CorruptionError
from vrag_ray.types import HYBRID, LEXICAL, TEXT, Hit, Passage, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter

_T = TypeVar("_T")


class Retriever(Protocol):
    """Anything that answers queries with passages."""

    async def search(
        self,
        queries: Sequence[str],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        """``top_k`` pages, pictures, clips or spans for each query, best first, with each one's best window."""
        ...


class Shards(Protocol):
    """The vector index of one collection: actors of a cluster (``ShardPool``), or this process (``LocalShard``)."""

    @property
    def total(self) -> int: ...
    @property
    def healthy(self) -> int: ...
    def statuses(self) -> list[ShardStatus]: ...
    def problems(self) -> tuple[str, ...]: ...
    async def load(self, version: int) -> None: ...
    async def keep_only(self, version: int) -> None: ...
    async def search(self, version: int, queries: NDArray[np.float32], k: int, wanted: SearchFilter | None) -> FanOut:
        """The ``k`` best windows of each query, [queries, dim] float32, by (-score, id)."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RetrieverStatus:
    """What is being served. ``profile`` is ``embedded`` (text vectors) or ``lexical`` (no embedder)."""

    version: int
    documents: int
    embedder_id: str
    profile: str
    shards_ok: int
    shards_total: int
    shards: tuple[ShardStatus, ...]
    notices: tuple[str, ...]


@dataclass
class _Served:
    """One collection version in service, and how many searches still use it."""

    collection: Collection
    active: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)


class ShardedRetriever:
    """See the module docstring. Made by ``start``; all methods run on the event loop that started it."""

    def __init__(self, settings: Settings, loaded: LoadedEmbedder, collection: Collection, pool: Shards) -> None:
        self._config = settings.index
        self._embedder, self._embedder_notice = loaded.embedder, loaded.notice
        self._pool = pool
        self._served = _Served(collection)
        self._refreshing = asyncio.Lock()

    @classmethod
    async def start(cls, settings: Settings) -> ShardedRetriever:
        """Open the collection, start the shard actors (needs a running Ray) and load them.

        Raises NotFoundError where there is no collection.
        """
        loaded, collection = await _opened(settings)
        pool = ShardPool(collection.root, _id_of(loaded), settings.index)
        await pool.load(collection.version)
        return cls(settings, loaded, collection, pool)

    @classmethod
    async def start_local(cls, settings: Settings) -> ShardedRetriever:
        """The same in this process, without Ray: one shard that holds everything, so ``index.shards`` and
        ``index.replicas`` mean nothing; results are the same."""
        loaded, collection = await _opened(settings)
        shard = LocalShard(collection.root, _id_of(loaded), settings.index)
        await shard.load(collection.version)
        return cls(settings, loaded, collection, shard)

    @property
    def pool(self) -> Shards:
        return self._pool

    @property
    def collection(self) -> Collection:
        """The version in service."""
        return self._served.collection

    async def refresh(self) -> int:
        """Serve the newest version; its number. Searches go on meanwhile: the old one is freed when they are done."""
        async with self._refreshing:
            old = self._served
            newest = await asyncio.to_thread(old.collection.newest_version)
            if newest == old.collection.version:
                return newest
            collection = await asyncio.to_thread(Collection.open, old.collection.root, newest)
            await asyncio.to_thread(collection.documents)
            await self._pool.load(newest)
            self._served = _Served(collection)
            if old.active:
                await old.idle.wait()
            await self._pool.keep_only(newest)
            return newest

    async def close(self) -> None:
        self._pool.close()

    def status(self) -> RetrieverStatus:
        collection = self._served.collection
        return RetrieverStatus(
            version=collection.version,
            documents=len(collection.documents()),
            embedder_id=self._embedder.id if self._embedder else "",
            profile="embedded" if self._embedder else "lexical",
            shards_ok=self._pool.healthy,
            shards_total=self._pool.total,
            shards=tuple(self._pool.statuses()),
            notices=self._notices(collection) + self._pool.problems(),
        )

    async def search(
        self,
        queries: Sequence[str],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        """As ``Retriever.search``. ``dense`` without an embedder is refused; ``hybrid`` says that it is lexical."""
        if mode == TEXT and self._embedder is None:
            raise VragError(f"dense search is not available: {self._embedder_notice}")
        used = LEXICAL if self._embedder is None else mode
        served = self._served
        served.active += 1
        served.idle.clear()
        try:
            return await self._search(served.collection, list(queries), top_k, used, filter)
        finally:
            served.active -= 1
            if served.active == 0:
                served.idle.set()

    async def embed(self, texts: Sequence[str], *, queries: bool) -> NDArray[np.float32]:
        """Vectors of length 1, shape ``(len(texts), dim)``: as questions, or as passages to be found.

        Raises VragError where there is no embedder; the message says why.
        """
        if self._embedder is None:
            raise VragError(f"embeddings are not available: {self._embedder_notice}")
        work = self._embedder.embed_queries if queries else self._embedder.embed_passages
        return stacked(await asyncio.to_thread(work, [Content(text) for text in texts]))

    async def _search(
        self, collection: Collection, queries: list[str], top_k: int, mode: str, wanted: SearchFilter | None
    ) -> SearchAnswer:
        wanted = _with_full_ids(collection, wanted)
        readable = await self._readable(queries, mode)
        # A vector of what the embedder cannot read is noise: only who asks for the dense leg by name gets it.
        embedded = [n for n, share in enumerate(readable) if share >= LEAST_READABLE or mode == TEXT]
        nothing = (list[Leg](), self._pool.healthy, self._pool.problems())
        (dense, shards_ok, problems), lexical = await asyncio.gather(
            self._dense(collection, [queries[n] for n in embedded], top_k, wanted) if embedded else _ready(nothing),
            self._lexical(collection, queries, top_k, wanted) if mode != TEXT else _ready(list[Leg]()),
        )
        dense_of = dict(zip(embedded, dense, strict=True))
        lexical_of = dict(enumerate(lexical))
        ranked = [rank(mode, dense_of.get(n), lexical_of.get(n))[:top_k] for n in range(len(queries))]
        passages, damaged = await asyncio.to_thread(_hydrate, collection, [item.id for r in ranked for item in r])
        results = []
        for items in ranked:
            hits = []
            for item in items:
                if (passage := passages.get(item.id)) is None:
                    continue
                document = collection.document(passage.doc_id)
                hits.append(Hit(passage, document.title, document.uri, item.score, item.by_leg))
            results.append(tuple(hits))
        told = self._query_notices(collection, queries, mode, readable, lexical_of, filtered=wanted is not None)
        return SearchAnswer(
            results=tuple(results),
            shards_ok=shards_ok,
            shards_total=self._pool.total,
            mode=mode,
            collection_version=collection.version,
            notices=self._notices(collection) + problems + damaged + told,
        )

    async def _readable(self, queries: list[str], mode: str) -> list[float]:
        """The share of each query that the embedder understands; zeros where it is not asked."""
        if mode == LEXICAL or self._embedder is None:
            return [0.0] * len(queries)
        shares: NDArray[np.float32] = await asyncio.to_thread(self._embedder.readable, queries)
        return [float(share) for share in shares]

    def _query_notices(
        self,
        collection: Collection,
        queries: list[str],
        mode: str,
        readable: list[float],
        lexical: dict[int, Leg],
        *,
        filtered: bool,
    ) -> tuple[str, ...]:
        if self._embedder is None or not collection.documents():
            return ()
        told = (
            query_notices(
                query,
                mode,
                readable=readable[n],
                embedder_id=self._embedder.id,
                lexical=lexical.get(n),
                filtered=filtered,
            )
            for n, query in enumerate(queries)
        )
        return tuple(dict.fromkeys(notice for notices in told for notice in notices))

    async def _dense(
        self, collection: Collection, queries: list[str], top_k: int, wanted: SearchFilter | None
    ) -> tuple[list[Leg], int, tuple[str, ...]]:
        assert self._embedder is not None
        contents = [Content(query) for query in queries]
        vectors = stacked(await asyncio.to_thread(self._embedder.embed_queries, contents))
        fetch_k = max(self._config.candidates, top_k)
        legs: dict[int, Leg] = {}
        while True:
            found = await self._pool.search(collection.version, vectors, fetch_k, wanted)
            for number, windows in enumerate(found.results):
                leg = Leg(TEXT, best_windows(windows), len(windows) < fetch_k)
                # Long pages have many windows: widen until there are enough pages or no more windows.
                if len(leg.pages) >= top_k or leg.complete:
                    # The first that suffices counts: what is fused must not depend on the other queries.
                    legs.setdefault(number, leg)
            if len(legs) == len(queries):
                return [legs[number] for number in range(len(queries))], found.shards_ok, found.problems
            fetch_k *= 4

    async def _lexical(
        self, collection: Collection, queries: list[str], top_k: int, wanted: SearchFilter | None
    ) -> list[Leg]:
        limits = {"top_k": top_k, "candidates": self._config.candidates}
        return await asyncio.gather(
            *(asyncio.to_thread(lexical_leg, collection, query, **limits, wanted=wanted) for query in queries)
        )

    def _notices(self, collection: Collection) -> tuple[str, ...]:
        notices = [self._embedder_notice] if self._embedder_notice else []
        if collection.version == 0:
            notices.append("the collection is empty: ingest documents to search them")
        wanted = self._embedder.id if self._embedder else ""
        others = sum(1 for d in collection.documents() if d.embedder_id != wanted and not d.error) if wanted else 0
        if others:
            notices.append(
                f"{others} documents were embedded by another model and are found by words only: ingest them again"
            )
        return tuple(notices)


async def _opened(settings: Settings) -> tuple[LoadedEmbedder, Collection]:
    """Both at once: reading the model's weights and the collection's records take about as long."""
    loaded, collection = await asyncio.gather(
        asyncio.to_thread(load_embedder, settings.embedder), asyncio.to_thread(Collection.open, settings.collection)
    )
    return loaded, collection


def _id_of(loaded: LoadedEmbedder) -> str:
    return loaded.embedder.id if loaded.embedder else ""


def _with_full_ids(collection: Collection, wanted: SearchFilter | None) -> SearchFilter | None:
    """Document ids may be given as unique prefixes; an unknown one raises NotFoundError."""
    if wanted is None or wanted.doc_ids is None:
        return wanted
    return wanted.model_copy(update={"doc_ids": [collection.document(doc_id).doc_id for doc_id in wanted.doc_ids]})


def _hydrate(collection: Collection, ids: list[str]) -> tuple[dict[str, Passage], tuple[str, ...]]:
    """The passages by id, and a notice for each that is damaged on disk and therefore left out."""
    try:
        return collection.passages(ids), ()
    except CorruptionError:
        found: dict[str, Passage] = {}
        damaged = []
        for passage_id in ids:
            try:
                found |= collection.passages([passage_id])
            except CorruptionError as error:
                damaged.append(str(error))
        return found, tuple(damaged)


async def _ready(value: _T) -> _T:
    return value
