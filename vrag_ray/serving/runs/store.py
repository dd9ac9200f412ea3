"""Finished runs in a folder, one JSON file each, at most so many."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.agent.events import Event, RunStatus, StartEvent
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.agent.record import RunRecord, Timings
from vrag_ray.client.schemas import RunSummary
from vrag_ray.serving.files import write_atomically
from vrag_ray.serving.runs.event_log import EventLog, final_error, read_log
from vrag_ray.types import NotFoundError

log = logging.getLogger("vrag_ray.serving")


class StoredRun(BaseModel):
    """A finished run on disk. The events of ``record`` are all that were sent, the last one included."""

    model_config = ConfigDict(frozen=True)

    summary: RunSummary
    record: RunRecord


class _Head(BaseModel):
    """Only what a list needs: checking whole records would make every start slow."""

    summary: RunSummary


class RunStore:
    """At most ``keep`` runs; the oldest go first. Runs that a crash left unfinished are closed with an error event.

    Ids become file names: whoever calls checks them first (``RunRequest.run_id``), and only known ids are opened.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._keep = keep
        self._summaries: OrderedDict[str, RunSummary] = OrderedDict()
        heads = [summary for path in folder.glob("*.json") if (summary := _summary_in(path)) is not None]
        for summary in sorted(heads, key=lambda head: head.started_at):
            self._remember(summary)
        for path in sorted(folder.glob("*.events")):
            self._close_interrupted(path)

    def open_log(self, summary: RunSummary) -> EventLog:
        return EventLog(self._events_path(summary.run_id), summary)

    async def save(self, run: StoredRun) -> None:
        """Keep a finished run; its event file goes, and so do the oldest runs beyond the limit."""
        # A disk that must sync takes milliseconds in which other runs should go on.
        await asyncio.to_thread(self._write, run)
        self._remember(run.summary)

    def has(self, run_id: str) -> bool:
        return run_id in self._summaries

    def summary(self, run_id: str) -> RunSummary:
        try:
            return self._summaries[run_id]
        except KeyError:
            raise NotFoundError(f"there is no run of this id; the last {self._keep} finished ones are kept") from None

    def load(self, run_id: str) -> StoredRun:
        """Raises NotFoundError for a run that was never here or is no longer kept."""
        self.summary(run_id)
        try:
            return StoredRun.model_validate_json(self._path(run_id).read_bytes())
        except (OSError, ValidationError) as error:
            log.warning("the stored run %s cannot be read: %s", run_id, error)
            raise NotFoundError(f"the record of run {run_id} is gone or damaged") from error

    def summaries(self) -> list[RunSummary]:
        """Newest first."""
        return list(reversed(self._summaries.values()))

    def _write(self, run: StoredRun) -> None:
        write_atomically(self._path(run.summary.run_id), run.model_dump_json())
        self._events_path(run.summary.run_id).unlink(missing_ok=True)

    def _remember(self, summary: RunSummary) -> None:
        self._summaries[summary.run_id] = summary
        while len(self._summaries) > self._keep:
            oldest, _ = self._summaries.popitem(last=False)
            self._path(oldest).unlink(missing_ok=True)

    def _close_interrupted(self, path: Path) -> None:
        found = read_log(path)
        if found is None:
            path.unlink()
            return
        summary, events = found
        end = final_error(events, "the server was restarted during this run: ask again")
        ended = summary.model_copy(update={"status": RunStatus.ERROR.value, "last_event_id": end.seq})
        record = bare_record(summary, RunStatus.ERROR, (*events, end), end.message)
        self._write(StoredRun(summary=ended, record=record))
        self._remember(ended)

    def _path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.json"

    def _events_path(self, run_id: str) -> Path:
        return self._folder / f"{run_id}.events"


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


def _summary_in(path: Path) -> RunSummary | None:
    try:
        return _Head.model_validate_json(path.read_bytes()).summary
    except (OSError, ValidationError) as error:
        log.warning("the stored run %s cannot be read and is left out: %s", path.name, error)
        return None
