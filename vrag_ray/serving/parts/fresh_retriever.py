"""The retriever of one served collection: started in the background, and always at the collection's newest version."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from vrag_ray.config import Settings
from vrag_ray.serving.contract import RetrieverState
from vrag_ray.serving.errors import NotReadyError
from vrag_ray.types import VragError
from vrag_ray.types.redaction import scrub

if TYPE_CHECKING:
    from vrag_ray.index.search.retriever import ShardedRetriever

log = logging.getLogger("vrag_ray.serving")


class FreshRetriever:
    """A ``Member`` of the collections that are served. Where it cannot start, it says why and tries again."""

    def __init__(self, settings: Settings, name: str, start: Callable[[], Awaitable[ShardedRetriever]]) -> None:
        """``start`` makes the retriever of ``settings.collection``, which is called ``name``."""
        self._settings, self._name, self._start = settings, name, start
        self._retriever: ShardedRetriever | None = None
        self._why = "starting"
        self._stale = ""
        self._fault: Exception | None = None
        self._starting = asyncio.Lock()
        self._tried = asyncio.Event()
        self._preparing: asyncio.Task[None] | None = None
        self._prepared_version = 0
        self._poll = asyncio.create_task(self._keep_fresh(), name=f"collection-poll-{name}")

    async def retriever(self) -> ShardedRetriever:
        """Raises NotReadyError where it has not started."""
        if self._retriever is None:
            raise NotReadyError(f"the retriever of the collection {self._name} is not ready: {self._why}")
        return self._retriever

    def require(self) -> None:
        """Raise what the last attempt to load the newest version raised, as it was raised."""
        if self._fault is not None:
            raise self._fault

    async def refresh(self) -> int:
        """Serve the newest version from now on; its number."""
        return await (await self._started()).refresh()

    async def tried(self) -> None:
        """Returns once the first attempt to start has ended, in whatever way."""
        await self._tried.wait()

    def state(self) -> RetrieverState:
        if self._retriever is None:
            return RetrieverState(ready=False, collection=self._name, why=self._why)
        status = self._retriever.status()
        notices = tuple(map(scrub, status.notices))
        missing = status.shards_total - status.shards_ok
        return RetrieverState(
            ready=status.shards_ok > 0 or status.shards_total == 0,
            collection=self._name,
            why=f"{missing} of {status.shards_total} index shards do not answer" if missing else "",
            version=status.version,
            profile=status.profile,
            shards_ok=status.shards_ok,
            shards_total=status.shards_total,
            documents=status.documents,
            notices=(*notices, self._stale) if self._stale else notices,
            embedder_id=status.embedder_id,
            legs=status.legs,
            heatmaps=status.heatmaps,
        )

    def close(self) -> None:
        self._poll.cancel()
        if self._preparing is not None:
            self._preparing.cancel()
        if self._retriever is not None:
            self._retriever.pool.close()

    async def _started(self) -> ShardedRetriever:
        async with self._starting:
            if self._retriever is None:
                self._retriever = await self._start()
            return self._retriever

    async def _keep_fresh(self) -> None:
        while True:
            try:
                version = await self.refresh()
                self._prepare(version)
                self._why = self._stale = ""
                self._fault = None
            except VragError as error:
                self._note(scrub(str(error)), error)
            except Exception as error:
                log.exception("the retriever cannot serve the newest version of %s", self._name)
                self._note("it failed; the server's log has the reason", error)
            self._tried.set()
            await asyncio.sleep(self._settings.serving.refresh_s)

    def _prepare(self, version: int) -> None:
        """Begin to make the vectors of the titles of a new version. Searches do not wait for them."""
        if version == self._prepared_version or self._retriever is None:
            return
        if self._preparing is not None:
            self._preparing.cancel()
        self._prepared_version = version
        self._preparing = asyncio.create_task(self._retriever.prepare_titles(), name=f"titles-{self._name}")
        self._preparing.add_done_callback(_log_fault)

    def _note(self, problem: str, fault: Exception) -> None:
        self._fault = fault
        self._why = problem
        self._stale = f"an older version is served, the newest cannot be loaded: {problem}"


def _log_fault(preparing: asyncio.Task[None]) -> None:
    if not preparing.cancelled() and (fault := preparing.exception()) is not None:
        log.warning("titles are embedded when searches need them, for they could not be before: %s", fault)
