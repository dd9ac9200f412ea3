"""``POST /v1/embeddings``: vectors of the embedder that the collection is searched with."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from fastapi import APIRouter

from vrag_ray.serving.http.routes.deps import ERRORS, GateDep
from vrag_ray.serving.openai.models import embedder_id
from vrag_ray.serving.openai.requests import EmbeddingsRequest
from vrag_ray.serving.openai.responses import Embedding, EmbeddingList, EmbeddingUsage
from vrag_ray.types import InvalidError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

router = APIRouter(tags=["openai"], responses=ERRORS)


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
            Embedding(index=number, embedding=_base64(vector) if in_base64 else vector.tolist())
            for number, vector in enumerate(vectors)
        ),
        model=embedder,
        usage=EmbeddingUsage(prompt_tokens=words, total_tokens=words),
    )


def _base64(vector: NDArray[np.float32]) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
