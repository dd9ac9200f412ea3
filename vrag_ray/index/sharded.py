"""The retriever: dense leg over shard actors, lexical leg over Lance, fused, grouped by page and hydrated."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import Settings
from vrag_ray.embedding.load import LoadedEmbedder, load_embedder
from vrag_ray.filters import SearchFilter
from vrag_ray.index.collection import Collection
from vrag_ray.index.fusion import Fused, best_windows, fuse
from vrag_ray.index.lexical import Scored, lexical_search
from vrag_ray.index.local_shard import LocalShard
from vrag_ray.index.rows import CorruptionError
from vrag_ray.index.shard_pool import FanOut, ShardPool, ShardStatus
from vrag_ray.types import Hit, Passage, SearchAnswer, SearchMode, VragError

_T = TypeVar("_T")


class Retriever(Protocol):
    """Anything that answers queries with passages."""

    async def search(
        self,
        queries: Sequence[str],
        *,
        top_k: int = 3,
        mode: SearchMode = SearchMode.HYBRID,
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
        mode: SearchMode = SearchMode.HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        """As ``Retriever.search``. ``dense`` without an embedder is refused; ``hybrid`` says that it is lexical."""
        if mode is SearchMode.DENSE and self._embedder is None:
            raise VragError(f"dense search is not available: {self._embedder_notice}")
        used = SearchMode.LEXICAL if self._embedder is None else mode
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
        vectors = np.asarray(await asyncio.to_thread(work, list(texts)), np.float32)
        # Passages are rounded to half precision for the index, which moves their length off 1.
        normalised: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return normalised

    async def _search(
        self, collection: Collection, queries: list[str], top_k: int, mode: SearchMode, wanted: SearchFilter | None
    ) -> SearchAnswer:
        wanted = _with_full_ids(collection, wanted)
        no_windows = [list[Scored]() for _ in queries]
        nothing = (no_windows, self._pool.healthy, self._pool.problems())
        (dense, shards_ok, problems), lexical = await asyncio.gather(
            self._dense(collection, queries, top_k, wanted) if mode is not SearchMode.LEXICAL else _ready(nothing),
            self._lexical(collection, queries, top_k, wanted) if mode is not SearchMode.DENSE else _ready(no_windows),
        )
        ranked = [self._rank(mode, d, lx)[:top_k] for d, lx in zip(dense, lexical, strict=True)]
        passages, damaged = await asyncio.to_thread(_hydrate, collection, [item.id for r in ranked for item in r])
        results = []
        for items in ranked:
            hits = []
            for item in items:
                if (passage := passages.get(item.id)) is None:
                    continue
                document = collection.document(passage.doc_id)
                hits.append(Hit(passage, document.title, document.uri, item.score, item.dense, item.lexical))
            results.append(tuple(hits))
        return SearchAnswer(
            results=tuple(results),
            shards_ok=shards_ok,
            shards_total=self._pool.total,
            mode=mode,
            collection_version=collection.version,
            notices=self._notices(collection) + problems + damaged,
        )

    def _rank(self, mode: SearchMode, dense: list[Scored], lexical: list[Scored]) -> list[Fused]:
        if mode is SearchMode.DENSE:
            return [Fused(window.id, window.score, window.score, None) for window in dense]
        if mode is SearchMode.LEXICAL:
            return [Fused(window.id, window.score, None, window.score) for window in lexical]
        return fuse(dense, lexical, k=self._config.rrf_k)

    async def _dense(
        self, collection: Collection, queries: list[str], top_k: int, wanted: SearchFilter | None
    ) -> tuple[list[list[Scored]], int, tuple[str, ...]]:
        assert self._embedder is not None
        vectors: NDArray[np.float32] = await asyncio.to_thread(self._embedder.embed_queries, queries)
        helping = max(self._config.candidates, top_k)
        while True:
            found = await self._pool.search(collection.version, vectors, helping, wanted)
            grouped = [best_windows(windows) for windows in found.results]
            # Long pages have many windows: widen until there are enough pages or no more windows.
            if all(len(g) >= top_k or len(w) < helping for g, w in zip(grouped, found.results, strict=True)):
                return grouped, found.shards_ok, found.problems
            helping *= 4

    async def _lexical(
        self, collection: Collection, queries: list[str], top_k: int, wanted: SearchFilter | None
    ) -> list[list[Scored]]:
        return await asyncio.gather(
            *(asyncio.to_thread(self._lexical_one, collection, query, top_k, wanted) for query in queries)
        )

    def _lexical_one(self, collection: Collection, query: str, top_k: int, wanted: SearchFilter | None) -> list[Scored]:
        helping = max(self._config.candidates, top_k)
        while True:
            windows = lexical_search(collection, query, helping, wanted)
            grouped = best_windows(windows)
            if len(grouped) >= top_k or len(windows) < helping:
                return grouped
            helping *= 4

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
