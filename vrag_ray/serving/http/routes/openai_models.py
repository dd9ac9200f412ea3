"""``GET /v1/models``: what a request to the OpenAI-compatible routes may name."""

from __future__ import annotations

from fastapi import APIRouter

from vrag_ray.serving.http.routes.deps import ERRORS, GateDep
from vrag_ray.serving.openai.models import EMBEDDER, ModelNotFoundError, embedder_id
from vrag_ray.serving.openai.responses import Model, ModelList

router = APIRouter(prefix="/v1/models", tags=["openai"], responses=ERRORS)


@router.get("", response_model=ModelList)
@router.get("/", response_model=ModelList, include_in_schema=False)
async def list_models(gate: GateDep) -> ModelList:
    """The agents that requests may name, the bare model where there is one, and the embedder.

    ``default_agent`` answers a run that names no agent.
    """
    models = await gate.system.models()
    return ModelList(data=tuple(Model(id=model.id) for model in models.data), default_agent=models.default_agent)


@router.get("/{model:path}", response_model=Model)
async def model(model: str, gate: GateDep) -> Model:
    """One of them. Ids of embedders have slashes."""
    if model == EMBEDDER:
        return Model(id=await embedder_id(gate.system.parts.search, model))
    listed = (await list_models(gate)).data
    for each in listed:
        if each.id == model:
            return each
    raise ModelNotFoundError(f"there is no model {model[:80]!r}: use one of {', '.join(each.id for each in listed)}")
