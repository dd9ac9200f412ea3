"""All feedback on runs: to look at, and to evaluate and train with."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from vrag_ray.client.schemas import RatedRuns
from vrag_ray.serving.http.routes.deps import ERRORS, GateDep

router = APIRouter(prefix="/v1", tags=["runs"], responses=ERRORS)
_LINES = {"content": {"application/jsonl": {}}, "description": "One example a line, in the unified data set form."}


@router.get("/feedback", response_model=RatedRuns)
async def rated_runs(gate: GateDep) -> RatedRuns:
    """Every rated run, newest first."""
    return RatedRuns(runs=await gate.system.rated_runs())


@router.get("/feedback.jsonl", response_class=Response, responses={200: _LINES})
async def export(gate: GateDep) -> Response:
    """The rated runs whose right answer is known: liked ones, and those for which a reader gave it."""
    headers = {"Content-Disposition": 'attachment; filename="feedback.jsonl"'}
    return Response(await gate.system.feedback_lines(), media_type="application/jsonl", headers=headers)
