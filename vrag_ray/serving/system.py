"""The system of a service: its parts as one, wherever they run."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import TypeVar

from vrag_ray.agent.events import EVENT, Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.contract import DRAWN_DPI, FileToUpload, with_run_id
from vrag_ray.client.hits import search_hit
from vrag_ray.client.schemas import (
    DocumentDeleted,
    DocumentInfo,
    DocumentsPage,
    Feedback,
    IngestJob,
    ModelName,
    ModelNames,
    PageElements,
    PartState,
    RatedRun,
    Ready,
    RunRequest,
    RunsPage,
    RunSummary,
    SearchRequest,
    SearchResponse,
    ServedCollection,
    collection_names,
)
from vrag_ray.serving.contract import LoggedEvent, Parts, RetrieverState, SearchScope
from vrag_ray.serving.errors import ConflictError, NoAnswerError
from vrag_ray.serving.openai.models import chat_models
from vrag_ray.serving.runs.feedback import unified_lines
from vrag_ray.serving.sent_pictures import SentPictures, sent_file
from vrag_ray.serving.uploads import check_meta, save_files
from vrag_ray.types import Box, Meta, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.redaction import scrub

T = TypeVar("T")
ANSWERS_WITHIN_S = 1.5
"""A part that does not report its state in this time counts as not ready: a probe needs its answer soon."""


class ServedSystem:
    """A ``System`` over the parts of a service, in this process or behind Serve handles.

    ``uploads`` must be visible to the part that ingests. ``parts`` are for what only the gateway needs: events as they
    are sent, ranges of originals, the bare model.
    """

    def __init__(self, parts: Parts, uploads: Path) -> None:
        self.parts = parts
        self.pictures = SentPictures()
        self._uploads = uploads

    def close(self) -> None:
        """End the process that decodes pictures."""
        self.pictures.close()

    async def search(self, request: SearchRequest) -> SearchResponse:
        picture = None
        if request.picture is not None:
            picture = await self.pictures.png(sent_file(request.picture, "picture"), "picture")
        scope = SearchScope(request.top_k, request.mode, request.filter, collection_names(request.collection))
        reply = await self.parts.search.search(request.queries_with(picture), scope)
        answer = reply.answer
        return SearchResponse(
            results=[[search_hit(hit) for hit in hits] for hits in answer.results],
            shards_ok=answer.shards_ok,
            shards_total=answer.shards_total,
            mode=answer.mode,
            retrieval_profile=reply.profile,
            collection_version=answer.collection_version,
            collections=list(answer.collections),
            notices=list(answer.notices),
        )

    async def start(self, request: RunRequest) -> str:
        """The id of a new run, or of the run that ``request.run_id`` names where that has the same question."""
        picture = await self.pictures.question(request.picture)
        # Decoded once, here: neither events nor records hold what was sent.
        return await self.parts.runs.start(with_changes(request, {"picture": None}), picture)

    async def ask(self, request: RunRequest) -> AsyncGenerator[Event]:
        run_id = await self.start(with_run_id(request))
        async for logged in self.parts.runs.events(run_id, -1):
            yield EVENT.validate_json(logged.data)

    async def follow(self, run_id: str, *, after: int = -1) -> AsyncGenerator[Event]:
        # Before the first event: an unknown id is an error, and not a run without events.
        await self.summary(run_id)
        async for logged in self.parts.runs.events(run_id, after):
            yield EVENT.validate_json(logged.data)

    def logged_events(self, run_id: str, after: int) -> AsyncIterator[LoggedEvent]:
        """``follow`` with the events as they are sent."""
        return self.parts.runs.events(run_id, after)

    async def summary(self, run_id: str) -> RunSummary:
        """Of a run that goes on or has ended."""
        return await self.parts.runs.summary(run_id)

    async def run(self, run_id: str) -> RunRecord:
        fetched = await self.parts.runs.fetch(run_id)
        if fetched.live:
            raise ConflictError(f"run {run_id} is still going on: follow its events", code="running")
        return RunRecord.from_json(fetched.body)

    async def runs(self, limit: int = 50) -> RunsPage:
        return await self.parts.runs.list_runs(limit)

    async def cancel(self, run_id: str) -> None:
        await self.parts.runs.cancel(run_id)

    async def rate(self, run_id: str, feedback: Feedback) -> RatedRun:
        return await self.parts.runs.rate(run_id, feedback)

    async def rated_runs(self) -> list[RatedRun]:
        return await self.parts.runs.rated()

    async def feedback_lines(self) -> bytes:
        return "".join(unified_lines(await self.rated_runs())).encode()

    async def documents(self, limit: int = 100, offset: int = 0, *, collection: str = "") -> DocumentsPage:
        return await self.parts.documents.list_documents(limit, offset, collection)

    async def document(self, doc_id: str) -> DocumentInfo:
        return await self.parts.documents.document_info(doc_id)

    async def delete_document(self, doc_id: str, *, collection: str = "") -> DocumentDeleted:
        return await self.parts.documents.delete_document(doc_id, collection)

    async def page_png(self, doc_id: str, page: int, *, dpi: float = DRAWN_DPI, box: Box | None = None) -> bytes:
        return await self.parts.documents.page_png(doc_id, page, dpi, box)

    async def heatmap_png(self, doc_id: str, page: int, query: str, *, dpi: float = DRAWN_DPI) -> bytes:
        from vrag_ray.imaging.heat_overlay import with_heat

        heat = await self.parts.search.heat(query, doc_id, page)
        return await asyncio.to_thread(with_heat, await self.page_png(doc_id, page, dpi=dpi), heat)

    async def page_elements(self, doc_id: str, page: int) -> PageElements:
        return await self.parts.documents.page_elements(doc_id, page)

    async def frame_elements(self, doc_id: str, seconds: float) -> PageElements:
        return await self.parts.documents.frame_elements(doc_id, seconds)

    async def frame_png(self, doc_id: str, seconds: float) -> bytes:
        return await self.parts.documents.frame_png(doc_id, seconds)

    async def original(self, doc_id: str) -> bytes:
        file = await self.parts.documents.original(doc_id)
        return b"".join([chunk async for chunk in self.parts.documents.original_bytes(file.doc_id, 0, file.size)])

    async def upload(
        self, files: Sequence[FileToUpload], meta: Meta | None = None, *, collection: str = ""
    ) -> IngestJob:
        """As ``System.upload``. Raises VragError for an unreadable file and for ``meta`` that cannot be stored."""
        check_meta(meta or {})
        job_id = uuid.uuid4().hex
        folder = self._uploads / job_id
        saved = await asyncio.to_thread(save_files, folder, files)
        try:
            return await self.parts.documents.submit(job_id, saved, dict(meta or {}), collection)
        except VragError:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise

    async def job(self, job_id: str) -> IngestJob:
        return await self.parts.documents.job(job_id)

    async def models(self) -> ModelNames:
        """The agents of this system, the bare model where there is one, and the embedder."""
        chat = await chat_models(self.parts.model)
        embedder = (await self.parts.search.states())[0].embedder_id
        agents = await self.parts.model.agents()
        names = (*chat, embedder) if embedder else chat
        return ModelNames(data=[ModelName(id=name) for name in names], default_agent=agents.default)

    async def ready(self) -> Ready:
        """Answers within two seconds, whatever a part does."""
        retrievers, agent, library, policy = await asyncio.gather(
            state_of(self.parts.search.states(), "retriever"),
            state_of(self.parts.runs.state(), "agent"),
            state_of(self.parts.documents.ready(), "library"),
            state_of(self.parts.model.ready(), "policy"),
        )
        states = {"retriever": _retriever_part(retrievers), "agent": _part(agent), "library": _part(library)}
        if policy is not False:
            states["policy"] = _part(policy)
        served = [] if isinstance(retrievers, VragError) else [_collection(state) for state in retrievers]
        return Ready(
            ready=all(state.ready for state in states.values()),
            collection=served[0] if served else None,
            collections=served,
            parts=states,
        )


async def state_of(answer: Awaitable[T], part: str) -> T | VragError:
    """What a part says of itself, or the fault that it answers with."""
    asking = asyncio.ensure_future(answer)
    # Not ``wait_for``, which also waits for the end of what it cancels: a call to a part that hangs may have none.
    await asyncio.wait({asking}, timeout=ANSWERS_WITHIN_S)
    if not asking.done():
        asking.cancel()
        return NoAnswerError(f"the {part} did not answer within {ANSWERS_WITHIN_S:g} s")
    try:
        return asking.result()
    except VragError as error:
        return error


def _part(answer: object) -> PartState:
    if isinstance(answer, VragError):
        return PartState(ready=False, why=scrub(str(answer)), busy=isinstance(answer, NoAnswerError))
    return PartState(ready=True)


def _retriever_part(answer: tuple[RetrieverState, ...] | VragError) -> PartState:
    """Retrievers also report that they are not ready, and notices; of several, each under its name."""
    if isinstance(answer, VragError):
        return _part(answer)
    notes = []
    for state in answer:
        prefix = f"{state.collection}: " if len(answer) > 1 else ""
        notes += [f"{prefix}{note}" for note in (state.why, *state.notices) if note]
    return PartState(ready=all(state.ready for state in answer), why="; ".join(notes))


def _collection(state: RetrieverState) -> ServedCollection:
    return ServedCollection(
        name=state.collection,
        ready=state.ready,
        version=state.version,
        documents=state.documents,
        legs=list(state.legs),
        heatmaps=state.heatmaps,
        embedder_id=state.embedder_id,
    )
