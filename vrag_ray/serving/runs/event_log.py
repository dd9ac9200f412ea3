"""The growing event log of a live run: in memory for its readers, on disk in case the service dies."""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from bisect import bisect_right
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.agent.events import EVENT, ErrorEvent, Event
from vrag_ray.client.schemas import RunSummary
from vrag_ray.serving.contract import LoggedEvent
from vrag_ray.types import VragError

log = logging.getLogger("vrag_ray.serving")


class EventLog:
    """The events of one run, for any number of readers on one event loop.

    An event is in ``path`` (one JSON line each, after a line with the summary) before any reader sees it, unless the
    disk refuses: the run then goes on in memory, and a restart of the service loses it from there.
    """

    def __init__(self, path: Path, summary: RunSummary, owner: str = "") -> None:
        """``owner`` is the process that runs it, see ``vrag_ray.serving.owners``.

        Raises FileExistsError where a run of this name is under way, OSError where not even the summary can be
        written: such a run is not begun.
        """
        self._path = path
        self._on_disk = True
        self._events: list[Event] = []
        self._changed = asyncio.Event()
        self._closed = False
        # It has its name once its head is in it, and only one of several can give it that name.
        unnamed = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        self._file: TextIO = unnamed.open("x", encoding="utf-8")
        try:
            self._write(LogHead(owner=owner, summary=summary).model_dump_json())
            os.link(unnamed, path)
        except OSError:
            with suppress(OSError):
                self._file.close()
            raise
        finally:
            unnamed.unlink()

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
            except OSError as error:
                # No later line either: what follows a torn one is never read.
                self._on_disk = False
                log.warning("the run log %s cannot be written (%s); the run goes on in memory", self._path.name, error)
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


class LogHead(BaseModel):
    """The first line of a run's log."""

    model_config = ConfigDict(frozen=True)

    owner: str
    summary: RunSummary


@dataclass(frozen=True, slots=True)
class ReadLog:
    """What stands in the log of a run."""

    owner: str
    summary: RunSummary
    events: tuple[Event, ...]


def logged(event: Event) -> LoggedEvent:
    """The event as it is sent."""
    return LoggedEvent(event.seq, event.kind, event.model_dump_json())


def final_error(events: tuple[Event, ...], message: str) -> ErrorEvent:
    """The event that ends a run which could not end itself, placed after its last one."""
    last = events[-1] if events else ErrorEvent(seq=-1, message="")
    return ErrorEvent(seq=last.seq + 1, t=last.t, step=last.step, message=message, terminal=True)


class LogTail:
    """What comes into a log that another process writes, each event once. Raises FileNotFoundError once it is gone."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_bytes = 0
        self.owner = ""
        """Known once something was read."""

    def news(self) -> tuple[LoggedEvent, ...]:
        """The whole lines that have come since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._read_bytes)
            whole, end, _ = file.read().rpartition(b"\n")
        lines = whole.split(b"\n") if end else []
        if lines and self._read_bytes == 0:
            self.owner = LogHead.model_validate_json(lines.pop(0)).owner
        self._read_bytes += len(whole) + len(end)
        return tuple(logged(EVENT.validate_json(line)) for line in lines)


def read_log(path: Path) -> ReadLog | None:
    """What ``EventLog`` has written; None where that is not even the head. Raises FileNotFoundError for no log.

    A torn last line is left out: it was never sent.
    """
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    try:
        head = LogHead.model_validate_json(lines[0])
    except ValidationError:
        return None
    events: list[Event] = []
    for line in lines[1:]:
        try:
            events.append(EVENT.validate_json(line))
        except ValidationError:
            break
    return ReadLog(head.owner, head.summary, tuple(events))
