"""A model that reads a question and a result together, and says how well they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from vrag_ray.config import RerankerConfig
from vrag_ray.embedding.base import Content, PictureSpec
from vrag_ray.types import VragError

KNOWN = "qwen3_vl"


class Reranker(Protocol):
    """Scores results of one query. Called from several threads at once."""

    @property
    def id(self) -> str:
        """Names model, prompt and pixels."""

    @property
    def pictures(self) -> PictureSpec:
        """How it wants pictures drawn."""

    def score(self, query: Content, passages: Sequence[Content]) -> list[float]:
        """How well each passage answers ``query``: 0 to 1, in input order.

        Raises EmbedError naming the passage's place where one cannot be read: no score stands for "unknown", and the
        caller still has the order of the search.
        """


def load_reranker(config: RerankerConfig) -> Reranker:
    """The model that ``config`` names. Raises VragError naming it, what was tried and the remedy."""
    from vrag_ray.embedding.models.qwen3_vl_reranker import Qwen3VlReranker
    from vrag_ray.embedding.runtime import require
    from vrag_ray.embedding.source import find_model

    for package in ("torch", "transformers"):
        require(package, config.model)
    source = find_model(config.model, config.revision)
    if source.model_type != KNOWN:
        raise VragError(
            f"{source.name} is a {source.model_type or 'model of no stated type'}, which is no reranker known here: "
            f"use Qwen3-VL-Reranker ({KNOWN})"
        )
    return Qwen3VlReranker(source, config)
