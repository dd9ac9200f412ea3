"""Runs of an agent: started and followed as server-sent events, fetched, listed, cancelled."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response, StreamingResponse

from vrag_ray.client.schemas import Feedback, RatedRun, RunRequest, RunsPage, RunSummary
from vrag_ray.serving.contract import FetchedRun
from vrag_ray.serving.event_stream import encode_stream
from vrag_ray.serving.http.routes.deps import ERRORS, Gate, GateDep, RunId

PATH = "/v1/runs"
router = APIRouter(prefix=PATH, tags=["runs"], responses=ERRORS)
LastEventId = Annotated[
    int | None, Header(alias="Last-Event-ID", ge=-1, description="Id of the last event that the reader has seen.")
]
_STREAM = {"content": {"text/event-stream": {}}, "description": "One event a step; see `vrag_ray.agent.events`."}


@router.post("", response_class=StreamingResponse, responses={200: _STREAM})
async def start_run(body: RunRequest, gate: GateDep, last_event_id: LastEventId = None) -> StreamingResponse:
    """Start a run and follow it. ``X-Run-ID`` and ``Location`` name it.

    With ``run_id`` the request may be repeated: where that run exists with the same question, the stream joins it
    after ``Last-Event-ID``. Closing the stream does not end the run; its deadline or DELETE does.
    """
    run_id = await gate.system.start(body)
    return _stream(gate, run_id, -1 if last_event_id is None else last_event_id)


@router.get("", response_model=RunsPage)
async def list_runs(gate: GateDep, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> RunsPage:
    """Live runs first, then finished ones, newest first."""
    return await gate.system.runs(limit)


@router.get(
    "/{run_id}",
    response_class=Response,
    responses={200: {"description": "The record of the finished run."}, 202: {"model": RunSummary}},
)
async def fetch_run(run_id: RunId, gate: GateDep) -> Response:
    """The finished run: answer, citations, graph, steps, timings. 202 while it runs."""
    return _fetched(await gate.system.parts.runs.fetch(run_id))


@router.get("/{run_id}/events", response_class=StreamingResponse, responses={200: _STREAM, 204: {}})
async def follow_run(run_id: RunId, gate: GateDep, last_event_id: LastEventId = None) -> Response:
    """The events of a run after ``Last-Event-ID``, from the first without it; those to come included.

    204 when the run has ended and the reader has seen it all, which tells a browser's EventSource to stop.
    """
    after = -1 if last_event_id is None else last_event_id
    # Also so that an unknown id is a 404: once the stream has begun, it is too late for a status.
    summary = await gate.system.summary(run_id)
    if last_event_id is not None and summary.status != "running" and summary.last_event_id <= after:
        return Response(status_code=204)
    return _stream(gate, run_id, after)


@router.put("/{run_id}/feedback", response_model=RatedRun)
async def rate_run(run_id: RunId, body: Feedback, gate: GateDep) -> RatedRun:
    """Say what you think of a finished run; saying it again replaces it. It outlives the run."""
    return await gate.system.rate(run_id, body)


@router.get("/{run_id}/feedback", response_model=RatedRun)
async def rating(run_id: RunId, gate: GateDep) -> RatedRun:
    """The feedback on a run; 404 where there is none."""
    return await gate.system.parts.runs.rating(run_id)


@router.delete("/{run_id}", response_class=Response, responses={200: {"description": "The record of the ended run."}})
async def cancel_run(run_id: RunId, gate: GateDep) -> Response:
    """End a run now; its readers get an error event. A run that has already ended stays as it is."""
    return _fetched(await gate.system.parts.runs.cancel(run_id))


def _stream(gate: Gate, run_id: str, after: int) -> StreamingResponse:
    events = gate.system.logged_events(run_id, after)
    headers = {
        "X-Run-ID": run_id,
        "Location": f"/v1/runs/{run_id}",
        "Cache-Control": "no-store",
        # Tells nginx not to hold events back until a buffer is full.
        "X-Accel-Buffering": "no",
    }
    body = encode_stream(events, gate.config.heartbeat_s)
    return StreamingResponse(body, media_type="text/event-stream", headers=headers)


def _fetched(run: FetchedRun) -> Response:
    return Response(run.body, 202 if run.live else 200, media_type="application/json")
