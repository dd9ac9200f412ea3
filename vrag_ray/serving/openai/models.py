"""The models that a request may name here."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_ray.config import AgentName
from vrag_ray.serving.contract import ModelPart, RetrieverState, SearchPart
from vrag_ray.serving.errors import NotReadyError
from vrag_ray.types import VragError

POLICY = "policy"
"""The bare language model, without an agent around it."""
EMBEDDER = "embedder"
"""Whatever embedder the collection is searched with."""


class ModelNotFoundError(VragError):
    """The model is not one of this server's, or needs a part that is not configured."""

    status = 404
    type = "not_found_error"
    code = "model_not_found"

    def __init__(self, message: str) -> None:
        super().__init__(message, param="model")


async def chat_models(model: ModelPart) -> tuple[str, ...]:
    """The models that chat: agents, and the bare model where there is one."""
    agents = (await model.agents()).names
    return (*agents, POLICY) if AgentName.VIMRAG in agents else agents


def check_chat_model(name: str, known: Sequence[str]) -> None:
    """Raises ModelNotFoundError unless ``name`` is one of ``known``."""
    if name in known:
        return
    if name in (*AgentName, POLICY):
        raise ModelNotFoundError(f"model {name} needs a language model: set vllm or openai in the server's settings")
    raise ModelNotFoundError(f"there is no model {name[:80]!r}: use one of {', '.join(known)}")


async def embedder_id(search: SearchPart, name: str) -> str:
    """The id of the embedder that ``name`` stands for. Raises ModelNotFoundError, or NotReadyError."""
    state = (await search.states())[0]
    if not state.ready and not state.embedder_id:
        raise NotReadyError(f"the retriever is not ready: {state.why}")
    if not state.embedder_id:
        raise ModelNotFoundError(f"embeddings are not available: {_why_not(state)}")
    if name not in (EMBEDDER, state.embedder_id):
        raise ModelNotFoundError(f"there is no embedder {name[:80]!r}: use {state.embedder_id} or {EMBEDDER}")
    return state.embedder_id


def _why_not(state: RetrieverState) -> str:
    return "; ".join(state.notices) or "search is lexical only"
