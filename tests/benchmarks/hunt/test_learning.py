"""Imitation and reinforcement in the hunt really learn, and the measured gradients show what they claim to show."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from benchmarks.hunt.gradients import TRUE, measure_gradients
from benchmarks.hunt.learning import Imitation, Measure, Schedule, expert_for, imitate, improve, seeded
from benchmarks.hunt.policy import HuntPolicy
from benchmarks.hunt.rollout import play, step_logp
from benchmarks.hunt.variants import Variant
from benchmarks.hunt.world import HuntConfig, draw_questions

CONFIG = HuntConfig(hops=(1, 1), miss=0.1, max_steps=4, topics=6)
IMITATION = Imitation(success=0.4, steps=60, batch=64)
SCHEDULE = Schedule(updates=24, groups=8, size=8, lr=4e-3, measure_every=12, measured_runs=600)


@pytest.fixture(scope="module")
def start() -> HuntPolicy:
    return imitate(CONFIG, IMITATION, seed=0)


def learnt(start: HuntPolicy, variant: Variant, schedule: Schedule = SCHEDULE) -> tuple[HuntPolicy, list[Measure]]:
    measures: list[Measure] = []
    return improve(start, CONFIG, variant, schedule, 0, measures.append), measures


def test_the_expert_is_as_good_as_configured() -> None:
    generator = seeded(9)
    reached = play(draw_questions(CONFIG, 3000, generator), expert_for(CONFIG, IMITATION, 0), generator).success
    assert reached.float().mean().item() == pytest.approx(0.4, abs=0.04)


def test_recorded_log_probs_are_those_of_the_policy(start: HuntPolicy) -> None:
    rollouts = play(draw_questions(CONFIG, 64, seeded(1)), start, seeded(2))
    again = torch.cat([step_logp(start, step) for step in rollouts.steps])
    assert torch.allclose(again, rollouts.logp(), atol=1e-6)
    assert (rollouts.logp() <= 0).all()
    assert (rollouts.logp()[~rollouts.sampled()] == 0).all()


@pytest.mark.parametrize("variant", [Variant.GSPO_SEGMENTS, Variant.GRPO_TRAJECTORY, Variant.GGPO, Variant.PROGRESS])
def test_reinforcement_improves_on_imitation(start: HuntPolicy, variant: Variant) -> None:
    _, measures = learnt(start, variant)
    assert [measure.rollouts for measure in measures] == [0, 768, 1536]
    assert measures[-1].success > measures[0].success + 0.1
    assert measures[-1].kept_tokens > measures[1].kept_tokens > 0


def test_the_same_seed_learns_the_same_policy_and_leaves_the_start_alone(start: HuntPolicy) -> None:
    short = replace(SCHEDULE, updates=2, measure_every=2, measured_runs=20)
    before = {name: part.detach().clone() for name, part in start.weights.items()}
    first, again = (learnt(start, Variant.GGPO, short)[0] for _ in range(2))
    other = learnt(start, Variant.GSPO_SEGMENTS, short)[0]
    assert all(torch.equal(part, again.weights[name]) for name, part in first.weights.items())
    assert any(not torch.equal(part, other.weights[name]) for name, part in first.weights.items())
    assert all(torch.equal(part, start.weights[name]) for name, part in before.items())


def test_masks_are_measured_by_verdict(start: HuntPolicy) -> None:
    def last(variant: Variant) -> Measure:
        return learnt(start, variant, replace(SCHEDULE, updates=4, measure_every=4, measured_runs=20))[1][-1]

    positive, negative, none = (
        last(variant) for variant in (Variant.GGPO_POSITIVE, Variant.GGPO_NEGATIVE, Variant.GSPO_SEGMENTS)
    )
    assert positive.masked_in_successes > 0 == positive.masked_in_failures
    assert negative.masked_in_failures > 0 == negative.masked_in_successes
    assert none.masked_in_successes == none.masked_in_failures == 0
    assert none.kept_tokens > negative.kept_tokens


def test_the_gradient_of_success_points_where_success_rises(start: HuntPolicy) -> None:
    variants = (Variant.GSPO_SEGMENTS, Variant.RANDOM_MASK)
    figures = measure_gradients(start, CONFIG, variants, batches=24, groups=8, size=8, seed=0)
    by_name = {figure.variant: figure for figure in figures}
    assert list(by_name) == [TRUE, *variants]
    assert by_name[TRUE].cosine == pytest.approx(1.0, abs=1e-3)
    assert by_name[Variant.GSPO_SEGMENTS].cosine > 0.7
    assert all(figure.noise > 0 and figure.batch_cosine < 1 for figure in figures)
