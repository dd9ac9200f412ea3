"""One evaluation over several Ray actors, each with the collection open in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from vrag_ray.client.contract import System
from vrag_ray.config import Settings
from vrag_ray.serving.portable_settings import absolute_settings
from vrag_ray.serving.system import ServedSystem
from vrag_ray.system.here import local_system

if TYPE_CHECKING:
    from ray.actor import ActorHandle

T = TypeVar("T")
CPUS_OF_AN_ACTOR = 1


class SystemActor:
    """A ``local_system`` of its own."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opened = AsyncExitStack()
        self._system: ServedSystem | None = None

    async def start(self) -> None:
        self._system = await self._opened.enter_async_context(local_system(self._settings))

    async def execute(self, work: Callable[[System], Awaitable[T]]) -> T:
        """What ``work`` returns or raises."""
        if self._system is None:
            raise RuntimeError("start() comes first")
        return await work(self._system)

    async def stop(self) -> None:
        await self._opened.aclose()


class SystemActors:
    """``Systems`` in actors: each work goes to the actor that has least to do."""

    def __init__(self, actors: list[ActorHandle[SystemActor]]) -> None:
        self._actors = actors
        self._busy = [0] * len(actors)

    async def execute(self, work: Callable[[System], Awaitable[T]]) -> T:
        number = min(range(len(self._actors)), key=self._busy.__getitem__)
        self._busy[number] += 1
        try:
            result: T = await self._actors[number].execute.remote(work)
            return result
        finally:
            self._busy[number] -= 1


@asynccontextmanager
async def system_actors(settings: Settings, count: int) -> AsyncIterator[SystemActors]:
    """On the Ray that this process works on. Raises what opening the collection raises, there as here."""
    import ray
    from ray.exceptions import RayTaskError

    made = ray.remote(SystemActor).options(num_cpus=CPUS_OF_AN_ACTOR, max_concurrency=1_000)
    # Nodes of a cluster have another working folder.
    own = absolute_settings(settings)
    actors = [made.remote(own) for _ in range(count)]
    try:
        try:
            await asyncio.gather(*(actor.start.remote() for actor in actors))
        except RayTaskError as error:
            raise error.cause from error
        yield SystemActors(actors)
    finally:
        await asyncio.gather(*(actor.stop.remote() for actor in actors), return_exceptions=True)
        for actor in actors:
            ray.kill(actor)
