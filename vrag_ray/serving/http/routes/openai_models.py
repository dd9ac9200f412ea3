"""``GET /v1/models``, what a request to the OpenAI-compatible routes may name; ``POST /v1/embeddings``, vectors of the
embedder that the collection is searched with."""

from __future__ import annotations

import base64

from fastapi import APIRouter

from vrag_ray.serving.http.routes.deps import ERRORS, GateDep
from vrag_ray.serving.openai.models import EMBEDDER, ModelNotFoundError, embedder_id
from vrag_ray.serving.openai.requests import EmbeddingsRequest
from vrag_ray.serving.openai.responses import Embedding, EmbeddingList, EmbeddingUsage, Model, ModelList
from vrag_ray.types import InvalidError

router = APIRouter(tags=["openai"], responses=ERRORS)


@router.get("/v1/models", response_model=ModelList)
async def list_models(gate: GateDep) -> ModelList:
    """The agents that requests may name, the bare model where there is one, and the embedder.

    ``default_agent`` answers a run that names no agent.
    """
    models = await gate.system.models()
    return ModelList(data=tuple(Model(id=model.id) for model in models.data), default_agent=models.default_agent)


@router.get("/v1/models/{model:path}", response_model=Model)
async def model(model: str, gate: GateDep) -> Model:
    """One of them. Ids of embedders have slashes."""
    if model == EMBEDDER:
        return Model(id=await embedder_id(gate.system.parts.search, model))
    listed = (await list_models(gate)).data
    for each in listed:
        if each.id == model:
            return each
    raise ModelNotFoundError(f"there is no model {model[:80]!r}: use one of {', '.join(each.id for each in listed)}")


@router.post("/v1/embeddings", response_model=EmbeddingList)
async def embeddings(body: EmbeddingsRequest, gate: GateDep) -> EmbeddingList:
    """L2-normalised vectors in the order of ``input``; the usage counts words."""
    embedder = await embedder_id(gate.system.parts.search, body.model)
    vectors = await gate.system.parts.search.embed(body.input, queries=body.input_type == "query")
    dim = vectors.shape[1]
    if body.dimensions not in (None, dim):
        raise InvalidError(f"dimensions: {embedder} makes vectors of {dim}, no others", param="dimensions")
    words = sum(len(text.split()) for text in body.input)
    in_base64 = body.encoding_format == "base64"
    return EmbeddingList(
        data=tuple(
            Embedding(
                index=number,
                embedding=base64.b64encode(vector.tobytes()).decode() if in_base64 else vector.tolist(),
            )
            for number, vector in enumerate(vectors.astype("<f4"))
        ),
        model=embedder,
        usage=EmbeddingUsage(prompt_tokens=words, total_tokens=words),
    )
