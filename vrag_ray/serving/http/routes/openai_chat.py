"""``POST /v1/chat/completions``: agents and the bare model for clients of OpenAI's interface."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from vrag_ray.serving.error_body import error_response
from vrag_ray.serving.http.routes.deps import ERRORS, Gate, GateDep
from vrag_ray.serving.openai.completion import whole_reply
from vrag_ray.serving.openai.images import Pictures
from vrag_ray.serving.openai.model_chat import chat_request
from vrag_ray.serving.openai.models import POLICY, chat_models, check_chat_model
from vrag_ray.serving.openai.question import run_request
from vrag_ray.serving.openai.reasoning_parser import Piece
from vrag_ray.serving.openai.reply_sources import Ending, RunFailedError, from_model, from_run
from vrag_ray.serving.openai.requests import ChatCompletionRequest
from vrag_ray.serving.openai.responses import ChatCompletion
from vrag_ray.serving.openai.stream import ChunkResponse, ChunkStream, Head, chunks

PATH = "/v1/chat/completions"
CLIENT_CLOSED_REQUEST = 499
"""For the metrics: nobody reads this reply."""
router = APIRouter(tags=["openai"], responses=ERRORS)
_STREAM = {"content": {"text/event-stream": {}}, "description": "With `stream`: chunks as server-sent events."}


@router.post(PATH, response_model=ChatCompletion, responses={200: _STREAM})
async def chat_completions(body: ChatCompletionRequest, request: Request, gate: GateDep) -> Response:
    """An agent's answer (`vimrag`, `vrag`, `extractive`) with its citations, or the bare model's reply (`policy`).

    ``X-Run-ID`` names the run of an agent, to be fetched at ``/v1/runs/{id}``. A reader who hangs up ends it.
    """
    check_chat_model(body.model, await chat_models(gate.backends.model))
    name = uuid.uuid4().hex
    head = Head(id=f"chatcmpl-{name}", created=int(time.time()), model=body.model)
    source = await _source(body, name, request, gate)
    headers = {} if body.model == POLICY else {"X-Run-ID": name}
    if body.stream:
        usage = body.stream_options is not None and body.stream_options.include_usage
        stream = ChunkStream(head.id, chunks(head, source, include_usage=usage))
        await stream.begin()
        return ChunkResponse(stream, gate.config.heartbeat_s, headers)
    try:
        reply = await whole_reply(head, source, request)
    except RunFailedError as error:
        # OpenAI's SDK repeats a request that the server failed, unless it is told that this would not help.
        headers["x-should-retry"] = "false"
        return error_response(error.status, str(error), type=error.type, code=error.code, headers=headers)
    if reply is None:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    return JSONResponse(reply.model_dump(mode="json"), headers=headers)


async def _source(
    body: ChatCompletionRequest, name: str, request: Request, gate: Gate
) -> AsyncGenerator[Piece | Ending]:
    if body.model == POLICY:
        return from_model(
            gate.backends.model, await chat_request(body, Pictures(gate.backends.documents, gate.pictures))
        )
    asked = run_request(body, name)
    picture = await gate.pictures.question(asked.picture, "messages")
    asked = asked.model_copy(update={"picture": None})
    return from_run(gate.backends.runs, asked, str(request.base_url).rstrip("/"), picture)
