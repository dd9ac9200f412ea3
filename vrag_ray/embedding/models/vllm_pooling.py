"""The same vectors by vLLM's pooling runner."""

from __future__ import annotations

from collections.abc import Sequence

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import EmbedError
from vrag_ray.embedding.models.architecture import Architecture, Prompt, TokenVectors
from vrag_ray.types import VragError


class VllmEngine:
    """Not built yet."""

    def __init__(self, architecture: Architecture, config: SpaceConfig) -> None:
        raise VragError(f"{architecture.source.name}: engine {config.engine} is not built yet: use transformers")

    def run(self, prompts: Sequence[Prompt]) -> list[TokenVectors | EmbedError]:
        raise NotImplementedError(len(prompts))
