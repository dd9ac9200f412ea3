"""A step of the learner: nothing but the batch decides the gradient."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest
import torch

from benchmarks.mosaic.model import save_mosaic_model
from tests.support.mosaic_runs import (
    TINY,
    Gradients,
    Groups,
    School,
    apart,
    pad_of,
    pixels_of,
    recipe,
    sampled,
    scorer_of,
    taught,
)
from tests.support.two_ranks import TwoRanks
from vrag_ray.training.algorithms.algorithm import Algorithm
from vrag_ray.training.algorithms.credit_assignment import TrainSample
from vrag_ray.training.algorithms.loss import Counts, loss
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.rollout.trajectory_store import read_trajectories, write_trajectories
from vrag_ray.training.trainer.batch import collate
from vrag_ray.training.trainer.learner import Update
from vrag_ray.training.trajectory import Trajectory

CLOSE = 1e-5
GGPO = recipe("ggpo")
_BY_GROUP = ["grpo", "dr_grpo", "dapo", "gspo", "gspo_segments", "ggpo", "ggpo_first_find"]
BY_GROUP = pytest.mark.parametrize("name", _BY_GROUP)
"""Those whose advantages are of a group's rewards alone."""
EVERY = pytest.mark.parametrize("name", [*_BY_GROUP, "progress"])


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of other weights: a reference that one can be far from."""
    folder = tmp_path_factory.mktemp("elsewhere")
    save_mosaic_model(folder, seed=1, shape=TINY)
    return folder


def without_kl(name: str) -> Algorithm:
    return recipe(name, kl=0.0)


def one_step(
    model: Path,
    batch: Sequence[TrainSample],
    algorithm: Algorithm,
    *,
    tokens_per_batch: int = 512,
    reference: Path | None = None,
) -> tuple[Update, Gradients]:
    school = School.open(model, tokens_per_batch=tokens_per_batch, reference=reference)
    [update], [gradients] = school.update([batch], algorithm)
    return update, gradients


def same(first: Update, second: Update) -> None:
    for name, value in asdict(first).items():
        assert value == pytest.approx(getattr(second, name), rel=1e-4, abs=1e-5), name


# The gradient -------------------------------------------------------------------------------------------------------


@BY_GROUP
def test_a_run_that_ended_before_its_first_reply_teaches_nothing_and_stops_nothing(
    runs: Groups, model: Path, name: str
):
    algorithm = without_kl(name)
    silent = replace(runs[0][1], calls=(), nodes=(), found={})
    samples = taught([[runs[0][0], silent]], algorithm)
    assert all(sample.calls for sample in samples)
    update, _ = one_step(model, samples, algorithm)
    assert math.isfinite(update.loss)
    assert update.grad_norm > 0


@EVERY
def test_neither_micro_batches_nor_the_order_of_groups_change_a_step(runs: Groups, model: Path, name: str):
    algorithm = without_kl(name)
    update, gradients = one_step(model, taught(runs, algorithm), algorithm, tokens_per_batch=10**6)
    assert update.grad_norm > 0
    shuffled = [random.Random(3).sample(group, len(group)) for group in random.Random(3).sample(runs, len(runs))]
    other, others = one_step(model, taught(shuffled, algorithm), algorithm, tokens_per_batch=300)
    assert apart(others, gradients) < CLOSE
    same(other, update)


RECIPES = {
    "ggpo": GGPO,
    "progress": recipe("progress"),
    "grpo": recipe("grpo", kl=0.05),
    "dapo": recipe("dapo"),
}


def on_this_rank(folder: Path, *, model: Path, reference: Path) -> dict[str, list[tuple[Update, Gradients]]]:
    """Steps on this rank's share of the stored runs, by what was done."""
    stored = list(read_trajectories(folder / "runs.parquet"))
    groups = Collectives().share([stored[start : start + 2] for start in range(0, len(stored), 2)])
    done: dict[str, list[tuple[Update, Gradients]]] = {}
    for name, algorithm in RECIPES.items():
        school = School.open(model, reference=reference)
        done[name] = list(zip(*school.update([taught(groups, algorithm)], algorithm), strict=True))
    algorithm = RECIPES["dapo"]
    # Adam turns rounding into steps of its own where a gradient is next to nothing: small ones.
    school = School.open(model, lr=1e-4)
    half = len(groups) // 2
    halves = [taught(groups[:half], algorithm), taught(groups[half:], algorithm)]
    done["two mini-batches"] = list(zip(*school.update(halves, algorithm), strict=True))
    # With dynamic sampling a rank may be left without anything to learn from.
    first = taught(groups if Collectives().rank == 0 else [], algorithm)
    done["one rank only"] = list(zip(*School.open(model).update([first], algorithm), strict=True))
    return done


