"""Runs in numbers: hand-made runs of known numbers, and ranks that met different things."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.mosaic_runs import Groups, recipe
from tests.support.recorded_runs import ANSWER, CLOSER, KEEP, MUSEUM, SALES, record_of
from tests.support.two_ranks import TwoRanks
from vrag_ray.agent.actions import Action
from vrag_ray.config import AgentConfig
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.rewards.reward import UNGRADED, Reward
from vrag_ray.training.rollout.rollout_metrics import rollout_metrics
from vrag_ray.training.trajectory import Call, Trajectory, nodes_of_calls

GGPO = recipe("ggpo")
PAID, UNPAID = Reward(0.9, 1.0, 0.5, 1.0, success=True), Reward(0.0, 0.0, 0.5, 0.0, success=False)


def run_of(
    *lines: Action | str, reward: Reward, replies: Sequence[int], valuable: Sequence[str] = (), steps: int = 10
) -> Trajectory:
    """``replies`` are the lengths of the replies' texts; each prompt has ten tokens, and every second one a picture."""
    record = record_of(*lines, config=AgentConfig(max_steps=steps))
    assert record.steps == len(replies)
    calls = tuple(
        Call((1,) * 10, (b"png",) * (place % 2), (2,) * length, finish="length" if length > 5 else "stop")
        for place, length in enumerate(replies)
    )
    nodes = nodes_of_calls(record.events, len(calls))
    return Trajectory("u", 0, calls, nodes, record, reward, {node: frozenset({0}) for node in valuable}, 1)


def success() -> Trajectory:
    """Its second search leads nowhere."""
    return run_of(SALES, KEEP, MUSEUM, KEEP, ANSWER, reward=PAID, replies=(3, 2, 3, 2, 1), valuable=["sales"])


def failure() -> Trajectory:
    """Finds the gold page, crops it, says something else in between, and answers wrongly."""
    lines = (SALES, "what?", CLOSER, KEEP, ANSWER)
    return run_of(*lines, reward=UNPAID, replies=(3, 9, 4, 2, 1), valuable=["sales"])


def endless() -> Trajectory:
    return run_of(SALES, KEEP, MUSEUM, reward=UNPAID, replies=(1, 1, 1), steps=3)


def test_every_number_is_what_it_says():
    metrics = rollout_metrics([[success(), failure()]], Collectives(), GGPO)
    assert metrics == pytest.approx(
        {
            "reward/mean": 0.45,
            "reward/success": 0.5,
            "reward/answer": 0.5,
            "reward/retrieval": 0.5,
            "reward/format": 0.5,
            "reward/overlong": 0.0,
            "reward/equal_groups": 0.0,
            "reward/group_std": 0.9 / 2**0.5,
            "reward/solved_once": 1.0,
            "run/turns": 5.0,
            "run/turns_max": 5.0,
            "run/searches": 1.5,
            "run/crops": 0.5,
            "run/invalid": 1 / 10,
            "run/answered": 1.0,
            "run/step_limited": 0.0,
            "run/pictures": 4 / 10,
            "length/prompt": 10.0,
            "length/reply": 30 / 10,
            "length/reply_max": 9.0,
            "length/cut_off": 1 / 10,
            "graph/parents_of_answer": 1.0,
            # Root, search and answer: of four nodes in the one run, of three in the other.
            "graph/ancestors_share": (3 / 4 + 3 / 3) / 2,
            # Of the success the search that led nowhere, of the failure the one that found the gold page.
            "masked/positive": 1 / 3,
            "masked/negative": 1 / 3,
            "kept/positive": 2 / 3,
            "kept/negative": 2 / 3,
            "rollout/engine_limited": 0.0,
            "rollout/tokens": 30.0,
            "rollout/engine_limited_share": 0.0,
        }
    )


def test_the_share_that_a_mask_would_remove_is_reported_for_algorithms_without_a_mask_too():
    metrics = rollout_metrics([[success(), failure()]], Collectives(), recipe("gspo_segments"))
    assert (metrics["masked/positive"], metrics["masked/negative"]) == pytest.approx((1 / 3, 1 / 3))
    assert (metrics["kept/positive"], metrics["kept/negative"]) == (1.0, 1.0)
    half = rollout_metrics([[success(), failure()]], Collectives(), recipe("ggpo", credit="ggpo_positive"))
    assert (half["kept/positive"], half["kept/negative"]) == pytest.approx((2 / 3, 1.0))


def test_groups_that_teach_nothing_are_counted():
    metrics = rollout_metrics([[success(), failure()], [endless(), endless()]], Collectives(), GGPO)
    assert metrics["reward/equal_groups"] == 0.5
    assert metrics["reward/solved_once"] == 0.5
    assert (metrics["run/answered"], metrics["run/step_limited"]) == (0.5, 0.5)
    assert metrics["run/invalid"] == pytest.approx((0 + 1 + 1 + 1) / (5 + 5 + 3 + 3))


