"""Where replies come from: an agent's run, or the bare model. Both give pieces and, last, one ``Ending``.

Closing either before its end stops what is behind it.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from vrag_ray.agent.chat import Delta, QuestionPicture
from vrag_ray.agent.events import EVENT, AnswerEvent, ErrorEvent, RunStatus, UsageEvent
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import RunRequest
from vrag_ray.policies.llm.chat_model import BrokenReplyError, ChatRequest, ModelLostError
from vrag_ray.serving.contract import ModelPart, RunPart
from vrag_ray.serving.errors import NotReadyError
from vrag_ray.serving.openai.citations import Links, evidence_of, marked, with_footnotes
from vrag_ray.serving.openai.detached import detached
from vrag_ray.serving.openai.reasoning_parser import Piece, ReasoningParser, parted
from vrag_ray.serving.openai.responses import AssistantMessage, CachedTokens, FinishReason, ToolCall, Usage
from vrag_ray.types import Completion, VragError
from vrag_ray.types.redaction import scrub
from vrag_ray.views.words import Narrator

_OUT_OF_BUDGET = (RunStatus.MAX_STEPS, RunStatus.DEADLINE)


@dataclass(frozen=True, slots=True)
class Ending:
    """The last of a reply. ``message`` adds to the pieces before; ``weights`` is the version of the model's weights."""

    message: AssistantMessage
    finish: FinishReason
    usage: Usage
    weights: str = ""


class RunFailedError(VragError):
    """The run ended without an answer."""

    status = 502
    type = "server_error"
    code = "run_failed"


async def from_run(
    runs: RunPart,
    request: RunRequest,
    links: Links,
    picture: QuestionPicture | None = None,
    notices: Sequence[str] = (),
) -> AsyncGenerator[Piece | Ending]:
    """Start the run ``request.run_id``, report its progress as thoughts and its answer once that is validated. Closed
    before its end, it ends the run.

    ``notices`` say what of the request was left out: they stand before those of the answer.
    Raises RunFailedError where the run ends without an answer, and what ``RunPart.start`` raises.
    """
    run_id = request.run_id
    assert run_id is not None, "the caller names the run, so that it can be cancelled at any moment"
    over = False
    try:
        await runs.start(request, picture)
        # Many clients show thoughts, and no other field that they do not know.
        yield Piece(think="".join(f"{notice}\n" for notice in notices))
        try:
            async with aclosing(of_run(runs, run_id, links, notices)) as pieces:
                async for piece in pieces:
                    over = over or isinstance(piece, Ending)
                    yield piece
        except RunFailedError:
            over = True
            raise
    finally:
        if not over:
            detached(runs.cancel(run_id), f"run {run_id} cannot be cancelled")


async def of_run(
    runs: RunPart, run_id: str, links: Links, notices: Sequence[str] = ()
) -> AsyncGenerator[Piece | Ending]:
    """``from_run`` of a run that has begun, or has ended. Closed, it leaves the run alone."""
    narrator = Narrator()
    usage: Counter[str] = Counter()
    # The reply has begun: what goes wrong from here on is its last event.
    yield Piece()
    async for logged in runs.events(run_id, -1):
        event = EVENT.validate_json(logged.data)
        if isinstance(event, AnswerEvent):
            yield Ending(answer_of(event, links, notices), finish_of(event.status), usage_of(usage))
            return
        if isinstance(event, ErrorEvent) and event.terminal:
            raise RunFailedError(scrub(event.message))
        if isinstance(event, UsageEvent):
            usage.update(event.usage)
        elif line := narrator.text(event):
            yield Piece(think=line)
    raise NotReadyError(f"the connection to the run was lost: fetch /v1/runs/{run_id}")


async def immediate_reply(text: str) -> AsyncGenerator[Piece | Ending]:
    """A reply that needs neither a run nor a model."""
    yield Piece()
    yield Ending(AssistantMessage(content=text), "stop", Usage())


