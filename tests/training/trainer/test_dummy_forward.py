"""Ranks of a sharded model that have unequal numbers of micro-batches: real processes, a real sharded model."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from tests.support.mosaic_runs import Groups, pad_of, pixels_of, recipe, sampled, scorer_of, taught
from tests.support.two_ranks import TwoRanks
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import OptimizerConfig
from vrag_ray.training.rollout.trajectory_store import read_trajectories, write_trajectories
from vrag_ray.training.trainer.learner import Learner, Update
from vrag_ray.training.trainer.optimizer import Optimizer

GRPO = recipe("grpo", kl=0.1)


def two_steps(folder: Path, *, model: Path, sharded: bool) -> list[Update]:
    """The same step twice as two mini-batches. The second rank has one sample, the first has all the others."""
    ranks = Collectives()
    scorer, reference = scorer_of(model), scorer_of(model)
    if sharded:
        scorer.shard("cpu", "float32")
        reference.shard("cpu", "float32")
    optimizer = Optimizer(scorer.model, OptimizerConfig(lr=1e-2, weight_decay=0.0), 10, ranks)
    learner = Learner(
        scorer, optimizer, pixels_of(model), ranks, pad_id=pad_of(model), tokens_per_batch=512, reference=reference
    )
    runs = list(read_trajectories(folder / "runs.parquet"))
    samples = taught([runs[at : at + 2] for at in range(0, len(runs), 2)], GRPO)
    own = samples if ranks.size == 1 else (samples[:-1], samples[-1:])[ranks.rank]
    return learner.update([own, own], GRPO)


def test_a_rank_with_less_to_do_takes_part_in_all_passes_of_model_and_reference(
    on_two_ranks: TwoRanks, groups: Groups, model: Path, tmp_path: Path
):
    runs = [
        replace(run, reward=replace(run.reward, total=float(number)))
        for group in sampled([group[:2] for group in groups], model)
        for number, run in enumerate(group)
    ]
    write_trajectories(tmp_path / "runs.parquet", runs)
    first, second = on_two_ranks(partial(two_steps, model=model, sharded=True), tmp_path)
    alone = two_steps(tmp_path, model=model, sharded=False)
    assert first == second
    for mine, whole in zip(first, alone, strict=True):
        for name, value in asdict(mine).items():
            assert value == pytest.approx(getattr(whole, name), rel=1e-3, abs=1e-4), name
    assert first[1].kl > 0
