"""What every surface asks of a system: documents to search, agents to question, runs and documents to look at."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Protocol

from vrag_ray.agent.events import Event
from vrag_ray.agent.record import RunRecord
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
from vrag_ray.types import Box, Meta, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.file_names import shown_name

DRAWN_DPI = 150.0
"""Of a page, where a caller names no other resolution."""
LISTED_AT_ONCE = 1_000
"""The most documents that are listed in one reply."""
POLL_S = 0.3
FileToUpload = Path | tuple[str, IO[bytes]]
"""A file to upload: its path, or its name with the open file."""


class System(Protocol):
    """Three places have one: this process (``vrag_ray.system.here.local_system``), a service behind HTTP
    (``vrag_ray.client.http.AsyncClient``), and that service itself, in one process or on a cluster
    (``vrag_ray.serving.system.ServedSystem``).

    Every method raises VragError, with the same ``status``, ``code`` and ``param`` in each place.
    """

    async def search(self, request: SearchRequest) -> SearchResponse: ...

    def ask(self, request: RunRequest) -> AsyncGenerator[Event]:
        """Start a run and yield its events; the last is an answer or a terminal error.

        A caller that leaves early does not end the run: ``cancel`` does.
        """
        ...

    def follow(self, run_id: str, *, after: int = -1) -> AsyncGenerator[Event]:
        """The events above ``after`` of a run that goes on or has ended, until its end."""
        ...

    async def run(self, run_id: str) -> RunRecord:
        """A run that has ended. Raises VragError with the code ``running`` (409) for one that goes on."""
        ...

    async def runs(self, limit: int = 50) -> RunsPage: ...

    async def cancel(self, run_id: str) -> None:
        """End a run now. One that has ended stays as it is."""
        ...

    async def rate(self, run_id: str, feedback: Feedback) -> RatedRun:
        """Store what a reader thinks of a finished run; a second rating replaces the first."""
        ...

    async def rated_runs(self) -> list[RatedRun]:
        """Newest first."""
        ...

    async def feedback_lines(self) -> bytes:
        """Rated runs whose right answer is known, as JSON lines of the unified data set form."""
        ...

    async def documents(self, limit: int = 100, offset: int = 0, *, collection: str = "") -> DocumentsPage:
        """Of the main collection where none is named."""
        ...

    async def document(self, doc_id: str) -> DocumentInfo:
        """``doc_id``: the SHA-256 of a document, or a prefix of at least 8 digits, here and below."""
        ...

    async def delete_document(self, doc_id: str, *, collection: str = "") -> DocumentDeleted:
        """Where several collections have the document, one must be named."""
        ...

    async def page_png(self, doc_id: str, page: int, *, dpi: float = DRAWN_DPI, box: Box | None = None) -> bytes:
        """A page (from 1), or the part of it in ``box``, drawn from the source."""
        ...

    async def heatmap_png(self, doc_id: str, page: int, query: str, *, dpi: float = DRAWN_DPI) -> bytes:
        """The page, tinted where ``query`` is seen. Raises NotFoundError (404) where no leg can tell."""
        ...

    async def page_elements(self, doc_id: str, page: int) -> PageElements:
        """What is on a page (from 1), in reading order. Raises NotFoundError (404) for texts and videos."""
        ...

    async def frame_elements(self, doc_id: str, seconds: float) -> PageElements:
        """What is spoken, written and shown, and when, in the clip of a video around a second. Raises NotFoundError
        (404) for what is no video, and for a second that it has not."""
        ...

    async def frame_png(self, doc_id: str, seconds: float) -> bytes:
        """The frame of a video."""
        ...

    async def original(self, doc_id: str) -> bytes:
        """The bytes that were ingested."""
        ...

    async def upload(
        self, files: Sequence[FileToUpload], meta: Meta | None = None, *, collection: str = ""
    ) -> IngestJob:
        """Add files to a collection; they are searchable when the job is done."""
        ...

    async def job(self, job_id: str) -> IngestJob: ...

    async def ready(self) -> Ready:
        """Which parts are ready; a part that is not ready raises nothing here."""
        ...

    async def models(self) -> ModelNames: ...


def opened_file(file: FileToUpload, stack: ExitStack) -> tuple[str, IO[bytes]]:
    """The name and the bytes of a file, open for as long as ``stack``. Raises VragError where it cannot be read."""
    if isinstance(file, tuple):
        return file
    try:
        return shown_name(file.name), stack.enter_context(file.open("rb"))
    except OSError as error:
        raise VragError(f"cannot read {error.filename}: {error.strerror}") from error


def with_run_id(request: RunRequest) -> RunRequest:
    """With an id that the caller chose, so that a request repeated after a lost reply starts no second run."""
    return request if request.run_id else with_changes(request, {"run_id": uuid.uuid4().hex})


async def every_document(system: System, *, collection: str = "") -> list[DocumentInfo]:
    """All documents of a collection, in the order of ``System.documents``."""
    listed: list[DocumentInfo] = []
    while True:
        page = await system.documents(LISTED_AT_ONCE, len(listed), collection=collection)
        listed += page.documents
        if not page.documents or len(listed) >= page.total:
            return listed


async def finished_job(system: System, job_id: str, timeout_s: float = 3600.0) -> IngestJob:
    """The ingest job once it has ended. Raises VragError when it takes longer."""
    deadline = time.monotonic() + timeout_s
    while not (job := await system.job(job_id)).finished:
        if time.monotonic() > deadline:
            raise VragError(f"ingest job {job_id} was not done after {timeout_s:g} s: poll it again later")
        await asyncio.sleep(POLL_S)
    return job
