"""The presets' numbers, and the loss that they share: hand-computed values, and what must not matter to it."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest
import torch
from pydantic import ValidationError

from tests.support.golden_losses import golden_batch
from tests.support.loss_batches import RATIOS, Batch, outcome, random_batch, wide
from vrag_ray.training.algorithms.algorithm import Algorithm, Credit
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS
from vrag_ray.training.algorithms.ggpo import masks
from vrag_ray.training.algorithms.loss import Counts, LossParts, loss
from vrag_ray.training.losses import Denominator, Ratio
from vrag_ray.types import VragError

# Two replies of 3 and 1 tokens; each token's ratio, its k3 (of reference over new: 2 and 4) and its entropy are known.
TOKEN_RATIOS = torch.tensor([[1.1, 1.3, 1.0], [0.7, 9.0, 9.0]], dtype=torch.float64)
MASK = torch.tensor([[1, 1, 1], [1, 0, 0]])
ADVANTAGES = torch.tensor([2.0, -1.0], dtype=torch.float64)
OLD = torch.full((2, 3), -1.0, dtype=torch.float64)
NEW = OLD + TOKEN_RATIOS.log()
REFERENCE = NEW + torch.tensor([[2.0, 2.0, 2.0], [4.0, 1.0, 1.0]], dtype=torch.float64).log()
K3 = (2 - math.log(2) - 1, 4 - math.log(4) - 1)
ENTROPY = torch.tensor([[1.0, 2.0, 3.0], [5.0, 7.0, 7.0]], dtype=torch.float64)
GEO = (1.1 * 1.3) ** (1 / 3)
BOTH = torch.ones(2)
WIDE = {"clip_low": 0.2, "clip_high": 0.2}


def preset(name: str, **changes: object) -> Algorithm:
    return Algorithm.model_validate({**ALGORITHMS[name].model_dump(), **changes})


def parts_of(algorithm: Algorithm, new: torch.Tensor = NEW, keep: torch.Tensor = BOTH) -> LossParts:
    return loss(
        new,
        OLD,
        ADVANTAGES,
        MASK,
        keep,
        algorithm,
        counts=Counts.of(MASK, keep),
        logp_reference=REFERENCE,
        entropy=ENTROPY,
    )


@pytest.mark.parametrize(
    ("name", "ratio", "clips", "denominator", "credit", "kl"),
    [
        ("grpo", Ratio.TOKEN, (0.2, 0.2), Denominator.ALL, Credit.TRAJECTORY, 0.01),
        ("dr_grpo", Ratio.TOKEN, (0.2, 0.2), Denominator.TOKENS, Credit.TRAJECTORY, 0.0),
        ("dapo", Ratio.TOKEN, (0.2, 0.28), Denominator.TOKENS, Credit.TRAJECTORY, 0.0),
        ("gspo", Ratio.GEO, (3e-4, 4e-4), Denominator.ALL, Credit.TRAJECTORY, 0.0),
        ("gspo_segments", Ratio.GEO, (3e-4, 4e-4), Denominator.ALL, Credit.SEGMENTS, 0.0),
        ("ggpo", Ratio.GEO, (3e-4, 4e-4), Denominator.ALL, Credit.GGPO, 0.0),
        ("ggpo_first_find", Ratio.GEO, (3e-4, 4e-4), Denominator.ALL, Credit.GGPO_FIRST_FIND, 0.0),
        ("ggpo_cited", Ratio.GEO, (3e-4, 4e-4), Denominator.ALL, Credit.GGPO, 0.0),
        ("progress", Ratio.GEO, (3e-4, 4e-4), Denominator.ALL, Credit.PROGRESS, 0.0),
    ],
)
def test_presets_have_the_numbers_of_their_papers(
    name: str, ratio: Ratio, clips: tuple[float, float], denominator: Denominator, credit: Credit, kl: float
):
    algorithm = preset(name)
    assert (algorithm.ratio, algorithm.clip_low, algorithm.clip_high) == (ratio, *clips)
    assert (algorithm.denominator, algorithm.credit, algorithm.kl) == (denominator, credit, kl)
    assert algorithm.cited_elements is (name == "ggpo_cited")
    assert algorithm.normalize_std is (name != "dr_grpo")
    assert algorithm.dynamic_sampling is (name == "dapo")
    assert (algorithm.budget is not None) is (name == "dr_grpo")
    assert (algorithm.entropy, algorithm.truncate, algorithm.band) == (0.0, None, None)


def test_dapo_with_equal_clips_is_grpo_over_tokens():
    changed = {"clip_high": 0.2, "denominator": Denominator.ALL, "dynamic_sampling": False, "kl": 0.01}
    assert preset("dapo", **changed) == ALGORITHMS["grpo"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"clip_low": 1.0}, "clip_low"),
        ({"clip_high": 0.0}, "clip_high"),
        ({"kl": -0.1}, "kl"),
        ({"truncate": 0.0}, "truncate"),
        ({"epsilon": 0.2}, "epsilon"),
        ({"budget": 100}, "budget needs the denominator 'tokens'"),
        ({"truncate": 2.0, "band": (0.5, 5.0)}, "truncate and band both correct for the sampler: give one of them"),
        ({"band": (1.5, 5.0)}, r"band \[1\.5, 5\.0\]: give the lowest and the highest weight of a token, around 1"),
        ({"band": (0.5, math.inf)}, "around 1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, float], says: str):
    with pytest.raises(ValidationError, match=says):
        preset("grpo", **wrong)


def test_each_half_of_the_mask_has_its_own_verdict():
    masked = {(credit, success) for credit in Credit for success in (True, False) if masks(credit, success)}
    assert masked == {
        (Credit.GGPO, True),
        (Credit.GGPO, False),
        (Credit.GGPO_FIRST_FIND, True),
        (Credit.GGPO_FIRST_FIND, False),
        (Credit.GGPO_POSITIVE, True),
        (Credit.GGPO_NEGATIVE, False),
    }


@pytest.mark.parametrize(
    ("algorithm", "policy", "kl", "entropy"),
    [
        # 2 * mean(1.1, 1.2 clipped, 1.0) and -1 * 0.8 clipped, over two replies.
        (preset("grpo", kl=0.1), -(2.2 - 0.8) / 2, (K3[0] + K3[1]) / 2, 3.5),
        # 2 * (1.1 + 1.28 clipped + 1.0) and -0.8, over four tokens.
        (preset("dapo", entropy=0.5), -(6.76 - 0.8) / 4, (3 * K3[0] + K3[1]) / 4, 2.75),
        # Over two replies of a budget of five tokens.
        (preset("dr_grpo", budget=5, kl=0.2), -(6.6 - 0.8) / 10, (3 * K3[0] + K3[1]) / 10, 1.1),
        (preset("gspo", **WIDE), -(2 * GEO - 0.8) / 2, (K3[0] + K3[1]) / 2, 3.5),
        # 1.1 * 1.3 is beyond 1.2.
        (preset("ggpo", ratio="raw", **WIDE), -(2 * 1.2 - 0.8) / 2, (K3[0] + K3[1]) / 2, 3.5),
    ],
    ids=["grpo", "dapo", "dr_grpo", "gspo", "raw"],
)
def test_loss_is_what_a_hand_computes(algorithm: Algorithm, policy: float, kl: float, entropy: float):
    parts = parts_of(algorithm)
    assert parts.policy.item() == pytest.approx(policy, abs=1e-12)
    assert parts.kl.item() == pytest.approx(kl, abs=1e-12)
    assert parts.entropy.item() == pytest.approx(entropy, abs=1e-12)
    total = policy + algorithm.kl * kl - algorithm.entropy * entropy
    assert parts.total.item() == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize(
    ("algorithm", "divisor"),
    [
        (preset("grpo"), 9),
        (preset("dr_grpo", budget=100), 900),
        (preset("dapo"), 20),
        (preset("ggpo"), 9),
        (preset("ggpo", denominator="kept"), 7),
    ],
)
def test_masked_segments_count_where_the_paper_counts_them(algorithm: Algorithm, divisor: int):
    assert Counts(segments=9, kept=7, tokens=20).divisor(algorithm) == divisor


@pytest.mark.parametrize(
    ("algorithm", "low", "high"),
    [
        (preset("grpo"), 1 / 4, 1 / 4),
        (preset("dapo", clip_high=0.35), 1 / 4, 0.0),
        (preset("gspo", **WIDE), 1 / 2, 0.0),
        (preset("gspo", clip_low=0.4, clip_high=0.1), 0.0, 1 / 2),
        (preset("ggpo", ratio="raw", **WIDE), 1 / 2, 1 / 2),
    ],
)
def test_clip_shares_are_of_tokens_or_of_segments_as_the_ratio_is(algorithm: Algorithm, low: float, high: float):
    parts = parts_of(algorithm)
    assert (parts.clip_low.item(), parts.clip_high.item()) == (pytest.approx(low), pytest.approx(high))


def test_what_clipping_cannot_cut_off_is_not_counted():
    turned = loss(NEW, OLD, -ADVANTAGES, MASK, BOTH, preset("grpo", kl=0.0), counts=Counts.of(MASK, BOTH))
    assert (turned.clip_low.item(), turned.clip_high.item()) == (0.0, 0.0)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("sizes", [(1,) * 8, (2, 2, 2, 2), (5, 1, 2), (8,)])
def test_parts_of_a_batch_add_up_to_the_batch(name: str, sizes: tuple[int, ...]):
    made = torch.Generator().manual_seed(5)
    algorithm = preset(name, kl=0.1, entropy=0.2, truncate=1.5)

    def random(spread: float) -> torch.Tensor:
        return spread * torch.randn((8, 6), generator=made, dtype=torch.float64)

    old, advantages = random(1.0), random(1.0)[:, 0]
    tensors = {"logp_reference": old + random(0.3), "entropy": random(1.0), "logp_sampler": old + random(0.3)}
    mask = torch.rand((8, 6), generator=made) < 0.7
    keep = torch.tensor([1, 1, 0, 1, 0, 1, 1, 1])
    start = old + random(2 * algorithm.clip_high)
    counts = Counts.of(mask, keep)

    def summed(cuts: tuple[int, ...]) -> tuple[dict[str, float], torch.Tensor]:
        new = start.clone().requires_grad_()
        sums = dict.fromkeys((field.name for field in fields(LossParts)), 0.0)
        place = 0
        for size in cuts:
            rows = slice(place, place + size)
            given = {key: value[rows] for key, value in tensors.items()}
            parts = loss(
                new[rows], old[rows], advantages[rows], mask[rows], keep[rows], algorithm, counts=counts, **given
            )
            parts.total.backward()
            sums = {key: value + getattr(parts, key).item() for key, value in sums.items()}
            place += size
        assert new.grad is not None
        return sums, new.grad

    (values, gradient), (whole, expected) = summed(sizes), summed((8,))
    assert values == pytest.approx(whole, abs=1e-6)
    assert torch.allclose(gradient, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_kl_and_entropy_are_masked_like_the_policy_term(name: str):
    algorithm = preset(name, kl=0.1, entropy=0.2, truncate=2.0)
    out = ~MASK.bool() | torch.tensor([[False], [True]])
    keep = torch.tensor([1.0, 0.0])

    def outcome(junk: float | None) -> tuple[LossParts, torch.Tensor]:
        def spoilt(tensor: torch.Tensor) -> torch.Tensor:
            return tensor if junk is None else torch.where(out, torch.full_like(tensor, junk), tensor)

        new, entropy = (spoilt(values).clone().requires_grad_() for values in (NEW, ENTROPY))
        parts = loss(
            new,
            spoilt(OLD),
            ADVANTAGES,
            MASK,
            keep,
            algorithm,
            counts=Counts.of(MASK, keep),
            logp_reference=spoilt(REFERENCE),
            entropy=entropy,
            logp_sampler=spoilt(OLD - 0.1),
        )
        parts.total.backward()
        assert new.grad is not None and entropy.grad is not None
        return parts, torch.stack([new.grad, entropy.grad])

    clean, gradient = outcome(None)
    for junk in (3.0, math.nan, math.inf):
        parts, other = outcome(junk)
        assert [getattr(parts, field.name).item() for field in fields(LossParts)] == [
            getattr(clean, field.name).item() for field in fields(LossParts)
        ]
        assert torch.equal(other, gradient)
    assert not gradient[:, out].any()
    assert gradient[:, ~out].all()


def test_what_has_no_coefficient_is_measured_and_moves_nothing():
    new = NEW.clone().requires_grad_()
    parts = parts_of(preset("gspo", **WIDE), new)
    assert parts.kl > 0
    assert parts.entropy > 0
    assert parts.total.item() == parts.policy.item()
    assert [field.name for field in fields(LossParts) if getattr(parts, field.name).requires_grad] == ["total"]


def test_a_sampler_that_was_surer_weighs_less_and_no_token_more_than_the_cap():
    algorithm = preset("grpo", kl=0.0, clip_low=0.9, clip_high=9, truncate=1.5)
    sampler = OLD - torch.tensor([[0.5, 4.0, 1.0], [0.25, 1.0, 1.0]], dtype=torch.float64).log()
    counts = Counts.of(MASK, BOTH)
    parts = loss(NEW, OLD, ADVANTAGES, MASK, BOTH, algorithm, counts=counts, logp_sampler=sampler)
    expected = -(2 * (0.5 * 1.1 + 1.5 * 1.3 + 1.0) / 3 - 0.25 * 0.7) / 2
    assert parts.total.item() == pytest.approx(expected, abs=1e-12)


def test_a_token_on_which_sampler_and_trainer_are_too_far_apart_teaches_nothing_and_counts():
    # The weights of the first reply are 0.5, 4 (outside) and 1, that of the second is 0.25 (outside).
    algorithm = preset("grpo", kl=0.0, clip_low=0.9, clip_high=9, band=(0.5, 3.0))
    sampler = OLD - torch.tensor([[0.5, 4.0, 1.0], [0.25, 1.0, 1.0]], dtype=torch.float64).log()
    new = NEW.clone().requires_grad_()
    parts = loss(new, OLD, ADVANTAGES, MASK, BOTH, algorithm, counts=Counts.of(MASK, BOTH), logp_sampler=sampler)
    assert parts.total.item() == pytest.approx(-(2 * (0.5 * 1.1 + 1.0) / 3) / 2, abs=1e-12)
    parts.total.backward()
    assert new.grad is not None
    assert (new.grad != 0).tolist() == [[True, False, True], [False, False, False]]


@pytest.mark.parametrize(
    ("setting", "value", "name"),
    [
        ("kl", 0.5, "logp_reference"),
        ("entropy", 0.5, "entropy"),
        ("truncate", 0.5, "logp_sampler"),
        ("band", (0.5, 5.0), "logp_sampler"),
    ],
)
def test_a_tensor_that_is_needed_and_missing_is_named(setting: str, value: object, name: str):
    algorithm = preset("grpo", **{"kl": 0.0, setting: value})
    with pytest.raises(VragError, match=rf"'{setting}' needs {name}"):
        loss(NEW, OLD, ADVANTAGES, MASK, BOTH, algorithm, counts=Counts.of(MASK, BOTH))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_micro_batch_without_anything_to_learn_takes_part_with_zero(name: str):
    new = NEW.clone().requires_grad_()
    parts = parts_of(preset(name, kl=0.1, entropy=0.1), new, keep=torch.zeros(2))
    parts.total.backward()
    assert parts.total.item() == 0
    assert new.grad is not None and not new.grad.any()


def rows_of(batch: Batch, rows: slice | torch.Tensor) -> Batch:
    return {key: value[rows] for key, value in batch.items()}


# Dividing by the unmasked segments scales by all over unmasked, 9/7 and 6/4 here.
@pytest.mark.parametrize("ratio", RATIOS)
def test_dividing_by_kept_segments_only_rescales(ratio: str):
    theta = torch.tensor([0.1, -0.1, 0.0], dtype=torch.float64)
    for batch, scale in ((random_batch(), 9 / 7), (golden_batch(theta), 6 / 4)):
        _, of_all = outcome(batch, wide(ratio))
        _, of_kept = outcome(batch, wide(ratio, denominator="kept"))
        assert torch.allclose(of_kept, scale * of_all, rtol=1e-12, atol=0)


# Workers and micro-batches divide by the sizes of the global batch.
@pytest.mark.parametrize("denominator", list(Denominator))
@pytest.mark.parametrize("ratio", RATIOS)
def test_workers_that_share_their_counts_have_the_gradient_of_one(ratio: str, denominator: Denominator):
    batch, algorithm = random_batch(), wide(ratio, denominator=denominator, kl=0.1)
    counts = Counts.of(batch["token_mask"], batch["keep"])
    value, gradient = outcome(batch, algorithm)
    for micro in (1, 2, 4):
        workers = [rows_of(batch, slice(0, 3)), rows_of(batch, slice(3, 9))]
        parts = [
            outcome(rows_of(mine, slice(start, start + micro)), algorithm, counts)
            for mine in workers
            for start in range(0, len(mine["keep"]), micro)
        ]
        assert math.fsum(share for share, _ in parts) == pytest.approx(value, abs=1e-14)
        assert torch.allclose(torch.cat([part for _, part in parts]), gradient, rtol=0, atol=1e-14)
    alone = torch.cat([outcome(mine, algorithm)[1] / 2 for mine in workers])
    assert not torch.allclose(alone, gradient, rtol=0, atol=1e-3), "the mean of workers' means is another loss"


# On-policy the ratios have one gradient, the value is the mean advantage, and nothing is clipped.
def test_on_policy_no_ratio_differs_and_nothing_is_clipped():
    batch = random_batch()
    batch["logp_new"] = batch["logp_old"]
    (value, geo), (other, token) = outcome(batch, wide("geo")), outcome(batch, wide("token"))
    assert torch.allclose(geo, token, rtol=0, atol=1e-14)
    expected = -(batch["advantages"] * batch["keep"]).sum().item() / 9
    assert (value, other) == (pytest.approx(expected), pytest.approx(expected))
    parts = loss(**batch, algorithm=ALGORITHMS["ggpo"], counts=Counts.of(batch["token_mask"], batch["keep"]))
    assert (parts.clip_low.item(), parts.clip_high.item()) == (0.0, 0.0)


# The k3 of a masked segment adds nothing; where the policies agree it is 0 and flat.
def test_the_kl_term_is_masked_and_vanishes_where_policies_agree():
    batch = random_batch()
    nothing_kept = batch | {"keep": torch.zeros(9), "advantages": torch.zeros(9)}
    assert outcome(nothing_kept, wide(kl=1.0))[0] == 0
    assert outcome(nothing_kept | {"keep": torch.ones(9)}, wide(kl=1.0))[0] > 0
    agreeing = batch | {"logp_reference": batch["logp_new"]}
    (value, gradient), (plain, plain_gradient) = outcome(agreeing, wide(kl=1.0)), outcome(agreeing, wide())
    assert value == plain
    assert torch.equal(gradient, plain_gradient)


# The order of trajectories and groups is nothing to the loss.
def test_the_order_of_a_batch_does_not_matter():
    batch, order = random_batch(), torch.randperm(9, generator=torch.Generator().manual_seed(1))
    (value, gradient), (other, shuffled) = (outcome(rows, wide(kl=0.1)) for rows in (batch, rows_of(batch, order)))
    assert other == pytest.approx(value, abs=1e-14)
    assert torch.allclose(shuffled, gradient[order], rtol=0, atol=1e-14)
