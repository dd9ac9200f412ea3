"""Searching and asking in this process, where no server runs: the retriever and the agent, without Ray."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import CollectionChoice, RunRequest, SearchRequest, SearchResponse, collection_names
from vrag_ray.config import AgentName, Settings
from vrag_ray.library.evidence import LibraryEvidence
from vrag_ray.policies.registry import starting_agent
from vrag_ray.serving.placement import local_placement
from vrag_ray.serving.sent_pictures import SentPictures, sent_file
from vrag_ray.types import Box, NotFoundError, VragError

if TYPE_CHECKING:
    from vrag_ray.embedding.reranker import Reranker
    from vrag_ray.index.search.federated import FederatedRetriever
    from vrag_ray.index.search.retriever import Retriever, RetrieverStatus
    from vrag_ray.library.library import Library
    from vrag_ray.policies.llm.openai_api import OpenAiModel


KEPT_RUNS = 1_000
"""That a ``LocalSystem`` still knows: whoever asks thousands takes each run when it is over."""


@asynccontextmanager
async def local_system(
    settings: Settings, *, on_line: Callable[[str], None] | None = None
) -> AsyncIterator[LocalSystem]:
    """``settings.served`` ready to be searched and asked: the main collection now, others when they are first named.

    ``on_line`` is called with what runs on which device before it does; None: that is logged.
    Raises NotFoundError where there is no main collection.
    """
    from vrag_ray.index.search.federated import FederatedRetriever, local_members
    from vrag_ray.library.library import Library
    from vrag_ray.library.reranked import reranker_of

    local_placement(settings).report(on_line)
    members = local_members(settings)
    library = Library(settings)
    pictures = SentPictures()
    try:
        federated = FederatedRetriever(members, settings.index.candidates)
        await federated.member()
        system = LocalSystem(settings, federated, library, pictures, await reranker_of(settings))
        try:
            yield system
        finally:
            await system.aclose()
    finally:
        pictures.close()
        library.close()
        for member in members.values():
            await member.close()


def require_collection(root: str) -> None:
    """Raise NotFoundError, before anything is started, unless ``root`` is a collection with documents."""
    from vrag_ray.index.storage.collection import Collection

    if Collection.open(root).record is None:
        raise NotFoundError(f"the collection {root} is empty: `vrag ingest PATH --collection {root}` adds documents")


class LocalSystem:
    """See ``local_system``, which makes it."""

    def __init__(
        self,
        settings: Settings,
        federated: FederatedRetriever,
        library: Library,
        pictures: SentPictures,
        reranker: Reranker | None,
    ) -> None:
        self._settings = settings
        self._pictures = pictures
        self._federated = federated
        self._library = library
        self._reranker = reranker
        self._runs: dict[str, Run] = {}
        self._model: OpenAiModel | None = None

    async def aclose(self) -> None:
        """Close its connections to the language model."""
        if self._model is not None:
            await self._model.aclose()

    async def status(self) -> RetrieverStatus:
        """Of the main collection."""
        return (await self._federated.member()).status()

    async def search(self, request: SearchRequest) -> SearchResponse:
        from vrag_ray.serving.hits import search_hit

        picture = None
        if request.picture is not None:
            picture = await self._pictures.png(sent_file(request.picture, "picture"), "picture")
        answer = await self._chosen(request.collection).search(
            request.asked(picture), top_k=request.top_k, mode=request.mode, filter=request.filter
        )
        first = await self._federated.member(answer.collections[0])
        return SearchResponse(
            results=[[search_hit(hit) for hit in hits] for hits in answer.results],
            shards_ok=answer.shards_ok,
            shards_total=answer.shards_total,
            mode=answer.mode,
            retrieval_profile=first.snapshot.legs.profile,
            collection_version=answer.collection_version,
            collections=list(answer.collections),
            notices=list(answer.notices),
        )

    async def ask(self, request: RunRequest) -> AsyncGenerator[Event]:
        from vrag_ray.serving.runs.factory import endpoint_model, make_run

        _refuse_served_model(request.agent or starting_agent(self._settings), self._settings)
        if request.collection is not None or (request.filter is not None and request.filter.doc_ids):
            # Now, and not as a failed search of every step.
            await self._federated.check(collection_names(request.collection), filter=request.filter)
        source = LibraryEvidence(self._chosen(request.collection), self._library)
        # Once, and only for questions: it remembers what its endpoint refuses, and importing the SDK takes a second.
        self._model = self._model or endpoint_model(self._settings)
        run = make_run(
            request.run_id or uuid.uuid4().hex,
            request,
            self._settings,
            source,
            self._model,
            await self._pictures.question(request.picture),
        )
        self._runs[run.run_id] = run
        while len(self._runs) > KEPT_RUNS:
            self._runs.pop(next(iter(self._runs)))
        async for event in run.events():
            yield event

    def _chosen(self, collection: CollectionChoice) -> Retriever:
        from vrag_ray.library.reranked import reranked

        chosen = self._federated.choose(collection_names(collection))
        return reranked(self._settings, chosen, self._library, self._reranker)

    async def page_png(self, doc_id: str, page: int, *, dpi: float = 150.0, box: Box | None = None) -> bytes:
        """A page (from 1), or the part of it in ``box``, drawn from the source. Raises VragError."""
        return await self._library.page_png(doc_id, page, dpi, box)

    async def frame_png(self, doc_id: str, seconds: float) -> bytes:
        """Of a video. Raises as ``page_png``."""
        return await self._library.frame_png(doc_id, seconds)

    async def run(self, run_id: str) -> RunRecord:
        if run_id not in self._runs:
            raise NotFoundError(f"run {run_id} was not started here")
        return self._runs[run_id].record()


def _refuse_served_model(agent: str, settings: Settings) -> None:
    if settings.vllm is not None and settings.openai is None and agent != AgentName.EXTRACTIVE:
        raise VragError(
            f"agent {agent} needs the model {settings.vllm.model}, and only the service loads one: start `vrag serve` "
            "with this configuration and ask it with --url, or ask here with --agent extractive"
        )
