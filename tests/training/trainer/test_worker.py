"""What a checkpoint brings back, beside the weights and the optimiser's state."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from ray import train

from vrag_ray.training.config import SFTConfig
from vrag_ray.training.trainer.worker import Worker, start_worker
from vrag_ray.types import VragError


def started(model: Path) -> Worker:
    config = SFTConfig.model_validate({"name": "run", "trajectories": "-", "model": {"path": str(model)}})
    return start_worker(config, str(model), 4, seed=0)


def test_a_model_without_weights_is_named(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "get_checkpoint", lambda: None)
    for file in model.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    with pytest.raises(VragError, match=rf"^model\.path {tmp_path} cannot be loaded: Error no file named model"):
        started(tmp_path)


def test_a_run_goes_on_at_the_question_where_its_checkpoint_stopped(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last: list[train.Checkpoint] = []
    monkeypatch.setattr(train, "get_checkpoint", lambda: next(iter(last), None))
    worker = started(model)
    assert worker.cursor is None
    worker.cursor = 6
    assert worker.save(tmp_path)
    last.append(train.Checkpoint.from_directory(str(tmp_path)))
    drawn = torch.rand(3)
    again = started(model)
    assert again.cursor == 6
    assert torch.equal(torch.rand(3), drawn)
    # Checkpoints of earlier versions have none.
    state = torch.load(tmp_path / "trainer.pt", weights_only=True)
    del state["cursor"]
    torch.save(state, tmp_path / "trainer.pt")
    assert started(model).cursor is None
