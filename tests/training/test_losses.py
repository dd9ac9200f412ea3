"""The losses against hand-computed values, against each other, and against what must not matter."""

from __future__ import annotations

import math

import pytest
import torch

from tests.support.golden_losses import GOLDEN_LOSSES, golden_batch
from vrag_ray.training.losses import (
    Denominator,
    banded_weights,
    clipped,
    gspo_token_log_ratio,
    k3,
    mean_over_kept,
    policy_loss,
    truncated_weights,
)


@pytest.mark.parametrize(("masked", "ratio", "denominator"), GOLDEN_LOSSES)
def test_value_and_gradient_of_a_hand_made_group(masked: bool, ratio: str, denominator: str):
    theta = torch.tensor([0.1, -0.1, 0.0], dtype=torch.float64, requires_grad=True)
    given = golden_batch(theta)
    if not masked:
        given["keep"] = torch.ones(6, dtype=torch.bool)
    loss = policy_loss(**given, ratio=ratio, clip_low=0.2, clip_high=0.2, denominator=denominator)
    loss.backward()
    value, gradient = GOLDEN_LOSSES[masked, ratio, denominator]
    assert -loss.item() == pytest.approx(value, abs=1e-6)
    assert theta.grad is not None
    assert (-theta.grad).tolist() == pytest.approx(gradient, abs=1e-6)


@pytest.mark.parametrize("junk", [7.0, float("nan"), float("inf")])
@pytest.mark.parametrize("ratio", ["token", "geo", "raw"])
@pytest.mark.parametrize("denominator", list(Denominator))
def test_what_is_masked_is_inert(junk: float, ratio: str, denominator: str):
    def outcome(*, spoil: bool) -> tuple[float, list[float]]:
        theta = torch.tensor([0.1, -0.1, 0.0], dtype=torch.float64, requires_grad=True)
        given = golden_batch(theta)
        if spoil:
            out = ~given["keep"].unsqueeze(1) | ~given["token_mask"].bool()
            for name in ("logp_new", "logp_old"):
                given[name] = torch.where(out, torch.full_like(given[name], junk), given[name])
        loss = policy_loss(**given, ratio=ratio, clip_low=0.2, clip_high=0.2, denominator=denominator)
        loss.backward()
        assert theta.grad is not None
        return loss.item(), theta.grad.tolist()

    assert outcome(spoil=True) == outcome(spoil=False)


def test_on_policy_all_ratios_agree_and_the_value_is_the_mean_advantage():
    theta = torch.zeros(3, dtype=torch.float64)
    given = golden_batch(theta)
    values = {
        policy_loss(**given, ratio=ratio, clip_low=0.2, clip_high=0.2).item() for ratio in ("token", "geo", "raw")
    }
    expected = -(given["advantages"] * given["keep"]).sum().item() / 6
    assert all(value == pytest.approx(expected) for value in values)


def test_for_segments_of_one_token_the_ratios_are_the_same():
    new, old = torch.randn(5, 1, dtype=torch.float64), torch.randn(5, 1, dtype=torch.float64)
    advantage, ones = torch.randn(5, dtype=torch.float64), torch.ones(5, 1)
    values = [
        policy_loss(new, old, advantage, ones, torch.ones(5), ratio=ratio, clip_low=0.2, clip_high=0.3).item()
        for ratio in ("token", "geo", "raw")
    ]
    assert values[0] == values[1] == values[2]


def test_micro_batches_that_share_a_count_add_up_to_the_batch():
    theta = torch.tensor([0.1, -0.1, 0.0], dtype=torch.float64)
    given = golden_batch(theta)
    whole = policy_loss(**given, ratio="geo", clip_low=0.2, clip_high=0.2)
    for size in (1, 2, 4):
        parts = [
            policy_loss(
                **{name: value[start : start + size] for name, value in given.items()},
                ratio="geo",
                clip_low=0.2,
                clip_high=0.2,
                count=6,
            )
            for start in range(0, 6, size)
        ]
        assert torch.stack(parts).sum().item() == pytest.approx(whole.item(), abs=1e-12)


def test_a_batch_without_anything_kept_is_zero_with_zero_gradient():
    theta = torch.tensor([0.1, -0.1, 0.0], dtype=torch.float64, requires_grad=True)
    given = golden_batch(theta) | {"keep": torch.zeros(6)}
    loss = policy_loss(**given, ratio="geo", clip_low=0.2, clip_high=0.2, denominator="kept")
    loss.backward()
    assert loss.item() == 0
    assert theta.grad is None or not theta.grad.any()


