"""Gradient checkpointing: activations are computed again in the backward pass, and are not stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def recompute_activations(model: PreTrainedModel) -> None:
    """Turn gradient checkpointing on, layer by layer, in training mode.

    transformers makes the outputs of input embeddings require gradients, for reentrant checkpoints, and Qwen2.5-VL's
    patches are among them: a frozen vision tower would keep its activations and run backwards for nothing (measured on
    an H100, docs/results/gpu.md). Checkpoints here are not reentrant and need none of it.
    """
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    # Its declaration lacks types.
    disable: Callable[[], None] = model.disable_input_require_grads
    disable()