def test_a_mean_of_nothing_is_left_out():
    metrics = rollout_metrics([[endless()]], Collectives(), GGPO)
    assert not {"graph/parents_of_answer", "graph/ancestors_share", "masked/positive", "kept/positive"} & set(metrics)
    assert metrics["masked/negative"] == 0.0
    assert rollout_metrics([], Collectives(), GGPO) == {
        "length/reply_max": 0.0,
        "run/turns_max": 0.0,
        "rollout/engine_limited": 0.0,
        "rollout/tokens": 0.0,
    }


def test_runs_that_the_engine_cut_short_are_counted_and_in_no_mean_of_rewards():
    cut = endless()
    cut = replace(cut, record=cut.record.model_copy(update={"engine_limited": True}), reward=UNGRADED)
    metrics = rollout_metrics([[success(), cut], [cut, cut]], Collectives(), GGPO)
    assert (metrics["rollout/engine_limited"], metrics["rollout/engine_limited_share"]) == (3.0, 0.75)
    assert (metrics["reward/mean"], metrics["reward/success"]) == (PAID.total, 1.0)
    assert (metrics["reward/solved_once"], metrics["run/turns"]) == (1.0, (5 + 3 * 3) / 4)
    assert "masked/negative" not in metrics
    nothing = rollout_metrics([[cut, cut]], Collectives(), GGPO)
    assert not any(name.startswith("reward/") for name in nothing)


def test_runs_of_an_expert_have_every_number(groups: Groups):
    metrics = rollout_metrics(groups, Collectives(), GGPO)
    runs = [run for group in groups for run in group]
    assert metrics["run/turns"] == pytest.approx(sum(len(run.calls) for run in runs) / len(runs))
    assert metrics["reward/success"] == pytest.approx(sum(run.reward.success for run in runs) / len(runs))
    assert 0 < metrics["kept/positive"] < 1
    assert metrics["run/crops"] > 0


def test_cited_elements_are_logged_for_questions_with_gold_boxes():
    boxed = [
        replace(run, reward=replace(run.reward, grounding=value, grounded=True))
        for run, value in ((success(), 0.75), (failure(), 0.25))
    ]
    metrics = rollout_metrics([[*boxed, failure()], [endless()]], Collectives(), GGPO)
    assert metrics["reward/grounding"] == 0.5
    assert "reward/grounding" not in rollout_metrics([[success()]], Collectives(), GGPO)


def of_source(name: str, *runs: Trajectory) -> list[Trajectory]:
    return [replace(run, data_source=name) for run in runs]


def test_success_and_reward_are_reported_for_each_set_of_examples():
    slides, books = of_source("slidevqa_test", success(), success(), failure()), of_source("mmlongdoc", failure())
    metrics = rollout_metrics([slides, books, [endless()]], Collectives(), GGPO)
    assert metrics["success/slidevqa_test"] == pytest.approx(2 / 3)
    assert metrics["mean_reward/slidevqa_test"] == pytest.approx(0.6)
    assert (metrics["success/mmlongdoc"], metrics["mean_reward/mmlongdoc"]) == (0.0, 0.0)
    assert metrics["reward/success"] == pytest.approx(2 / 5), "what names no set counts here"
    assert sum(name.startswith("success/") for name in metrics) == 2


def test_a_kind_of_the_same_name_as_a_set_is_another_number():
    runs = [replace(success(), kind="slides"), *of_source("slides", failure())]
    metrics = rollout_metrics([runs], Collectives(), GGPO)
    assert (metrics["success_by_kind/slides"], metrics["success/slides"]) == (1.0, 0.0)


FIRST_RANK = [of_source("slides", success(), failure())]
SECOND_RANK = [of_source("books", endless(), endless()), [endless(), endless()]]


def share(_: Path) -> dict[str, float]:
    """The first rank has met a success and a failure of one set, the second only runs of others without an answer."""
    return rollout_metrics(FIRST_RANK if Collectives().rank == 0 else SECOND_RANK, Collectives(), GGPO)


def test_ranks_that_met_different_things_agree_on_the_numbers_of_all(on_two_ranks: TwoRanks, tmp_path: Path):
    first, second = on_two_ranks(share, tmp_path)
    assert first == second == pytest.approx(rollout_metrics(FIRST_RANK + SECOND_RANK, Collectives(), GGPO))
    assert (first["success/slides"], first["success/books"]) == (0.5, 0.0)


def test_a_failure_that_found_nothing_is_learnt_from_as_a_whole():
    lost = replace(failure(), found={})
    assert rollout_metrics([[lost]], Collectives(), GGPO)["kept/negative"] == 1.0
