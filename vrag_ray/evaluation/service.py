"""What is evaluated: a collection, in this process or in Ray actors, or a running service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from vrag_ray.agent.events import Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.contract import every_document
from vrag_ray.client.http import AsyncClient
from vrag_ray.client.schemas import ModelNames, Ready, RunRequest, SearchRequest, SearchResponse
from vrag_ray.config import Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.questions.named_pages import NamedDocument
from vrag_ray.system.here import local_system
from vrag_ray.types import Box, NotFoundError

ANSWER_TIMEOUT_S = 600.0
"""Between two events of a run: a model may think for minutes."""


@dataclass(frozen=True, slots=True)
class Service:
    """A running one. ``collection`` is what it calls the one that is asked about, its main one where "" is given."""

    url: str
    api_key: str | None = None
    collection: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """The facts of a header, the modes of a search, and the agent that answers where none is named."""

    facts: dict[str, str]
    legs: Sequence[str]
    default_agent: str


class EvaluatedSystem(Protocol):
    """What an evaluation needs of a ``System``: several processes can be one."""

    async def search(self, request: SearchRequest) -> SearchResponse: ...
    def ask(self, request: RunRequest) -> AsyncGenerator[Event]: ...
    async def run(self, run_id: str) -> RunRecord: ...
    async def page_png(self, doc_id: str, page: int, *, dpi: float = ..., box: Box | None = None) -> bytes: ...
    async def frame_png(self, doc_id: str, seconds: float) -> bytes: ...
    async def ready(self) -> Ready: ...
    async def models(self) -> ModelNames: ...


async def documents_of(settings: Settings, service: Service | None) -> Sequence[NamedDocument]:
    """Of what ``evaluated_system`` evaluates. Those of a collection here are known by their whole paths."""
    if service is None:
        return list(Collection.open(settings.collection).documents())
    async with AsyncClient(service.url, api_key=service.api_key) as client:
        return await every_document(client, collection=service.collection)


@asynccontextmanager
async def evaluated_system(
    settings: Settings, service: Service | None, workers: int = 0
) -> AsyncIterator[tuple[EvaluatedSystem, Subject]]:
    """``workers`` actors open the collection, this process where there are none.

    Raises NotFoundError where there is no such collection, and as the client where the service cannot be reached.
    """
    async with _opened(settings, service, workers) as system:
        ready = await system.ready()
        name = service.collection if service is not None else ""
        served = next((collection for collection in ready.collections if name in ("", collection.name)), None)
        if served is None:
            names = ", ".join(collection.name for collection in ready.collections) or "none"
            where = service.url if service is not None else settings.collection
            raise NotFoundError(f"{where} has no collection {name!r}: it has {names}")
        models = await system.models()
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
        yield system, Subject(facts, served.legs, models.default_agent)


def _opened(settings: Settings, service: Service | None, workers: int) -> AbstractAsyncContextManager[EvaluatedSystem]:
    if service is not None:
        return AsyncClient(service.url, api_key=service.api_key, timeout_s=ANSWER_TIMEOUT_S)
    if workers:
        from vrag_ray.evaluation.spread import spread_system

        return spread_system(settings, workers)
    return local_system(settings)
