"""Stand-ins for the parts behind the gateway, for tests of the HTTP layer alone. Runs are the real ``RunService``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.agent.chat import Delta, QuestionPicture
from vrag_ray.agent.events import AnswerEvent, Event, RunStatus, StartEvent, ThinkEvent
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.agent.record import RunRecord, Timings
from vrag_ray.client.schemas import (
    DocumentDeleted,
    DocumentInfo,
    DocumentsPage,
    Feedback,
    IngestJob,
    JobState,
    PageElement,
    PageElements,
    RatedRun,
    RunRequest,
    RunsPage,
    RunSummary,
)
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.serving.contract import (
    AgentState,
    FetchedRun,
    LoggedEvent,
    Original,
    Parts,
    ProfiledAnswer,
    Queries,
    RetrieverState,
    SearchScope,
    ServedAgents,
    UploadedFile,
)
from vrag_ray.serving.errors import NoAnswerError
from vrag_ray.serving.runs.feedback import FeedbackStore
from vrag_ray.serving.runs.service import RunService
from vrag_ray.serving.runs.store import RunStore
from vrag_ray.types import (
    Box,
    Completion,
    DocumentKind,
    DocumentStatus,
    Hit,
    Locator,
    Meta,
    NotFoundError,
    Passage,
    PassageKind,
    Query,
    SearchAnswer,
    VragError,
)
from vrag_ray.types.elements import ElementKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

DOC_ID = "ab" * 32
EMBEDDER_ID = "planted/2d"
ELEMENT = PageElement(number=1, kind=ElementKind.PARAGRAPH, bbox=(0.1, 0.2, 0.5, 0.3), text="Fees rose.")
ORIGINAL = bytes(range(256)) * 4


class ScriptedRun:
    """A run of ``thoughts`` steps that waits for ``go`` before its last one; question "crash" fails inside.

    ``ending`` are events to end with in place of the answer "42".
    """

    def __init__(
        self, run_id: str, request: RunRequest, go: asyncio.Event, thoughts: int = 3, ending: Sequence[Event] = ()
    ) -> None:
        self._request, self._run_id, self._go, self._thoughts = request, run_id, go, thoughts
        self._ending = ending
        self._seen: list[Event] = []

    async def events(self) -> AsyncGenerator[Event, None]:
        yield self._note(
            StartEvent(
                run_id=self._run_id, question=self._request.question, agent=self._request.agent or "", max_steps=4
            )
        )
        for number in range(self._thoughts):
            yield self._note(ThinkEvent(seq=1 + number, step=number, content=f"thought {number}\u2028next"))
        if self._request.question == "crash":
            raise RuntimeError("secret /etc/vrag/internal.py")
        await self._go.wait()
        answer = AnswerEvent(answer="42", abstained=False, status=RunStatus.ANSWERED, citations=())
        for number, event in enumerate(self._ending or (answer,), start=1 + self._thoughts):
            yield self._note(event.model_copy(update={"seq": number}))

    def record(self) -> RunRecord:
        answer = self._seen[-1]
        if not isinstance(answer, AnswerEvent):
            raise VragError("not over")
        return RunRecord(
            run_id=self._run_id,
            question=self._request.question,
            agent=self._request.agent or "",
            status=RunStatus.ANSWERED,
            answer=answer.answer,
            citations=answer.citations,
            notices=answer.notices,
            graph=MemoryGraph.start(self._request.question),
            steps=self._thoughts,
            corrections=0,
            events=tuple(self._seen),
            timings=Timings(total=0.1),
            usage={},
        )

    def _note(self, event: Event) -> Event:
        self._seen.append(event)
        return event


class StandIn:
    """``DocumentPart`` of one document, and, with what stands beside it, ``parts`` for a gateway.

    ``fault``, when set, is raised by every search.

    ``ending`` are the last events of every run. ``reply`` is what the bare model says: an exception in it is raised,
    an event is waited for. ``started``, ``chats`` and ``embedded`` are the requests so far; ``asked`` is set by one.
    """

    def __init__(self, folder: Path, max_concurrent: int = 4, default_agent: str = "extractive") -> None:
        self.fault: Exception | None = None
        self.go = asyncio.Event()
        self.submitted: list[tuple[Sequence[UploadedFile], Meta]] = []
        self.drawn: list[tuple[object, ...]] = []
        self.page = b"\x89PNG"
        self.searched: list[str | Query] = []
        self.beside: tuple[str, ...] = ()
        """Collections that are served beside the main one."""
        self.starting: set[str] = set()
        """Those of them that are not ready."""
        self.collections: list[tuple[str, ...]] = []
        """What each search, listing, upload and deletion named."""
        self.retriever_ready = True
        self.retriever_is_busy = False
        self.embedder_id = EMBEDDER_ID
        self.heatmaps = True
        self.heated: list[tuple[str, str, int]] = []
        self.known_agents = ("extractive", "vimrag", "vrag")
        self.default_agent = default_agent
        self.ending: Sequence[Event] = ()
        self.reply: Sequence[Delta | Completion | Exception | asyncio.Event] = (Delta(content="yes"), Completion("yes"))
        self.replies: list[Sequence[Delta | Completion | Exception | asyncio.Event]] = []
        """What it says to the next requests, before ``reply``."""
        self.reply_closed = asyncio.Event()
        self.asked = asyncio.Event()
        self.started: list[RunRequest] = []
        self.pictures: list[QuestionPicture | None] = []
        self.chats: list[ChatRequest] = []
        self.embedded: list[tuple[list[str], bool]] = []
        self.feedback = FeedbackStore(folder.with_name("feedback"))
        self.runs = RunService(
            RunStore(folder, keep=3),
            lambda run_id, request, _: ScriptedRun(run_id, request, self.go, ending=self.ending),
            max_concurrent=max_concurrent,
            default_deadline_s=30.0,
            default_agent=self.default_agent,
        )

    @property
    def parts(self) -> Parts:
        return Parts(StandInSearch(self), StandInRuns(self), StandInModel(self), self)

    async def ready(self) -> None: ...

    async def list_documents(self, limit: int, offset: int, collection: str = "") -> DocumentsPage:
        self.collections.append((collection,))
        return DocumentsPage(documents=[INFO][offset : offset + limit], total=1, collection_version=7)

    async def document_info(self, doc_id: str) -> DocumentInfo:
        if not (len(doc_id) >= 8 and DOC_ID.startswith(doc_id)):
            raise NotFoundError(f"document {doc_id} is not in this collection")
        return INFO

    async def delete_document(self, doc_id: str, collection: str = "") -> DocumentDeleted:
        self.collections.append((collection,))
        return DocumentDeleted(doc_id=(await self.document_info(doc_id)).doc_id, collection_version=8)

    async def page_png(self, doc_id: str, page: int, dpi: float, box: Box | None) -> bytes:
        await self.document_info(doc_id)
        self.drawn.append((doc_id, page, dpi, box))
        return self.page

    async def page_elements(self, doc_id: str, page: int) -> PageElements:
        await self.document_info(doc_id)
        return PageElements(doc_id=doc_id, page=page, width=600, height=800, elements=[ELEMENT])

    async def frame_elements(self, doc_id: str, t: float) -> PageElements:
        await self.document_info(doc_id)
        return PageElements(doc_id=doc_id, page=None, t_start=t, t_end=t + 1, width=64, height=48, elements=[])

    async def frame_png(self, doc_id: str, t: float) -> bytes:
        await self.document_info(doc_id)
        self.drawn.append((doc_id, t))
        return b"\x89PNG"

    async def original(self, doc_id: str) -> Original:
        await self.document_info(doc_id)
        return Original(DOC_ID, 'a "quoted"\r\nüber.pdf', "application/pdf", len(ORIGINAL))

    async def original_bytes(self, doc_id: str, start: int, stop: int) -> AsyncIterator[bytes]:
        yield ORIGINAL[start:stop]

    async def submit(self, job_id: str, files: Sequence[UploadedFile], meta: Meta, collection: str = "") -> IngestJob:
        self.submitted.append((files, meta))
        self.collections.append((collection,))
        return IngestJob(job_id=job_id, state=JobState.QUEUED, url=f"/v1/jobs/{job_id}")

    async def job(self, job_id: str) -> IngestJob:
        raise NotFoundError(f"no job {job_id}")


class StandInSearch:
    """``SearchPart``."""

    def __init__(self, of: StandIn) -> None:
        self._of = of

    async def search(self, queries: Queries, scope: SearchScope) -> ProfiledAnswer:
        if self._of.fault is not None:
            raise self._of.fault
        self._of.searched += queries
        self._of.collections.append(scope.collections)
        hits = tuple(_hit(number) for number in range(min(scope.top_k, 3)))
        answer = SearchAnswer(tuple(hits for _ in queries), 1, 2, scope.mode, 7, ("one shard is down",))
        return ProfiledAnswer(answer, "embedded")

    async def states(self) -> tuple[RetrieverState, ...]:
        if self._of.retriever_is_busy:
            raise NoAnswerError("the retriever did not answer within 1.5 s")
        notices = () if self._of.embedder_id else ("lexical search only: embedder.name is none",)
        state = RetrieverState(
            ready=self._of.retriever_ready,
            why="" if self._of.retriever_ready else "starting",
            collection="papers",
            version=7,
            shards_ok=1,
            shards_total=2,
            documents=1,
            notices=notices,
            embedder_id=self._of.embedder_id,
            legs=("lexical", "late"),
            heatmaps=self._of.heatmaps,
        )
        beside = [replace(state, collection=name) for name in self._of.beside]
        waits = [state.collection in self._of.starting for state in beside]
        late = [replace(state, ready=False, why="starting") for state in beside]
        beside = [second if wait else first for first, second, wait in zip(beside, late, waits, strict=True)]
        return (state, *beside)

    async def heat(self, query: str, doc_id: str, page: int) -> NDArray[np.float32]:
        self._of.heated.append((query, doc_id, page))
        if page != 1:
            raise NotFoundError(f"page {page} of document {doc_id} has no heat map")
        return np.array([[0.0, 1.0], [0.0, 0.0]], np.float32)

    async def embed(self, texts: Sequence[str], *, queries: bool) -> NDArray[np.float32]:
        self._of.embedded.append((list(texts), queries))
        return np.asarray([[0.6, 0.8] if len(text) % 2 else [1.0, 0.0] for text in texts], np.float32)


class StandInRuns:
    """``RunPart`` over the real ``RunService``."""

    def __init__(self, of: StandIn) -> None:
        self._of = of

    async def state(self) -> AgentState:
        return self._of.runs.state()

    async def start(self, request: RunRequest, picture: QuestionPicture | None = None) -> str:
        self._of.started.append(request)
        self._of.pictures.append(picture)
        self._of.asked.set()
        return self._of.runs.start(request, picture)

    async def events(self, run_id: str, after: int) -> AsyncIterator[LoggedEvent]:
        async for events in self._of.runs.read(run_id, after):
            for event in events:
                yield event

    async def summary(self, run_id: str) -> RunSummary:
        return self._of.runs.summary(run_id)

    async def fetch(self, run_id: str) -> FetchedRun:
        return self._of.runs.fetch(run_id)

    async def list_runs(self, limit: int) -> RunsPage:
        return self._of.runs.list(limit)

    async def cancel(self, run_id: str) -> FetchedRun:
        return await self._of.runs.cancel(run_id)

    async def rate(self, run_id: str, feedback: Feedback) -> RatedRun:
        return self._of.feedback.put(self._of.runs.finished(run_id), feedback)

    async def rating(self, run_id: str) -> RatedRun:
        return self._of.feedback.get(run_id)

    async def rated(self) -> list[RatedRun]:
        return self._of.feedback.all()


class StandInModel:
    """``ModelPart``."""

    def __init__(self, of: StandIn) -> None:
        self._of = of

    async def ready(self) -> bool:
        return False

    async def agents(self) -> ServedAgents:
        return ServedAgents(self._of.known_agents, self._of.default_agent)

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        self._of.chats.append(request)
        self._of.asked.set()
        try:
            for piece in self._of.replies.pop(0) if self._of.replies else self._of.reply:
                if isinstance(piece, Exception):
                    raise piece
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                else:
                    yield piece
        finally:
            self._of.reply_closed.set()


INFO = DocumentInfo(
    doc_id=DOC_ID,
    uris=["report.pdf"],
    title="report",
    kind=DocumentKind.PDF,
    status=DocumentStatus.READY,
    units=3,
    size_bytes=len(ORIGINAL),
    added_at="2026-01-01T00:00:00+00:00",
)


def _hit(number: int) -> Hit:
    kinds = (PassageKind.PAGE, PassageKind.CLIP, PassageKind.TEXT)
    locators = (Locator(page=2), Locator(t_start=60.0, t_end=120.0), Locator(span_start=0, span_end=9))
    passage = Passage(f"p{number}", DOC_ID, kinds[number], locators[number], 0, f"text {number}")
    return Hit(passage, "report", "file:///srv/private/re%20port.pdf", 1.0 / (1 + number))