def test_two_ranks_take_the_steps_of_one(
    on_two_ranks: TwoRanks, runs: Groups, model: Path, elsewhere: Path, tmp_path: Path
):
    write_trajectories(tmp_path / "runs.parquet", [run for group in runs for run in group])
    first, second = on_two_ranks(partial(on_this_rank, model=model, reference=elsewhere), tmp_path)
    alone = on_this_rank(tmp_path, model=model, reference=elsewhere)
    half = [runs[0], runs[2]]
    alone["one rank only"] = [one_step(model, taught(half, RECIPES["dapo"]), RECIPES["dapo"])]
    assert first.keys() == second.keys() == alone.keys()
    for name, steps in alone.items():
        for mine, theirs, (update, gradients) in zip(first[name], second[name], steps, strict=True):
            assert mine[0] == theirs[0], f"{name}: ranks disagree"
            assert all(torch.equal(mine[1][weight], theirs[1][weight]) for weight in gradients), name
            same(mine[0], update)
            assert apart(mine[1], gradients) < 1e-3 if name == "two mini-batches" else CLOSE, name


# A masked segment is inert, whatever it holds.
@pytest.mark.parametrize("denominator", ["all", "kept", "tokens"])
def test_what_a_masked_segment_holds_changes_nothing(runs: Groups, model: Path, denominator: str):
    algorithm = recipe("ggpo", denominator=denominator)
    samples = taught(runs, algorithm)
    seeing = next(call for sample in samples for call in sample.calls if call.images)
    junk = replace(seeing, completion_ids=(9,) * 40, logprobs=(math.nan,) * 40)
    other = [sample if sample.keep else replace(sample, calls=(junk, junk)) for sample in samples]
    assert sum(not sample.keep for sample in samples) > 3
    update, gradients = one_step(model, samples, algorithm)
    odd, odds = one_step(model, other, algorithm)
    assert apart(odds, gradients) < CLOSE
    assert odd.loss == pytest.approx(update.loss, rel=CLOSE)


@BY_GROUP
def test_equal_rewards_have_no_gradient_at_all(runs: Groups, model: Path, name: str):
    algorithm = without_kl(name)
    equal = [[replace(run, reward=replace(run.reward, total=0.1)) for run in group] for group in runs]
    school = School.open(model)
    before = {weight: value.clone() for weight, value in school.scorer.model.state_dict().items()}
    for batch in (taught(equal, algorithm), []):
        [update], gradients = school.update([batch], algorithm)
        assert (update.loss, update.grad_norm, update.segments) == (0.0, 0.0, len(batch))
        assert all(torch.count_nonzero(value) == 0 for gradient in gradients for value in gradient.values())
        assert all(torch.equal(value, before[weight]) for weight, value in school.scorer.model.state_dict().items())
    assert school.optimizer.done == 2


def test_what_paid_becomes_likelier_and_what_did_not_less_likely(runs: Groups, model: Path):
    paid, unpaid = (
        replace(run, reward=replace(run.reward, total=float(1 - place))) for place, run in enumerate(runs[0][:2])
    )
    algorithm = without_kl("grpo")
    school = School.open(model, lr=1e-4)

    def likely(run: Trajectory) -> float:
        with torch.no_grad():
            return float(school.scorer(collate(run.calls, pixels_of(model), pad_of(model))).logp.mean())

    before = likely(paid), likely(unpaid)
    school.update([taught([[paid, unpaid]], algorithm)], algorithm)
    assert likely(paid) > before[0]
    assert likely(unpaid) < before[1]


# On the weights that sampled every ratio is 1.
@EVERY
def test_the_first_step_on_a_batch_is_on_policy(runs: Groups, model: Path, name: str):
    algorithm = without_kl(name)
    samples = taught(runs, algorithm)
    update, _ = one_step(model, samples, algorithm)
    assert (update.clip_low, update.clip_high) == (0.0, 0.0)
    if algorithm.denominator == "all":
        expected = -sum(sample.advantage for sample in samples if sample.keep) / len(samples)
        assert update.policy == pytest.approx(expected, abs=CLOSE)


