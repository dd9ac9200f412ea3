"""AdamW over what is trained, with the schedule as a function of the step, and gradients summed over the ranks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import OptimizerConfig, Schedule
from vrag_ray.types import VragError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


def lr_at(step: int, steps: int, config: OptimizerConfig) -> float:
    """The learning rate of step ``step`` (from 0) of ``steps``: a linear warm-up, then the schedule."""
    if step < config.warmup_steps:
        return config.lr * (step + 1) / config.warmup_steps
    if config.schedule is Schedule.CONSTANT:
        return config.lr
    done = (step - config.warmup_steps) / max(steps - config.warmup_steps, 1)
    return config.final_lr + (config.lr - config.final_lr) * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))


class Optimizer:
    """``done`` counts the steps taken of ``steps``."""

    def __init__(self, model: PreTrainedModel, config: OptimizerConfig, steps: int, ranks: Collectives) -> None:
        from torch.optim import AdamW

        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        # One kernel for all parameters: a step over many small ones is otherwise mostly overhead.
        self._adam = AdamW(
            self._parameters, lr=config.lr, betas=config.betas, weight_decay=config.weight_decay, foreach=True
        )
        self._config = config
        self._steps = steps
        self._ranks = ranks
        self.done = 0
        self.lr = lr_at(0, steps, config)

    def step(self) -> float:
        """Apply the summed gradients and forget them; their norm before clipping.

        Where no rank has any, nothing was to be learnt: the step counts, but momentum moves no weight. Raises
        VragError, with the weights as they were, for a gradient that is not finite: one such step would make every
        weight NaN.
        """
        from torch.nn.utils import clip_grad_norm_

        own = any(parameter.grad is not None for parameter in self._parameters)
        if not self._ranks.maxima((float(own),))[0]:
            self.done += 1
            return 0.0
        if not self._sharded:
            self._ranks.sum_gradients(self._parameters)
        norm = float(_whole(clip_grad_norm_(self._parameters, self._config.clip_norm)))
        if not math.isfinite(norm):
            self._adam.zero_grad(set_to_none=True)
            raise VragError(
                f"optimiser step {self.done + 1}: the gradient is not finite (its norm is {norm}), so no weight was "
                "changed. If this is the first step, check the model's weights and dtype, and rewards and advantages "
                "of your own; if training went well before, begin another run with a lower optimizer.lr at the last "
                "checkpoint (model.path)"
            )
        self.lr = lr_at(self.done, self._steps, self._config)
        for group in self._adam.param_groups:
            group["lr"] = self.lr
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)
        self.done += 1
        return norm

    @property
    def _sharded(self) -> bool:
        """Whether gradients are summed over the ranks in the backward pass already."""
        from torch.distributed.tensor import DTensor

        return any(isinstance(parameter, DTensor) for parameter in self._parameters)

    def state(self) -> dict[str, object]:
        """Of a sharded model, this rank's part."""
        from torch.distributed.tensor import DTensor
        from torch.utils._pytree import tree_map_only

        local: dict[str, object] = tree_map_only(DTensor, lambda tensor: tensor.to_local(), self._adam.state_dict())
        return {"adam": local, "done": self.done}

    def restore(self, state: dict[str, object]) -> None:
        from torch.distributed.tensor import DTensor

        adam, done = state["adam"], state["done"]
        if not isinstance(adam, dict) or not isinstance(done, int):
            raise TypeError("this is no state of an optimiser")
        self._adam.load_state_dict(adam)
        for parameter, values in self._adam.state.items():
            if isinstance(parameter, DTensor):
                for name, value in values.items():
                    if value.dim():
                        values[name] = DTensor.from_local(
                            value,
                            parameter.device_mesh,
                            parameter.placements,
                            shape=parameter.shape,
                            stride=parameter.stride(),
                        )
        self.done = done


def _whole(tensor: Tensor) -> Tensor:
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
