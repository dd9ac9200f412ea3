"""The retriever: a leg for each vector space over shard actors, the lexical leg over Lance; fused, grouped by page,
hydrated, and told where on a page the query was seen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import Settings
from vrag_ray.embedding.base import Content, EmbedError, stacked
from vrag_ray.index.search.fusion import Fused, Leg, best_windows
from vrag_ray.index.search.legs import LEAST_READABLE, lexical_leg, query_notices, rank
from vrag_ray.index.search.modes import refuse_unseen, used_mode
from vrag_ray.index.search.seen import seen
from vrag_ray.index.search.served_legs import ServedLegs, load_legs
from vrag_ray.index.search.vector_leg import VectorLeg
from vrag_ray.index.shards.local_shard import LocalShard
from vrag_ray.index.shards.shard_index import ShardStatus
from vrag_ray.index.shards.shard_pool import ShardPool
from vrag_ray.index.shards.shards import FanOut, Look, Shards
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.rows import CorruptionError
from vrag_ray.types import (
    HYBRID,
    LEXICAL,
    TEXT,
    Hit,
    Locator,
    NotFoundError,
    Passage,
    Query,
    SearchAnswer,
    VragError,
    passage_id,
)
from vrag_ray.types.filters import SearchFilter

UNSEEN = (
    "the picture of the query was not searched, its words were: that takes a vector space of pictures, which "
    "`vrag embed` makes (docs/retrieval.md)"
)


class Retriever(Protocol):
    """Anything that answers queries with passages."""

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        """``top_k`` pages, pictures, clips or spans for each query, best first, with each one's best window."""
        ...


@dataclass(frozen=True, slots=True)
class RetrieverStatus:
    """What is being served. ``profile`` is ``lexical`` (no embedder), ``embedded`` (text vectors), or the names of the
    vector legs where there are more; ``legs`` are the modes that can be asked for, ``heatmaps`` says whether one of
    them is of late interaction, which tells where on a page a query is seen."""

    version: int
    documents: int
    embedder_id: str
    profile: str
    legs: tuple[str, ...]
    heatmaps: bool
    shards_ok: int
    shards_total: int
    shards: tuple[ShardStatus, ...]
    notices: tuple[str, ...]


@dataclass
class _Served:
    """One collection version in service with its legs, and how many searches still use it."""

    collection: Collection
    legs: ServedLegs
    active: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class _Asked:
    """One vector leg within one search: the queries that it was asked, their vectors or why there are none, and what it
    found."""

    leg: VectorLeg
    readable: dict[int, float]
    vectors: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    faults: dict[int, str] = field(default_factory=dict)
    found: dict[int, Leg] = field(default_factory=dict)
    fan: FanOut | None = None
    """Of the last search of the shards; None where nothing was asked of them."""


