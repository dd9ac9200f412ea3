"""Is it alive, is it ready and if not why, and how busy is it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import APIRouter, Response

from vrag_ray.client.schemas import PartState, Ready, ServedCollection
from vrag_ray.serving.backends import AgentState, RetrieverState
from vrag_ray.serving.errors import NoAnswerError
from vrag_ray.serving.http.metrics import CONTENT_TYPE
from vrag_ray.serving.http.routes.deps import GateDep
from vrag_ray.types import VragError
from vrag_ray.types.redaction import scrub

T = TypeVar("T")
PATHS = ("/healthz", "/readyz", "/metrics")
ANSWERS_WITHIN_S = 1.5
"""A part that does not tell its state in this time counts as not ready: who asks for it wants to know soon."""
router = APIRouter(tags=["system"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """200 as long as the gateway itself runs."""
    return {"status": "ok"}


@router.get("/readyz", response_model=Ready, responses={503: {"model": Ready}})
async def readyz(gate: GateDep, response: Response) -> Ready:
    """Every part: ready, or why not. 503 unless all are. Answers within two seconds, whatever a part does."""
    backends = gate.backends
    retrievers, agent, library, policy = await asyncio.gather(
        _asked(backends.search.states(), "retriever"),
        _asked(backends.runs.state(), "agent"),
        _asked(backends.documents.ready(), "library"),
        _asked(backends.model.ready(), "policy"),
    )
    parts = {"retriever": _retriever_part(retrievers), "agent": _part(agent), "library": _part(library)}
    if policy is not False:
        parts["policy"] = _part(policy)
    ready = all(part.ready for part in parts.values())
    response.status_code = 200 if ready else 503
    served = [] if isinstance(retrievers, VragError) else [_collection(one) for one in retrievers]
    return Ready(ready=ready, collection=served[0] if served else None, collections=served, parts=parts)


@router.get("/metrics", response_class=Response)
async def metrics(gate: GateDep) -> Response:
    """Prometheus text: requests, latencies, searches, runs, shards, the collection's version."""
    # The scrape must not fail with the part it reports on: vrag_up{part="retriever"} is 0 then.
    retrievers, agent = await asyncio.gather(
        _asked(gate.backends.search.states(), "retriever"), _asked(gate.backends.runs.state(), "agent")
    )
    text = gate.metrics.exposition(
        () if isinstance(retrievers, VragError) else retrievers, agent if isinstance(agent, AgentState) else None
    )
    return Response(text, headers={"Content-Type": CONTENT_TYPE})


async def _asked(answer: Awaitable[T], part: str) -> T | VragError:
    """What a part says of itself, or the fault that it answers with."""
    asking = asyncio.ensure_future(answer)
    # Not ``wait_for``, which also waits for the end of what it cancels: a call to a part that hangs may have none.
    await asyncio.wait({asking}, timeout=ANSWERS_WITHIN_S)
    if not asking.done():
        asking.cancel()
        return NoAnswerError(f"the {part} did not answer within {ANSWERS_WITHIN_S:g} s")
    try:
        return asking.result()
    except VragError as error:
        return error


def _part(answer: object) -> PartState:
    if isinstance(answer, VragError):
        return PartState(ready=False, why=scrub(str(answer)), busy=isinstance(answer, NoAnswerError))
    return PartState(ready=True)


def _retriever_part(answer: tuple[RetrieverState, ...] | VragError) -> PartState:
    """Retrievers also tell of themselves that they are not ready, and notices; of several, each under its name."""
    if isinstance(answer, VragError):
        return _part(answer)
    notes = []
    for one in answer:
        named = f"{one.collection}: " if len(answer) > 1 else ""
        notes += [f"{named}{note}" for note in (one.why, *one.notices) if note]
    return PartState(ready=all(one.ready for one in answer), why="; ".join(notes))


def _collection(state: RetrieverState) -> ServedCollection:
    return ServedCollection(
        name=state.collection,
        ready=state.ready,
        version=state.version,
        documents=state.documents,
        legs=list(state.legs),
        heatmaps=state.heatmaps,
    )
