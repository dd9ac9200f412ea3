"""What every process of a retriever's training sets up, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.training.collectives import Collectives
from vrag_ray.training.retriever.config import RetrieverConfig
from vrag_ray.training.retriever.inputs import Form
from vrag_ray.training.retriever.model import Retriever, load_retriever
from vrag_ray.training.retriever.recipe import form_of, write_embedding_file
from vrag_ray.training.run.folder import FINAL
from vrag_ray.training.run.storage import RunStorage
from vrag_ray.training.trainer.lora import add_adapters
from vrag_ray.training.trainer.optimizer import Optimizer
from vrag_ray.training.trainer.weights import save, whole_weights
from vrag_ray.training.trainer.worker import report, state_file

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from transformers import PreTrainedModel, ProcessorMixin

PROJECTION = "embedding_proj_layer"


@dataclass(frozen=True, slots=True)
class RetrieverWorker:
    """One process of the run, ready for its next step. ``source`` is the folder that the run began with."""

    config: RetrieverConfig
    source: str
    retriever: Retriever
    processor: ProcessorMixin
    form: Form
    optimizer: Optimizer
    ranks: Collectives

    @property
    def model(self) -> PreTrainedModel:
        return self.retriever.model

    @property
    def device(self) -> torch.device:
        device: torch.device = self.model.device
        return device

    def save(self, folder: Path) -> bool:
        """Everything that the next step depends on. All ranks call it; whether this one has written anything."""
        import torch

        whole = whole_weights(self.model)
        first = self.ranks.rank == 0
        if first:
            self._write(folder, whole)
        if not (first or self.config.model.sharded):
            return False
        state = {
            "optimizer": self.optimizer.state(),
            "trained": _trained(self.model) if self.config.model.lora_rank else {},
            "rng": torch.get_rng_state(),
        }
        torch.save(state, folder / state_file(self.config, self.ranks))
        return True

    def export(self, storage: RunStorage) -> None:
        """Leave the trained retriever in the run's ``final/``. All ranks call it."""
        whole = whole_weights(self.model)
        if self.ranks.rank == 0:
            with storage.staged(FINAL) as folder:
                self._write(folder.path, whole)

    def report(self, metrics: Mapping[str, float], *, checkpoint: bool) -> None:
        """Tell Ray Train of a finished step; with ``checkpoint`` a restart goes on after it. All ranks wait here."""
        report(self.config, metrics, self.save if checkpoint else None)

    def _write(self, folder: Path, whole: Mapping[str, Tensor]) -> None:
        save(self.model, self.processor, whole, folder)
        write_embedding_file(folder, self.model.config, self.processor, self.config, self.source)


def start_worker(config: RetrieverConfig, source: str, processor: ProcessorMixin, steps: int) -> RetrieverWorker:
    """Load the model, from the run's last checkpoint where there is one. Runs inside a Ray Train worker."""
    import torch
    from ray import train

    torch.set_num_threads(config.workers.threads)
    torch.manual_seed(config.seed)
    ranks = Collectives()
    last = train.get_checkpoint()
    with ExitStack() as stack:
        saved = Path(stack.enter_context(last.as_directory())) if last is not None else None
        adapted = config.model.lora_rank > 0
        # A checkpoint holds adapters merged into the weights; to go on, the two must be apart again.
        begun = source if saved is None or adapted else str(saved)
        model = load_retriever(config, begun, given=config.model.path)
        if adapted:
            add_adapters(model, config.model, config.seed)
            for name, parameter in model.named_parameters():
                # A projection may be new: adapters to it would start from noise.
                parameter.requires_grad_(parameter.requires_grad or PROJECTION in name)
        state = torch.load(saved / state_file(config, ranks), weights_only=True) if saved is not None else None
        if state is not None and state["trained"]:
            model.load_state_dict(state["trained"], strict=False)
        retriever = placed(Retriever(model, config), config)
        optimizer = Optimizer(model, config.optimizer, steps, ranks)
        if state is not None:
            optimizer.restore(state["optimizer"])
            torch.set_rng_state(state["rng"])
    form = form_of(model.config, processor, config, source)
    return RetrieverWorker(config, source, retriever, processor, form, optimizer, ranks)


def placed(retriever: Retriever, config: RetrieverConfig) -> Retriever:
    """On this worker's device, and spread over the ranks where the configuration says so."""
    if config.model.gpu:
        from ray.train.torch import get_device

        move: Callable[..., PreTrainedModel] = retriever.model.to
        move(get_device())
    if config.model.sharded:
        retriever.shard("cuda" if config.model.gpu else "cpu", config.model.compute_dtype)
    return retriever


def _trained(model: PreTrainedModel) -> dict[str, Tensor]:
    """What has a gradient, by name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters() if parameter.requires_grad}
