"""The line that a training run tells after each step, from runs of a known number."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.support.mosaic_runs import recipe
from tests.support.recorded_runs import KEEP, MUSEUM, SALES, record_of
from tests.support.training_configs import RL
from vrag_ray.config import AgentConfig
from vrag_ray.questions.examples import Example
from vrag_ray.questions.gold_places import GoldPlace
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import RewardConfig, RLConfig
from vrag_ray.training.rewards.reward import UNGRADED, Reward
from vrag_ray.training.rl import Session, _check_parity, _progress_line, _speeds, _update_metrics, in_turn
from vrag_ray.training.rollout.environment import grounding_line
from vrag_ray.training.rollout.rollout import Task, chosen
from vrag_ray.training.rollout.rollout_metrics import rollout_metrics
from vrag_ray.training.trainer.learner import Update
from vrag_ray.training.trajectory import Call, Trajectory, nodes_of_calls
from vrag_ray.types import VragError

UPDATE = {"update/kept_share": 0.5, "parity/gap_mean": 1e-6}
WRONG = Reward(0.25, 0.0, 0.5, 0.0, success=False)


QUESTION = Example(uid="u", question="?", answers=("!",))
OTHER = QUESTION.model_copy(update={"uid": "other"})
BOXED = Task(QUESTION, (GoldPlace("r#p1", "r", page=1, box=(0.1, 0.1, 0.2, 0.2)), GoldPlace("r#p2", "r", page=2)))
UNBOXED = Task(QUESTION, (GoldPlace("r#p2", "r", page=2),))


def test_a_run_that_grades_cited_elements_logs_how_many_questions_allow_it() -> None:
    reward = RewardConfig(answer=0.5, grounding=0.2)
    assert grounding_line([BOXED, UNBOXED, UNBOXED], "questions.jsonl", reward) == (
        "grounding: 1 of 3 questions have gold boxes; for the others reward.grounding 0.2 is added to the weight of "
        "the answer"
    )
    with pytest.raises(
        VragError, match=r"reward\.grounding is 0\.2, but no question of questions\.jsonl has a gold box"
    ):
        grounding_line([UNBOXED], "questions.jsonl", reward)


def endless() -> Trajectory:
    record = record_of(SALES, KEEP, MUSEUM, config=AgentConfig(max_steps=3))
    calls = (Call((1,), (), (2,)),) * 3
    return Trajectory("u", 0, calls, nodes_of_calls(record.events, 3), record, WRONG, {}, 1)


def cut_short() -> Trajectory:
    whole = endless()
    return replace(whole, record=whole.record.model_copy(update={"engine_limited": True}), reward=UNGRADED)


def line_of(*runs: Trajectory) -> str:
    groups: Sequence[Sequence[Trajectory]] = [runs] if runs else []
    return _progress_line(rollout_metrics(groups, Collectives(), recipe("ggpo")) | UPDATE)


def test_the_share_of_runs_that_the_engine_cut_short_is_reported() -> None:
    line = line_of(endless(), cut_short(), endless(), cut_short(), cut_short())
    assert line.startswith("reward 0.250, success 0.000, turns 3.0, kept 0.50, ")
    assert line.endswith(", 3 runs (60%) cut short by the engine's limits")


def test_a_step_whose_runs_all_earn_the_same_is_reported_with_the_cause() -> None:
    unread = record_of("what?", "what?", "what?", config=AgentConfig(max_steps=3))
    broken = replace(endless(), record=unread)
    assert line_of(broken, broken).endswith(
        ", all runs of each question earn the same (100% of replies break the form: imitate first)"
    )
    assert line_of(endless(), endless()).endswith(", all runs of each question earn the same")
    better = replace(endless(), reward=replace(WRONG, total=0.5))
    assert "earn the same" not in line_of(endless(), better)


def test_a_step_that_no_limit_cut_says_nothing_of_limits() -> None:
    assert "limits" not in line_of(endless())


def test_a_step_whose_runs_were_all_cut_short_claims_no_success() -> None:
    line = line_of(cut_short(), cut_short())
    assert line.startswith("no run could be graded, ")
    assert "2 runs (100%) cut short" in line


def test_a_step_from_which_dynamic_sampling_left_no_run_is_reported() -> None:
    assert line_of().startswith("no run could be graded, turns 0.0")


def update_of(gap: float, tokens: int = 1) -> Update:
    return Update(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, gap, gap, gap, 0.75, 0.25, 0.5, 2.0, 0.0, 0.0, tokens, 1, 1, 1)


def test_a_step_that_compared_nothing_claims_no_gap() -> None:
    assert not any(name.startswith("parity/") for name in _update_metrics([update_of(0.0, tokens=0)]))
    metrics = _update_metrics([update_of(0.0, tokens=0)]) | rollout_metrics([], Collectives(), recipe("ggpo"))
    assert ", nothing to learn from" in _progress_line(metrics)
    compared = {name: value for name, value in _update_metrics([update_of(0.5)]).items() if "parity/" in name}
    assert compared == {
        "parity/gap_mean": 0.5,
        "parity/gap_max": 0.5,
        "parity/kl": 0.5,
        "parity/effective_share": 0.75,
        "parity/truncated_share": 0.25,
    }


def test_ratios_are_the_extremes_of_the_optimiser_steps_that_learnt() -> None:
    steps = [replace(update_of(0.0), ratio_min=low, ratio_max=high) for low, high in ((0.9, 1.2), (0.8, 1.1))]
    metrics = _update_metrics([*steps, replace(update_of(0.0, tokens=0), ratio_min=0.0, ratio_max=0.0)])
    assert (metrics["update/ratio_min"], metrics["update/ratio_max"]) == (0.8, 1.2)


def test_the_speed_of_rollouts_counts_what_was_sampled_not_what_is_learnt() -> None:
    metrics = rollout_metrics([[endless(), endless()]], Collectives(), recipe("ggpo")) | {"update/tokens": 0.0}
    speeds = _speeds(metrics, {"seconds/rollout": 2.0, "seconds/update": 1.0, "seconds/step": 4.0})
    assert speeds["speed/rollout_tokens_per_s"] == 3.0


@pytest.mark.parametrize(("gap", "stops"), [(0.05, False), (0.06, True), (math.nan, True)])
def test_a_gap_beyond_the_gate_or_no_number_at_all_stops_the_run(gap: float, stops: bool) -> None:
    with pytest.raises(VragError, match=r"parity_gate = 0\.05") if stops else nullcontext():
        _check_parity(update_of(gap), RLConfig.model_validate(RL), 0)


def test_questions_that_come_again_within_a_step_have_draws_of_their_own_in_all_its_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = RLConfig.model_validate(RL | {"algorithm": "dapo", "rollout": {"questions": 3, "group": 2}})
    environment = SimpleNamespace(tasks=lambda _: [BOXED, replace(BOXED, example=OTHER)])
    worker = SimpleNamespace(ranks=Collectives(), cursor=None)
    session = Session(config, None, worker, environment, *(None,) * 5)
    rounds: list[list[tuple[str, int]]] = []
    run = endless()

    async def equal(_: Session, tasks: Sequence[Task], group: int, seed: str) -> list[list[Trajectory]]:
        rounds.append([(task.example.uid, task.repeat) for task in tasks])
        return [[run] * group for _ in tasks]

    monkeypatch.setattr(Session, "_run", equal)
    assert asyncio.run(session._sampled(step=0)) == []
    drawn = [task for each in rounds for task in each]
    assert len(drawn) == len(set(drawn)) == 3 * (1 + config.rollout.refill)


class Ranks(Collectives):
    """The first of two ranks, of which the other still misses ``other`` groups in each round."""

    def __init__(self, other: Sequence[int]) -> None:
        self.rank, self.size = 0, 2
        self._other = iter(other)

    def gathered(self, value: int) -> list[int]:
        return [value, next(self._other)]


def test_dynamic_sampling_passes_over_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a run goes on from a checkpoint, and where another rank needs more of the questions."""
    config = RLConfig.model_validate(
        RL | {"algorithm": "dapo", "rollout": {"questions": 4, "group": 2, "refill": 2}, "workers": {"count": 2}}
    )
    pool = [replace(BOXED, example=QUESTION.model_copy(update={"uid": str(number)})) for number in range(13)]
    environment = SimpleNamespace(tasks=lambda _: pool)
    run = endless()
    lesson = [run, replace(run, reward=replace(WRONG, total=0.5))]
    own: list[str] = []

    async def first_of_each_round_teaches(
        _: Session, tasks: Sequence[Task], group: int, seed: str
    ) -> list[list[Trajectory]]:
        own.extend(task.example.uid for task in tasks)
        return [lesson if place == 0 else [run] * group for place, _ in enumerate(tasks)]

    monkeypatch.setattr(Session, "_run", first_of_each_round_teaches)

    def sampled(step: int, other: Sequence[int], cursor: int | None) -> int:
        worker = SimpleNamespace(ranks=Ranks(other), cursor=cursor)
        session = Session(config, None, worker, environment, *(None,) * 5)
        assert len(asyncio.run(session._sampled(step))) == 2
        return worker.cursor

    # Two questions each, then one each, and none: the first step took six, of which this rank ran three.
    cursor = sampled(0, [2, 1, 0], None)
    assert cursor == 6
    first = list(own)
    whole = [task.example.uid for task in chosen(pool, range(13), seed=config.seed)]
    assert first == [whole[0], whole[2], whole[4]]
    # The other rank needs a third round.
    assert sampled(1, [2, 2, 1], cursor) == 6 + 4 + 3 + 1
    assert own[3:] == [whole[6], whole[8], whole[10]]
    # A checkpoint of an earlier version.
    assert sampled(2, [2, 1, 0], None) == 2 * 3 * 4 + 6


@pytest.mark.parametrize(
    ("missing", "ranks"), [([2, 2], [0, 1, 0, 1]), ([0, 3, 1], [1, 2, 1, 1]), ([0, 0], []), ([3], [0, 0, 0])]
)
def test_questions_go_in_turn_to_the_ranks_that_miss_some(missing: list[int], ranks: list[int]) -> None:
    assert in_turn(missing) == ranks
