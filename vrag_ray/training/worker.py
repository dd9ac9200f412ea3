"""What every training process sets up: threads, model, optimiser, and the checkpoint it goes on from."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.training.config import TrainConfig
from vrag_ray.training.optimizer import Optimizer
from vrag_ray.training.ranks import Ranks
from vrag_ray.training.scorer import load_model
from vrag_ray.training.weights import export

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

STATE = "trainer.pt"


@dataclass(frozen=True, slots=True)
class Worker:
    """One process of a training run, ready for its next step."""

    model: PreTrainedModel
    processor: ProcessorMixin
    optimizer: Optimizer
    ranks: Ranks
    source: str
    """The folder that the model's shape and tokenizer were read from."""

    @property
    def done(self) -> int:
        """Optimiser steps taken, those before a restart included."""
        return self.optimizer.done

    @property
    def pad_id(self) -> int:
        return int(self.processor.tokenizer.pad_token_id)

    def save(self, folder: Path) -> None:
        """Everything that the next step depends on. All ranks call it; the first one writes."""
        import torch

        writes = self.ranks.rank == 0
        export(self.model, self.processor, folder, writes=writes)
        if writes:
            torch.save({"optimizer": self.optimizer.state(), "rng": torch.get_rng_state()}, folder / STATE)

    def report(self, metrics: Mapping[str, float], *, checkpoint: bool) -> None:
        """Tell Ray Train of a finished step; with ``checkpoint`` a restart goes on after it. All ranks wait here."""
        from ray import train

        with ExitStack() as stack:
            saved = None
            if checkpoint:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vrag-checkpoint-")))
                self.save(folder)
                saved = train.Checkpoint.from_directory(str(folder)) if self.ranks.rank == 0 else None
            train.report(dict(metrics), checkpoint=saved)


def start_worker(config: TrainConfig, steps: int, *, seed: int) -> Worker:
    """Load the model, from the run's last checkpoint where there is one. Runs inside a Ray Train worker."""
    import torch
    from ray import train
    from transformers import AutoProcessor

    torch.set_num_threads(config.workers.threads)
    torch.manual_seed(seed)
    ranks = Ranks()
    read: Callable[[str], ProcessorMixin] = AutoProcessor.from_pretrained
    processor = read(config.model.path)
    last = train.get_checkpoint()
    with ExitStack() as stack:
        folder = config.model.path if last is None else stack.enter_context(last.as_directory())
        model = _placed(load_model(config.model, folder), config)
        optimizer = Optimizer(model, config.optimizer, steps, ranks)
        if last is not None:
            state = torch.load(Path(folder) / STATE, weights_only=True)
            optimizer.restore(state["optimizer"])
            torch.set_rng_state(state["rng"])
    return Worker(model, processor, optimizer, ranks, config.model.path)


def _placed(model: PreTrainedModel, config: TrainConfig) -> PreTrainedModel:
    if config.model.gpu:
        from ray.train.torch import get_device

        move: Callable[..., PreTrainedModel] = model.to
        return move(get_device())
    return model
