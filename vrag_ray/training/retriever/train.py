"""The training loop of a retriever, on Ray Train: data, steps, checkpoints and the folder that is left."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vrag_ray.training.retriever.batches import Batches
from vrag_ray.training.retriever.config import RetrieverConfig
from vrag_ray.training.retriever.contents import ContentReader
from vrag_ray.training.retriever.model import load_processor
from vrag_ray.training.retriever.pairs import Pairs, read_pairs
from vrag_ray.training.retriever.recipe import spec_of
from vrag_ray.training.retriever.step import step
from vrag_ray.training.retriever.worker import RetrieverWorker, start_worker
from vrag_ray.training.run.storage import RunStorage, local_copy
from vrag_ray.training.trainer.step_timer import StepTimer

if TYPE_CHECKING:
    from transformers import ProcessorMixin

LOGGED_EVERY = 10


def train_loop(values: Mapping[str, object]) -> None:
    """What Ray Train runs in each worker; ``values`` are those of a ``RetrieverConfig``."""
    config = RetrieverConfig.model_validate(values)
    with local_copy(config.model.path) as source, material(config, str(source)) as (pairs, processor, reader, batches):
        steps = config.steps or config.epochs * batches.steps_an_epoch
        worker = start_worker(config, str(source), processor, steps)
        _train(worker, batches, steps, str(pairs), reader)


@contextmanager
def material(config: RetrieverConfig, source: str) -> Iterator[tuple[Pairs, ProcessorMixin, ContentReader, Batches]]:
    """What is learnt, and what reads it for the model at ``source``. Raises VragError for what cannot be used."""
    with local_copy(config.pairs) as file:
        pairs = read_pairs(file, collection=config.collection is not None)
        processor = load_processor(config, source, given=config.model.path)
        with ContentReader(spec_of(processor, config, source), config.collection) as reader:
            reader.check(pairs.pairs)
            batches = Batches(
                pairs.pairs,
                batch=config.batch,
                queries=config.queries,
                hard_negatives=config.hard_negatives,
                seed=config.seed,
            )
            yield pairs, processor, reader, batches


def _train(worker: RetrieverWorker, batches: Batches, steps: int, description: str, reader: ContentReader) -> None:
    from vrag_ray.training.run.folder import RunFolder

    config = worker.config
    storage = RunStorage(config.storage, config.name)
    log = RunFolder(storage, config, config.name, config.made_for) if worker.ranks.rank == 0 else None
    if log is not None:
        log.rewind(worker.optimizer.done)
        log.report(worker.optimizer.done, steps, description)
    timer, computed = StepTimer(), time.process_time()
    while worker.optimizer.done < steps:
        metrics = step(
            batches.of(worker.optimizer.done),
            reader.read,
            worker.form,
            worker.retriever,
            worker.optimizer,
            worker.ranks,
            config,
        )
        done = worker.optimizer.done
        last = done == steps
        if last or done % config.checkpoint_every == 0:
            with timer.phase("checkpoint"):
                worker.report({"step": done, "loss": metrics["retriever/loss"]}, checkpoint=True)
        if log is not None and (last or done % LOGGED_EVERY == 0):
            # Beside the seconds of the clock: on a busy machine these tell what a step costs.
            spent = {"seconds/cpu": time.process_time() - computed}
            computed = time.process_time()
            log.log(done, metrics | timer.elapsed() | spent)
            log.report(
                done, steps, f"loss {metrics['retriever/loss']:.4f}, {metrics['retriever/first']:.3f} first in batch"
            )
    worker.export(storage)
    if log is not None:
        log.close()
