"""Replies of OpenAI's Responses API: the response as it grows, event by event, and the one of a stored run."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue

from vrag_ray.agent.events import RunStatus
from vrag_ray.agent.record import RunRecord
from vrag_ray.serving.errors import OverloadedError
from vrag_ray.serving.openai.citations import Links
from vrag_ray.serving.openai.reasoning_parser import Piece
from vrag_ray.serving.openai.reply_sources import Ending, answer_of, at_once, finish_of, usage_of
from vrag_ray.serving.openai.response_requests import ResponseRequest, ResponseStatus
from vrag_ray.serving.openai.responses import AssistantMessage, Evidence, FinishReason, ToolCall, Usage
from vrag_ray.types import VragError
from vrag_ray.types.redaction import scrub

Json = dict[str, JsonValue]
RESPONSE = "resp_"
"""Before the id of its run."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What a response repeats of its request. ``created`` is seconds since 1970."""

    id: str
    created: int
    model: str
    request: ResponseRequest | None = None

    def body(
        self, status: ResponseStatus, output: Sequence[Json], usage: Usage | None = None, **more: JsonValue
    ) -> Json:
        """The whole response. ``more`` are fields of the end: what went wrong, or what is left out."""
        request = self.request
        body: Json = {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": bool(request and request.background),
            "error": None,
            "incomplete_details": None,
            "instructions": request.instructions if request else None,
            "max_output_tokens": request.max_output_tokens if request else None,
            "model": self.model,
            "output": list(output),
            "parallel_tool_calls": True,
            "previous_response_id": request.previous_response_id if request else None,
            "reasoning": {"effort": None, "summary": None},
            "store": True,
            "temperature": request.temperature if request else None,
            "text": {"format": (request.text and request.text.format) or {"type": "text"}} if request else {},
            "tool_choice": (request.tool_choice if request else None) or "auto",
            "tools": list(request.tools) if request else [],
            "top_p": request.top_p if request else None,
            "truncation": "disabled",
            "usage": _usage(usage) if usage is not None else None,
            "metadata": dict(request.metadata or {}) if request else {},
        }
        return body | more

    def ended(self, finish: FinishReason, message: AssistantMessage, output: Sequence[Json], usage: Usage) -> Json:
        """The response of a reply that came to its end, ``completed`` or cut and so ``incomplete``."""
        own = _fields_of(message)
        if finish not in ("length", "content_filter"):
            return self.body("completed", output, usage, **own)
        reason = "max_output_tokens" if finish == "length" else finish
        return self.body("incomplete", output, usage, incomplete_details={"reason": reason}, **own)


