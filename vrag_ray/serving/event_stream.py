"""Server-sent events: how one is written, and how a silent stream is kept alive."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator

from vrag_ray.serving.backends import LoggedEvent

log = logging.getLogger("vrag_ray.serving")


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

    Where the source itself breaks, which is when the replica that ran the run is lost, an error event without an id
    is the last: the reader may come back with the last id it has, and gets how the run was closed.

    The next event is awaited in a task of its own: cancelling it to send a heartbeat would end the source.
    """
    pending = asyncio.ensure_future(_next(events))
    last = -1
    try:
        while True:
            done, _ = await asyncio.wait({pending}, timeout=heartbeat_s)
            if not done:
                yield HEARTBEAT
                continue
            try:
                event = pending.result()
            except Exception:
                log.exception("an event stream broke")
                yield encode_broken(last)
                return
            if event is None:
                return
            last = event.seq
            yield encode_event(event)
            pending = asyncio.ensure_future(_next(events))
    finally:
        pending.cancel()


def encode_broken(last_seq: int) -> bytes:
    """The terminal error event, in the shape of ``vrag_ray.agent.events.ErrorEvent``, of a stream that broke."""
    body = {
        "kind": "error",
        "seq": last_seq + 1,
        "message": "the connection to the run was lost: fetch its events again after the last id",
        "terminal": True,
    }
    return f"event: error\ndata: {json.dumps(body)}\n\n".encode()


async def _next(events: AsyncIterator[LoggedEvent]) -> LoggedEvent | None:
    return await anext(events, None)
