"""``POST /v1/chat/completions``: agents and the bare model for clients of OpenAI's interface."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from vrag_ray.agent.chat import QuestionPicture
from vrag_ray.serving.error_body import error_response
from vrag_ray.serving.http.routes.deps import ERRORS, Gate, GateDep, links_of
from vrag_ray.serving.openai.completion import whole_reply
from vrag_ray.serving.openai.helper_tasks import helper_task, without_model
from vrag_ray.serving.openai.images import Pictures
from vrag_ray.serving.openai.model_chat import chat_request
from vrag_ray.serving.openai.models import POLICY, chat_models, check_chat_model
from vrag_ray.serving.openai.question import ChatQuestion, chat_question
from vrag_ray.serving.openai.reasoning_parser import Piece
from vrag_ray.serving.openai.reply_sources import Ending, RunFailedError, from_model, from_run, immediate_reply
from vrag_ray.serving.openai.requests import ChatCompletionRequest
from vrag_ray.serving.openai.responses import ChatCompletion
from vrag_ray.serving.openai.stream import CHUNKS, Head, ReplyResponse, ReplyStream, chunks
from vrag_ray.serving.openai.structured import answer_as_json, call_of, reply_schema
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes

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
    check_chat_model(body.model, await chat_models(gate.system.parts.model))
    name = uuid.uuid4().hex
    head = Head(id=f"chatcmpl-{name}", created=int(time.time()), model=body.model)
    source, is_run = await reply_source(body, name, request, gate)
    headers = {"X-Run-ID": name} if is_run else {}
    if body.stream:
        usage = body.stream_options is not None and body.stream_options.include_usage
        stream = ReplyStream(head.id, chunks(head, source, include_usage=usage), CHUNKS, gate.closing)
        await stream.begin()
        return ReplyResponse(stream, gate.config.heartbeat_s, headers)
    try:
        reply = await whole_reply(head, source, request)
    except RunFailedError as error:
        # OpenAI's SDK repeats a request that the server failed, unless the reply says that this would not help.
        headers["x-should-retry"] = "false"
        return error_response(error.status, str(error), type=error.type, code=error.code, headers=headers)
    if reply is None:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    return JSONResponse(reply.model_dump(mode="json"), headers=headers)


async def reply_source(
    body: ChatCompletionRequest, run_id: str, request: Request, gate: Gate
) -> tuple[AsyncGenerator[Piece | Ending], bool]:
    """Where the reply comes from, and whether that is a run, which is called ``run_id`` then."""
    model = gate.system.parts.model
    schema = reply_schema(body)
    task = helper_task(body) if body.model != POLICY else None
    if (task is not None or schema is not None) and POLICY not in await chat_models(model):
        if schema is not None:
            raise VragError(
                f"{schema.param}: without a language model nothing here can write JSON of a schema: set openai or vllm "
                "in the server's settings, or ask for text",
                param=schema.param,
            )
        assert task is not None
        return immediate_reply(without_model(task, body)), False
    if body.model == POLICY or task is not None:
        chat = await chat_request(body, Pictures(gate.system.parts.documents, gate.system.pictures))
        if schema is not None and schema.functions:
            return call_of(model, chat, schema), False
        return from_model(model, chat), False
    question, picture = await decoded_question(body, run_id, gate)
    run, notices = question.request, question.notices
    links = links_of(request, gate)
    if schema is not None:
        # The answer becomes JSON: there is no place below it.
        links = replace(links, footnotes=False)
    source = from_run(gate.system.parts.runs, run, links, picture, notices)
    if schema is not None:
        source = answer_as_json(source, model, schema, run.question)
    return source, True


async def decoded_question(
    body: ChatCompletionRequest, run_id: str, gate: Gate
) -> tuple[ChatQuestion, QuestionPicture | None]:
    """The run that ``body`` asks for, and its picture, which the request of the run holds no longer."""
    question = chat_question(body, run_id)
    picture = await gate.system.pictures.question(question.request.picture, "messages")
    bare = with_changes(question.request, {"picture": None})
    return replace(question, request=bare), picture
