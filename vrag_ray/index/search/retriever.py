"""The retriever of one collection: its newest version in service, with a leg for each vector space over shards."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import IndexConfig, Settings
from vrag_ray.embedding.base import Content, EmbedError, stacked
from vrag_ray.index.search.joint_search import search_each
from vrag_ray.index.search.leg_loader import LegLoader
from vrag_ray.index.search.served_legs import load_legs
from vrag_ray.index.search.snapshot import Snapshot
from vrag_ray.index.search.titles import PREPARED, PREPARED_AT_A_TIME
from vrag_ray.index.shards.local_shard import LocalShard
from vrag_ray.index.shards.shard_index import ShardStatus
from vrag_ray.index.shards.shard_pool import ShardPool
from vrag_ray.index.shards.shards import PageQuery, Shards
from vrag_ray.index.storage.collection import Collection
from vrag_ray.types import HYBRID, LEXICAL, TEXT, Locator, NotFoundError, Query, SearchAnswer, VragError, passage_id
from vrag_ray.types.copies import with_changes
from vrag_ray.types.filters import SearchFilter


@dataclass(frozen=True, slots=True)
class RetrieverStatus:
    """What is being served. ``profile`` is ``lexical`` (no embedder), ``embedded`` (text vectors), or the names of the
    vector legs where there are more; ``legs`` are the modes that requests may name, ``heatmaps`` says whether one of
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


class ShardedRetriever:
    """See the module docstring. Made by ``start``; all methods run on the event loop that started it."""

    def __init__(self, settings: Settings, snapshot: Snapshot, loader: LegLoader) -> None:
        self._settings = settings
        self._served = snapshot
        self._loader = loader
        self._refreshing = asyncio.Lock()

    @classmethod
    async def start(
        cls,
        settings: Settings,
        *,
        name: str = "",
        loader: LegLoader | None = None,
        shard_gpus: float = 0.0,
        share: bool = False,
    ) -> ShardedRetriever:
        """Open the collection, start the shard actors (needs a running Ray) and load them.

        ``name`` is what hits call the collection. ``loader`` is shared with the retrievers of other collections.
        ``shard_gpus`` is the GPU share of a shard actor where ``index.num_gpus`` is not set. ``share``: retrievers of
        the cluster with the same settings search one set of actors. Raises NotFoundError where there is no collection.
        """
        pool = partial(ShardPool, num_gpus=shard_gpus, shared=_index_name(settings) if share else "")
        return await cls._start(settings, pool, name, loader or LegLoader())

    @classmethod
    async def start_local(
        cls, settings: Settings, *, name: str = "", loader: LegLoader | None = None
    ) -> ShardedRetriever:
        """The same in this process, without Ray: one shard that holds everything, so ``index.shards`` and
        ``index.replicas`` mean nothing; results of exact indexes are the same."""
        return await cls._start(settings, LocalShard, name, loader or LegLoader())

    @classmethod
    async def _start(
        cls, settings: Settings, shards: Callable[[str, IndexConfig], Shards], name: str, loader: LegLoader
    ) -> ShardedRetriever:
        collection = await asyncio.to_thread(Collection.open, settings.collection)
        legs = await loader.run(load_legs, settings, collection, loader)
        index = settings.index if settings.gpus != 0 else with_changes(settings.index, {"num_gpus": 0.0})
        pool = shards(collection.root, index)
        await pool.load(collection.version, legs.specs)
        return cls(settings, Snapshot(name, collection, legs, pool), loader)

    @property
    def pool(self) -> Shards:
        return self._served.shards

    @property
    def snapshot(self) -> Snapshot:
        """The version in service."""
        return self._served

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
            collection = await asyncio.to_thread(Collection.open, old.collection.root, newest, earlier=old.collection)
            legs = await self._loader.run(load_legs, self._settings, collection, self._loader)
            await self.pool.load(newest, legs.specs)
            self._served = Snapshot(old.name, collection, legs, self.pool)
            await old.unused()
            await self.pool.keep_only(newest)
            return newest

    async def close(self) -> None:
        self.pool.close()

    async def prepare_titles(self) -> None:
        """Make the vectors of the titles of the version in service, which hybrid searches else make as they need them.

        It takes half of the time of a core, so that searches find the other half; a collection of more than
        ``PREPARED`` titles has that number of them made.
        """
        served = self._served
        vectors = next((leg.titles for leg in served.legs.by_name.values() if leg.titles is not None), None)
        if vectors is None or not self._settings.index.title_weight:
            return
        titles = await asyncio.to_thread(served.collection.distinct_titles, PREPARED)
        # Of a single title, no page gains.
        for first in range(0, len(titles) if len(titles) > 1 else 0, PREPARED_AT_A_TIME):
            batch = titles[first : first + PREPARED_AT_A_TIME]
            if vectors.lacks(batch):
                began = time.monotonic()
                await asyncio.to_thread(vectors.prepare, batch)
                await asyncio.sleep(time.monotonic() - began)

    def status(self) -> RetrieverStatus:
        collection, legs = self._served.collection, self._served.legs
        statuses = self.pool.statuses()
        text = legs.by_name.get(TEXT)
        return RetrieverStatus(
            version=collection.version,
            documents=collection.document_count,
            embedder_id=text.embedder.id if text else "",
            profile=legs.profile,
            legs=(LEXICAL, *legs.by_name),
            heatmaps=any(leg.spec.multi_vector for leg in legs.by_name.values()),
            shards_ok=self.pool.healthy,
            shards_total=self.pool.total,
            shards=tuple(statuses),
            notices=legs.notices + self.pool.problems() + tuple(sorted({status.notice for status in statuses} - {""})),
        )

    async def search(
        self,
        queries: Sequence[str | Query],
        *,
        top_k: int = 3,
        mode: str = HYBRID,
        filter: SearchFilter | None = None,
    ) -> SearchAnswer:
        """``search_each`` says how."""
        [answer] = await search_each(
            [self._served], [queries], top_k=top_k, mode=mode, filter=filter, index=self._settings.index
        )
        return answer

    async def heat(self, query: str | Query, doc_id: str, page: int) -> NDArray[np.float32]:
        """Where on a page ``query`` is seen, [rows, columns], by the first leg that can tell.

        Raises NotFoundError where no leg knows places on that page.
        """
        with self._served.in_use():
            return await self._heat(self._served, Query.of(query), doc_id, page)

    async def _heat(self, served: Snapshot, query: Query, doc_id: str, page: int) -> NDArray[np.float32]:
        document = served.collection.document(doc_id)
        queried = PageQuery(passage_id(document.doc_id, Locator(page=page), 0), document.doc_id, 0)
        for leg in served.legs.by_name.values():
            part = leg.part_of(query)
            if not leg.spec.multi_vector or part is None:
                continue
            [read] = await leg.read([part])
            if isinstance(read.embedded, EmbedError):
                raise read.embedded
            assert read.embedded is not None, "every query is embedded where no share of it is required"
            [traits] = await self.pool.page_traits(
                served.collection.version, leg.name, [queried], [read.embedded.vectors]
            )
            if traits is not None and traits.heat is not None:
                return traits.heat
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
            raise VragError(f"embeddings are not available: {self._served.legs.missing[TEXT]}")
        work = text.embedder.embed_queries if queries else text.embedder.embed_passages
        return stacked(await asyncio.to_thread(work, [Content(text) for text in texts]))


def _index_name(settings: Settings) -> str:
    """The same for settings that make the same indexes, as the name of their actors."""
    made_of = settings.model_dump_json(include={"gpus", "collection", "index", "spaces"})
    return hashlib.sha256(made_of.encode()).hexdigest()[:16]
