"""Runs under way: started, followed, cancelled, ended by their deadline, and then stored. Plain asyncio."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from vrag_ray.agent.events import ErrorEvent, Event, RunStatus
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import RunRequest, RunsPage, RunSummary, collection_names
from vrag_ray.serving.contract import AgentState, FetchedRun, LoggedEvent
from vrag_ray.serving.errors import ConflictError, OverloadedError
from vrag_ray.serving.files import utc_now
from vrag_ray.serving.runs.event_log import EventLog, final_error, logged
from vrag_ray.serving.runs.store import RunStore, StoredRun, bare_record
from vrag_ray.types import VragError
from vrag_ray.types.copies import with_changes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from vrag_ray.agent.chat import QuestionPicture

log = logging.getLogger("vrag_ray.serving")
CANCEL_S = 10.0
"""How long the replica of a run may take to end it when another one asks."""
GRACE_S = 5.0
"""A run ends itself at its deadline with what it has; only one that is stuck this much longer is cut off."""


class RunLike(Protocol):
    """What this module needs of ``vrag_ray.agent.driver.Run``."""

    def events(self) -> AsyncGenerator[Event, None]: ...
    def record(self) -> RunRecord: ...


@dataclass(slots=True)
class _Live:
    run: RunLike
    log: EventLog
    summary: RunSummary
    deadline_s: float
    started: float = field(default_factory=time.monotonic)
    task: asyncio.Task[None] | None = None


class RunService:
    """The runs of one replica, and what it can tell of those of others, which share its store.

    ``make_run`` raises VragError for a request that no agent can take. ``default_agent`` answers a request that names
    no agent: runs, summaries and records name it.
    """

    def __init__(
        self,
        store: RunStore,
        make_run: Callable[[str, RunRequest, QuestionPicture | None], RunLike],
        *,
        max_concurrent: int,
        default_deadline_s: float,
        default_agent: str,
    ) -> None:
        self._store = store
        self._make_run = make_run
        self._max_concurrent = max_concurrent
        self._default_deadline_s = default_deadline_s
        self._default_agent = default_agent
        self._live: dict[str, _Live] = {}
        self._finished: Counter[str] = Counter()

    def start(self, request: RunRequest, picture: QuestionPicture | None = None) -> str:
        """The id of a new run, or of the run that ``request.run_id`` names if it has the same question."""
        agent = request.agent or self._default_agent
        request = with_changes(request, {"agent": agent})
        run_id = request.run_id or uuid.uuid4().hex
        if run_id in self._live or self._store.has(run_id) or self._store.live(run_id) is not None:
            return self._joined(run_id, request, picture)
        if len(self._live) >= self._max_concurrent:
            raise OverloadedError(f"{self._max_concurrent} runs are under way, the limit of this server")
        run = self._make_run(run_id, request, picture)
        summary = RunSummary(
            run_id=run_id,
            question=request.question,
            agent=agent,
            collections=list(collection_names(request.collection)),
            picture_sha256=picture.sha256 if picture is not None else "",
            status="running",
            started_at=utc_now(),
        )
        deadline_s = request.deadline_s or self._default_deadline_s
        try:
            events = self._store.open_log(summary)
        except FileExistsError:
            # Begun by another replica since.
            return self._joined(run_id, request, picture)
        live = _Live(run, events, summary, deadline_s)
        self._live[run_id] = live
        # A run belongs to no request. In the context of the one that began it, Serve would cancel the run's own calls
        # when the reader of that request hangs up.
        live.task = asyncio.create_task(self._drive(live), name=f"run-{run_id}", context=contextvars.Context())
        return run_id

    def read(self, run_id: str, after: int) -> AsyncIterator[tuple[LoggedEvent, ...]]:
        """Every event with an id above ``after``, those to come included, until the run ends; in lots, as they are."""
        if run_id in self._live:
            return self._live[run_id].log.read(after)
        if self._store.live(run_id) is not None:
            return self._store.follow(run_id, after)
        return _replay(self._store.load(run_id).record.events, after)

    def summary(self, run_id: str) -> RunSummary:
        live = self._live.get(run_id)
        if live is None:
            return self._store.summary(run_id)
        return with_changes(live.summary, {"last_event_id": live.log.last_seq})

    def fetch(self, run_id: str) -> FetchedRun:
        if run_id in self._live:
            return FetchedRun(live=True, body=self.summary(run_id).model_dump_json())
        elsewhere = self._store.live(run_id)
        if elsewhere is not None:
            return FetchedRun(live=True, body=elsewhere.model_dump_json())
        return FetchedRun(live=False, body=self._store.load(run_id).record.to_json())

    def finished(self, run_id: str) -> RunRecord:
        """Raises NotFoundError for a run that is not here, ConflictError for one that goes on."""
        if run_id in self._live or self._store.live(run_id) is not None:
            raise ConflictError(f"run {run_id} is still going on: wait for its end", code="running")
        return self._store.load(run_id).record

    def list(self, limit: int) -> RunsPage:
        live = [self.summary(run_id) for run_id in self._live] + self._store.live_elsewhere()
        live.sort(key=lambda run: run.started_at, reverse=True)
        # A run that has just been stored is, for a moment, both.
        ids = {run.run_id for run in live}
        runs = live + [run for run in self._store.summaries() if run.run_id not in ids]
        return RunsPage(runs=runs[:limit], total=len(runs))

    async def cancel(self, run_id: str) -> FetchedRun:
        """End a run and wait until it is stored. A run that has ended stays as it is."""
        live = self._live.get(run_id)
        if live is not None and live.task is not None:
            live.task.cancel()
            await asyncio.wait({live.task})
        elif live is None and self._store.live(run_id) is not None:
            await self._store.end(run_id, CANCEL_S)
        return self.fetch(run_id)

    async def cancel_all(self) -> None:
        """End the runs of this process and wait until they are stored."""
        tasks = [live.task for live in self._live.values() if live.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def close(self) -> None:
        """Leave. The next reader of a run that is under way closes it with an error event."""
        self._store.close()

    def state(self) -> AgentState:
        """Raises NotReadyError where runs cannot be stored."""
        self._store.require_folder()
        return AgentState(active=len(self._live), finished=dict(self._finished))

    async def _drive(self, live: _Live) -> None:
        """Run to the end, whatever the end is. The last event is shown only once the run can be fetched."""
        cut_off: RunStatus | None = None
        message = ""
        last: Event | None = None
        end_requested = asyncio.create_task(self._cancel_on_request(live), name=f"end-{live.summary.run_id}")
        try:
            async with asyncio.timeout(live.deadline_s + GRACE_S), aclosing(live.run.events()) as events:
                async for event in events:
                    if event.kind == "answer" or (isinstance(event, ErrorEvent) and event.terminal):
                        last = event
                    else:
                        live.log.append(event)
        except TimeoutError:
            cut_off, message = RunStatus.DEADLINE, f"the run did not end by its deadline of {live.deadline_s:g} s"
        except asyncio.CancelledError:
            cut_off, message = RunStatus.CANCELLED, "the run was cancelled"
        except Exception:
            log.exception("run %s failed", live.summary.run_id)
            cut_off, message = RunStatus.ERROR, "the run failed inside the server; its log has the reason"
        finally:
            end_requested.cancel()
        await self._finish(live, cut_off, last or final_error(live.log.events, message or "the run broke off"))

    async def _cancel_on_request(self, live: _Live) -> None:
        await self._store.end_requested(live.summary.run_id)
        if live.task is not None:
            live.task.cancel()

    def _joined(self, run_id: str, request: RunRequest, picture: QuestionPicture | None) -> str:
        """Raises ConflictError where the run of this id has another question."""
        known = self.summary(run_id)
        sha256 = picture.sha256 if picture is not None else ""
        identity = (request.question, request.agent, sha256, list(collection_names(request.collection)))
        if (known.question, known.agent, known.picture_sha256, known.collections) != identity:
            raise ConflictError(f"run {run_id} exists with another question: choose a new run_id", param="run_id")
        return run_id

    async def _finish(self, live: _Live, cut_off: RunStatus | None, last: Event) -> None:
        events = (*live.log.events, last)
        record = _record(live, cut_off, events)
        seconds = round(time.monotonic() - live.started, 3)
        update = {"status": record.status.value, "seconds": seconds, "last_event_id": last.seq}
        summary = with_changes(live.summary, update)
        try:
            await self._store.save(StoredRun(summary=summary, record=record))
        except OSError as error:
            log.warning("run %s cannot be stored and is forgotten when it ends: %s", summary.run_id, error)
            self._store.discard(summary.run_id)
        live.log.append(last)
        live.log.close()
        del self._live[summary.run_id]
        self._finished[record.status.value] += 1


async def _replay(events: Iterable[Event], after: int) -> AsyncIterator[tuple[LoggedEvent, ...]]:
    yield tuple(logged(event) for event in events if event.seq > after)


def _record(live: _Live, cut_off: RunStatus | None, events: tuple[Event, ...]) -> RunRecord:
    """The run's own record with every event that is sent, also one that this service had to add."""
    last = events[-1]
    error = last.message if isinstance(last, ErrorEvent) else ""
    try:
        record = live.run.record()
    except VragError:
        return bare_record(live.summary, cut_off or RunStatus.ERROR, events, error)
    return with_changes(record, {"events": events, "error": record.error or error, "status": cut_off or record.status})
