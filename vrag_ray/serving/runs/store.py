"""Runs in a folder that all replicas share: one JSON file for a finished run, a growing log for one under way."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.agent.events import Event, RunStatus, StartEvent
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.agent.record import RunRecord, Timings
from vrag_ray.client.schemas import RUN_ID, RunSummary
from vrag_ray.serving.contract import LoggedEvent
from vrag_ray.serving.errors import NotReadyError
from vrag_ray.serving.files import write_atomically
from vrag_ray.serving.owners import Owners
from vrag_ray.serving.runs.event_log import EventLog, LogTail, ReadLog, final_error, logged, read_log
from vrag_ray.types import NotFoundError
from vrag_ray.types.copies import with_changes

log = logging.getLogger("vrag_ray.serving")
_NAME = re.compile(RUN_ID)
LOOK_S = 0.1
"""How often the log of a run that another replica runs is looked at."""
LOOK_FOR_END_S = 0.5
"""How often the replica of a run looks whether another one asks for its end."""


class StoredRun(BaseModel):
    """A finished run on disk. The events of ``record`` are all that were sent, the last one included."""

    model_config = ConfigDict(frozen=True)

    summary: RunSummary
    record: RunRecord


class _Head(BaseModel):
    """Only what a list needs: checking whole records would make every start slow."""

    summary: RunSummary


class RunStore:
    """At most ``keep`` finished runs; the oldest go first. A run whose owner is gone is closed with an error event.

    Ids become file names: one that no request can give a run is of none.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self._owners = Owners(folder / "owners")
        self._folder = folder
        self._keep = keep
        self._summaries: OrderedDict[str, RunSummary] = OrderedDict()
        self._unreadable: set[str] = set()
        self._refresh()
        self.live_elsewhere()

    def require_folder(self) -> None:
        """Make the folder again where somebody removed it. Raises NotReadyError where it cannot be made."""
        try:
            self._folder.mkdir(exist_ok=True)
        except OSError as error:
            raise NotReadyError(f"the folder {self._folder} of runs cannot be made: {error.strerror}") from error

    def open_log(self, summary: RunSummary) -> EventLog:
        """Raises FileExistsError where a run of this name is under way or over, here or in another replica, and
        NotReadyError where the folder is gone."""
        self.require_folder()
        events = EventLog(self._events_path(summary.run_id), summary, self._owners.me)
        if self._path(summary.run_id).exists():
            events.close()
            self._events_path(summary.run_id).unlink()
            raise FileExistsError(summary.run_id)
        return events

    async def save(self, run: StoredRun) -> None:
        """Keep a finished run; its event file goes, and so do the oldest runs beyond the limit."""
        # A disk that must sync takes milliseconds in which other runs should go on.
        await asyncio.to_thread(self._write, run)
        self._remember(run.summary)

    def has(self, run_id: str) -> bool:
        """Whether a run of this id has finished, here or in another replica."""
        if not _NAME.match(run_id) or not self._path(run_id).exists():
            self._summaries.pop(run_id, None)
            return False
        if run_id not in self._summaries:
            self._refresh()
        return run_id in self._summaries

    def summary(self, run_id: str) -> RunSummary:
        """Of a finished run, or of one that another replica runs."""
        if not self.has(run_id):
            elsewhere = self.live(run_id)
            if elsewhere is not None:
                return elsewhere
            if not self.has(run_id):
                raise NotFoundError(f"there is no run of this id; the last {self._keep} finished ones are kept")
        return self._summaries[run_id]

    def load(self, run_id: str) -> StoredRun:
        """Raises NotFoundError for a run that was never here or is no longer stored."""
        if not self.has(run_id):
            raise NotFoundError(f"there is no run of this id; the last {self._keep} finished ones are kept")
        try:
            return StoredRun.model_validate_json(self._path(run_id).read_bytes())
        except (OSError, ValidationError) as error:
            log.warning("the stored run %s cannot be read: %s", run_id, error)
            raise NotFoundError(f"the record of run {run_id} is gone or damaged") from error

    def summaries(self) -> list[RunSummary]:
        """Of the finished runs, newest first."""
        self._refresh()
        return list(reversed(self._summaries.values()))

    def live(self, run_id: str) -> RunSummary | None:
        """Of a run that has a log; None where there is none, or none any longer."""
        live_log = self._live_log(run_id)
        if live_log is None:
            return None
        return with_changes(live_log.summary, {"last_event_id": live_log.events[-1].seq if live_log.events else -1})

    def live_elsewhere(self) -> list[RunSummary]:
        """Of the runs that other replicas run; those that a crash left unfinished are closed by it."""
        logs = (self._live_log(path.stem) for path in sorted(self._folder.glob("*.events")))
        return [log.summary for log in logs if log is not None and log.owner != self._owners.me]

    async def follow(self, run_id: str, after: int) -> AsyncIterator[tuple[LoggedEvent, ...]]:
        """Every event above ``after`` of a run in another replica, as they come, until it ends."""
        tail = LogTail(self._events_path(run_id))
        while True:
            try:
                came = await asyncio.to_thread(tail.news)
            except FileNotFoundError:
                break
            news = tuple(event for event in came if event.seq > after)
            if news:
                after = news[-1].seq
                yield news
            elif not self._owners.is_alive(tail.owner):
                # Closes it, so that its end is read below.
                self._live_log(run_id)
                continue
            await asyncio.sleep(LOOK_S)
        rest = tuple(logged(event) for event in self.load(run_id).record.events if event.seq > after)
        if rest:
            yield rest

    async def end(self, run_id: str, within_s: float) -> None:
        """Ask the replica that runs it to end it, and wait for that; no longer than ``within_s``."""
        end_path = self._end_path(run_id)
        with suppress(TimeoutError):
            try:
                end_path.touch()
                async with asyncio.timeout(within_s):
                    while await asyncio.to_thread(self._live_log, run_id) is not None:  # noqa: ASYNC110
                        await asyncio.sleep(LOOK_S)
            finally:
                end_path.unlink(missing_ok=True)

    async def end_requested(self, run_id: str) -> None:
        """Returns once another replica asks for the end of this run, and not before."""
        while not self._end_path(run_id).exists():  # noqa: ASYNC110  the other replica shares a folder only
            await asyncio.sleep(LOOK_FOR_END_S)

    def discard(self, run_id: str) -> None:
        """Forget a run that has ended and cannot be stored: its log would state that it goes on."""
        self._events_path(run_id).unlink(missing_ok=True)

    def close(self) -> None:
        """Leave. Whoever looks at a run that is still under way here closes it."""
        self._owners.close()

    def _live_log(self, run_id: str) -> ReadLog | None:
        path = self._events_path(run_id)
        if not _NAME.match(run_id):
            return None
        try:
            live_log = read_log(path)
        except FileNotFoundError:
            return None
        if live_log is None:
            log.warning("the run log %s cannot be read and is removed", path.name)
            path.unlink(missing_ok=True)
            return None
        if self._owners.is_alive(live_log.owner):
            return live_log
        if not self._path(run_id).exists():
            self._close_interrupted(live_log)
        path.unlink(missing_ok=True)
        return None

    def _write(self, run: StoredRun) -> None:
        self._folder.mkdir(exist_ok=True)
        write_atomically(self._path(run.summary.run_id), run.model_dump_json())
        self._events_path(run.summary.run_id).unlink(missing_ok=True)

    def _remember(self, summary: RunSummary) -> None:
        self._summaries[summary.run_id] = summary
        self._forget_oldest()

    def _forget_oldest(self) -> None:
        while len(self._summaries) > self._keep:
            oldest, _ = self._summaries.popitem(last=False)
            self._path(oldest).unlink(missing_ok=True)

    def _read(self, path: Path) -> RunSummary | None:
        try:
            summary = _Head.model_validate_json(path.read_bytes()).summary
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            log.warning("the stored run %s cannot be read and is left out: %s", path.name, error)
            self._unreadable.add(path.stem)
            return None
        return summary

    def _refresh(self) -> None:
        """Know what other replicas have added and removed."""
        stored = {path.stem for path in self._folder.glob("*.json")}
        for run_id in self._summaries.keys() - stored:
            del self._summaries[run_id]
        new = stored - self._summaries.keys() - self._unreadable
        if not new:
            return
        read = [summary for run_id in new if (summary := self._read(self._path(run_id))) is not None]
        known = sorted([*self._summaries.values(), *read], key=lambda summary: summary.started_at)
        self._summaries = OrderedDict((summary.run_id, summary) for summary in known)
        self._forget_oldest()

    def _close_interrupted(self, live_log: ReadLog) -> None:
        end = final_error(live_log.events, "the server was restarted during this run: ask again")
        ended = with_changes(live_log.summary, {"status": RunStatus.ERROR.value, "last_event_id": end.seq})
        record = bare_record(live_log.summary, RunStatus.ERROR, (*live_log.events, end), end.message)
        self._write(StoredRun(summary=ended, record=record))
        self._remember(ended)

    def _path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.json"

    def _events_path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.events"

    def _end_path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.end"


def end_runs(folder: Path, within_s: float) -> None:
    """Have the replicas end every run whose log is in ``folder``, and wait until their ends are stored, no longer than
    ``within_s``. Blocking."""
    ends = {path: path.with_suffix(".end") for path in folder.glob("*.events")}
    deadline = time.monotonic() + within_s
    try:
        for end in ends.values():
            end.touch()
        while any(path.exists() for path in ends) and time.monotonic() < deadline:
            time.sleep(LOOK_S)
    finally:
        for end in ends.values():
            end.unlink(missing_ok=True)


def bare_record(summary: RunSummary, status: RunStatus, events: tuple[Event, ...], error: str) -> RunRecord:
    """The record of a run that could not make its own: its events tell what it did."""
    return RunRecord(
        run_id=summary.run_id,
        question=summary.question,
        picture=next((event.picture for event in events if isinstance(event, StartEvent)), None),
        agent=summary.agent,
        status=status,
        error=error,
        graph=MemoryGraph.start(summary.question),
        steps=events[-1].step if events else 0,
        corrections=0,
        events=events,
        timings=Timings(total=events[-1].t if events else 0.0),
        usage={},
    )
