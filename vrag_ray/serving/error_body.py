"""Every reply that is not a success, in one shape: ``{"error": {message, type, param, code}}``."""

from __future__ import annotations

from collections.abc import Sequence
from email.message import Message

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from vrag_ray.client.schemas import ErrorBody, ErrorDetail
from vrag_ray.index.storage.errors import StorageError, StorageFailure, fault_of
from vrag_ray.types import VragError
from vrag_ray.types.errors import validation_message
from vrag_ray.types.redaction import scrub

UNREAD_BODY = "There was an error parsing the body"
"""What FastAPI raises, with status 400, for a body that is no JSON."""
_TYPES = frozenset({"constrained-str", "constrained-int", "constrained-float", "str", "int", "float", "bool"})
"""What pydantic calls the members of a union."""
_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type"}


def error_response(
    status: int,
    message: str,
    *,
    type: str = "invalid_request_error",
    code: str,
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    body = ErrorBody(error=ErrorDetail(message=message, type=type, param=param, code=code))
    return JSONResponse(body.model_dump(), status, headers)


def vrag_error_response(error: VragError) -> JSONResponse:
    """Faults of this package: their messages are written for the caller, so only paths are taken out."""
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s is not None else None
    return error_response(
        error.status, scrub(str(error)), type=error.type, code=error.code, param=error.param, headers=headers
    )


def unforeseen_error_response(error: Exception, request_id: str) -> JSONResponse:
    """Of an error that nobody raised for the caller: what the disk refused is named, nothing else is."""
    fault = fault_of(error)
    if fault is None:
        return internal_error_response(request_id)
    return vrag_error_response(
        StorageError(StorageFailure("of this server", fault, "the request", is_collection=False))
    )


def internal_error_response(request_id: str) -> JSONResponse:
    """Anything unforeseen: the reply has only the id under which the server's log tells what happened."""
    return error_response(
        500,
        f"the server failed; its log has the reason under request id {request_id}",
        type="server_error",
        code="internal",
    )


def install(app: FastAPI) -> None:
    """Answer all faults that FastAPI and the routes raise in the envelope."""

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        param = _field(first["loc"])
        header = _header_at_fault(request) if param == "body" else ""
        if header:
            return error_response(415, header, code=_CODES[415])
        rest = len(error.errors()) - 1
        more = f" (and {rest} more)" if rest else ""
        return error_response(422, f"{param}: {validation_message(first)}{more}", code="invalid_value", param=param)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        code = _CODES.get(error.status_code, "bad_request")
        headers = dict(error.headers) if error.headers else None
        message = scrub(str(error.detail))
        if message == UNREAD_BODY:
            header = _header_at_fault(request)
            if header:
                return error_response(415, header, code=_CODES[415])
            message = "the body cannot be read: send JSON in UTF-8, nested no more than some hundred levels deep"
        if error.status_code == 405:
            methods = _methods_at(app, request.scope)
            message = f"{request.method} {request.url.path[:80]} is not offered here: use {methods}"
            headers = {"Allow": methods}
        if error.status_code == 404 and "route" not in request.scope:
            routes = {route.path for route in app.routes if isinstance(route, APIRoute)}
            message = f"there is no {request.method} {request.url.path[:80]}: use one of {', '.join(sorted(routes))}"
        return error_response(error.status_code, message, type=_type_of(error.status_code), code=code, headers=headers)

    @app.exception_handler(VragError)
    async def faulty(_: Request, error: VragError) -> JSONResponse:
        return vrag_error_response(error)


def _methods_at(app: FastAPI, scope: Scope) -> str:
    """Those that the routes of the path of ``scope`` take. HEAD is answered as GET is."""
    routes = [route for route in app.routes if isinstance(route, APIRoute) and route.matches(scope)[0] != Match.NONE]
    methods = {method for route in routes for method in route.methods}
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _header_at_fault(request: Request) -> str:
    """What is wrong with the headers of a request whose body could not be read as JSON; "" where nothing is."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        return f"Content-Encoding: {encoding[:40]} is not read here: send the body uncompressed"
    kind = request.headers.get("content-type", "")
    if "json" not in kind.lower():
        return f"Content-Type: {kind[:80] or 'none'} is no JSON: send application/json"
    charset = Message()
    charset["content-type"] = kind
    named = str(charset.get_param("charset", "utf-8")).lower()
    return "" if named in ("utf-8", "utf8") else f"Content-Type: the charset {named[:40]} is not read here: send UTF-8"


def _type_of(status: int) -> str:
    return "not_found_error" if status == 404 else "invalid_request_error"


def _field(location: Sequence[int | str]) -> str:
    """``("body", "queries", 0)`` as ``queries.0``; the place itself (``body``) where the whole of it is wrong.

    Names that pydantic gives to the members of a union are left out: behind a number the value of the field that tells
    them apart, which is the name of a field too, and elsewhere a class or a type with its values.
    """
    place, *rest = location
    names: list[int | str] = []
    for at, name in enumerate(rest):
        follows_number = bool(names) and isinstance(names[-1], int)
        is_tag = follows_number and at + 1 < len(rest) and rest[at + 1] == name
        is_type = name in _TYPES and bool(names)
        is_member = place == "body" and isinstance(name, str) and ("[" in name or name[:1].isupper() or is_type)
        if not is_tag and not is_member:
            names.append(name)
    # A JSON syntax error is located by its character position, which is no field.
    return ".".join(str(name) for name in names) if names and isinstance(names[0], str) else str(place)
