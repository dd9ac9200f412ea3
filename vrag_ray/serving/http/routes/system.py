"""Is it alive, is it ready and if not why, and how busy is it."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from vrag_ray.client.schemas import Ready, ServedCollection
from vrag_ray.serving.backends import Backend, RetrieverState
from vrag_ray.serving.http.metrics import CONTENT_TYPE
from vrag_ray.serving.http.routes.deps import GateDep
from vrag_ray.types import VragError

router = APIRouter(tags=["system"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """200 as long as the gateway itself runs."""
    return {"status": "ok"}


@router.get("/readyz", response_model=Ready, responses={503: {"model": Ready}})
async def readyz(gate: GateDep, response: Response) -> Ready:
    """Every part: ready, or why not. 503 unless all are."""
    parts, retriever = await asyncio.gather(gate.backend.readiness(), _retriever_state(gate.backend))
    ready = all(part.ready for part in parts.values())
    response.status_code = 200 if ready else 503
    served = None
    if retriever is not None:
        served = ServedCollection(name=retriever.collection, version=retriever.version, documents=retriever.documents)
    return Ready(ready=ready, collection=served, parts=dict(parts))


@router.get("/metrics", response_class=Response)
async def metrics(gate: GateDep) -> Response:
    """Prometheus text: requests, latencies, searches, runs, shards, the collection's version."""
    # The scrape must not fail with the part it reports on: vrag_up{part="retriever"} is 0 then.
    retriever = await _retriever_state(gate.backend)
    try:
        agent = await gate.backend.agent_state()
    except VragError:
        agent = None
    return Response(gate.metrics.exposition(retriever, agent), headers={"Content-Type": CONTENT_TYPE})


async def _retriever_state(backend: Backend) -> RetrieverState | None:
    """None where the retriever does not answer."""
    try:
        return await backend.retriever_state()
    except VragError:
        return None
