"""Server-sent events as OpenAI's clients read them: chunks, ``[DONE]``, or an error and nothing after it; or the
events of the Responses API, each with its name."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, TypeVar

from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, JsonValue
from starlette.types import Receive, Scope, Send

from vrag_ray.serving.error_body import internal_error_response, vrag_error_response
from vrag_ray.serving.event_stream import HEARTBEAT, HeartbeatPump
from vrag_ray.serving.openai.detached import detached
from vrag_ray.serving.openai.reasoning_parser import Piece
from vrag_ray.serving.openai.reply_sources import Ending
from vrag_ray.serving.openai.responses import AssistantMessage, ChatCompletionChunk, ChunkChoice
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes

log = logging.getLogger("vrag_ray.serving")
DONE = b"data: [DONE]\n\n"
PATIENCE_S = 10.0
"""How long a reply may take to begin before its stream is opened: until then, a fault still has a status."""


@dataclass(frozen=True, slots=True)
class Head:
    """What all chunks of a reply have in common. ``created`` is seconds since 1970."""

    id: str
    created: int
    model: str


async def chunks(
    head: Head, source: AsyncGenerator[Piece | Ending], *, include_usage: bool
) -> AsyncGenerator[ChatCompletionChunk]:
    """The reply in chunks: its role, its text, why it ended, and the usage where that is requested."""
    begun = False
    async with aclosing(source):
        async for piece in source:
            if not begun:
                yield _chunk(head, AssistantMessage(role="assistant", content=""))
                begun = True
            if isinstance(piece, Piece):
                if piece.think or piece.content:
                    message = AssistantMessage(content=piece.content or None, reasoning_content=piece.think or None)
                    yield _chunk(head, message)
                continue
            if piece.message != AssistantMessage():
                yield _chunk(head, piece.message)
            last = ChunkChoice(delta=AssistantMessage(), finish_reason=piece.finish)
            yield _of(head, (last,), weights=piece.weights)
            if include_usage:
                yield with_changes(_of(head, ()), {"usage": piece.usage})


T = TypeVar("T")


@dataclass(frozen=True)
class Wire(Generic[T]):
    """How a stream is written: an event, a fault that ends it, and its regular end."""

    event: Callable[[T], bytes]
    fault: Callable[[JSONResponse], bytes]
    end: bytes = b""


class ReplyStream(Generic[T]):
    """The events of one reply on the wire. ``begin`` first; ``close`` stops the reply wherever it is."""

    def __init__(
        self, name: str, source: AsyncGenerator[T], wire: Wire[T], closing: asyncio.Event | None = None
    ) -> None:
        """Once ``closing`` is set, its last event says that the service stops."""
        self._name = name
        self._closing = closing
        self._source = source
        self._wire = wire
        self._pump = HeartbeatPump(source)

    async def begin(self, patience_s: float = PATIENCE_S) -> None:
        """Wait for the first event. Raises what went wrong until then."""
        try:
            await self._pump.begin(patience_s)
        except BaseException:
            self.close()
            raise

    async def events(self, heartbeat_s: float) -> AsyncGenerator[bytes]:
        """All events, with a comment after every ``heartbeat_s`` seconds of silence."""
        try:
            async for event in self._pump.values(heartbeat_s, self._closing):
                yield HEARTBEAT if event is None else self._wire.event(event)
        except VragError as error:
            yield self._wire.fault(vrag_error_response(error))
        except Exception:
            log.exception("the reply %s broke", self._name)
            yield self._wire.fault(internal_error_response(self._name))
        else:
            if self._wire.end:
                yield self._wire.end

    def close(self) -> None:
        detached(self._stop(), f"the reply {self._name} cannot be stopped")

    async def _stop(self) -> None:
        await self._pump.stop()
        await self._source.aclose()


class ReplyResponse(StreamingResponse, Generic[T]):
    """A stream that stops the reply behind it when the reader goes away."""

    def __init__(self, stream: ReplyStream[T], heartbeat_s: float, headers: dict[str, str]) -> None:
        # The last one tells nginx not to hold events back until a buffer is full.
        headers = {**headers, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(stream.events(heartbeat_s), media_type="text/event-stream", headers=headers)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()


def _chunk(head: Head, message: AssistantMessage) -> ChatCompletionChunk:
    return _of(head, (ChunkChoice(delta=message),))


def _of(head: Head, choices: tuple[ChunkChoice, ...], weights: str = "") -> ChatCompletionChunk:
    return ChatCompletionChunk(
        id=head.id, created=head.created, model=head.model, choices=choices, system_fingerprint=weights or None
    )


def _json(chunk: BaseModel) -> str:
    """ASCII: some clients take any Unicode line break for the end of an event."""
    return json.dumps(chunk.model_dump(mode="json"), separators=(",", ":"))


def _data(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def _named(kind: str, event: Mapping[str, JsonValue]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(event, separators=(',', ':'))}\n\n".encode()


def _error_event(response: JSONResponse) -> bytes:
    error = json.loads(bytes(response.body))["error"]
    fields = {"code": error["code"], "message": error["message"], "param": error["param"]}
    return _named("error", {"type": "error", "sequence_number": 0, **fields})


CHUNKS = Wire[ChatCompletionChunk](
    event=lambda chunk: _data(_json(chunk)),
    fault=lambda response: _data(json.dumps(json.loads(bytes(response.body)))),
    end=DONE,
)
"""Of chat completions."""
EVENTS = Wire[dict[str, JsonValue]](event=lambda event: _named(str(event["type"]), event), fault=_error_event)
"""Of the Responses API."""
