"""A typed client of the gateway, blocking (``Client``) and async (``AsyncClient``).

Every method raises ``ServerError`` for a reply that is not a success and ``UnreachableError`` where no server answers.
A run is followed over any number of connections: each reconnect resumes after the last event seen.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx
from pydantic import BaseModel

from vrag_ray.agent.events import Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.event_stream import RunFollower
from vrag_ray.client.replies import ServerError, UnreachableError, check, parsed, unreachable
from vrag_ray.client.schemas import (
    DocumentDeleted,
    DocumentInfo,
    DocumentsPage,
    Feedback,
    IngestJob,
    ModelNames,
    PageElements,
    RatedRun,
    RatedRuns,
    Ready,
    RunRequest,
    RunsPage,
    SearchRequest,
    SearchResponse,
)
from vrag_ray.types import Box, Meta, VragError
from vrag_ray.types.file_names import shown_name

__all__ = ["AsyncClient", "Client", "ServerError", "UnreachableError"]
RECONNECT_WAITS_S = (0.1, 0.3, 1.0, 2.0, 4.0)
"""Waits before the attempts that follow a lost connection; an event that arrives starts the count anew."""
POLL_S = 0.3
LISTED_AT_ONCE = 1_000
"""The most documents that a service lists in one reply."""
_STREAM_SILENCE_S = 60.0
"""The server sends a comment at least every 15 s, so a longer silence is a dead connection."""


class Client:
    """Blocking. Use as a context manager, or call ``close``."""

    def __init__(self, base_url: str, *, api_key: str | None = None, timeout_s: float = 60.0) -> None:
        self.base_url = base_url.rstrip("/")
        self._http = httpx.Client(base_url=self.base_url, headers=_headers(api_key), timeout=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def ready(self) -> Ready:
        """Which parts are ready; a server that is not ready yet is no error here."""
        return parsed(self._send("GET", "/readyz", also=503), Ready)

    def search(self, request: SearchRequest) -> SearchResponse:
        return parsed(self._send("POST", "/v1/search", body=request), SearchResponse)

    def ask(self, request: RunRequest) -> Iterator[Event]:
        """Start a run and yield its events until it ends. Leaving early does not end the run: ``cancel`` does."""
        request = _named(request)
        return self._followed(RunFollower(request.run_id or ""), request)

    def follow(self, run_id: str, *, after: int = -1) -> Iterator[Event]:
        """The events of a run that goes on or has ended, from the one after ``after``. Raises ServerError 404."""
        return self._followed(RunFollower(run_id, last_event_id=after), None)

    def _followed(self, follower: RunFollower, request: RunRequest | None) -> Iterator[Event]:
        failures = 0
        while not follower.finished:
            seen = follower.last_event_id
            try:
                for line in self._lines(request, follower):
                    event = follower.feed(line)
                    if event is not None:
                        yield event
                problem = "the stream ended before the run did"
            except (httpx.TransportError, ServerError) as error:
                problem = _passing_problem(self.base_url, error, follower)
            failures = 0 if follower.last_event_id != seen else failures
            if not follower.finished:
                time.sleep(_wait_before_retry(self.base_url, failures, problem))
                failures += 1

    def _lines(self, request: RunRequest | None, follower: RunFollower) -> Iterator[str]:
        follower.begin_connection()
        method, path, headers, content = _stream_request(request, follower)
        with ExitStack() as stack:
            timeout = _stream_timeout(self._http.timeout)
            reply = stack.enter_context(
                self._http.stream(method, path, headers=headers, content=content, timeout=timeout)
            )
            if not reply.is_success:
                reply.read()
            check(reply)
            follower.finished = reply.status_code == httpx.codes.NO_CONTENT
            yield from reply.iter_lines()

    def run(self, run_id: str) -> RunRecord:
        """The finished run. Raises ServerError 202 while it goes on."""
        reply = self._send("GET", f"/v1/runs/{run_id}")
        if reply.status_code == httpx.codes.ACCEPTED:
            raise ServerError(202, f"run {run_id} is still going on: follow its events", code="running")
        return parsed(reply, RunRecord)

    def runs(self, limit: int = 50) -> RunsPage:
        return parsed(self._send("GET", "/v1/runs", params={"limit": limit}), RunsPage)

    def cancel(self, run_id: str) -> None:
        self._send("DELETE", f"/v1/runs/{run_id}")

    def rate(self, run_id: str, feedback: Feedback) -> RatedRun:
        """Say what you think of a finished run; saying it again replaces it."""
        return parsed(self._send("PUT", f"/v1/runs/{run_id}/feedback", body=feedback), RatedRun)

    def rated_runs(self) -> list[RatedRun]:
        """All that was said of runs, newest first."""
        return parsed(self._send("GET", "/v1/feedback"), RatedRuns).runs

    def feedback_lines(self) -> bytes:
        """Rated runs whose right answer is known, as JSON lines of the unified data set form."""
        return self._send("GET", "/v1/feedback.jsonl").content

    def models(self) -> list[str]:
        """What may be asked here: the agents, and the bare model and the embedder where there are any."""
        return [one.id for one in self._models().data]

    def default_agent(self) -> str:
        """Who answers a run that names no agent, as the service is set."""
        return self._models().default_agent

    def _models(self) -> ModelNames:
        return parsed(self._send("GET", "/v1/models"), ModelNames)

    def documents(self, limit: int = 100, offset: int = 0, *, collection: str = "") -> DocumentsPage:
        """Of the service's main collection where none is named."""
        params: dict[str, str | float] = {"limit": limit, "offset": offset, **_in(collection)}
        return parsed(self._send("GET", "/v1/documents", params=params), DocumentsPage)

    def every_document(self, *, collection: str = "") -> list[DocumentInfo]:
        """All documents of a collection, in the order of ``documents``."""
        listed: list[DocumentInfo] = []
        while True:
            page = self.documents(LISTED_AT_ONCE, len(listed), collection=collection)
            listed += page.documents
            if not page.documents or len(listed) >= page.total:
                return listed

    def document(self, doc_id: str) -> DocumentInfo:
        return parsed(self._send("GET", f"/v1/documents/{doc_id}"), DocumentInfo)

    def delete_document(self, doc_id: str, *, collection: str = "") -> DocumentDeleted:
        """Where several collections have the document, one must be named."""
        return parsed(self._send("DELETE", f"/v1/documents/{doc_id}", params=_in(collection)), DocumentDeleted)

    def upload(self, paths: Sequence[Path], meta: Meta | None = None, *, collection: str = "") -> IngestJob:
        """Send files in; they are searchable when the job is done. Raises VragError for a file it cannot read."""
        with ExitStack() as stack:
            try:
                files = [("files", (shown_name(path.name), stack.enter_context(path.open("rb")))) for path in paths]
            except OSError as error:
                raise VragError(f"cannot read {error.filename}: {error.strerror}") from error
            return self._upload(files, meta, collection)

    def upload_files(
        self, files: Sequence[tuple[str, IO[bytes]]], meta: Meta | None = None, *, collection: str = ""
    ) -> IngestJob:
        """As ``upload``, for files that are open already, each with its name."""
        return self._upload([("files", file) for file in files], meta, collection)

    def _upload(
        self, files: Sequence[tuple[str, tuple[str, IO[bytes]]]], meta: Meta | None, collection: str
    ) -> IngestJob:
        data = {"meta": json.dumps(dict(meta))} if meta else None
        try:
            reply = self._http.post("/v1/documents", files=files, data=data, params=_in(collection))
        except httpx.TransportError as error:
            raise unreachable(self.base_url, error) from error
        check(reply)
        return parsed(reply, IngestJob)

    def job(self, job_id: str) -> IngestJob:
        return parsed(self._send("GET", f"/v1/jobs/{job_id}"), IngestJob)

    def wait(self, job: IngestJob, timeout_s: float = 3600.0) -> IngestJob:
        """The finished job. Raises VragError when it takes longer."""
        deadline = time.monotonic() + timeout_s
        while not job.finished:
            if time.monotonic() > deadline:
                raise VragError(f"ingest job {job.job_id} was not done after {timeout_s:g} s: poll it again later")
            time.sleep(POLL_S)
            job = parsed(self._send("GET", job.url), IngestJob)
        return job

    def heatmap_png(self, doc_id: str, page: int, query: str, *, dpi: float = 150.0) -> bytes:
        """The page, tinted where ``query`` is seen. Raises ServerError (404) where no leg can tell."""
        path = f"/v1/documents/{doc_id}/pages/{page}.png"
        return self._send("GET", path, params={"dpi": dpi, "heatmap": query}).content

    def page_png(self, doc_id: str, page: int, *, dpi: float = 150.0, box: Box | None = None) -> bytes:
        """A page (from 1), or the part of it in ``box``, drawn from the source."""
        return self._send("GET", f"/v1/documents/{doc_id}/pages/{page}.png", params=_drawing(dpi, box)).content

    def page_elements(self, doc_id: str, page: int) -> PageElements:
        """What is on a page (from 1), in reading order. Raises ServerError (404) for texts and videos."""
        return parsed(self._send("GET", f"/v1/documents/{doc_id}/pages/{page}/elements"), PageElements)

    def frame_png(self, doc_id: str, seconds: float) -> bytes:
        return self._send("GET", f"/v1/documents/{doc_id}/frames/{seconds:.3f}.png").content

    def original(self, doc_id: str) -> bytes:
        """The bytes that were ingested."""
        return self._send("GET", f"/v1/documents/{doc_id}/original").content

    def _send(
        self,
        method: str,
        path: str,
        *,
        body: BaseModel | None = None,
        params: Mapping[str, str | float] | None = None,
        also: int = 200,
    ) -> httpx.Response:
        try:
            reply = self._http.request(
                method, path, params=params, content=_json(body), headers=_JSON if body is not None else None
            )
        except httpx.TransportError as error:
            raise unreachable(self.base_url, error) from error
        if reply.status_code != also:
            check(reply)
        return reply