def test_later_mini_batches_are_held_to_the_weights_that_sampled(runs: Groups, model: Path):
    algorithm = recipe("grpo", kl=0.0, clip_low=0.05, clip_high=0.05)
    batches = [taught(runs[:2], algorithm), taught(runs[2:], algorithm)]
    school = School.open(model, tokens_per_batch=10**6)
    updates, gradients = school.update(batches, algorithm)
    assert [update.gap_max < CLOSE for update in updates] == [True, True]
    assert updates[0].clip_low == updates[0].clip_high == 0.0
    assert updates[1].clip_low + updates[1].clip_high > 0.1, "the first step has moved the policy"
    assert (updates[0].ratio_min, updates[0].ratio_max) == (1.0, 1.0)
    assert updates[1].ratio_min < 0.95 < 1.05 < updates[1].ratio_max
    moved = School.open(model, tokens_per_batch=10**6)
    moved.update(batches[:1], algorithm)
    by_hand = _gradient(moved, batches[1], algorithm, model)
    assert apart(gradients[1], by_hand) < 1e-3


def _gradient(school: School, batch: Sequence[TrainSample], algorithm: Algorithm, model: Path) -> Gradients:
    """Of one whole batch, with the sampler's log-probs for the old ones."""
    calls = [call for sample in batch for call in sample.calls]
    lengths = [sample.completion_tokens for sample in batch]

    def rows(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence(list(values.split(lengths)), batch_first=True)

    new = rows(school.scorer(collate(calls, pixels_of(model), pad_of(model))).logp)
    mask = rows(torch.ones(sum(lengths)))
    keep = torch.tensor([sample.keep for sample in batch])
    done = loss(
        new,
        rows(torch.tensor([value for call in calls for value in call.logprobs])),
        torch.tensor([sample.advantage for sample in batch]),
        mask,
        keep,
        algorithm,
        counts=Counts.of(mask, keep),
    )
    torch.autograd.backward(done.total)
    return {
        name: parameter.grad for name, parameter in school.scorer.model.named_parameters() if parameter.grad is not None
    }


def test_as_many_steps_are_taken_as_there_are_mini_batches_whatever_they_hold(runs: Groups, model: Path):
    school = School.open(model)
    updates, _ = school.update([taught(runs[:1], GGPO), [], taught(runs[1:], GGPO)], GGPO)
    assert len(updates) == school.optimizer.done == 3
    assert [update.segments > 0 for update in updates] == [True, False, True]
    assert school.optimizer.lr == updates[0].lr


# The terms beside the policy's ---------------------------------------------------------------------------------------


def test_a_kl_term_needs_a_reference(runs: Groups, model: Path):
    with pytest.raises(ValueError, match="has a KL term and the learner no reference model"):
        one_step(model, taught(runs, recipe("grpo")), recipe("grpo"))


# There is no KL and no gradient of it where the policies agree.
def test_a_reference_of_the_same_weights_pulls_nowhere(runs: Groups, model: Path):
    strong, none = recipe("grpo", kl=1.0), without_kl("grpo")
    samples = taught(runs, strong)
    update, gradients = one_step(model, samples, strong, reference=model)
    assert update.kl == pytest.approx(0.0, abs=1e-7)
    assert apart(gradients, one_step(model, samples, none)[1]) < CLOSE


def test_a_reference_of_other_weights_pulls_every_kept_segment_and_no_masked_one(
    runs: Groups, model: Path, elsewhere: Path
):
    algorithm = recipe("ggpo", kl=1.0)
    equal = [[replace(run, reward=replace(run.reward, total=0.0)) for run in group] for group in runs]
    samples = taught(equal, algorithm)
    update, gradients = one_step(model, samples, algorithm, reference=elsewhere)
    assert update.kl > 0.1
    assert update.loss == pytest.approx(update.kl)
    near, far = scorer_of(model), scorer_of(elsewhere)
    total = 0.0
    for sample in (sample for sample in samples if sample.keep):
        with torch.no_grad():
            mine, theirs = (
                scorer(collate(sample.calls, pixels_of(model), pad_of(model))).logp for scorer in (near, far)
            )
        total += float((torch.exp(theirs - mine) - (theirs - mine) - 1).mean())
    assert update.kl == pytest.approx(total / len(samples), rel=1e-4)
    assert float(gradients["model.language_model.embed_tokens.weight"].norm()) > 0


def test_an_entropy_bonus_spreads_the_policy_out(runs: Groups, model: Path):
    algorithm = recipe("gspo_segments", entropy=1.0)
    equal = [[replace(run, reward=replace(run.reward, total=0.0)) for run in group] for group in runs]
    school = School.open(model, lr=1e-3, entropy_learns=True)
    [first], _ = school.update([taught(equal, algorithm)], algorithm)
    [second], _ = school.update([taught(equal, algorithm)], algorithm)
    assert second.entropy > first.entropy > 0
    assert first.loss == pytest.approx(-first.entropy)


def test_truncated_weights_correct_for_a_sampler_that_was_too_sure(groups: Groups, model: Path):
    shift = 0.5
    plain, corrected, capped = (recipe("gspo", truncate=cap) for cap in (None, 2.0, 0.1))
    samples = taught(sampled(groups[2:], model, shift), plain)
    _, gradients = one_step(model, samples, plain)
    for algorithm, weight in ((corrected, math.exp(-shift)), (capped, 0.1)):
        _, others = one_step(model, samples, algorithm)
        assert apart(others, {name: weight * value for name, value in gradients.items()}) < 1e-4


# What is reported of a step -------------------------------------------------------------------------------------------


def test_the_gap_to_its_own_log_probs_is_nothing(runs: Groups, model: Path):
    samples = taught(runs, GGPO)
    update, _ = one_step(model, samples, GGPO)
    assert update.gap_mean <= update.gap_max < CLOSE
    mean, largest = School.open(model).learner.gap(samples)
    assert mean <= largest < CLOSE


def test_the_gap_is_how_far_the_sampler_was_off(groups: Groups, model: Path):
    off = sampled(groups[:2], model, shift=0.25)
    odd = off[0][0].calls[0]
    calls = (replace(odd, logprobs=(odd.logprobs[0] - 1.0, *odd.logprobs[1:])), *off[0][0].calls[1:])
    samples = taught([[replace(off[0][0], calls=calls), *off[0][1:]], *off[1:]], recipe("gspo"))
    tokens = sum(sample.completion_tokens for sample in samples)
    mean, largest = School.open(model).learner.gap(samples)
    assert mean == pytest.approx(0.25 + 0.5 / tokens, abs=CLOSE)
    assert largest == pytest.approx(0.75, abs=CLOSE)


@pytest.mark.parametrize(
    ("correction", "truncated"),
    [({}, 0.0), ({"truncate": 2.0}, 0.0), ({"truncate": 0.5}, 1.0), ({"band": (0.5, 2)}, 0.0), ({"band": (0.8, 2)}, 1)],
)
def test_the_divergence_and_the_truncated_share_are_those_of_the_weights(
    correction: dict[str, object], truncated: float, groups: Groups, model: Path
) -> None:
    shift = 0.25
    algorithm = recipe("gspo", **correction)
    update, _ = one_step(model, taught(sampled(groups[2:], model, shift), algorithm), algorithm)
    assert update.gap_kl == pytest.approx(math.exp(-shift) - 1 + shift, abs=CLOSE)
    assert update.truncated == truncated
    assert update.effective == pytest.approx(1.0), "equal weights are as good as as many samples"


def test_the_effective_sample_size_is_that_of_the_weights_of_all_tokens(groups: Groups, model: Path) -> None:
    samples = [sample for sample in taught(sampled(groups[2:], model), recipe("gspo")) if sample.advantage]
    calls = samples[0].calls
    # One token that the sampler drew at half the trainer's probability.
    odd = replace(calls[0], logprobs=(calls[0].logprobs[0] - math.log(2), *calls[0].logprobs[1:]))
    update, _ = one_step(model, [replace(samples[0], calls=(odd, *calls[1:])), *samples[1:]], recipe("gspo"))
    count = update.tokens
    assert update.effective == pytest.approx((count + 1) ** 2 / (count * (count + 3)), abs=CLOSE)


def test_weights_too_small_for_a_float_have_no_effective_share(groups: Groups, model: Path) -> None:
    update, _ = one_step(model, taught(sampled(groups[2:], model, shift=200.0), recipe("gspo")), recipe("gspo"))
    assert (update.effective, update.truncated) == (0.0, 0.0)


def test_the_gap_of_nothing_is_nothing(model: Path):
    assert School.open(model).learner.gap([]) == (0.0, 0.0)


def test_sizes_of_a_step_are_those_of_its_samples(runs: Groups, model: Path):
    samples = taught(runs, GGPO)
    update, _ = one_step(model, samples, GGPO)
    assert update.segments == len(samples)
    assert update.kept_segments == sum(sample.keep for sample in samples)
    assert update.kept_tokens == sum(sample.completion_tokens for sample in samples if sample.keep)
    assert update.tokens == sum(sample.completion_tokens for sample in samples if sample.keep and sample.advantage)
