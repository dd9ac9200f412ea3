"""What speaks in rollouts: an engine inside the training process, or a served one for scale-out. One protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import TYPE_CHECKING, Protocol

from vrag_ray.policies.llm.chat_model import TokenDelta, TokenRequest
from vrag_ray.training.config import RLConfig
from vrag_ray.types import Completion

if TYPE_CHECKING:
    from torch import Tensor

    from vrag_ray.training.trainer.worker import Worker


class TokenModel(Protocol):
    """Exact tokens in, exact tokens out, many prompts at once."""

    def generate(self, request: TokenRequest) -> AsyncGenerator[TokenDelta | Completion]:
        """Deltas and, last, the whole ``Completion`` with token ids and log-probs. The first delta has the prompt ids
        as the model read them. Raises ``VragError`` when there can be no reply."""
        ...


class RolloutBackend(TokenModel, Protocol):
    """A model whose weights follow the trainer's. Every rank has one, and calls it in the same order as the others."""

    async def load_weights(self, weights: Iterable[tuple[str, Tensor]], version: str) -> None:
        """Speak with ``weights`` (all, by the names of the checkpoint, tied ones too) from now on."""
        ...

    async def sleep(self) -> bool:
        """Give the device to the trainer. Whether it did: then ``load_weights`` and ``wake`` come before a reply."""
        ...

    async def wake(self) -> None:
        """Take it back, after ``load_weights``."""
        ...

    async def close(self) -> None:
        """End what was started for the rollouts."""
        ...


async def open_backend(config: RLConfig, worker: Worker) -> RolloutBackend:
    """As the configuration says: served where ``rollout.served`` is set, else in this process."""
    if config.rollout.served is not None:
        from vrag_ray.training.rollout.served import ServedBackend

        return await ServedBackend.open(config, config.rollout.served, worker)
    from vrag_ray.training.rollout.colocated import ColocatedEngine

    return ColocatedEngine(
        worker.source,
        config.rollout.engine,
        temperature=config.rollout.temperature,
        distributed=worker.ranks.size > 1,
        seed=config.seed,
    )