class AsyncClient:
    """Searching and asking on an event loop. Use as an async context manager."""

    def __init__(self, base_url: str, *, api_key: str | None = None, timeout_s: float = 60.0) -> None:
        self.base_url = base_url.rstrip("/")
        self._http = httpx.AsyncClient(base_url=self.base_url, headers=_headers(api_key), timeout=timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def search(self, request: SearchRequest) -> SearchResponse:
        try:
            reply = await self._http.post("/v1/search", content=_json(request), headers=_JSON)
        except httpx.TransportError as error:
            raise unreachable(self.base_url, error) from error
        check(reply)
        return parsed(reply, SearchResponse)

    async def run(self, run_id: str) -> RunRecord:
        """The finished run. Raises ServerError 202 while it goes on."""
        try:
            reply = await self._http.get(f"/v1/runs/{run_id}")
        except httpx.TransportError as error:
            raise unreachable(self.base_url, error) from error
        check(reply)
        if reply.status_code == httpx.codes.ACCEPTED:
            raise ServerError(202, f"run {run_id} is still going on: follow its events", code="running")
        return parsed(reply, RunRecord)

    async def page_png(self, doc_id: str, page: int, *, dpi: float = 150.0, box: Box | None = None) -> bytes:
        """As ``Client.page_png``."""
        return await self._picture(f"/v1/documents/{doc_id}/pages/{page}.png", _drawing(dpi, box))

    async def frame_png(self, doc_id: str, seconds: float) -> bytes:
        return await self._picture(f"/v1/documents/{doc_id}/frames/{seconds:.3f}.png", {})

    async def _picture(self, path: str, params: Mapping[str, str | float]) -> bytes:
        try:
            reply = await self._http.get(path, params=dict(params))
        except httpx.TransportError as error:
            raise unreachable(self.base_url, error) from error
        check(reply)
        return reply.content

    async def ask(self, request: RunRequest) -> AsyncGenerator[Event]:
        """As ``Client.ask``."""
        request = _named(request)
        follower = RunFollower(request.run_id or "")
        failures = 0
        while not follower.finished:
            seen = follower.last_event_id
            try:
                async for line in self._lines(request, follower):
                    event = follower.feed(line)
                    if event is not None:
                        yield event
                problem = "the stream ended before the run did"
            except (httpx.TransportError, ServerError) as error:
                problem = _passing_problem(self.base_url, error, follower)
            failures = 0 if follower.last_event_id != seen else failures
            if not follower.finished:
                await asyncio.sleep(_wait_before_retry(self.base_url, failures, problem))
                failures += 1

    async def _lines(self, request: RunRequest, follower: RunFollower) -> AsyncGenerator[str]:
        follower.begin_connection()
        method, path, headers, content = _stream_request(request, follower)
        async with AsyncExitStack() as stack:
            timeout = _stream_timeout(self._http.timeout)
            reply = await stack.enter_async_context(
                self._http.stream(method, path, headers=headers, content=content, timeout=timeout)
            )
            if not reply.is_success:
                await reply.aread()
            check(reply)
            async for line in reply.aiter_lines():
                yield line


_JSON = {"Content-Type": "application/json"}
_PASSING = frozenset({429, 502, 503, 504})
"""What a server says while one of its parts restarts."""


def _in(collection: str) -> dict[str, str]:
    return {"collection": collection} if collection else {}


def _headers(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def _json(body: BaseModel | None) -> str | None:
    return body.model_dump_json(exclude_none=True) if body is not None else None


def _drawing(dpi: float, box: Box | None) -> dict[str, str | float]:
    return {"dpi": dpi} | ({"bbox": ",".join(f"{edge:.6g}" for edge in box.as_tuple())} if box is not None else {})


def _named(request: RunRequest) -> RunRequest:
    """With an id that the client chose, so that repeating the request after a lost reply starts no second run."""
    return request if request.run_id else request.model_copy(update={"run_id": uuid.uuid4().hex})


def _stream_request(request: RunRequest | None, follower: RunFollower) -> tuple[str, str, dict[str, str], str | None]:
    """Method, path, headers and body: a start before the first event, a resumption after it."""
    if request is not None and follower.last_event_id is None:
        return "POST", "/v1/runs", dict(_JSON), _json(request)
    headers = {"Last-Event-ID": str(follower.last_event_id)}
    return "GET", f"/v1/runs/{follower.run_id}/events", headers, None


def _stream_timeout(usual: httpx.Timeout) -> httpx.Timeout:
    return httpx.Timeout(connect=usual.connect, write=usual.write, pool=usual.pool, read=_STREAM_SILENCE_S)


def _passing_problem(base_url: str, error: httpx.TransportError | ServerError, follower: RunFollower) -> str:
    """Why the stream was lost, in words. Raises where trying again cannot help."""
    if isinstance(error, ServerError):
        if follower.last_event_id is None or error.status not in _PASSING:
            raise error
        return str(error)
    if follower.last_event_id is None and isinstance(error, httpx.ConnectError):
        raise unreachable(base_url, error) from error
    return str(error) or type(error).__name__


def _wait_before_retry(base_url: str, failures: int, problem: str) -> float:
    """Seconds to wait. Raises UnreachableError when it has been tried often enough."""
    if failures >= len(RECONNECT_WAITS_S):
        raise UnreachableError(f"the connection to {base_url} is lost ({problem}): check that the server runs")
    return RECONNECT_WAITS_S[failures]
