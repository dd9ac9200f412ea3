"""Low-rank adapters on the language layers (LoRA, arXiv 2106.09685), by PEFT, inside an otherwise plain model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vrag_ray.training.config import ModelConfig

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

LAYERS = r".*language_model.*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"
"""What gets an adapter: every linear layer of the language model, none of the vision tower."""
_NAME = "default"
_BASE, _ADAPTER = ".base_layer.", "lora_"


def add_adapters(model: PreTrainedModel, config: ModelConfig, seed: int) -> None:
    """Give ``model`` adapters, the same ones for the same ``seed``; they alone need a gradient from now on."""
    import torch
    from peft import LoraConfig, inject_adapter_in_model

    lora = LoraConfig(r=config.lora_rank, lora_alpha=config.lora_alpha, target_modules=LAYERS, bias="none")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        inject_adapter_in_model(lora, model, adapter_name=_NAME)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(_ADAPTER in name)


def merged(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """The weights by the names that they have without adapters, with what the adapters add to them."""
    import torch
    from peft.tuners.lora import LoraLayer

    with torch.no_grad():
        for name, weight in model.state_dict().items():
            if _ADAPTER in name:
                continue
            if _BASE not in name:
                yield name, weight
                continue
            layer = model.get_submodule(name.rpartition(_BASE)[0])
            if name.endswith("weight") and isinstance(layer, LoraLayer):
                delta: Callable[[str], Tensor] = getattr(layer, "get_delta_weight")  # noqa: B009
                weight = weight + delta(_NAME)  # noqa: PLW2901  a bias is left as it is
            yield name.replace(_BASE, "."), weight


def adapter_state(model: PreTrainedModel) -> dict[str, Tensor]:
    """The adapters alone; empty where there are none."""
    return {name: weight for name, weight in model.state_dict().items() if _ADAPTER in name}


def restore_adapters(model: PreTrainedModel, state: Mapping[str, Tensor]) -> None:
    """Set the adapters to ``state``. Raises RuntimeError where it has others than the model."""
    left = model.load_state_dict(state, strict=False)
    if left.unexpected_keys:
        raise RuntimeError(f"the checkpoint has adapters that the model has not: {left.unexpected_keys[:3]}")


@contextmanager
def without_adapters(model: PreTrainedModel) -> Iterator[None]:
    """The model as it was before any training, while the block lasts."""
    from peft.tuners.lora import LoraLayer

    layers = [module for module in model.modules() if isinstance(module, LoraLayer)]
    for layer in layers:
        layer.enable_adapters(enabled=False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(enabled=True)
