"""Server-sent events: how an event is written, and how a silent stream stays alive."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Generic, TypeVar

from vrag_ray.serving.contract import LoggedEvent
from vrag_ray.serving.errors import NotReadyError

log = logging.getLogger("vrag_ray.serving")


T = TypeVar("T")
HEARTBEAT = b": keep-alive\n\n"
STOPPING = "the service is stopping: send the request again when it runs"


_LINE_BREAKS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def encode_event(event: LoggedEvent) -> bytes:
    """The event on the wire. ``data`` must be JSON on one line.

    Some clients take any Unicode line break for the end of a field (httpx does), so these are escaped; in JSON they
    can only stand inside a string, where the escape means the same.
    """
    return f"id: {event.seq}\nevent: {event.kind}\ndata: {event.data.translate(_LINE_BREAKS)}\n\n".encode()


class HeartbeatPump(Generic[T]):
    """What ``source`` gives, with a beat for every stretch of silence, so that connections stay open.

    The next value is awaited in a task of its own: cancelling it to send a heartbeat would end the source.
    """

    def __init__(self, source: AsyncIterator[T]) -> None:
        self._source = source
        self._next: asyncio.Task[T | None] | None = None

    async def begin(self, patience_s: float) -> None:
        """Wait for the first value, at most so long. Raises what the source raised until then."""
        done, _ = await asyncio.wait({self._awaited()}, timeout=patience_s)
        for first in done:
            first.result()

    async def values(self, heartbeat_s: float, closing: asyncio.Event | None = None) -> AsyncGenerator[T | None]:
        """All values; None after every ``heartbeat_s`` seconds without one. Raises what the source raises, and
        NotReadyError once ``closing`` is set."""
        end = asyncio.ensure_future((closing or asyncio.Event()).wait())
        try:
            while True:
                pending = self._awaited()
                await asyncio.wait({pending, end}, timeout=heartbeat_s, return_when=asyncio.FIRST_COMPLETED)
                if not pending.done():
                    if end.done():
                        raise NotReadyError(STOPPING)
                    yield None
                    continue
                value = pending.result()
                if value is None:
                    return
                self._next = None
                yield value
        finally:
            end.cancel()

    def _awaited(self) -> asyncio.Task[T | None]:
        if self._next is None:
            self._next = asyncio.ensure_future(self._next_item())
        return self._next

    async def _next_item(self) -> T | None:
        return await anext(self._source, None)

    async def stop(self) -> None:
        """Give up on the value that is awaited, and wait until that is over."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)


async def encode_stream(events: AsyncIterator[LoggedEvent], heartbeat_s: float) -> AsyncIterator[bytes]:
    """``events`` on the wire, with a comment after every ``heartbeat_s`` seconds of silence.

    Where the source itself breaks, which is when the replica that ran the run is lost, an error event without an id
    is the last: the reader may come back with the last id it has, and gets how the run was closed.
    """
    pump = HeartbeatPump(events)
    last = -1
    try:
        async for event in pump.values(heartbeat_s):
            if event is None:
                yield HEARTBEAT
                continue
            last = event.seq
            yield encode_event(event)
    except Exception:
        log.exception("an event stream broke")
        yield encode_broken(last)
    finally:
        await pump.stop()


def encode_broken(last_seq: int) -> bytes:
    """The terminal error event, in the shape of ``vrag_ray.agent.events.ErrorEvent``, of a stream that broke."""
    body = {
        "kind": "error",
        "seq": last_seq + 1,
        "message": "the connection to the run was lost: fetch its events again after the last id",
        "terminal": True,
    }
    return f"event: error\ndata: {json.dumps(body)}\n\n".encode()