@dataclass(slots=True)
class _Growing:
    """The items of a response so far, and the number of the next event."""

    head: ResponseHead
    output: list[Json] = field(default_factory=list)
    thoughts: str = ""
    text: str = ""
    open: str = ""
    """The type of the item that is being written: ``reasoning`` or ``message``."""
    number: int = 0

    def event(self, kind: str, **values: JsonValue) -> Json:
        self.number += 1
        return {"type": kind, "sequence_number": self.number - 1, **values}

    @property
    def place(self) -> Mapping[str, JsonValue]:
        """Of the item that is being written."""
        prefix = "rs" if self.open == "reasoning" else "msg"
        return {"item_id": f"{prefix}_{self.head.id}_{len(self.output)}", "output_index": len(self.output)}

    def think(self, text: str) -> Iterator[Json]:
        yield from self._opened("reasoning")
        self.thoughts += text
        yield self.event("response.reasoning_summary_text.delta", **self.place, summary_index=0, delta=text)

    def say(self, text: str) -> Iterator[Json]:
        yield from self._opened("message")
        self.text += text
        yield self.event("response.output_text.delta", **self.place, content_index=0, delta=text, logprobs=[])

    def end(self, message: AssistantMessage) -> Iterator[Json]:
        """What the ending adds, and the end of every item."""
        if message.reasoning_content:
            yield from self.think(message.reasoning_content)
        if message.content:
            yield from self.say(message.content)
        annotations = annotations_of(message)
        if self.open == "message":
            for number, annotation in enumerate(annotations):
                yield self.event(
                    "response.output_text.annotation.added", **self.place, content_index=0, annotation_index=number,
                    annotation=annotation,
                )  # fmt: skip
        yield from self._closed(annotations)
        for call in message.tool_calls or ():
            yield from self._called(call)

    def _opened(self, kind: str) -> Iterator[Json]:
        if self.open == kind:
            return
        yield from self._closed([])
        self.open = kind
        place = self.place
        item: Json = {"id": place["item_id"], "type": kind}
        if kind == "reasoning":
            yield self.event(
                "response.output_item.added", output_index=place["output_index"], item=item | {"summary": []}
            )
            part: Json = {"type": "summary_text", "text": ""}
            yield self.event("response.reasoning_summary_part.added", **place, summary_index=0, part=part)
        else:
            item |= {"role": "assistant", "status": "in_progress", "content": []}
            yield self.event("response.output_item.added", output_index=place["output_index"], item=item)
            yield self.event("response.content_part.added", **place, content_index=0, part=text_part("", []))

    def _closed(self, annotations: list[JsonValue]) -> Iterator[Json]:
        place = self.place
        if self.open == "reasoning":
            part: Json = {"type": "summary_text", "text": self.thoughts}
            yield self.event("response.reasoning_summary_text.done", **place, summary_index=0, text=self.thoughts)
            yield self.event("response.reasoning_summary_part.done", **place, summary_index=0, part=part)
            item = reasoning_item(str(place["item_id"]), self.thoughts)
        elif self.open == "message":
            part = text_part(self.text, annotations)
            yield self.event("response.output_text.done", **place, content_index=0, text=self.text, logprobs=[])
            yield self.event("response.content_part.done", **place, content_index=0, part=part)
            item = message_item(str(place["item_id"]), self.text, annotations)
        else:
            return
        yield self.event("response.output_item.done", output_index=place["output_index"], item=item)
        self.output.append(item)
        self.open, self.thoughts, self.text = "", "", ""

    def _called(self, call: ToolCall) -> Iterator[Json]:
        place: Json = {"item_id": f"fc_{call.id}", "output_index": len(self.output)}
        item: Json = {
            "id": place["item_id"], "type": "function_call", "call_id": call.id, "name": call.function.name,
            "arguments": call.function.arguments, "status": "completed",
        }  # fmt: skip
        begun = item | {"arguments": "", "status": "in_progress"}
        yield self.event("response.output_item.added", output_index=place["output_index"], item=begun)
        arguments = call.function.arguments
        yield self.event("response.function_call_arguments.delta", **place, delta=arguments)
        yield self.event("response.function_call_arguments.done", **place, arguments=arguments, name=call.function.name)
        yield self.event("response.output_item.done", output_index=place["output_index"], item=item)
        self.output.append(item)


async def response_events(
    head: ResponseHead, source: AsyncGenerator[Piece | Ending], after: int = -1
) -> AsyncGenerator[Json]:
    """The events of a reply with numbers above ``after``; the last one has the whole response. Raises what ``source``
    does before its first piece; a later fault is the last event."""
    growing = _Growing(head)
    try:
        async with aclosing(_events(growing, source)) as events:
            async for event in events:
                # Each is made as it is yielded, so the number that was last given is its own.
                if growing.number - 1 > after:
                    yield event
    except VragError as error:
        if not growing.number:
            raise
        # One of OpenAI's own codes, or clients do not read the event.
        code = "rate_limit_exceeded" if isinstance(error, OverloadedError) else "server_error"
        body = head.body("failed", growing.output, error={"code": code, "message": scrub(str(error))})
        yield growing.event("response.failed", response=body)


