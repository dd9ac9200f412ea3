"""A worker that goes on from a checkpoint takes the very steps that it would have taken."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers", reason="NO TRANSFORMERS: retrievers are not trained here")
from ray import train

from tests.support.retriever_material import config_of, read, written_pairs
from vrag_ray.training.config import ModelConfig
from vrag_ray.training.retriever.batches import Batches
from vrag_ray.training.retriever.config import RetrieverConfig
from vrag_ray.training.retriever.model import load_processor
from vrag_ray.training.retriever.pairs import read_pairs
from vrag_ray.training.retriever.step import step
from vrag_ray.training.retriever.worker import RetrieverWorker, start_worker
from vrag_ray.training.trainer.weights import whole_weights


class Run:
    """A run without Ray: what Ray Train would hand to a worker is the last folder that was saved."""

    def __init__(self, config: RetrieverConfig, pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.config = config
        loaded = read_pairs(pairs, collection=False).pairs
        self.batches = Batches(loaded, batch=4, queries=1, hard_negatives=1, seed=config.seed)
        self.checkpoint: train.Checkpoint | None = None
        monkeypatch.setattr(train, "get_checkpoint", lambda: self.checkpoint)

    def started(self) -> RetrieverWorker:
        source = self.config.model.path
        return start_worker(self.config, source, load_processor(self.config, source, given=source), 10)

    def stepped(self, worker: RetrieverWorker, steps: int) -> dict[str, torch.Tensor]:
        for _ in range(steps):
            batch = self.batches.of(worker.optimizer.done)
            step(batch, read, worker.form, worker.retriever, worker.optimizer, worker.ranks, self.config)
        return whole_weights(worker.model)


@pytest.mark.parametrize("values", [{}, {"lora_rank": 2}], ids=["whole", "adapters"])
@pytest.mark.parametrize("late", [True, False], ids=["late", "single"])
def test_a_run_goes_on_to_the_last_bit(
    late: bool, values: dict[str, int], model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pairs = written_pairs(tmp_path, 9, negatives=[3])
    shape = ModelConfig.model_validate({"path": str(model), "freeze_vision": False} | values)
    config = config_of(model, model=shape, **({} if late else {"late": None}))
    run = Run(config, pairs, monkeypatch)
    undisturbed = run.stepped(run.started(), 3)
    worker = run.started()
    after_two = run.stepped(worker, 2)
    assert worker.save(tmp_path / "checkpoint")
    run.checkpoint = train.Checkpoint.from_directory(str(tmp_path / "checkpoint"))
    again = run.started()
    assert again.optimizer.done == 2
    gone_on = run.stepped(again, 1)
    assert gone_on.keys() == undisturbed.keys()
    assert all(torch.equal(gone_on[name], undisturbed[name]) for name in gone_on)
    assert any(not torch.equal(after_two[name], gone_on[name]) for name in gone_on)
    assert not any("lora" in name for name in gone_on)
