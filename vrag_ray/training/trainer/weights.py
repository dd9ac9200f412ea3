"""The trained weights as a plain checkpoint has them: for the engine, and for a folder that anybody can serve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from vrag_ray.training.trainer.lora import merged

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from transformers import PreTrainedModel, ProcessorMixin


def full_weights(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Every weight by its name, whole on each rank, with adapters merged in; ranks take them together.

    Taken from ``state_dict``, which names tied weights twice: an engine that keeps its own ``lm_head`` would speak with
    the old one otherwise.
    """
    from torch.distributed.tensor import DTensor

    for name, weight in merged(model):
        yield name, (weight.full_tensor() if isinstance(weight, DTensor) else weight)


def whole_weights(model: PreTrainedModel) -> dict[str, Tensor]:
    """``full_weights`` in main memory. All ranks call it."""
    return {name: weight.detach().cpu() for name, weight in full_weights(model)}


def export(model: PreTrainedModel, processor: ProcessorMixin, folder: Path, *, writes: bool) -> None:
    """Save model and processor as a Hugging Face folder. All ranks call it; the rank that ``writes`` does."""
    whole = whole_weights(model)
    if writes:
        save(model, processor, whole, folder)


def save(model: PreTrainedModel, processor: ProcessorMixin, whole: Mapping[str, Tensor], folder: Path) -> None:
    """The same of weights that were taken already. Values stay the same to the last bit.

    A tied weight is written once: gathered from its parts it is no longer the same tensor under both names, which is
    how ``save_pretrained`` tells.
    """
    folder.mkdir(parents=True, exist_ok=True)
    twice = set(model.all_tied_weights_keys)
    model.save_pretrained(folder, state_dict={name: weight for name, weight in whole.items() if name not in twice})
    processor.save_pretrained(folder)
