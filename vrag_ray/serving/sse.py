"""Server-sent events: how one is written, and how a silent stream is kept alive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One event of a run as it is sent and stored. ``seq`` is the SSE id; ``data`` is one JSON object."""

    seq: int
    kind: str
    data: str


HEARTBEAT = b": keep-alive\n\n"


_LINE_BREAKS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def encode_event(event: LoggedEvent) -> bytes:
    """The event on the wire. ``data`` must be JSON on one line.

    Some clients take any Unicode line break for the end of a field (httpx does), so these are escaped; in JSON they
    can only stand inside a string, where the escape means the same.
    """
    return f"id: {event.seq}\nevent: {event.kind}\ndata: {event.data.translate(_LINE_BREAKS)}\n\n".encode()


async def encode_stream(events: AsyncIterator[LoggedEvent], heartbeat_s: float) -> AsyncIterator[bytes]:
    """``events`` on the wire, with a comment after every ``heartbeat_s`` seconds of silence.

    The next event is awaited in a task of its own: cancelling it to send a heartbeat would end the source.
    """
    pending = asyncio.ensure_future(_next(events))
    try:
        while True:
            done, _ = await asyncio.wait({pending}, timeout=heartbeat_s)
            if not done:
                yield HEARTBEAT
                continue
            event = pending.result()
            if event is None:
                return
            yield encode_event(event)
            pending = asyncio.ensure_future(_next(events))
    finally:
        pending.cancel()


async def _next(events: AsyncIterator[LoggedEvent]) -> LoggedEvent | None:
    return await anext(events, None)
