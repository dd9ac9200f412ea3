"""The loss of held-out replies: on two ranks as on a single rank, and in a run that goes on."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.support.mosaic_runs import Groups, pixels_of, processor_of, scorer_of
from tests.support.two_ranks import TwoRanks
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import OptimizerConfig, SFTConfig
from vrag_ray.training.launch import train_sft
from vrag_ray.training.rollout.trajectory_store import read_calls, write_trajectories
from vrag_ray.training.run.folder import RunFolder
from vrag_ray.training.run.storage import RunStorage
from vrag_ray.training.sft import LOWEST, held_out_likelihood, validate
from vrag_ray.training.sft_replies import Replies
from vrag_ray.training.trainer.batch import collate
from vrag_ray.training.trainer.optimizer import Optimizer
from vrag_ray.training.trainer.worker import Worker


def written_runs(folder: Path, groups: Groups) -> Path:
    write_trajectories(folder / "runs.parquet", [run for group in groups for run in group])
    return folder / "runs.parquet"


def worker_of(model: Path, *, sharded: bool = False) -> Worker:
    config = SFTConfig.model_validate(
        {"name": "run", "trajectories": "-", "model": {"path": str(model), "tokens_per_batch": 512}}
    )
    ranks, scorer = Collectives(), scorer_of(model)
    if sharded:
        scorer.shard("cpu", "float32")
    optimizer = Optimizer(scorer.model, OptimizerConfig(lr=1e-3), 1, ranks)
    return Worker(config, str(model), scorer, processor_of(model), optimizer, ranks)


def held_out(folder: Path, *, model: Path, sharded: bool) -> tuple[float, float, float]:
    """Of a single reply: the second rank has none."""
    worker = worker_of(model, sharded=sharded)
    calls = list(read_calls(folder / "runs.parquet"))[:1]
    measured = held_out_likelihood(worker, pixels_of(model), calls)
    assert all(parameter.grad is None for parameter in worker.model.parameters())
    return measured


def test_a_rank_without_held_out_replies_takes_part_in_the_passes_of_a_sharded_model(
    on_two_ranks: TwoRanks, groups: Groups, model: Path, tmp_path: Path
) -> None:
    written_runs(tmp_path, groups)
    first, second = on_two_ranks(partial(held_out, model=model, sharded=True), tmp_path)
    assert first == second == pytest.approx(held_out(tmp_path, model=model, sharded=False), rel=1e-4)


def test_the_model_of_the_lowest_held_out_loss_stays_when_later_steps_are_worse(
    groups: Groups, model: Path, tmp_path: Path
) -> None:
    worker, pixels = worker_of(model), pixels_of(model)
    calls = tuple(read_calls(written_runs(tmp_path, groups)))[:2]
    replies = Replies(calls, 1000, left_out=0, longest=0, held_out=calls)
    storage = RunStorage(str(tmp_path), "run")
    storage.create()
    log = RunFolder(storage, worker.config, "run", "")
    lowest = tmp_path / "run" / LOWEST / "model.safetensors"
    validate(worker, pixels, replies, storage, 2, log)
    assert not lowest.exists(), "the model before training is where it was"
    batch = collate(calls, pixels, worker.pad_id)
    for sign in (1, -1, -1):
        (-sign * worker.scorer(batch).logp.sum()).backward()
        worker.optimizer.step()
        validate(worker, pixels, replies, storage, 2, log)
        if worker.done == 1:
            after_first = lowest.read_bytes()
    losses = validation_losses(tmp_path / "run")
    assert losses[1] < min(losses[0], losses[2], losses[3])
    assert lowest.read_bytes() == after_first
    log.close()


# Quick form: the test above, and ``run/test_folder`` (a validation that is made again).
@pytest.mark.exhaustive
def test_the_held_out_loss_is_measured_first_in_between_and_last_and_the_best_step_is_named(
    local_ray: None, groups: Groups, model: Path, tmp_path: Path
) -> None:
    values: dict[str, object] = {
        "name": "run",
        "storage": str(tmp_path / "kept"),
        "model": {"path": str(model), "freeze_vision": False},
        "optimizer": {"lr": 1e-3},
        "trajectories": str(written_runs(tmp_path, groups)),
        "validation_share": 0.5,
        "validation_every": 2,
        "batch": 1000,
        "epochs": 3,
    }
    lines: list[str] = []
    folder = Path(train_sft(SFTConfig.model_validate(values), lines.append)).parent
    losses = validation_losses(folder)
    assert list(losses) == [0, 2, 3]
    assert losses[3] < losses[0]
    best = min(losses, key=losses.__getitem__)
    named = f"held-out loss: lowest after step {best} ({losses[best]:.4f}), whose model is {folder}/lowest;"
    assert lines[-1] == f"{named} final/ is after step 3"
    assert sum("held-out loss" in line for line in lines) == 4
    train_sft(SFTConfig.model_validate(values | {"epochs": 4}), lines.append)
    again = validation_losses(folder)
    assert list(again) == [0, 2, 4]
    assert [again[step] for step in (0, 2)] == [losses[step] for step in (0, 2)]


def validation_losses(folder: Path) -> dict[int, float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    measured = [(int(line["step"]), float(line["validation/loss"])) for line in lines if "validation/loss" in line]
    assert len(measured) == len(dict(measured))
    return dict(measured)
