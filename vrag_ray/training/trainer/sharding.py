"""Fully sharded data parallelism (FSDP2): each rank holds a part of every weight, gradient and optimiser state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

In = TypeVar("In")
Out = TypeVar("Out")

BLOCKS = ("language_model.layers", "visual.blocks")
"""The lists of layers of which each is gathered on its own: beside the rest, a pass holds one of them whole."""


def shard(
    model: PreTrainedModel, inner: nn.Module, score: Callable[[In], Out], device: str, compute_dtype: str
) -> Callable[[In], Out]:
    """Shard ``model`` over all ranks, in place, and return ``score`` as it works then; ``inner`` holds its blocks.

    torch.distributed is up; ``device`` is ``cuda`` or ``cpu``. Weights keep their precision and are gathered in
    ``compute_dtype``. All ranks must score equally often, because each pass
    gathers weights from all of them. Gradients are summed over the ranks, not averaged: losses are divided by sizes of
    the whole batch already.
    """
    import torch
    from torch import distributed, nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

    class Root(nn.Module):
        """Weights outside of the blocks are gathered when this is called; a tied weight is one of them, once."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, batch: In) -> Out:
            return score(batch)

    precision = MixedPrecisionPolicy(param_dtype=getattr(torch, compute_dtype), reduce_dtype=torch.float32)
    mesh = init_device_mesh(device, (distributed.get_world_size(),))
    for name in BLOCKS:
        blocks: nn.Module = inner.get_submodule(name)
        for block in blocks.children():
            fully_shard(block, mesh=mesh, mp_policy=precision)
    root = Root()
    fully_shard(root, mesh=mesh, mp_policy=precision)
    for module in root.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            # Not every backend can scale while it sums.
            module.set_force_sum_reduction_for_comms(True)
    call: Callable[[In], Out] = root
    return call
