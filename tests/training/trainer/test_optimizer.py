"""The learning rate of each step, what a step does, and that a restored one goes on as if nothing had happened."""

from __future__ import annotations

import io
import math

import pytest
import torch
from torch import nn

from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import OptimizerConfig, Schedule
from vrag_ray.training.trainer.optimizer import Optimizer, lr_at
from vrag_ray.types import VragError

COSINE = OptimizerConfig(lr=1.0, warmup_steps=4, schedule=Schedule.COSINE, final_lr=0.2)


def test_the_rate_rises_in_equal_steps_to_its_full_value():
    assert [lr_at(step, 20, COSINE) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]


def test_a_constant_rate_stays():
    config = OptimizerConfig(lr=3e-4, warmup_steps=2)
    assert [lr_at(step, 5, config) for step in range(5)] == [1.5e-4, 3e-4, 3e-4, 3e-4, 3e-4]


def test_a_cosine_falls_from_the_full_rate_over_the_middle_to_the_final_one():
    assert lr_at(4, 20, COSINE) == 1.0
    assert lr_at(12, 20, COSINE) == pytest.approx(0.6)
    assert lr_at(19, 20, COSINE) == pytest.approx(0.2 + 0.4 * (1 + math.cos(math.pi * 15 / 16)))
    assert lr_at(20, 20, COSINE) == lr_at(99, 20, COSINE) == pytest.approx(0.2)


def test_without_a_warm_up_the_first_step_has_the_full_rate():
    assert lr_at(0, 10, OptimizerConfig(lr=0.5)) == 0.5
    assert lr_at(0, 1, OptimizerConfig(lr=0.5, warmup_steps=5)) == pytest.approx(0.1)


class Line(nn.Module):
    """Two weights that learn and one that does not."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
        self.shift = nn.Parameter(torch.tensor([0.25]))
        self.frozen = nn.Parameter(torch.tensor([7.0]), requires_grad=False)

    def lose(self, step: int) -> None:
        """A gradient that is another one at each step."""
        x = torch.linspace(-1, 1, 3) * (step + 1)
        torch.autograd.backward(((self.slope * x + self.shift) ** 2).sum() * self.frozen.sum())


def optimizer(line: Line, config: OptimizerConfig, steps: int = 10) -> Optimizer:
    return Optimizer(line, config, steps, Collectives())  # type: ignore[arg-type]  of a model, only its parameters matter


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_stops_the_run_and_changes_no_weight(value: float):
    line = Line()
    steps = optimizer(line, OptimizerConfig(lr=0.1))
    line.lose(0)
    steps.step()
    before = [parameter.detach().clone() for parameter in line.parameters()]
    line.lose(1)
    assert line.shift.grad is not None
    line.shift.grad.fill_(value)
    with pytest.raises(VragError, match=r"optimiser step 2: the gradient is not finite .* lower optimizer\.lr"):
        steps.step()
    assert all(torch.equal(old, new) for old, new in zip(before, line.parameters(), strict=True))
    assert steps.done == 1


def test_a_step_is_that_of_torchs_adamw_with_clipped_gradients():
    config = OptimizerConfig(lr=0.1, weight_decay=0.1, betas=(0.8, 0.95), clip_norm=2.0)
    line, twin = Line(), Line()
    own = optimizer(line, config)
    adam = torch.optim.AdamW([twin.slope, twin.shift], lr=0.1, betas=(0.8, 0.95), weight_decay=0.1)
    for step in range(3):
        line.lose(step)
        twin.lose(step)
        norm = torch.nn.utils.clip_grad_norm_([twin.slope, twin.shift], 2.0)
        adam.step()
        adam.zero_grad()
        assert float(norm) > 2.0
        assert own.step() == pytest.approx(float(norm))
        torch.testing.assert_close(list(line.parameters()), list(twin.parameters()))
    assert (own.done, own.lr) == (3, 0.1)


def test_what_is_frozen_stays_and_gradients_are_forgotten_after_a_step():
    line = Line()
    own = optimizer(line, OptimizerConfig(lr=0.1, weight_decay=0.5))
    line.lose(0)
    own.step()
    assert line.frozen.item() == 7.0
    assert [parameter.grad for parameter in line.parameters()] == [None] * 3


def test_the_rate_of_a_step_is_that_of_its_number():
    line = Line()
    own = optimizer(line, COSINE, steps=6)
    rates = []
    for step in range(6):
        line.lose(step)
        own.step()
        rates.append(own.lr)
    assert rates == [lr_at(step, 6, COSINE) for step in range(6)]


def test_a_restored_optimiser_goes_on_to_the_same_bits():
    config = OptimizerConfig(lr=0.1, warmup_steps=2, schedule=Schedule.COSINE, weight_decay=0.1, clip_norm=0.5)
    line = Line()
    whole = optimizer(line, config)
    for step in range(3):
        line.lose(step)
        whole.step()
    saved = io.BytesIO()
    torch.save({"optimizer": whole.state(), "model": line.state_dict()}, saved)
    saved.seek(0)
    state = torch.load(saved, weights_only=True)
    other = Line()
    other.load_state_dict(state["model"])
    restored = optimizer(other, config)
    restored.restore(state["optimizer"])
    assert restored.done == 3
    for step in range(3, 8):
        line.lose(step)
        other.lose(step)
        assert (whole.step(), whole.lr) == (restored.step(), restored.lr)
    assert all(torch.equal(left, right) for left, right in zip(line.parameters(), other.parameters(), strict=True))


def test_something_else_is_not_restored():
    with pytest.raises(TypeError, match="no state of an optimiser"):
        optimizer(Line(), COSINE).restore({"adam": {}, "done": "3"})
