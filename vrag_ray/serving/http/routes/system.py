"""Is it alive, is it ready and if not why, and how busy is it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import APIRouter, Response

from vrag_ray.client.schemas import PartState, Ready, ServedCollection
from vrag_ray.serving.backends import AgentState, RetrieverState
from vrag_ray.serving.http.metrics import CONTENT_TYPE
from vrag_ray.serving.http.routes.deps import GateDep
from vrag_ray.types import VragError
from vrag_ray.types.redaction import scrub

T = TypeVar("T")
router = APIRouter(tags=["system"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """200 as long as the gateway itself runs."""
    return {"status": "ok"}


@router.get("/readyz", response_model=Ready, responses={503: {"model": Ready}})
async def readyz(gate: GateDep, response: Response) -> Ready:
    """Every part: ready, or why not. 503 unless all are."""
    backends = gate.backends
    retriever, agent, library, policy = await asyncio.gather(
        _asked(backends.search.state()),
        _asked(backends.runs.state()),
        _asked(backends.documents.ready()),
        _asked(backends.model.ready()),
    )
    parts = {"retriever": _retriever_part(retriever), "agent": _part(agent), "library": _part(library)}
    if policy is not False:
        parts["policy"] = _part(policy)
    ready = all(part.ready for part in parts.values())
    response.status_code = 200 if ready else 503
    served = None
    if isinstance(retriever, RetrieverState):
        served = ServedCollection(
            name=retriever.collection,
            version=retriever.version,
            documents=retriever.documents,
            legs=list(retriever.legs),
            heatmaps=retriever.heatmaps,
        )
    return Ready(ready=ready, collection=served, parts=parts)


@router.get("/metrics", response_class=Response)
async def metrics(gate: GateDep) -> Response:
    """Prometheus text: requests, latencies, searches, runs, shards, the collection's version."""
    # The scrape must not fail with the part it reports on: vrag_up{part="retriever"} is 0 then.
    retriever, agent = await asyncio.gather(_asked(gate.backends.search.state()), _asked(gate.backends.runs.state()))
    text = gate.metrics.exposition(
        retriever if isinstance(retriever, RetrieverState) else None, agent if isinstance(agent, AgentState) else None
    )
    return Response(text, headers={"Content-Type": CONTENT_TYPE})


async def _asked(answer: Awaitable[T]) -> T | VragError:
    """What a part says of itself, or the fault that it answers with."""
    try:
        return await answer
    except VragError as error:
        return error


def _part(answer: object) -> PartState:
    if isinstance(answer, VragError):
        return PartState(ready=False, why=scrub(str(answer)))
    return PartState(ready=True)


def _retriever_part(answer: RetrieverState | VragError) -> PartState:
    """The retriever also tells of itself that it is not ready, and notices."""
    if isinstance(answer, VragError):
        return _part(answer)
    return PartState(ready=answer.ready, why="; ".join(note for note in (answer.why, *answer.notices) if note))
