"""What happens to every request before its route and to every reply after it (plain ASGI, so streams stay streams)."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException

from vrag_ray.serving.error_body import error_response, unforeseen_error_response, vrag_error_response
from vrag_ray.serving.errors import NotReadyError, OverloadedError
from vrag_ray.serving.event_stream import STOPPING

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from vrag_ray.serving.http.metrics import Metrics
    from vrag_ray.serving.http.security import Security

log = logging.getLogger("vrag_ray.serving")
_SLASHES = re.compile("/{2,}")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Observe:
    """Outermost: request id, timing, safe default headers, and a bare 500 for whatever was not foreseen."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        closing: asyncio.Event,
        *,
        behind_serve: bool,
        read_by_other_origins: bool = False,
    ) -> None:
        """``closing`` is set before the requests that are left are cancelled, since the service stops.
        ``behind_serve``: Serve's proxy gives every request an id and puts it into the reply itself.
        ``read_by_other_origins``: pages of origins that may read replies show pictures from here too."""
        self._resource_policy = "cross-origin" if read_by_other_origins else "same-site"
        self._app = app
        self._metrics = metrics
        self._closing = closing
        self._behind_serve = behind_serve

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # As of a base URL that ends in a slash, and of a path that does. Starlette would redirect the latter, behind a
        # proxy with TLS to a plain HTTP address, to which a client might send its key in the open.
        scope["path"] = _SLASHES.sub("/", scope["path"]).rstrip("/") or "/"
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        started = time.perf_counter()
        status = 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                if not (given and self._behind_serve):
                    headers["X-Request-ID"] = request_id
                headers.setdefault("X-Content-Type-Options", "nosniff")
                headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
                headers.setdefault("Referrer-Policy", "no-referrer")
                headers.setdefault("Cross-Origin-Resource-Policy", self._resource_policy)
                route = getattr(scope.get("route"), "path", "(none)")
                self._metrics.observe_request(scope["method"], route, status, time.perf_counter() - started)
            await send(message)

        try:
            await self._app(scope, receive, observed)
        except asyncio.CancelledError:
            if not self._closing.is_set():
                raise
            if status == 0:
                # The server that cancels it would send a bare 500.
                await vrag_error_response(NotReadyError(STOPPING))(scope, receive, observed)
        except Exception as error:
            log.exception("request %s: %s %s failed", request_id, scope["method"], scope["path"])
            if status == 0:
                reply = unforeseen_error_response(error, request_id)
                await reply(scope, receive, observed)
            else:
                # A reply is under way: cutting the connection is the only honest end.
                raise


HEAD_ONLY = "vrag_ray.head_only"


class AnswerHead:
    """HEAD is answered as GET is, without the body. Routes that would make a large one look at ``head_only``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        inner = {**scope, "method": "GET", HEAD_ONLY: True}

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            elif "route" in inner:
                # For the metrics.
                scope["route"] = inner["route"]
            await send(message)

        await self._app(inner, receive, without_body)


def head_only(request: Request) -> bool:
    """Whether nobody reads the body of the reply."""
    return bool(request.scope.get(HEAD_ONLY))


class Guard:
    """Answers 401 or 403 before a byte of the body is read."""

    def __init__(self, app: ASGIApp, security: Security) -> None:
        self._app = app
        self._security = security

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            server = scope.get("server")
            headers = {name.lower(): value for name, value in Headers(scope=scope).items()}
            query = scope["query_string"].decode("latin-1")
            host = server[0] if server else None
            refusal = self._security.refuse(scope["method"], scope["path"], headers, host, query)
            if refusal is not None:
                extra = {"WWW-Authenticate": "Bearer"} if refusal.status == 401 else None
                response = error_response(
                    refusal.status, refusal.message, type=refusal.type, code=refusal.code, headers=extra
                )
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


class LimitInFlight:
    """429 for requests above a limit of simultaneous ones: those below it are answered in time.

    Paths below ``exempt`` are let in: event streams, which wait for long and cost little, have limits of their own.
    """

    def __init__(self, app: ASGIApp, most: int, exempt: tuple[str, ...]) -> None:
        self._app = app
        self._most = most
        self._exempt = exempt
        self._inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(self._exempt):
            await self._app(scope, receive, send)
            return
        if self._inside >= self._most:
            refusal = OverloadedError(f"{self._most} requests are being answered, the limit of this server")
            await vrag_error_response(refusal)(scope, receive, send)
            return
        self._inside += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._inside -= 1


class LimitBody:
    """413 for a body beyond the limit of its path, by its declared length or as soon as the limit is passed."""

    def __init__(self, app: ASGIApp, limits: dict[str, int], default: int) -> None:
        self._app = app
        self._limits = limits
        self._default = default

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limits.get(scope["path"], self._default)
        message = f"the body is larger than the limit of {limit} bytes"
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdigit() and int(declared) > limit:
            await error_response(413, message, code="too_large")(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            event = await receive()
            received += len(event.get("body", b""))
            if received > limit:
                # FastAPI passes this exception on as it is; any other would become a 400.
                raise HTTPException(413, message)
            return event

        await self._app(scope, counted, send)
