"""What is evaluated: a collection, in this process or in Ray actors, or a running service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from vrag_ray.client.contract import System, every_document
from vrag_ray.client.http import AsyncClient
from vrag_ray.config import Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.questions.named_pages import NamedDocument
from vrag_ray.system.here import local_system
from vrag_ray.types import NotFoundError

T = TypeVar("T")
ANSWER_TIMEOUT_S = 600.0
"""Between two events of a run: a model may think for minutes."""


@dataclass(frozen=True, slots=True)
class Service:
    """A running service. ``collection`` is its name for the collection of the questions, its main collection for ""."""

    url: str
    api_key: str | None = None
    collection: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """The facts of a header, the modes of a search, and the agent that answers where none is named."""

    facts: dict[str, str]
    legs: Sequence[str]
    default_agent: str


class Systems(Protocol):
    """One system or several with the same collection, for work that any of them can do."""

    async def execute(self, work: Callable[[System], Awaitable[T]]) -> T:
        """What ``work`` returns or raises. It can be pickled where the systems are in other processes."""
        ...


@dataclass(frozen=True, slots=True)
class SingleSystem:
    """``Systems`` of a single system."""

    system: System

    async def execute(self, work: Callable[[System], Awaitable[T]]) -> T:
        return await work(self.system)


async def documents_of(settings: Settings, service: Service | None) -> Sequence[NamedDocument]:
    """Of what ``evaluated`` evaluates. Those of a collection here are known by their whole paths."""
    if service is None:
        return list(Collection.open(settings.collection).documents())
    async with AsyncClient(service.url, api_key=service.api_key) as client:
        return await every_document(client, collection=service.collection)


@asynccontextmanager
async def evaluated(
    settings: Settings, service: Service | None, workers: int = 0
) -> AsyncIterator[tuple[Systems, Subject]]:
    """``workers`` actors open the collection, this process where there are none.

    Raises NotFoundError where there is no such collection, and as the client where the service cannot be reached.
    """
    async with _opened(settings, service, workers) as systems:
        ready = await systems.execute(lambda system: system.ready())
        name = service.collection if service is not None else ""
        served = next((collection for collection in ready.collections if name in ("", collection.name)), None)
        if served is None:
            names = ", ".join(collection.name for collection in ready.collections) or "none"
            where = service.url if service is not None else settings.collection
            raise NotFoundError(f"{where} has no collection {name!r}: it has {names}")
        models = await systems.execute(lambda system: system.models())
        facts = {
            "documents": str(served.documents),
            "version": str(served.version),
            "embedder": served.embedder_id or "none",
            "legs": ", ".join(served.legs),
        }
        if service is None:
            facts["candidates"] = str(settings.index.candidates)
            facts["reranker"] = "none" if settings.reranker is None else settings.reranker.model
        else:
            facts["asked"] = "a running service"
            facts["agents and models there"] = ", ".join(models.names) or "none"
        yield systems, Subject(facts, served.legs, models.default_agent)


@asynccontextmanager
async def _opened(settings: Settings, service: Service | None, workers: int) -> AsyncIterator[Systems]:
    if service is not None:
        async with AsyncClient(service.url, api_key=service.api_key, timeout_s=ANSWER_TIMEOUT_S) as client:
            yield SingleSystem(client)
    elif workers:
        from vrag_ray.evaluation.spread import system_actors

        async with system_actors(settings, workers) as actors:
            yield actors
    else:
        async with local_system(settings) as system:
            yield SingleSystem(system)