async def from_model(model: ModelPart, request: ChatRequest) -> AsyncGenerator[Piece | Ending]:
    """The model's reply as it comes. Raises ModelLostError for a lost model, else what ``ModelPart.chat`` raises."""
    parser = ReasoningParser(calls_functions=bool(request.tools))
    heard = ""
    thought = False
    async with model_reply(model, request) as deltas:
        async for delta in deltas:
            if isinstance(delta, Completion):
                yield _ending(delta, parser, heard, thought=thought)
                return
            heard += delta.content
            thought = thought or bool(delta.think)
            piece = parser.feed(delta.content)
            yield Piece(delta.think + piece.think, piece.content)


async def at_once(source: AsyncGenerator[Piece | Ending]) -> AsyncGenerator[Piece | Ending]:
    """``source`` with all its pieces as one, for a reply that is sent whole: thoughts that have their end alone are
    parted from the content, which a stream cannot do before that end comes."""
    think = content = ""
    async with aclosing(source):
        async for piece in source:
            if isinstance(piece, Ending):
                yield Piece(think, content) if think else parted(content)
                yield piece
            else:
                think += piece.think
                content += piece.content


@asynccontextmanager
async def model_reply(model: ModelPart, request: ChatRequest) -> AsyncIterator[AsyncGenerator[Delta | Completion]]:
    """The reply of the model. It ends with a ``Completion``. Raises BrokenReplyError for a model that is lost after its
    first words, ModelLostError for a model that is lost before."""

    async def pieces() -> AsyncGenerator[Delta | Completion]:
        began = False
        try:
            async with aclosing(model.chat(request)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, Delta) and delta.trouble:
                        raise ModelLostError(delta.trouble)
                    yield delta
                    began = True
                    if isinstance(delta, Completion):
                        return
            raise ModelLostError("the model broke off: ask again")
        except ModelLostError as error:
            if began:
                raise BrokenReplyError(str(error)) from error
            raise

    async with aclosing(pieces()) as reply:
        yield reply


def _ending(whole: Completion, parser: ReasoningParser, heard: str, *, thought: bool) -> Ending:
    """With what came in no delta: native function calls, or all of it from a model that does not stream."""
    rest = whole.text.removeprefix(heard) if whole.text.startswith(heard) else ""
    pieces = (parser.feed(rest), parser.end())
    think = "".join(piece.think for piece in pieces)
    if not thought:
        think = whole.reasoning + think
    content = "".join(piece.content for piece in pieces)
    if not (thought or think or heard):
        unstreamed = parted(content)
        think, content = unstreamed.think, unstreamed.content
    calls = tuple(
        ToolCall(index=number, id=f"call_{uuid.uuid4().hex[:24]}", function=call)
        for number, call in enumerate(parser.calls)
    )
    cut: FinishReason = "content_filter" if whole.finish == "content_filter" else "stop"
    finish: FinishReason = "tool_calls" if calls else "length" if whole.finish == "length" else cut
    message = AssistantMessage(
        content=content or None,
        reasoning_content=think or None,
        tool_calls=calls or None,
        notices=whole.notices or None,
    )
    return Ending(message, finish, usage_of(whole.usage), whole.weights)


def answer_of(event: AnswerEvent | RunRecord, links: Links, notices: Sequence[str] = ()) -> AssistantMessage:
    """The answer of a run with its citations."""
    return AssistantMessage(
        content=with_footnotes(event.answer, event.citations, links) if links.footnotes else event.answer,
        annotations=marked(event.answer, event.citations, links),
        evidence=evidence_of(event.citations, links),
        sentences=event.sentences or None,
        notices=(*notices, *event.notices) or None,
    )


def finish_of(status: RunStatus) -> FinishReason:
    return "length" if status in _OUT_OF_BUDGET else "stop"


def usage_of(counts: Mapping[str, int]) -> Usage:
    """From a model's own counts."""
    prompt, completion = counts.get("prompt_tokens", 0), counts.get("completion_tokens", 0)
    cached = counts.get("cached_tokens")
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        prompt_tokens_details=CachedTokens(cached_tokens=cached) if cached is not None else None,
    )
