"""A system for programs without an event loop: every call is made on the loop of a thread behind it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pydantic import ValidationError

from vrag_ray.agent.events import Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.contract import DRAWN_DPI, FileToUpload, System, every_document, finished_job, with_run_id
from vrag_ray.client.http import AsyncClient
from vrag_ray.client.schemas import (
    DocumentDeleted,
    DocumentInfo,
    DocumentsPage,
    Feedback,
    IngestJob,
    ModelNames,
    PageElements,
    RatedRun,
    Ready,
    RunRequest,
    RunsPage,
    SearchRequest,
    SearchResponse,
)
from vrag_ray.types import Box, InvalidError, Meta
from vrag_ray.types.errors import validation_message

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal


class BlockingSystem:
    """A ``System`` whose methods block and may be called from any thread. They raise what those of ``System`` raise."""

    def __init__(self, portal: BlockingPortal, system: System) -> None:
        self._portal = portal
        self._system = system

    def search(self, query: str | SearchRequest) -> SearchResponse:
        """A ``str`` is a query with the defaults of ``SearchRequest``. ``results`` has the hits of each query."""
        with _invalid("query"):
            request = SearchRequest(query=query) if isinstance(query, str) else query
        return self._portal.call(self._system.search, request)

    def events(self, question: str | RunRequest) -> Iterator[Event]:
        """``System.ask``: the events of a run, as they happen; the last is an answer or a terminal error."""
        return self._iterated(partial(self._system.ask, _run_request(question)))

    def ask(self, question: str | RunRequest) -> RunRecord:
        """The whole run: ``answer``, ``citations``, ``graph`` and all events. A run that failed has an ``error``."""
        request = with_run_id(_run_request(question))
        for _ in self.events(request):
            pass
        return self.run(request.run_id or "")

    def follow(self, run_id: str, *, after: int = -1) -> Iterator[Event]:
        return self._iterated(partial(self._system.follow, run_id, after=after))

    def run(self, run_id: str) -> RunRecord:
        return self._portal.call(self._system.run, run_id)

    def runs(self, limit: int = 50) -> RunsPage:
        return self._portal.call(self._system.runs, limit)

    def cancel(self, run_id: str) -> None:
        self._portal.call(self._system.cancel, run_id)

    def rate(self, run_id: str, feedback: Feedback) -> RatedRun:
        return self._portal.call(self._system.rate, run_id, feedback)

    def rated_runs(self) -> list[RatedRun]:
        return self._portal.call(self._system.rated_runs)

    def feedback_lines(self) -> bytes:
        return self._portal.call(self._system.feedback_lines)

    def documents(self, limit: int = 100, offset: int = 0, *, collection: str = "") -> DocumentsPage:
        return self._portal.call(partial(self._system.documents, limit, offset, collection=collection))

    def every_document(self, *, collection: str = "") -> list[DocumentInfo]:
        """All documents of a collection, in the order of ``documents``."""
        return self._portal.call(partial(every_document, self._system, collection=collection))

    def document(self, doc_id: str) -> DocumentInfo:
        return self._portal.call(self._system.document, doc_id)

    def delete_document(self, doc_id: str, *, collection: str = "") -> DocumentDeleted:
        return self._portal.call(partial(self._system.delete_document, doc_id, collection=collection))

    def page_png(self, doc_id: str, page: int, *, dpi: float = DRAWN_DPI, box: Box | None = None) -> bytes:
        return self._portal.call(partial(self._system.page_png, doc_id, page, dpi=dpi, box=box))

    def heatmap_png(self, doc_id: str, page: int, query: str, *, dpi: float = DRAWN_DPI) -> bytes:
        return self._portal.call(partial(self._system.heatmap_png, doc_id, page, query, dpi=dpi))

    def page_elements(self, doc_id: str, page: int) -> PageElements:
        return self._portal.call(self._system.page_elements, doc_id, page)

    def frame_elements(self, doc_id: str, seconds: float) -> PageElements:
        return self._portal.call(self._system.frame_elements, doc_id, seconds)

    def frame_png(self, doc_id: str, seconds: float) -> bytes:
        return self._portal.call(self._system.frame_png, doc_id, seconds)

    def original(self, doc_id: str) -> bytes:
        return self._portal.call(self._system.original, doc_id)

    def upload(self, files: Sequence[FileToUpload], meta: Meta | None = None, *, collection: str = "") -> IngestJob:
        return self._portal.call(partial(self._system.upload, files, meta, collection=collection))

    def job(self, job_id: str) -> IngestJob:
        return self._portal.call(self._system.job, job_id)

    def finished_job(self, job_id: str, timeout_s: float = 3600.0) -> IngestJob:
        """The ingest job once it has ended. Raises VragError when it takes longer."""
        return self._portal.call(finished_job, self._system, job_id, timeout_s)

    def ready(self) -> Ready:
        return self._portal.call(self._system.ready)

    def models(self) -> ModelNames:
        return self._portal.call(self._system.models)

    def _iterated(self, started: Callable[[], AsyncGenerator[Event]]) -> Iterator[Event]:
        items: SimpleQueue[Event | None] = SimpleQueue()

        async def pump() -> None:
            try:
                async with aclosing(started()) as events:
                    async for event in events:
                        items.put(event)
            finally:
                items.put(None)

        # One task for the whole run: a generator that holds a deadline must not be resumed by another task.
        running = self._portal.start_task_soon(pump)
        try:
            while (event := items.get()) is not None:
                yield event
            running.result()
        finally:
            running.cancel()


def _run_request(question: str | RunRequest) -> RunRequest:
    with _invalid("question"):
        return RunRequest(question=question) if isinstance(question, str) else question


@contextmanager
def _invalid(param: str) -> Iterator[None]:
    """A text that no request can have, as the error that a service answers with."""
    try:
        yield
    except ValidationError as error:
        raise InvalidError(f"{param}: {validation_message(error.errors()[0])}", param=param) from error


class Client(BlockingSystem):
    """The service at ``base_url``. Use as a context manager, or call ``close``. Connections are made when needed."""

    def __init__(self, base_url: str, *, api_key: str | None = None, timeout_s: float = 60.0) -> None:
        from anyio.from_thread import start_blocking_portal

        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal(name="vrag-client"))
            client = AsyncClient(base_url, api_key=api_key, timeout_s=timeout_s)
            self.base_url = client.base_url
            super().__init__(portal, stack.enter_context(portal.wrap_async_context_manager(client)))
            self._opened = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._opened.close()
