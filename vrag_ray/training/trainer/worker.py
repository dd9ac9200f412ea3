"""What every training process sets up: threads, model, optimiser, and the checkpoint it goes on from."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import TrainConfig
from vrag_ray.training.run.checkpoints import list_files, new_name
from vrag_ray.training.run.folder import FINAL
from vrag_ray.training.run.storage import RunStorage
from vrag_ray.training.trainer.batch import Batch
from vrag_ray.training.trainer.dummy_forward import Reference
from vrag_ray.training.trainer.lora import adapter_state, add_adapters, restore_adapters, without_adapters
from vrag_ray.training.trainer.optimizer import Optimizer
from vrag_ray.training.trainer.scorer import Scorer, Scores, load_model, naming_model
from vrag_ray.training.trainer.weights import export, save, whole_weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin


@dataclass(slots=True)
class Worker:
    """One process of a training run, ready for its next step.

    ``source`` is the folder or hub id that the model's shape and tokenizer were read from. ``cursor`` is the place in
    the order of questions at which the next step of reinforcement begins; None before the first step.
    """

    config: TrainConfig
    source: str
    scorer: Scorer
    processor: ProcessorMixin
    optimizer: Optimizer
    ranks: Collectives
    cursor: int | None = None

    @property
    def model(self) -> PreTrainedModel:
        return self.scorer.model

    @property
    def done(self) -> int:
        """Optimiser steps taken, those before a restart included."""
        return self.optimizer.done

    @property
    def pad_id(self) -> int:
        return int(self.processor.tokenizer.pad_token_id)

    def save(self, folder: Path) -> bool:
        """Everything that the next step depends on. All ranks call it; whether this one has written anything."""
        import torch

        first = self.ranks.rank == 0
        export(self.model, self.processor, folder, writes=first)
        if not (first or self.config.model.sharded):
            return False
        state = {
            "optimizer": self.optimizer.state(),
            "adapters": adapter_state(self.model),
            "rng": torch.get_rng_state(),
            "cursor": self.cursor,
        }
        torch.save(state, folder / state_file(self.config, self.ranks))
        return True

    def export(self, storage: RunStorage, folder: str = FINAL) -> None:
        """Leave the model as it is now in ``folder`` of the run. All ranks call it."""
        whole = whole_weights(self.model)
        if self.ranks.rank == 0:
            with storage.staged(folder) as staged:
                save(self.model, self.processor, whole, staged.path)

    def report(self, metrics: Mapping[str, float], *, checkpoint: bool) -> None:
        """Tell Ray Train of a finished step; with ``checkpoint`` a restart goes on after it. All ranks wait here."""
        report(self.config, metrics, self.save if checkpoint else None)


def report(config: TrainConfig, metrics: Mapping[str, float], save: Callable[[Path], bool] | None) -> None:
    """Tell Ray Train of a finished step, with a checkpoint where ``save`` writes one. All ranks wait here."""
    from ray import train

    if save is None:
        train.report(dict(metrics))
        return
    context = train.get_context()
    rank, ranks = context.get_world_rank(), context.get_world_size() if config.model.sharded else 1
    with tempfile.TemporaryDirectory(prefix="vrag-checkpoint-") as folder:
        saved = None
        if save(Path(folder)):
            list_files(Path(folder), rank, ranks)
            saved = train.Checkpoint.from_directory(folder)
        name = new_name()
        try:
            train.report(dict(metrics), checkpoint=saved, checkpoint_dir_name=name)
        except OSError:
            # Half of it takes the space that a full disk lacks. The name is that of the first rank.
            storage = RunStorage(config.storage, config.name)
            if rank == 0 and name in storage.listing():
                storage.delete_folder(name)
            raise


def start_worker(
    config: TrainConfig, source: str, steps: int, *, seed: int, temperature: float = 1.0, entropy_learns: bool = False
) -> Worker:
    """Load the model, from the run's last checkpoint where there is one. Runs inside a Ray Train worker.

    ``source`` is the folder of ``config.model.path`` on this machine, or a hub id. Raises VragError that names the
    model where it cannot be loaded.
    """
    import torch
    from ray import train
    from transformers import AutoProcessor

    torch.set_num_threads(config.workers.threads)
    torch.manual_seed(seed)
    ranks = Collectives()
    read: Callable[[str], ProcessorMixin] = AutoProcessor.from_pretrained
    with naming_model(config.model.path):
        processor = read(source)
    last = train.get_checkpoint()
    with ExitStack() as stack:
        saved = Path(stack.enter_context(last.as_directory())) if last is not None else None
        adapted = config.model.lora_rank > 0
        # A checkpoint holds adapters merged into the weights; to go on, the two must be apart again.
        with naming_model(config.model.path if saved is None or adapted else str(saved)):
            model = load_model(config.model, source if saved is None or adapted else str(saved))
        if adapted:
            add_adapters(model, config.model, seed)
        state = torch.load(saved / state_file(config, ranks), weights_only=True) if saved is not None else None
        if state is not None:
            restore_adapters(model, state["adapters"])
        scorer = _placed(Scorer(model, temperature, entropy_learns=entropy_learns), config)
        optimizer = Optimizer(model, config.optimizer, steps, ranks)
        if state is not None:
            optimizer.restore(state["optimizer"])
            torch.set_rng_state(state["rng"])
    cursor = state.get("cursor") if state is not None else None
    return Worker(config, source, scorer, processor, optimizer, ranks, cursor)


def reference_of(worker: Worker, temperature: float) -> Reference:
    """Scores of the model as it was before training: of a frozen copy, or of the same model without its adapters."""
    config = worker.config
    if not config.model.lora_rank:
        return _placed(Scorer(load_model(config.model, worker.source), temperature), config)

    def unadapted(batch: Batch) -> Scores:
        with without_adapters(worker.model):
            return worker.scorer(batch)

    return unadapted


def state_file(config: TrainConfig, ranks: Collectives) -> str:
    """What holds the trainer's own state in a checkpoint: of a sharded model, a file for each rank."""
    return f"trainer-{ranks.rank}-of-{ranks.size}.pt" if config.model.sharded else "trainer.pt"


def _placed(scorer: Scorer, config: TrainConfig) -> Scorer:
    """On this worker's device, and spread over the ranks where the configuration says so."""
    if config.model.gpu:
        from ray.train.torch import get_device

        move: Callable[..., PreTrainedModel] = scorer.model.to
        move(get_device())
    if config.model.sharded:
        scorer.shard("cuda" if config.model.gpu else "cpu", config.model.compute_dtype)
    return scorer
