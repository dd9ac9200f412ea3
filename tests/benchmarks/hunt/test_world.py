"""The hunt: what an oracle can do in it, what chance cannot, and how hard each regime's knobs make it."""

from __future__ import annotations

import pytest
import torch

from benchmarks.hunt.expert import Expert
from benchmarks.hunt.learning import seeded
from benchmarks.hunt.rollout import Rollouts, play
from benchmarks.hunt.world import NOTHING, HuntConfig, Kind, draw_questions, search
from vrag_ray.types import VragError

CLEAN = HuntConfig(hops=(3, 3), miss=0.0, max_steps=4)


def played(config: HuntConfig, expert: Expert, count: int = 400, seed: int = 0) -> Rollouts:
    generator = seeded(seed)
    return play(draw_questions(config, count, generator), expert, generator)


def test_an_oracle_answers_every_question_with_one_search_a_gold_page() -> None:
    rollouts = played(CLEAN, Expert())
    assert rollouts.success.all()
    assert (rollouts.answered_at == 3).all()
    assert rollouts.memory.gold_place[:, :3].tolist() == [[0, 1, 2]] * 400


def test_chance_hardly_ever_answers() -> None:
    assert played(CLEAN, Expert(noise=1.0)).success.float().mean() < 0.05


def test_an_expert_of_less_skill_is_right_less_often() -> None:
    shares = [played(CLEAN, Expert(skill=skill), 2000).success.float().mean() for skill in (0.1, 0.5, 0.9)]
    assert shares[0] < shares[1] < shares[2] < 1


@pytest.mark.parametrize("branches", [2, 4])
def test_each_page_names_one_key_under_the_sign_of_its_topic(branches: int) -> None:
    config = HuntConfig(hops=(2, 3), branches=branches, miss=0.0)
    questions = draw_questions(config, 200, seeded(1))
    written = questions.kind != Kind.DEAD
    right = (questions.signs == questions.topic.unsqueeze(2)) & (questions.fields != NOTHING)
    assert (right.sum(dim=2)[written] == 1).all()
    assert ((questions.fields != NOTHING).sum(dim=2)[written] == branches).all()


def test_searches_miss_and_misread_as_often_as_configured() -> None:
    config = HuntConfig(miss=0.3, misread=0.2)
    questions = draw_questions(config, 4000, seeded(2))
    page = search(questions, torch.arange(4000), questions.start, seeded(3))
    is_hit = page.kind != Kind.MISSED
    assert is_hit.float().mean().item() == pytest.approx(0.7, abs=0.03)
    assert (page.fields[~is_hit] == NOTHING).all()
    truth = questions.fields[torch.arange(4000), questions.start]
    assert (page.fields != truth)[is_hit].float().mean().item() == pytest.approx(0.2, abs=0.02)


def test_the_same_seed_is_the_same_run_and_another_is_not() -> None:
    first, again, other = (played(HuntConfig(), Expert(0.2, 0.5), seed=seed) for seed in (5, 5, 6))
    assert torch.equal(first.memory.queried, again.memory.queried)
    assert torch.equal(first.success, again.success)
    assert not torch.equal(first.memory.queried, other.memory.queried)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"hops": (3, 2)}, r"hops are \(3, 2\)"),
        ({"hops": (9, 9), "branches": 4, "max_steps": 12}, "42 keys; there are 32"),
        ({"branches": 1}, "1 branches"),
        ({"hops": (2, 5), "max_steps": 5}, "5 steps cannot hold 5 searches"),
    ],
)
def test_a_hunt_that_cannot_be_is_refused_by_name(settings: dict[str, object], named: str) -> None:
    with pytest.raises(VragError, match=named):
        HuntConfig(**settings)
