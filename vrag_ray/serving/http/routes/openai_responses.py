"""``/v1/responses``: OpenAI's Responses API over the same replies as ``/v1/chat/completions``.

A response of an agent is its run: ``resp_<run id>`` is fetched, cancelled and followed up for as long as the run is
stored. Replies of the bare model are stored nowhere.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import JsonValue, ValidationError

from vrag_ray.agent.record import RunRecord
from vrag_ray.serving.contract import FetchedRun
from vrag_ray.serving.error_body import error_response
from vrag_ray.serving.http.routes.deps import ERRORS, Gate, GateDep, links_of
from vrag_ray.serving.http.routes.openai_chat import CLIENT_CLOSED_REQUEST, decoded_question, reply_source
from vrag_ray.serving.openai.completion import unless_gone
from vrag_ray.serving.openai.models import POLICY, chat_models, check_chat_model
from vrag_ray.serving.openai.reasoning_parser import Piece
from vrag_ray.serving.openai.reply_sources import Ending, RunFailedError, of_run
from vrag_ray.serving.openai.requests import ChatCompletionRequest
from vrag_ray.serving.openai.response_events import (
    RESPONSE,
    Json,
    ResponseHead,
    response_events,
    seconds_of,
    stored_response,
    whole_response,
)
from vrag_ray.serving.openai.response_requests import ResponseRequest
from vrag_ray.serving.openai.stream import EVENTS, ReplyResponse, ReplyStream
from vrag_ray.serving.openai.structured import reply_schema
from vrag_ray.types import InvalidError, NotFoundError, VragError

PATH = "/v1/responses"
router = APIRouter(prefix=PATH, tags=["openai"], responses=ERRORS)
_STREAM = {"content": {"text/event-stream": {}}, "description": "With `stream`: the response as it grows."}


class NotStoredError(VragError):
    """The response that the request refers to is not stored here."""

    status = 404
    type = "not_found_error"
    code = "response_not_found"


@router.post("", response_class=JSONResponse, responses={200: _STREAM})
async def create_response(body: ResponseRequest, request: Request, gate: GateDep) -> Response:
    """An agent's answer with its citations, or the bare model's reply. With ``previous_response_id`` it goes on from
    there; with ``background`` it is begun only: fetch it by its id. A reader of its ``stream`` who hangs up does not
    end it."""
    check_chat_model(body.model, await chat_models(gate.system.parts.model))
    earlier = await _earlier(body.previous_response_id, gate)
    name = uuid.uuid4().hex
    head = ResponseHead(f"{RESPONSE}{name}", int(time.time()), body.model, body)
    with _own_places(body, earlier):
        chat = body.chat(earlier)
        if body.background:
            notices = await _begin(chat, name, gate)
            if body.stream:
                run = of_run(gate.system.parts.runs, name, links_of(request, gate), notices)
                return await _streamed(head, run, gate, {"X-Run-ID": name})
            return JSONResponse(head.body("in_progress", []), headers={"X-Run-ID": name})
        source, is_run = await reply_source(chat, name, request, gate)
    headers = {"X-Run-ID": name} if is_run else {}
    if body.stream:
        return await _streamed(head, source, gate, headers)
    try:
        reply = await unless_gone(whole_response(head, source), request)
    except RunFailedError as error:
        headers["x-should-retry"] = "false"
        return error_response(error.status, str(error), type=error.type, code=error.code, headers=headers)
    return Response(status_code=CLIENT_CLOSED_REQUEST) if reply is None else JSONResponse(reply, headers=headers)


@router.get("/{response_id}", response_class=JSONResponse, responses={200: _STREAM})
async def fetch_response(
    response_id: str,
    request: Request,
    gate: GateDep,
    stream: bool = False,
    starting_after: Annotated[int, Query(ge=-1, description="With `stream`: number of the last event seen.")] = -1,
) -> Response:
    """The response of a run, ``in_progress`` while that goes on; with ``stream`` its events from the first, or after
    ``starting_after``, those to come included."""
    if not stream:
        return JSONResponse(await _stored(response_id, request, gate))
    try:
        summary = await gate.system.summary(response_id.removeprefix(RESPONSE))
    except NotFoundError as error:
        raise _not_stored(response_id, "response_id") from error
    head = ResponseHead(f"{RESPONSE}{summary.run_id}", seconds_of(summary.started_at), summary.agent)
    source = of_run(gate.system.parts.runs, summary.run_id, links_of(request, gate))
    return await _streamed(head, source, gate, {"X-Run-ID": summary.run_id}, starting_after)


@router.post("/{response_id}/cancel", response_class=JSONResponse)
async def cancel_response(response_id: str, request: Request, gate: GateDep) -> JSONResponse:
    """End the run of a response now; one that has ended stays as it is."""
    try:
        await gate.system.parts.runs.cancel(response_id.removeprefix(RESPONSE))
    except NotFoundError as error:
        raise _not_stored(response_id, "response_id") from error
    return JSONResponse(await _stored(response_id, request, gate))


@contextmanager
def _own_places(body: ResponseRequest, earlier: Sequence[Mapping[str, JsonValue]]) -> Iterator[None]:
    """Faults of the chat that ``body`` becomes name the fields of ``body``."""
    try:
        yield
    except ValidationError as error:
        faults = error.errors()
        places = [body.own_place([str(part) for part in fault["loc"]], earlier) for fault in faults]
        raise RequestValidationError(
            [{**fault, "loc": ("body", *place)} for fault, place in zip(faults, places, strict=True)]
        ) from error
    except VragError as error:
        if error.param is not None:
            own = ".".join(body.own_place(error.param.split("."), earlier))
            text = str(error)
            if text.startswith(error.param):
                error.args = (own + text.removeprefix(error.param),)
            error.param = own
        raise


async def _earlier(response_id: str | None, gate: Gate) -> Sequence[Mapping[str, JsonValue]]:
    """Question and answer of the run that a request follows. Its question holds what that run followed."""
    if response_id is None:
        return ()
    fetched = await _run(response_id, gate, "previous_response_id")
    if fetched.live:
        raise InvalidError(
            f"previous_response_id: {response_id} is still in progress: wait for its end", param="previous_response_id"
        )
    record = RunRecord.from_json(fetched.body)
    return ({"role": "user", "content": record.question}, {"role": "assistant", "content": record.answer})


async def _run(response_id: str, gate: Gate, param: str) -> FetchedRun:
    try:
        return await gate.system.parts.runs.fetch(response_id.removeprefix(RESPONSE))
    except NotFoundError as error:
        raise _not_stored(response_id, param) from error


def _not_stored(response_id: str, param: str) -> NotStoredError:
    return NotStoredError(
        f"there is no response {response_id[:80]!r}: those of agents are stored with their runs, as many as "
        "serving.kept_runs says; those of the model policy are not",
        param=param,
    )


async def _stored(response_id: str, request: Request, gate: Gate) -> Json:
    fetched = await _run(response_id, gate, "response_id")
    summary = await gate.system.parts.runs.summary(response_id.removeprefix(RESPONSE))
    created = seconds_of(summary.started_at)
    if fetched.live:
        return ResponseHead(f"{RESPONSE}{summary.run_id}", created, summary.agent).body("in_progress", [])
    return stored_response(RunRecord.from_json(fetched.body), links_of(request, gate), created)


async def _streamed(
    head: ResponseHead,
    source: AsyncGenerator[Piece | Ending],
    gate: Gate,
    headers: dict[str, str],
    after: int = -1,
) -> ReplyResponse[Json]:
    stream = ReplyStream(head.id, response_events(head, source, after), EVENTS, gate.closing)
    await stream.begin()
    return ReplyResponse(stream, gate.config.heartbeat_s, headers)


async def _begin(chat: ChatCompletionRequest, run_id: str, gate: Gate) -> Sequence[str]:
    """Start the run of a response that need not be waited for; what of the request it leaves out, in words."""
    if chat.model == POLICY or reply_schema(chat) is not None:
        raise InvalidError(
            "background: answers of agents in words alone are made in the background: leave it out", param="background"
        )
    question, picture = await decoded_question(chat, run_id, gate)
    await gate.system.parts.runs.start(question.request, picture)
    return question.notices
