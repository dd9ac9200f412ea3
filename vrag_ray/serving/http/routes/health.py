"""Is it alive, is it ready and if not why, and how busy is it."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from vrag_ray.client.schemas import Ready
from vrag_ray.serving.contract import AgentState
from vrag_ray.serving.http.metrics import CONTENT_TYPE
from vrag_ray.serving.http.routes.deps import GateDep
from vrag_ray.serving.system import state_of
from vrag_ray.types import VragError

PATHS = ("/healthz", "/readyz", "/metrics")
router = APIRouter(tags=["system"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """200 as long as the gateway itself runs."""
    return {"status": "ok"}


@router.get("/readyz", response_model=Ready, responses={503: {"model": Ready}})
async def readyz(gate: GateDep, response: Response) -> Ready:
    """Every part: ready, or why not. 503 unless all are. Answers within two seconds, whatever a part does."""
    ready = await gate.system.ready()
    response.status_code = 200 if ready.ready else 503
    return ready


@router.get("/metrics", response_class=Response)
async def metrics(gate: GateDep) -> Response:
    """Prometheus text: requests, latencies, searches, runs, shards, the collection's version."""
    # The scrape must not fail with the part it reports on: vrag_up{part="retriever"} is 0 then.
    retrievers, agent = await asyncio.gather(
        state_of(gate.system.parts.search.states(), "retriever"), state_of(gate.system.parts.runs.state(), "agent")
    )
    text = gate.metrics.exposition(
        () if isinstance(retrievers, VragError) else retrievers, agent if isinstance(agent, AgentState) else None
    )
    return Response(text, headers={"Content-Type": CONTENT_TYPE})
