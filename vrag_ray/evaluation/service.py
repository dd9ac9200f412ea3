"""What is evaluated: a collection, in this process or in Ray actors, or a running service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from vrag_ray.client.http import AsyncClient, Client
from vrag_ray.config import Settings
from vrag_ray.index.search.retriever import RetrieverStatus
from vrag_ray.index.storage.collection import Collection
from vrag_ray.policies.registry import starting_agent
from vrag_ray.system.contract import System
from vrag_ray.system.here import local_system
from vrag_ray.training.data.named_pages import NamedDocument
from vrag_ray.types import NotFoundError

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
    """What a header says of it, its documents, the legs that can be asked, and who answers where no agent is named."""

    told: dict[str, str]
    documents: Sequence[NamedDocument]
    legs: Sequence[str]
    default_agent: str


def documents_of(settings: Settings, service: Service | None) -> Sequence[NamedDocument]:
    """Of what ``asked_system`` asks."""
    return list(Collection.open(settings.collection).documents()) if service is None else _remote(service).documents


@asynccontextmanager
async def asked_system(
    settings: Settings, service: Service | None, workers: int = 0
) -> AsyncIterator[tuple[System, Subject]]:
    """``workers`` actors open the collection, this process where there are none.

    Raises NotFoundError where there is no such collection, and as the client where the service cannot be reached.
    """
    if service is None and workers:
        from vrag_ray.evaluation.spread import spread_system

        async with spread_system(settings, workers) as (spread, status):
            yield spread, _local(status, settings)
        return
    if service is None:
        async with local_system(settings) as system:
            status = await system.status()
            yield system, _local(status, settings)
        return
    subject = _remote(service)
    async with AsyncClient(service.url, api_key=service.api_key, timeout_s=ANSWER_TIMEOUT_S) as client:
        yield client, subject


def _local(status: RetrieverStatus, settings: Settings) -> Subject:
    told = {
        "documents": str(status.documents),
        "version": str(status.version),
        "embedder": status.embedder_id or "none",
        "legs": ", ".join(status.legs),
        "candidates": str(settings.index.candidates),
        "reranker": "none" if settings.reranker is None else settings.reranker.model,
    }
    return Subject(told, documents_of(settings, None), status.legs, starting_agent(settings))


def _remote(service: Service) -> Subject:
    with Client(service.url, api_key=service.api_key) as client:
        ready = client.ready()
        served = next((one for one in ready.collections if service.collection in ("", one.name)), None)
        if served is None:
            names = ", ".join(one.name for one in ready.collections) or "none"
            raise NotFoundError(f"{service.url} has no collection {service.collection!r}: it has {names}")
        documents = client.every_document(collection=service.collection)
        models = ", ".join(client.models())
        default_agent = client.default_agent()
    told = {
        "documents": str(served.documents),
        "version": str(served.version),
        "legs": ", ".join(served.legs),
        "asked": "a running service",
        "agents and models there": models or "none",
    }
    return Subject(told, documents, served.legs, default_agent)
