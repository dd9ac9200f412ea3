"""What rollouts need of a model: exact tokens in, exact tokens out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from vrag_ray.policies.chat_model import TokenDelta, TokenRequest
from vrag_ray.types import Completion


class TokenModel(Protocol):
    """Continues token ids, many prompts at once. ``ColocatedEngine``, ``VllmEngine`` and ``ServedModel`` are such."""

    def generate(self, request: TokenRequest) -> AsyncGenerator[TokenDelta | Completion]:
        """Deltas and, last, the whole ``Completion`` with token ids and log-probs. The first delta has the prompt ids
        as the model read them. Raises ``VragError`` when there can be no reply."""
        ...
