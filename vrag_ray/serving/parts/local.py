"""All parts of a service in this process, on one event loop, without Ray."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.config import Settings
from vrag_ray.serving.contract import Parts
from vrag_ray.serving.ingest_jobs.child import ingest_in_child
from vrag_ray.serving.parts.agents import Agents
from vrag_ray.serving.parts.collections import ServedCollections
from vrag_ray.serving.parts.documents import Documents
from vrag_ray.serving.runs.factory import endpoint_model

if TYPE_CHECKING:
    from vrag_ray.index.search.leg_loader import LegLoader
    from vrag_ray.index.search.retriever import ShardedRetriever


@dataclass(frozen=True, slots=True)
class LocalParts(Parts):
    """The parts of this process, and what they are that no other process can use."""

    agents: Agents


@asynccontextmanager
async def local_parts(settings: Settings, *, must_load: bool = False) -> AsyncIterator[LocalParts]:
    """The parts, with all collections loaded that can be. ``must_load``: raise what hindered the main collection from
    loading."""
    collections = ServedCollections(settings, _start_retriever)
    documents = Documents(settings, collections.refresh, ingest_in_child)
    model = endpoint_model(settings)
    agents = Agents(settings, collections, documents, collections.check, model)
    try:
        await collections.loaded(must_load=must_load)
        yield LocalParts(collections, agents, agents, documents, agents)
    finally:
        await agents.aclose()
        if model is not None:
            await model.aclose()
        await documents.aclose()
        collections.close()


async def _start_retriever(settings: Settings, name: str, loader: LegLoader) -> ShardedRetriever:
    from vrag_ray.index.search.retriever import ShardedRetriever

    return await ShardedRetriever.start_local(settings, name=name, loader=loader)