async def whole_response(head: ResponseHead, source: AsyncGenerator[Piece | Ending]) -> Json:
    """The response at its end. Raises what ``source`` does."""
    last: Json = {}
    async for event in _events(_Growing(head), at_once(source)):
        last = event
    response = last["response"]
    assert isinstance(response, dict)
    return response


async def _events(growing: _Growing, source: AsyncGenerator[Piece | Ending]) -> AsyncGenerator[Json]:
    head = growing.head
    async with aclosing(source):
        async for piece in source:
            if not growing.number:
                for kind in ("response.created", "response.in_progress"):
                    yield growing.event(kind, response=head.body("in_progress", []))
            if isinstance(piece, Piece):
                for event in growing.think(piece.think) if piece.think else ():
                    yield event
                for event in growing.say(piece.content) if piece.content else ():
                    yield event
                continue
            for event in growing.end(piece.message):
                yield event
            body = head.ended(piece.finish, piece.message, growing.output, piece.usage)
            yield growing.event(f"response.{body['status']}", response=body)


def stored_response(record: RunRecord, links: Links, created: int) -> Json:
    """The response that a run has become."""
    head = ResponseHead(f"{RESPONSE}{record.run_id}", created, record.agent)
    usage = usage_of(record.usage)
    if record.status is RunStatus.CANCELLED:
        return head.body("cancelled", [], usage)
    if record.error:
        return head.body("failed", [], usage, error={"code": "server_error", "message": record.error})
    message = answer_of(record, links)
    item = message_item(f"msg_{head.id}_0", message.content or "", annotations_of(message))
    return head.ended(finish_of(record.status), message, [item], usage)


def seconds_of(started_at: str) -> int:
    """Seconds since 1970 of an ISO 8601 time; now where it is none."""
    try:
        return int(datetime.fromisoformat(started_at).timestamp())
    except ValueError:
        return int(time.time())


def annotations_of(message: AssistantMessage) -> list[JsonValue]:
    """A ``url_citation`` for each mark, with page and box beside OpenAI's fields, and a ``file_citation`` for each
    document, at its first mark."""
    evidence: dict[str, Evidence] = {each.url: each for each in message.evidence or ()}
    annotations: list[JsonValue] = []
    documents: dict[str, JsonValue] = {}
    for mark in message.annotations or ():
        place = mark.url_citation
        shown: Json = {"type": "url_citation", **place.model_dump(mode="json")}
        source = evidence.get(place.url)
        if source is not None:
            shown |= {
                "document": source.document,
                "page": source.page,
                "box": list(source.box) if source.box else None,
                "element": source.element.model_dump(mode="json") if source.element is not None else None,
                "value_box": list(source.value_box) if source.value_box else None,
            }
            documents.setdefault(
                source.document,
                {
                    "type": "file_citation",
                    "file_id": f"file-{source.document}",
                    "filename": source.title,
                    "index": place.end_index,
                },
            )
        annotations.append(shown)
    return [*annotations, *documents.values()]


def text_part(text: str, annotations: list[JsonValue]) -> Json:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def message_item(item_id: str, text: str, annotations: list[JsonValue]) -> Json:
    return {
        "id": item_id, "type": "message", "role": "assistant", "status": "completed",
        "content": [text_part(text, annotations)],
    }  # fmt: skip


def reasoning_item(item_id: str, thoughts: str) -> Json:
    return {"id": item_id, "type": "reasoning", "summary": [{"type": "summary_text", "text": thoughts}]}


def _fields_of(message: AssistantMessage) -> Json:
    """This server's own fields of an answer."""
    evidence: list[JsonValue] = [each.model_dump(mode="json") for each in message.evidence or ()]
    sentences: list[JsonValue] = [each.model_dump(mode="json") for each in message.sentences or ()]
    return {"evidence": evidence, "sentences": sentences, "notices": list(message.notices or ())}


def _usage(usage: Usage) -> Json:
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details is not None else 0
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total_tokens,
    }
