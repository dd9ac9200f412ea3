"""One evaluation over several Ray actors, each with the collection open in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from vrag_ray.agent.events import Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import ModelNames, Ready, RunRequest, SearchRequest, SearchResponse
from vrag_ray.config import Settings
from vrag_ray.serving.portable_settings import absolute_settings
from vrag_ray.serving.system import ServedSystem
from vrag_ray.system.here import local_system
from vrag_ray.types import Box, NotFoundError

if TYPE_CHECKING:
    from ray.actor import ActorHandle

CPUS_OF_A_WORKER = 1


class SystemActor:
    """A ``local_system`` of its own. A search or run that fails raises what it raised there."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened = AsyncExitStack()
        self._system: ServedSystem | None = None

    async def start(self) -> None:
        self._system = await self._opened.enter_async_context(local_system(self._settings))

    async def search(self, request: SearchRequest) -> SearchResponse:
        return await self._started().search(request)

    async def record(self, request: RunRequest) -> RunRecord:
        """Of the whole run. ``request`` names it."""
        system = self._started()
        async for _ in system.ask(request):
            pass
        return await system.run(request.run_id or "")

    async def page_png(self, doc_id: str, page: int, dpi: float, box: Box | None) -> bytes:
        return await self._started().page_png(doc_id, page, dpi=dpi, box=box)

    async def frame_png(self, doc_id: str, seconds: float) -> bytes:
        return await self._started().frame_png(doc_id, seconds)

    async def ready(self) -> Ready:
        return await self._started().ready()

    async def models(self) -> ModelNames:
        return await self._started().models()

    async def stop(self) -> None:
        await self._opened.aclose()

    def _started(self) -> ServedSystem:
        if self._system is None:
            raise RuntimeError("start() comes first")
        return self._system


class SpreadSystem:
    """An ``EvaluatedSystem``: each request goes to the actor that has fewest. Events of a run come when it is over."""

    def __init__(self, actors: list[ActorHandle[SystemActor]]) -> None:
        self._actors = actors
        self._busy = [0] * len(actors)
        self._records: dict[str, RunRecord] = {}

    async def search(self, request: SearchRequest) -> SearchResponse:
        reply: SearchResponse = await self._called("search", request)
        return reply

    async def ask(self, request: RunRequest) -> AsyncGenerator[Event]:
        """``request`` has a run id. Its record is kept until it is fetched."""
        record: RunRecord = await self._called("record", request)
        self._records[record.run_id] = record
        for event in record.events:
            yield event

    async def run(self, run_id: str) -> RunRecord:
        if run_id not in self._records:
            raise NotFoundError(f"run {run_id} was not started here, or was fetched before")
        return self._records.pop(run_id)

    async def page_png(self, doc_id: str, page: int, *, dpi: float = 150.0, box: Box | None = None) -> bytes:
        png: bytes = await self._called("page_png", doc_id, page, dpi, box)
        return png

    async def frame_png(self, doc_id: str, seconds: float) -> bytes:
        png: bytes = await self._called("frame_png", doc_id, seconds)
        return png

    async def ready(self) -> Ready:
        ready: Ready = await self._called("ready")
        return ready

    async def models(self) -> ModelNames:
        models: ModelNames = await self._called("models")
        return models

    async def _called(self, method: str, *given: SearchRequest | RunRequest | Box | str | float | None) -> Any:
        number = min(range(len(self._actors)), key=self._busy.__getitem__)
        self._busy[number] += 1
        try:
            return await getattr(self._actors[number], method).remote(*given)
        finally:
            self._busy[number] -= 1


@asynccontextmanager
async def spread_system(settings: Settings, workers: int) -> AsyncIterator[SpreadSystem]:
    """On the Ray that this process works on. Raises what opening the collection raises, there as here."""
    import ray
    from ray.exceptions import RayTaskError

    made = ray.remote(SystemActor).options(num_cpus=CPUS_OF_A_WORKER, max_concurrency=1_000)
    # Nodes of a cluster have another working folder.
    own = absolute_settings(settings)
    actors = [made.remote(own) for _ in range(workers)]
    try:
        try:
            await asyncio.gather(*(actor.start.remote() for actor in actors))
        except RayTaskError as error:
            raise error.cause from error
        yield SpreadSystem(actors)
    finally:
        await asyncio.gather(*(actor.stop.remote() for actor in actors), return_exceptions=True)
        for actor in actors:
            ray.kill(actor)