@pytest.mark.parametrize(
    ("log_ratio", "advantage", "moves"),
    [(0.5, 1.0, False), (-0.5, 1.0, True), (0.5, -1.0, True), (-0.5, -1.0, False), (0.05, 1.0, True)],
)
def test_clipping_stops_only_what_has_gone_far_enough(log_ratio: float, advantage: float, moves: bool):
    x = torch.tensor([log_ratio], dtype=torch.float64, requires_grad=True)
    clipped(x, torch.tensor([advantage], dtype=torch.float64), 0.2, 0.2).sum().backward()
    assert x.grad is not None
    assert bool(x.grad.any()) is moves


def test_dapo_counts_tokens_and_grpo_counts_responses():
    new = torch.tensor([[0.1, 0.1, 0.1], [0.2, 0.0, 0.0]], dtype=torch.float64)
    old = torch.zeros(2, 3, dtype=torch.float64)
    mask, advantage = torch.tensor([[1, 1, 1], [1, 0, 0]]), torch.tensor([1.0, -1.0], dtype=torch.float64)
    token = {"ratio": "token", "clip_low": 0.5, "clip_high": 0.5}
    first, second = torch.exp(torch.tensor(0.1)).item(), torch.exp(torch.tensor(0.2)).item()
    grpo = policy_loss(new, old, advantage, mask, torch.ones(2), **token)
    dapo = policy_loss(new, old, advantage, mask, torch.ones(2), **token, denominator="tokens")
    assert grpo.item() == pytest.approx(-(first - second) / 2, abs=1e-6)
    assert dapo.item() == pytest.approx(-(3 * first - second) / 4, abs=1e-6)


def test_gspo_token_has_the_value_and_for_equal_advantages_the_gradient_of_gspo():
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
    old = torch.randn(2, 4, dtype=torch.float64) * 0.1
    advantage = torch.tensor([1.0, -0.7], dtype=torch.float64)
    start = old + torch.randn(2, 4, dtype=torch.float64) * 0.05
    gspo = start.clone().requires_grad_()
    loss = policy_loss(gspo, old, advantage, mask, torch.ones(2), ratio="geo", clip_low=0.5, clip_high=0.5)
    loss.backward()
    token = start.clone().requires_grad_()
    terms = clipped(gspo_token_log_ratio(token, old, mask), advantage.unsqueeze(1), 0.5, 0.5) * mask
    other = -(terms.sum(1) / mask.sum(1)).sum() / 2
    other.backward()
    assert other.item() == pytest.approx(loss.item(), abs=1e-12)
    assert gspo.grad is not None and token.grad is not None
    assert torch.allclose(gspo.grad, token.grad)


def test_k3_is_never_negative_and_flat_where_policies_agree():
    new = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    assert (k3(new, torch.randn(4, 5, dtype=torch.float64)) >= 0).all()
    same = k3(new, new.detach())
    same.sum().backward()
    assert not same.any()
    assert new.grad is not None and not new.grad.any()


def test_kl_of_a_masked_segment_does_not_count():
    values = torch.tensor([[2.0, 4.0], [float("nan"), 1.0]])
    mask, keep = torch.tensor([[1, 1], [1, 1]]), torch.tensor([True, False])
    assert mean_over_kept(values, mask, keep).item() == 1.5


def test_importance_weights_are_cut_at_their_cap_and_carry_no_gradient():
    trainer = torch.tensor([0.0, 5.0, -1.0], requires_grad=True)
    weights = truncated_weights(trainer, torch.zeros(3), cap=2.0)
    assert weights.tolist() == pytest.approx([1.0, 2.0, 0.36787945])
    assert not weights.requires_grad


def test_importance_weights_outside_of_their_band_are_nothing():
    trainer = torch.tensor([0.0, 5.0, -1.0, math.log(2.0), math.log(0.5)], requires_grad=True)
    weights = banded_weights(trainer, torch.zeros(5), 0.5, 2.0)
    assert weights.tolist() == pytest.approx([1.0, 0.0, 0.0, 2.0, 0.5])
    assert not weights.requires_grad


def test_a_dead_end_of_a_success_is_learnt_without_the_graph_and_not_with_it():
    """One step on a toy policy whose three tokens are: a good search, a dead end, an answer."""

    def change(*, graph: bool) -> torch.Tensor:
        theta = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        logp = torch.log_softmax(theta, 0)
        tokens = torch.tensor([[0], [1], [2], [0], [2]])
        advantage = torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
        keep = torch.tensor([True, not graph, True, not graph, True])
        policy_loss(
            logp[tokens], logp.detach()[tokens], advantage, torch.ones(5, 1), keep, clip_low=0.2, clip_high=0.2
        ).backward()
        assert theta.grad is not None
        return -theta.grad

    assert change(graph=False)[1] > 0 >= change(graph=True)[1]
    assert change(graph=True)[0] > change(graph=False)[0]