class ShardedRetriever:
    """See the module docstring. Made by ``start``; all methods run on the event loop that started it."""

    def __init__(self, settings: Settings, collection: Collection, legs: ServedLegs, pool: Shards) -> None:
        self._settings = settings
        self._config = settings.index
        self._pool = pool
        self._served = _Served(collection, legs)
        self._refreshing = asyncio.Lock()

    @classmethod
    async def start(cls, settings: Settings) -> ShardedRetriever:
        """Open the collection, start the shard actors (needs a running Ray) and load them.

        Raises NotFoundError where there is no collection.
        """
        collection, legs = await asyncio.to_thread(_opened, settings)
        return await cls._started(settings, collection, legs, ShardPool(collection.root, settings.index))

    @classmethod
    async def start_local(cls, settings: Settings) -> ShardedRetriever:
        """The same in this process, without Ray: one shard that holds everything, so ``index.shards`` and
        ``index.replicas`` mean nothing; results are the same."""
        collection, legs = await asyncio.to_thread(_opened, settings)
        return await cls._started(settings, collection, legs, LocalShard(collection.root, settings.index))

    @classmethod
    async def _started(
        cls, settings: Settings, collection: Collection, legs: ServedLegs, pool: Shards
    ) -> ShardedRetriever:
        await pool.load(collection.version, legs.specs)
        return cls(settings, collection, legs, pool)

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
            legs = await asyncio.to_thread(load_legs, self._settings, collection, old.legs)
            await self._pool.load(newest, legs.specs)
            self._served = _Served(collection, legs)
            if old.active:
                await old.idle.wait()
            await self._pool.keep_only(newest)
            return newest

    async def close(self) -> None:
        self._pool.close()

    def status(self) -> RetrieverStatus:
        collection, legs = self._served.collection, self._served.legs
        text = legs.by_name.get(TEXT)
        return RetrieverStatus(
            version=collection.version,
            documents=len(collection.documents()),
            embedder_id=text.embedder.id if text else "",
            profile=legs.profile,
            legs=(LEXICAL, *legs.by_name),
            heatmaps=any(leg.spec.multi_vector for leg in legs.by_name.values()),
            shards_ok=self._pool.healthy,
            shards_total=self._pool.total,
            shards=tuple(self._pool.statuses()),
            notices=legs.notices + self._pool.problems(),
        )

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        """As ``Retriever.search``. A leg that is not there is refused by name; ``hybrid`` without any vector leg says
        that it is lexical."""
        asked = [Query.of(query) for query in queries]
        served = self._served
        used = used_mode(mode, served.legs)
        refuse_unseen(asked, used, served.legs)
        served.active += 1
        served.idle.clear()
        try:
            return await self._search(served, asked, top_k, used, filter)
        finally:
            served.active -= 1
            if served.active == 0:
                served.idle.set()

    async def heat(self, query: str | Query, doc_id: str, page: int) -> NDArray[np.float32]:
        """Where on a page ``query`` is seen, [rows, columns], by the first leg that can tell.

        Raises NotFoundError where no leg knows places on that page.
        """
        served, asked = self._served, Query.of(query)
        document = served.collection.document(doc_id)
        look = Look(passage_id(document.doc_id, Locator(page=page), 0), document.doc_id, 0)
        for leg in served.legs.by_name.values():
            part = leg.part_of(asked)
            if not leg.spec.multi_vector or part is None:
                continue
            [vectors] = await leg.vectors([part])
            if isinstance(vectors, EmbedError):
                raise vectors
            [sight] = await self._pool.sights(served.collection.version, leg.name, [look], [vectors])
            if sight is not None and sight.heat is not None:
                return sight.heat
        raise NotFoundError(
            f"page {page} of document {doc_id} has no heat map: that takes a vector space of late interaction, and "
            f"this collection has {', '.join(served.legs.by_name) or 'no vectors'}"
        )

    async def embed(self, texts: Sequence[str], *, queries: bool) -> NDArray[np.float32]:
        """Vectors of length 1, shape ``(len(texts), dim)``: as questions, or as passages to be found.

        Raises VragError where there is no embedder of texts; the message says why.
        """
        text = self._served.legs.by_name.get(TEXT)
        if text is None:
            raise VragError(f"embeddings are not available: {self._served.legs.text_notice}")
        work = text.embedder.embed_queries if queries else text.embedder.embed_passages
        return stacked(await asyncio.to_thread(work, [Content(one) for one in texts]))

    async def _search(
        self, served: _Served, queries: list[Query], top_k: int, mode: str, wanted: SearchFilter | None
    ) -> SearchAnswer:
        collection = served.collection
        wanted = _with_full_ids(collection, wanted)
        legs = [leg for leg in served.legs.by_name.values() if mode in (HYBRID, leg.name)]
        asked, lexical = await asyncio.gather(
            asyncio.gather(*(self._vector(collection, leg, queries, top_k, mode, wanted) for leg in legs)),
            self._lexical(collection, queries, top_k, wanted) if mode in (HYBRID, LEXICAL) else _ready({}),
        )
        ranked = [
            rank(mode, [one.found[n] for one in asked if n in one.found], lexical.get(n))[:top_k]
            for n in range(len(queries))
        ]
        passages, damaged = await asyncio.to_thread(_hydrate, collection, [item.id for r in ranked for item in r])
        hits = [
            [_hit(collection, item, passages[item.id]) for item in items if item.id in passages] for items in ranked
        ]
        results = await seen(self._pool, collection.version, hits, [(one.leg, one.vectors) for one in asked])
        told = self._query_notices(served, queries, mode, asked, lexical, filtered=wanted is not None)
        fans = [one.fan for one in asked if one.fan is not None]
        problems = tuple(dict.fromkeys(problem for fan in fans for problem in fan.problems))
        return SearchAnswer(
            results=tuple(results),
            shards_ok=min((fan.shards_ok for fan in fans), default=self._pool.healthy),
            shards_total=self._pool.total,
            mode=mode,
            collection_version=collection.version,
            notices=served.legs.notices + (problems or self._pool.problems()) + damaged + told,
        )

    async def _asked(self, leg: VectorLeg, queries: list[Query], mode: str) -> _Asked:
        """The leg with the vectors of those queries that it has something to say about."""
        parts = {n: part for n, query in enumerate(queries) if (part := leg.part_of(query)) is not None}
        readable = dict(zip(parts, await leg.readable(list(parts.values())), strict=True)) if parts else {}
        # A vector of what the embedder cannot read is noise: only who asks for the leg by name gets it.
        chosen = [n for n, share in readable.items() if share >= LEAST_READABLE or mode != HYBRID]
        found = dict(zip(chosen, await leg.vectors([parts[n] for n in chosen]), strict=True)) if chosen else {}
        faults = {n: str(one) for n, one in found.items() if isinstance(one, EmbedError)}
        if faults and mode != HYBRID:
            raise VragError(f"the query cannot be searched by {leg.name}: {next(iter(faults.values()))}")
        vectors = {n: one for n, one in found.items() if not isinstance(one, EmbedError)}
        return _Asked(leg, readable, vectors, faults)

    async def _vector(
        self,
        collection: Collection,
        leg: VectorLeg,
        queries: list[Query],
        top_k: int,
        mode: str,
        wanted: SearchFilter | None,
    ) -> _Asked:
        """The leg with what it found for those queries."""
        asked = await self._asked(leg, queries, mode)
        numbers, vectors = list(asked.vectors), list(asked.vectors.values())
        fetch_k = max(self._config.candidates, top_k)
        while len(asked.found) < len(numbers):
            asked.fan = await self._pool.search(collection.version, leg.name, vectors, fetch_k, wanted)
            for number, windows in zip(numbers, asked.fan.results, strict=True):
                found = Leg(leg.name, best_windows(windows), len(windows) < fetch_k, leg.weight)
                # Long pages have many windows: widen until there are enough pages or no more windows.
                if len(found.pages) >= top_k or found.complete:
                    # The first that suffices counts: what is fused must not depend on the other queries.
                    asked.found.setdefault(number, found)
            fetch_k *= 4
        return asked

    async def _lexical(
        self, collection: Collection, queries: list[Query], top_k: int, wanted: SearchFilter | None
    ) -> dict[int, Leg]:
        limits = {"top_k": top_k, "candidates": self._config.candidates}
        numbers = [n for n, query in enumerate(queries) if query.text.strip()]
        found = await asyncio.gather(
            *(asyncio.to_thread(lexical_leg, collection, queries[n].text, **limits, wanted=wanted) for n in numbers)
        )
        return dict(zip(numbers, found, strict=True))

    def _query_notices(
        self,
        served: _Served,
        queries: list[Query],
        mode: str,
        asked: Sequence[_Asked],
        lexical: dict[int, Leg],
        *,
        filtered: bool,
    ) -> tuple[str, ...]:
        if not served.collection.documents():
            return ()
        told: dict[str, None] = {}
        if any(query.picture is not None for query in queries) and not any(one.leg.sees for one in asked):
            told[UNSEEN] = None
        if not asked:
            return tuple(told)
        for one in asked:
            for fault in one.faults.values():
                told[f"the leg {one.leg.name} was left out: {fault}"] = None
        for n, query in enumerate(queries):
            shares = {one.leg.embedder.id: one.readable[n] for one in asked if n in one.readable}
            unread = {embedder: share for embedder, share in shares.items() if share < LEAST_READABLE}
            notices = query_notices(
                query, mode, unread=unread, embedders=len(shares), lexical=lexical.get(n), filtered=filtered
            )
            told |= dict.fromkeys(notices)
        return tuple(told)


def _opened(settings: Settings) -> tuple[Collection, ServedLegs]:
    """Blocking."""
    collection = Collection.open(settings.collection)
    return collection, load_legs(settings, collection)


def _hit(collection: Collection, item: Fused, passage: Passage) -> Hit:
    document = collection.document(passage.doc_id)
    return Hit(passage, document.title, document.uri, item.score, item.by_leg)


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


async def _ready(value: dict[int, Leg]) -> dict[int, Leg]:
    return value
