"""From graded runs to samples: what is credited with what."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.mosaic_runs import Groups, recipe, taught
from vrag_ray.training.advantages import group_advantages
from vrag_ray.training.algorithms.algorithm import Algorithm, SegmentCredit, run_advantages
from vrag_ray.training.algorithms.credit_assignment import ALGORITHMS, TrainSample, algorithm_of, train_samples
from vrag_ray.training.algorithms.progress import credit_input, progress_advantages
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.rollout.trajectory_store import read_trajectories, write_trajectories
from vrag_ray.training.trajectory import Call, Trajectory
from vrag_ray.types import VragError

GGPO = recipe("ggpo")


def test_a_lesson_is_a_segment_or_a_whole_run(runs: Groups):
    whole = taught(runs, recipe("grpo"))
    assert [sample.calls for sample in whole] == [run.calls for group in runs for run in group]
    cut = taught(runs, recipe("gspo_segments"))
    assert [sample.calls for sample in cut] == [part.calls for group in runs for run in group for part in run.segments]
    assert all(sample.keep for sample in (*whole, *cut))


# Advantages are of runs; splitting one into more segments changes none of them.
def test_an_advantage_does_not_depend_on_how_many_segments_a_run_has(runs: Groups):
    rewards = torch.tensor([[run.reward.total for run in group] for group in runs], dtype=torch.float64)
    expected = group_advantages(rewards).flatten().tolist()
    assert [sample.advantage for sample in taught(runs, recipe("grpo"))] == expected
    segments = [len(run.segments) for group in runs for run in group]
    assert len(set(segments)) > 2
    samples = iter(taught(runs, GGPO))
    assert [[next(samples).advantage for _ in range(count)] for count in segments] == [
        [advantage] * count for advantage, count in zip(expected, segments, strict=True)
    ]
    split = [[replace(run, nodes=(None,) * len(run.calls)) for run in group] for group in runs]
    assert {sample.advantage for sample in taught(split, GGPO)} == set(expected)


def test_ggpo_keeps_what_the_answer_rests_on_and_spares_useful_failures(runs: Groups):
    for group in runs:
        for run in group:
            keep = dict(
                zip(
                    [part.node for part in run.segments], (sample.keep for sample in taught([[run]], GGPO)), strict=True
                )
            )
            searches = [node for node in keep if node != "answer"]
            assert keep.get("answer", True)
            if run.reward.success:
                assert {node for node in searches if keep[node]} == _ancestors(run)
            else:
                assert {node for node in searches if not keep[node]} == run.valuable & set(searches)
    assert {sample.keep for sample in taught(runs, GGPO)} == {True, False}


def test_a_find_is_spared_in_a_failure_only_the_first_time(runs: Groups):
    failure = next(run for group in runs for run in group if not run.reward.success and len(run.record.graph.nodes) > 3)
    searches = [part.node for part in failure.segments if part.node not in (None, "answer")][:2]
    again = replace(failure, found=dict.fromkeys(searches, frozenset({0})), gold=1)

    def masked(name: str) -> list[str | None]:
        keeps = [sample.keep for sample in taught([[again]], recipe(name, kl=0.0))]
        return [part.node for part, keep in zip(again.segments, keeps, strict=True) if not keep]

    assert masked("ggpo") == searches
    assert masked("ggpo_first_find") == searches[:1]


def _ancestors(run: Trajectory) -> set[str]:
    open_nodes, ancestors = list(run.parents["answer"]), set()
    while open_nodes:
        node = open_nodes.pop()
        ancestors.add(node)
        open_nodes.extend(run.parents[node])
    return ancestors - {"root"}


def test_progress_credits_each_segment_of_a_run_with_what_it_brought(runs: Groups):
    samples = train_samples(runs, recipe("progress"), Collectives())
    expected = progress_advantages([[credit_input(run) for run in group] for group in runs])
    assert [[sample.advantage for sample in run] for run in samples] == [
        run.tolist() for group in expected for run in group
    ]
    assert all(sample.keep for run in samples for sample in run)
    assert max(len({sample.advantage for sample in run}) for run in samples) > 2


# Masks are a pure function of what is stored.
def test_lessons_can_be_made_again_from_what_was_stored(runs: Groups, tmp_path: Path):
    write_trajectories(tmp_path / "step.parquet", [run for group in runs for run in group])
    stored = list(read_trajectories(tmp_path / "step.parquet"))
    again = [stored[start : start + 2] for start in range(0, len(stored), 2)]
    assert taught(again, GGPO) == taught(runs, GGPO)


def test_a_lesson_counts_the_tokens_of_its_replies():
    assert TrainSample((Call((1, 2), (), (3,)), Call((1,), (), (4, 5))), 0.5, keep=True).completion_tokens == 3


def by_length(groups: Groups, algorithm: Algorithm, _ranks: Collectives) -> list[list[SegmentCredit]]:
    """A credit as users write it: a run's advantage, shared by its segments."""
    runs = [run for group in groups for run in group]
    advantages = run_advantages(groups, algorithm)
    return [
        [SegmentCredit(advantage / max(1, len(run.segments)))] * len(run.segments)
        for run, advantage in zip(runs, advantages, strict=True)
    ]


def too_short(groups: Groups, algorithm: Algorithm, ranks: Collectives) -> list[list[SegmentCredit]]:
    return [credit[:1] for credit in by_length(groups, algorithm, ranks)]


def of_no_run(_groups: Groups, _algorithm: Algorithm, _ranks: Collectives) -> list[list[SegmentCredit]]:
    return []


def plain_numbers(groups: Groups, _algorithm: Algorithm, _ranks: Collectives) -> list[list[float]]:
    return [[1.0] * len(run.segments) for group in groups for run in group]


def undefined(groups: Groups, _algorithm: Algorithm, _ranks: Collectives) -> list[list[SegmentCredit]]:
    return [[SegmentCredit(math.nan)] * len(run.segments) for group in groups for run in group]


def broken(groups: Groups, _algorithm: Algorithm, _ranks: Collectives) -> list[list[SegmentCredit]]:
    return [[SegmentCredit({}["weight"])] for group in groups for _ in group]


def test_a_function_of_a_users_own_assigns_the_credit(runs: Groups):
    shared = train_samples(runs, algorithm_of(f"{__name__}:by_length"), Collectives())
    whole = train_samples(runs, ALGORITHMS["gspo_segments"], Collectives())
    for own, segments in zip(shared, whole, strict=True):
        expected = [segment.advantage / len(own) for segment in segments]
        assert [sample.advantage for sample in own] == pytest.approx(expected)
    spelled = ALGORITHMS["dapo"].model_dump() | {"credit": f"{__name__}:by_length"}
    assert train_samples(runs, Algorithm.model_validate(spelled), Collectives()) == shared


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("too_short", "credits 1 segments of .* SegmentCredit for each"),
        ("of_no_run", "credits 0 runs of .* each run"),
        ("plain_numbers", r"returned 1\.0 for a segment of .* \(sample 0\): return SegmentCredit\(advantage, keep\)"),
        ("undefined", r"returned SegmentCredit\(advantage=nan, keep=True\) .* with a finite advantage"),
        ("broken", r"failed: KeyError: 'weight' \(.*test_credit_assignment\.py, line \d+\)"),
    ],
)
def test_credit_of_other_runs_or_segments_is_refused_by_the_name_of_the_function(runs: Groups, name: str, message: str):
    with pytest.raises(VragError, match=f"{name} {message}"):
        train_samples(runs, algorithm_of(f"{__name__}:{name}"), Collectives())
