"""The system behind the gateway's HTTP interface.

Every method raises ``ServerError`` for a reply that is not a success and ``UnreachableError`` where no server answers.
A run is followed over any number of connections: each reconnect resumes after the last event seen.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, aclosing
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from vrag_ray.agent.events import Event
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.contract import DRAWN_DPI, FileToUpload, opened_file, with_run_id
from vrag_ray.client.event_stream import RunFollower
from vrag_ray.client.schemas import (
    DocumentDeleted,
    DocumentInfo,
    DocumentsPage,
    ErrorBody,
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
from vrag_ray.types.loopback import direct_mounts

RECONNECT_WAITS_S = (0.1, 0.3, 1.0, 2.0, 4.0)
"""Waits before the attempts that follow a lost connection; an event that arrives starts the count anew."""
_STREAM_SILENCE_S = 60.0
"""The server sends a comment at least every 15 s, so a longer silence is a dead connection."""
M = TypeVar("M", bound=BaseModel)
Params = Mapping[str, str | float]


class UnreachableError(VragError):
    """No server answers at the address, or the connection broke for good."""


class ServerError(VragError):
    """A reply that is not a success; ``param`` names the field at fault, ``code`` is stable for programs."""

    def __init__(self, status: int, message: str, *, code: str = "", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


class AsyncClient:
    """A ``System``, whose methods are described there. Use as an async context manager."""

    def __init__(self, base_url: str, *, api_key: str | None = None, timeout_s: float = 60.0) -> None:
        """Raises VragError for what is no address, and for a key that no header can hold. White space around the key is
        left out, and so is the ``/v1`` at the end of an address for OpenAI's clients."""
        self.base_url = server_address(base_url)
        headers = {b"Authorization": _bearer(api_key)} if api_key else {}
        self._http = httpx.AsyncClient(
            base_url=self.base_url, headers=headers, timeout=timeout_s, mounts=direct_mounts(self.base_url)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def search(self, request: SearchRequest) -> SearchResponse:
        return _parsed(await self._send("POST", "/v1/search", body=request), SearchResponse)

    def ask(self, request: RunRequest) -> AsyncGenerator[Event]:
        request = with_run_id(request)
        return self._followed(RunFollower(request.run_id or ""), request)

    def follow(self, run_id: str, *, after: int = -1) -> AsyncGenerator[Event]:
        return self._followed(RunFollower(run_id, last_event_id=after), None)

    async def run(self, run_id: str) -> RunRecord:
        reply = await self._send("GET", f"/v1/runs/{run_id}")
        if reply.status_code == httpx.codes.ACCEPTED:
            raise ServerError(409, f"run {run_id} is still going on: follow its events", code="running")
        return _parsed(reply, RunRecord)

    async def runs(self, limit: int = 50) -> RunsPage:
        return await self._get("/v1/runs", RunsPage, {"limit": limit})

    async def cancel(self, run_id: str) -> None:
        await self._send("DELETE", f"/v1/runs/{run_id}")

    async def rate(self, run_id: str, feedback: Feedback) -> RatedRun:
        return _parsed(await self._send("PUT", f"/v1/runs/{run_id}/feedback", body=feedback), RatedRun)

    async def rated_runs(self) -> list[RatedRun]:
        return (await self._get("/v1/feedback", RatedRuns)).runs

    async def feedback_lines(self) -> bytes:
        return (await self._send("GET", "/v1/feedback.jsonl")).content

    async def documents(self, limit: int = 100, offset: int = 0, *, collection: str = "") -> DocumentsPage:
        params: dict[str, str | float] = {"limit": limit, "offset": offset, **_in(collection)}
        return await self._get("/v1/documents", DocumentsPage, params)

    async def document(self, doc_id: str) -> DocumentInfo:
        return await self._get(f"/v1/documents/{doc_id}", DocumentInfo)

    async def delete_document(self, doc_id: str, *, collection: str = "") -> DocumentDeleted:
        reply = await self._send("DELETE", f"/v1/documents/{doc_id}", params=_in(collection))
        return _parsed(reply, DocumentDeleted)

    async def page_png(self, doc_id: str, page: int, *, dpi: float = DRAWN_DPI, box: Box | None = None) -> bytes:
        params: dict[str, str | float] = {"dpi": dpi}
        if box is not None:
            params["bbox"] = ",".join(f"{edge:.6g}" for edge in box.as_tuple())
        return (await self._send("GET", f"/v1/documents/{doc_id}/pages/{page}.png", params=params)).content

    async def heatmap_png(self, doc_id: str, page: int, query: str, *, dpi: float = DRAWN_DPI) -> bytes:
        path = f"/v1/documents/{doc_id}/pages/{page}.png"
        return (await self._send("GET", path, params={"dpi": dpi, "heatmap": query})).content

    async def page_elements(self, doc_id: str, page: int) -> PageElements:
        return await self._get(f"/v1/documents/{doc_id}/pages/{page}/elements", PageElements)

    async def frame_elements(self, doc_id: str, seconds: float) -> PageElements:
        return await self._get(f"/v1/documents/{doc_id}/frames/{seconds:.3f}/elements", PageElements)

    async def frame_png(self, doc_id: str, seconds: float) -> bytes:
        return (await self._send("GET", f"/v1/documents/{doc_id}/frames/{seconds:.3f}.png")).content

    async def original(self, doc_id: str) -> bytes:
        return (await self._send("GET", f"/v1/documents/{doc_id}/original")).content

    async def upload(
        self, files: Sequence[FileToUpload], meta: Meta | None = None, *, collection: str = ""
    ) -> IngestJob:
        """As ``System.upload``. Raises VragError for a file that cannot be read."""
        data = {"meta": json.dumps(dict(meta))} if meta else None
        with ExitStack() as stack:
            parts = [("files", opened_file(file, stack)) for file in files]
            try:
                reply = await self._http.post("/v1/documents", files=parts, data=data, params=_in(collection))
            except httpx.TransportError as error:
                raise _unreachable(self.base_url, error) from error
        _check(reply)
        return _parsed(reply, IngestJob)

    async def job(self, job_id: str) -> IngestJob:
        return await self._get(f"/v1/jobs/{job_id}", IngestJob)

    async def ready(self) -> Ready:
        return _parsed(await self._send("GET", "/readyz", also=503), Ready)

    async def models(self) -> ModelNames:
        return await self._get("/v1/models", ModelNames)

    async def _get(self, path: str, model: type[M], params: Params | None = None) -> M:
        return _parsed(await self._send("GET", path, params=params), model)

    async def _send(
        self, method: str, path: str, *, body: BaseModel | None = None, params: Params | None = None, also: int = 200
    ) -> httpx.Response:
        """The reply, which is a success or has the status ``also``."""
        headers = _JSON if body is not None else None
        try:
            reply = await self._http.request(method, path, params=params, content=_json(body), headers=headers)
        except httpx.TransportError as error:
            raise _unreachable(self.base_url, error) from error
        if reply.status_code != also:
            _check(reply)
        return reply

    async def _followed(self, follower: RunFollower, request: RunRequest | None) -> AsyncGenerator[Event]:
        failures = 0
        while not follower.finished:
            seen = follower.last_event_id
            try:
                async with aclosing(self._lines(request, follower)) as lines:
                    async for line in lines:
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

    async def _lines(self, request: RunRequest | None, follower: RunFollower) -> AsyncGenerator[str]:
        follower.begin_connection()
        method, path, headers, content = _stream_request(request, follower)
        async with AsyncExitStack() as stack:
            timeout = _stream_timeout(self._http.timeout)
            reply = await stack.enter_async_context(
                self._http.stream(method, path, headers=headers, content=content, timeout=timeout)
            )
            if not reply.is_success:
                await reply.aread()
            _check(reply)
            follower.finished = reply.status_code == httpx.codes.NO_CONTENT
            async for line in reply.aiter_lines():
                yield line


def server_address(text: str) -> str:
    """``text`` as the base URL of a server. Raises UnreachableError where it is none."""
    try:
        where = urlsplit(text.strip())
        if where.scheme not in ("http", "https") or not where.hostname or where.port == 0:
            raise ValueError
    except ValueError:
        raise UnreachableError(f"{text!r} is no address of a server: write it as http://HOST:PORT") from None
    return text.strip().rstrip("/").removesuffix("/v1").rstrip("/")


_JSON = {"Content-Type": "application/json"}
_PASSING = frozenset({429, 502, 503, 504})
"""What a server says while one of its parts restarts."""


def _bearer(api_key: str) -> bytes:
    """The header of a key, in UTF-8 as curl sends it."""
    key = api_key.strip()
    if not key.isprintable():
        raise VragError(
            "the key (VRAG_API_KEY) has a line break or another control character in it: give one key alone"
        )
    return f"Bearer {key}".encode()


def _in(collection: str) -> dict[str, str]:
    return {"collection": collection} if collection else {}


def _json(body: BaseModel | None) -> str | None:
    return body.model_dump_json(exclude_none=True) if body is not None else None


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
        raise _unreachable(base_url, error) from error
    return str(error) or type(error).__name__


def _wait_before_retry(base_url: str, failures: int, problem: str) -> float:
    """Seconds to wait. Raises UnreachableError when it has been tried often enough."""
    if failures >= len(RECONNECT_WAITS_S):
        raise UnreachableError(f"the connection to {base_url} is lost ({problem}): check that the server runs")
    return RECONNECT_WAITS_S[failures]


def _unreachable(base_url: str, error: httpx.TransportError) -> UnreachableError:
    """What a failed connection is to the caller."""
    reason = str(error) or type(error).__name__
    return UnreachableError(f"no server answers at {base_url} ({reason}): start one with `vrag serve`")


def _check(reply: httpx.Response) -> None:
    """Raise ServerError unless the reply is a success."""
    if reply.is_success:
        return
    try:
        detail = ErrorBody.model_validate_json(reply.content).error
    except ValidationError:
        raise ServerError(
            reply.status_code, f"{reply.request.url} answered {reply.status_code}, and not as a vrag server does"
        ) from None
    raise ServerError(reply.status_code, detail.message, code=detail.code, param=detail.param)


def _parsed(reply: httpx.Response, model: type[M]) -> M:
    """The body as ``model``. Raises ServerError where it is something else."""
    try:
        return model.model_validate_json(reply.content)
    except ValidationError as error:
        raise ServerError(
            reply.status_code,
            f"{reply.request.url} answered with something else than a {model.__name__}: is it a vrag server?",
        ) from error
