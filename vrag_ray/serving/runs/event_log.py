"""The growing event log of a live run: in memory for its readers, on disk in case the service dies."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from pydantic import ValidationError

from vrag_ray.agent.events import EVENT, ErrorEvent, Event
from vrag_ray.client.schemas import RunSummary
from vrag_ray.serving.backends import LoggedEvent
from vrag_ray.types import VragError

log = logging.getLogger("vrag_ray.serving")


class EventLog:
    """The events of one run, for any number of readers on one event loop.

    An event is in ``path`` (one JSON line each, after a line with the summary) before any reader sees it, unless the
    disk refuses: the run then goes on in memory, and a restart of the service loses it from there.
    """

    def __init__(self, path: Path, summary: RunSummary) -> None:
        """Raises OSError where not even the summary can be written: such a run is not begun."""
        self._path = path
        self._on_disk = True
        self._events: list[Event] = []
        self._changed = asyncio.Event()
        self._closed = False
        self._file: TextIO = path.open("w", encoding="utf-8")
        self._write(summary.model_dump_json())

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    @property
    def last_seq(self) -> int:
        """The id of the last event, -1 before the first."""
        return self._events[-1].seq if self._events else -1

    def append(self, event: Event) -> None:
        """Add an event; ids must rise."""
        if self._closed or event.seq <= self.last_seq:
            state = "closed" if self._closed else "live"
            raise VragError(f"event {event.seq} cannot follow {self.last_seq} in a {state} log")
        if self._on_disk:
            try:
                self._write(event.model_dump_json())
            except OSError:
                # No later line either: what follows a torn one is never read.
                self._on_disk = False
                log.exception("the run log %s cannot be written; the run goes on in memory", self._path.name)
        self._events.append(event)
        self._wake()

    def close(self) -> None:
        """No more events will come; readers end after the last one."""
        self._closed = True
        with suppress(OSError):
            # What the disk refused before is still in the file's buffer.
            self._file.close()
        self._wake()

    async def read(self, after: int) -> AsyncIterator[tuple[LoggedEvent, ...]]:
        """Every event whose id is above ``after``, those to come included, until the log is closed.

        What has happened by the time the reader asks comes at once: each hand-over to another process has its price.
        """
        position = bisect_right(self._events, after, key=lambda event: event.seq)
        while True:
            if position < len(self._events):
                news = self._events[position:]
                position += len(news)
                yield tuple(map(logged, news))
                continue
            if self._closed:
                return
            await self._changed.wait()

    def _write(self, line: str) -> None:
        self._file.write(line + "\n")
        # To the kernel: what a reader has seen then outlives this process, which is what resuming needs.
        self._file.flush()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def logged(event: Event) -> LoggedEvent:
    """The event as it is sent."""
    return LoggedEvent(event.seq, event.kind, event.model_dump_json())


def final_error(events: tuple[Event, ...], message: str) -> ErrorEvent:
    """The event that ends a run which could not end itself, placed after its last one."""
    last = events[-1] if events else ErrorEvent(seq=-1, message="")
    return ErrorEvent(seq=last.seq + 1, t=last.t, step=last.step, message=message, terminal=True)


def read_log(path: Path) -> tuple[RunSummary, tuple[Event, ...]] | None:
    """What ``EventLog`` wrote before its process died; None where that was not even the summary.

    A torn last line is left out: it was never sent.
    """
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    try:
        summary = RunSummary.model_validate_json(lines[0])
    except ValidationError:
        return None
    events: list[Event] = []
    for line in lines[1:]:
        try:
            events.append(EVENT.validate_json(line))
        except ValidationError:
            break
    return summary, tuple(events)
