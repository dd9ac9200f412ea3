"""A gateway of one document and scripted runs, on a real port in a thread of its own: the app talks to it in tests."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from PIL import Image, ImageDraw

from tests.support.patience import HANGS_AFTER_S
from tests.support.stand_in import DOC_ID, StandIn
from tests.support.ui_stories import story
from vrag_ray.agent.chat import QuestionPicture
from vrag_ray.agent.events import AnswerEvent, Event, PictureRef, RunStatus
from vrag_ray.agent.record import RunRecord, Timings
from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import ServingConfig
from vrag_ray.serving.http.gateway import create_api
from vrag_ray.serving.http.security import Security
from vrag_ray.serving.runs.service import RunService
from vrag_ray.serving.runs.store import RunStore
from vrag_ray.serving.system import ServedSystem
from vrag_ray.types import Box
from vrag_ray.views.run_view import view_of

PAGE_SIZE = (400, 500)


@dataclass
class Stage:
    """What the gateway will tell: ``events`` of every run, which waits at ``pause`` (an index) until ``go`` is set.

    A run may note in ``left`` when it let an event go (Unix time).
    """

    events: Sequence[Event] = field(default_factory=story)
    pause: int | None = None
    go: threading.Event = field(default_factory=threading.Event)
    left: dict[str, float] = field(default_factory=dict)


class ScriptedRun:
    """A run whose events are known before."""

    def __init__(self, run_id: str, request: RunRequest, stage: Stage) -> None:
        first = stage.events[0].model_copy(update={"run_id": run_id, "question": request.question})
        self._events = [first, *stage.events[1:]]
        self._sent: list[Event] = []
        self._picture: PictureRef | None = None
        self._request, self._run_id, self._stage = request, run_id, stage

    def asked_with(self, picture: QuestionPicture | None) -> ScriptedRun:
        """The same run, about a picture."""
        if picture is not None:
            self._picture = PictureRef(sha256=picture.sha256, size=picture.size)
            self._events[0] = self._events[0].model_copy(update={"picture": self._picture})
        return self

    async def events(self) -> AsyncGenerator[Event, None]:
        for number, event in enumerate(self._events):
            if number == self._stage.pause:
                await asyncio.to_thread(self._stage.go.wait)
            self._sent.append(event)
            yield event

    def record(self) -> RunRecord:
        end = next((event for event in self._sent if isinstance(event, AnswerEvent)), None)
        view = view_of(self._sent)
        return RunRecord(
            run_id=self._run_id,
            question=self._request.question,
            picture=self._picture,
            agent=self._request.agent or "extractive",
            status=end.status if end is not None else RunStatus.CANCELLED,
            answer=end.answer if end is not None else "",
            abstained=end.abstained if end is not None else False,
            citations=end.citations if end is not None else (),
            notices=end.notices if end is not None else (),
            graph=view.graph,
            steps=len(view.steps),
            corrections=0,
            events=tuple(self._sent),
            timings=Timings(total=1.0),
            usage={},
        )


class ScriptedGateway(StandIn):
    """The stand-in with scripted runs and pages that are pictures."""

    def __init__(self, folder: Path, stage: Stage, make_run: type[ScriptedRun]) -> None:
        super().__init__(folder)
        self.runs = RunService(
            RunStore(folder, keep=50),
            lambda run_id, request, picture: make_run(run_id, request, stage).asked_with(picture),
            max_concurrent=8,
            default_deadline_s=60.0,
            default_agent=self.default_agent,
        )

    async def page_png(self, doc_id: str, page: int, dpi: float, box: Box | None) -> bytes:
        await self.document_info(doc_id)
        self.drawn.append((doc_id, page, dpi, box))
        return page_picture(page)

    async def frame_png(self, doc_id: str, t: float) -> bytes:
        return await self.page_png(doc_id, 1, 40.0, None)


def page_picture(page: int) -> bytes:
    image = Image.new("RGB", PAGE_SIZE, "white")
    ImageDraw.Draw(image).text((40, 40), f"page {page}", fill="black", font_size=40)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@dataclass
class ServedGateway:
    """A running gateway."""

    url: str
    backend: ScriptedGateway
    stage: Stage


@contextmanager
def scripted_gateway(
    folder: Path, stage: Stage, port: int = 0, *, make_run: type[ScriptedRun] = ScriptedRun
) -> Iterator[ServedGateway]:
    """Serves until the block ends, in mid-run where a run is waiting; then connections are refused."""
    up, down, closed = threading.Event(), threading.Event(), threading.Event()
    running: list[ServedGateway] = []

    async def serve() -> None:
        backend = ScriptedGateway(folder / "runs", stage, make_run)
        api = create_api(ServedSystem(backend.parts, folder / "uploads"), ServingConfig(), Security())
        settings = uvicorn.Config(api, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1)
        settings.load()
        server = uvicorn.Server(settings)
        server.lifespan = settings.lifespan_class(settings)
        await server.startup()
        bound = server.servers[0].sockets[0].getsockname()[1]
        running.append(ServedGateway(f"http://127.0.0.1:{bound}", backend, stage))
        up.set()
        await asyncio.to_thread(down.wait)
        await server.shutdown()
        closed.set()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert up.wait(HANGS_AFTER_S)
    try:
        yield running[0]
    finally:
        down.set()
        assert closed.wait(HANGS_AFTER_S)
        stage.go.set()
        thread.join(20)


__all__ = ["DOC_ID", "PAGE_SIZE", "Stage", "ServedGateway", "ScriptedGateway", "page_picture", "scripted_gateway"]
