"""Searching and asking in this process, where no server runs: the retriever and the agent, without Ray."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import RunRequest, SearchRequest, SearchResponse
from vrag_ray.config import Settings
from vrag_ray.library.evidence import CollectionEvidence
from vrag_ray.policies.registry import AgentName
from vrag_ray.serving.sent_pictures import SentPictures, sent_file
from vrag_ray.types import NotFoundError, VragError

if TYPE_CHECKING:
    from vrag_ray.index.search.retriever import ShardedRetriever
    from vrag_ray.library.library import Library


class AnswerSystem(Protocol):
    """What a command needs: ``vrag_ray.client.http.AsyncClient`` is one, ``LocalSystem`` the other."""

    async def search(self, request: SearchRequest) -> SearchResponse: ...
    def ask(self, request: RunRequest) -> AsyncGenerator[Event]: ...
    async def run(self, run_id: str) -> RunRecord: ...


@asynccontextmanager
async def local_system(settings: Settings) -> AsyncIterator[LocalSystem]:
    """``settings.collection`` ready to be searched and asked. Raises NotFoundError where there is no collection."""
    from vrag_ray.index.search.retriever import ShardedRetriever
    from vrag_ray.library.library import Library

    retriever = await ShardedRetriever.start_local(settings)
    library = Library(settings, retriever.refresh)
    pictures = SentPictures()
    try:
        yield LocalSystem(settings, retriever, library, pictures)
    finally:
        pictures.close()
        library.close()
        await retriever.close()


def require_collection(root: str) -> None:
    """Raise NotFoundError, before anything is started, unless ``root`` is a collection with documents."""
    from vrag_ray.index.storage.collection import Collection

    if Collection.open(root).record is None:
        raise NotFoundError(f"the collection {root} is empty: `vrag ingest PATH --collection {root}` adds documents")


class LocalSystem:
    """See ``local_system``, which makes it."""

    def __init__(
        self, settings: Settings, retriever: ShardedRetriever, library: Library, pictures: SentPictures
    ) -> None:
        self._settings = settings
        self._pictures = pictures
        self._retriever = retriever
        self._library = library
        self._runs: dict[str, Run] = {}

    async def search(self, request: SearchRequest) -> SearchResponse:
        from vrag_ray.serving.hits import search_hit

        picture = None
        if request.picture is not None:
            picture = await self._pictures.png(sent_file(request.picture, "picture"), "picture")
        answer = await self._retriever.search(
            request.asked(picture), top_k=request.top_k, mode=request.mode, filter=request.filter
        )
        return SearchResponse(
            results=[[search_hit(hit) for hit in hits] for hits in answer.results],
            shards_ok=answer.shards_ok,
            shards_total=answer.shards_total,
            mode=answer.mode,
            retrieval_profile=self._retriever.status().profile,
            collection_version=answer.collection_version,
            notices=list(answer.notices),
        )

    async def ask(self, request: RunRequest) -> AsyncGenerator[Event]:
        from vrag_ray.serving.runs.factory import endpoint_model, make_run

        _refuse_served_model(request.agent, self._settings)
        source = CollectionEvidence(self._retriever, self._library)
        run = make_run(
            request.run_id or uuid.uuid4().hex,
            request,
            self._settings,
            source,
            endpoint_model(self._settings),
            await self._pictures.question(request.picture),
        )
        self._runs[run.run_id] = run
        async for event in run.events():
            yield event

    async def run(self, run_id: str) -> RunRecord:
        if run_id not in self._runs:
            raise NotFoundError(f"run {run_id} was not started here")
        return self._runs[run_id].record()


def _refuse_served_model(agent: str, settings: Settings) -> None:
    if settings.vllm is not None and settings.openai is None and agent != AgentName.EXTRACTIVE:
        raise VragError(
            f"agent {agent} needs the model {settings.vllm.model}, and only the service loads one: start `vrag serve` "
            "with this configuration, and ask it with --url"
        )
