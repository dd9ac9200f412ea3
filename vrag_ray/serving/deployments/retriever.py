"""The retriever deployment: one ShardedRetriever, kept at the newest version of the collection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vrag_ray.config import Settings
from vrag_ray.serving.backends import Found, RetrieverState
from vrag_ray.serving.errors import InvalidError, NotReadyError
from vrag_ray.types import Query, VragError
from vrag_ray.types.filters import SearchFilter
from vrag_ray.types.redaction import public_uri, scrub

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vrag_ray.index.search.retriever import Retriever, ShardedRetriever

log = logging.getLogger("vrag_ray.serving")


class RetrieverService:
    """Starts in the background: until then, and where it cannot start, it says why and tries again."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits constructors
        self._settings = settings
        self._retriever: ShardedRetriever | None = None
        self._search: Retriever | None = None
        self._why = "starting"
        self._stale = ""
        self._starting = asyncio.Lock()
        self._poll = asyncio.create_task(self._keep_fresh(), name="collection-poll")

    async def search(self, queries: Sequence[str | Query], top_k: int, mode: str, filter: SearchFilter | None) -> Found:
        retriever = self._ready()
        search = self._search or retriever
        from vrag_ray.index.search.modes import NoSuchLegError

        try:
            answer = await search.search(queries, top_k=top_k, mode=mode, filter=filter)
        except NoSuchLegError as error:
            raise InvalidError(str(error), param="mode") from error
        return Found(answer, retriever.status().profile)

    async def embed(self, texts: Sequence[str], queries: bool) -> NDArray[np.float32]:
        """As ``ShardedRetriever.embed``."""
        return await self._ready().embed(texts, queries=queries)

    async def heat(self, query: str, doc_id: str, page: int) -> NDArray[np.float32]:
        """As ``ShardedRetriever.heat``."""
        return await self._ready().heat(query, doc_id, page)

    async def refresh(self) -> int:
        """Serve the newest version from now on; its number."""
        return await (await self._started()).refresh()

    async def state(self) -> RetrieverState:
        collection = public_uri(self._settings.collection)
        if self._retriever is None:
            return RetrieverState(ready=False, collection=collection, why=self._why)
        status = self._retriever.status()
        missing = status.shards_total - status.shards_ok
        return RetrieverState(
            ready=status.shards_ok > 0 or status.shards_total == 0,
            collection=collection,
            why=f"{missing} of {status.shards_total} index shards do not answer" if missing else "",
            version=status.version,
            profile=status.profile,
            shards_ok=status.shards_ok,
            shards_total=status.shards_total,
            documents=status.documents,
            notices=(*status.notices, self._stale) if self._stale else status.notices,
            embedder_id=status.embedder_id,
            legs=status.legs,
            heatmaps=status.heatmaps,
        )

    def _ready(self) -> ShardedRetriever:
        if self._retriever is None:
            raise NotReadyError(f"the retriever is not ready: {self._why}")
        return self._retriever

    async def _started(self) -> ShardedRetriever:
        from vrag_ray.index.search.retriever import ShardedRetriever
        from vrag_ray.library.library import Library
        from vrag_ray.library.reranked import with_reranker

        async with self._starting:
            if self._retriever is None:
                retriever = await ShardedRetriever.start(self._settings)
                # Where pages are read again, this deployment draws them itself: another's would cost a hop a page.
                library = Library(self._settings, retriever.refresh)
                self._search = await with_reranker(self._settings, retriever, library)
                self._retriever = retriever
            return self._retriever

    async def _keep_fresh(self) -> None:
        while True:
            try:
                await self.refresh()
                self._why = self._stale = ""
            except VragError as error:
                self._note(scrub(str(error)))
            except Exception:
                log.exception("the retriever cannot serve the newest version")
                self._note("it failed; the server's log has the reason")
            await asyncio.sleep(self._settings.serving.refresh_s)

    def _note(self, problem: str) -> None:
        self._why = problem
        self._stale = f"an older version is served, the newest cannot be loaded: {problem}"
