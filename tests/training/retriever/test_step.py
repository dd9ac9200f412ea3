"""One step: the same weights come of it whether a batch is computed whole, in parts, or by several workers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch.distributed.tensor import DTensor
from torch.optim.optimizer import register_optimizer_step_pre_hook

pytest.importorskip("transformers", reason="NO TRANSFORMERS: retrievers are not trained here")
from tests.support.mosaic_runs import Gradients, apart
from tests.support.retriever_material import config_of, read, retriever_of, written_pairs
from tests.support.two_ranks import TwoRanks
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import ModelConfig, OptimizerConfig
from vrag_ray.training.retriever.batches import Batch, Batches
from vrag_ray.training.retriever.config import RetrieverConfig
from vrag_ray.training.retriever.losses import Vectors, contrastive
from vrag_ray.training.retriever.pairs import read_pairs
from vrag_ray.training.retriever.step import padded, step
from vrag_ray.training.trainer.optimizer import Optimizer
from vrag_ray.types import VragError


def batch_in(folder: Path, **values: int) -> Batch:
    pairs = read_pairs(folder / "pairs.jsonl", collection=False).pairs
    made = {"batch": 5, "queries": 1, "hard_negatives": 1, "seed": 0} | values
    return Batches(pairs, **made).of(0)


def stepped(config: RetrieverConfig, folder: Path) -> tuple[dict[str, float], Gradients]:
    """Two steps: what was measured in the second, and the gradients it was made with, whole."""
    retriever, form = retriever_of(config)
    if config.model.sharded:
        retriever.shard("cpu", "float32")
    names = {id(parameter): name for name, parameter in retriever.model.named_parameters()}
    ranks = Collectives()
    optimizer = Optimizer(retriever.model, config.optimizer, 10, ranks)
    gradients: Gradients = {}

    def keep(stepping: torch.optim.Optimizer, *_: object) -> None:
        for group in stepping.param_groups:
            for parameter in group["params"]:
                gradient = parameter.grad
                gradients[names[id(parameter)]] = (
                    gradient.full_tensor() if isinstance(gradient, DTensor) else gradient.clone()
                )

    hook = register_optimizer_step_pre_hook(keep)
    try:
        for _ in range(2):
            measured = step(batch_in(folder), read, form, retriever, optimizer, ranks, config)
    finally:
        hook.remove()
    return measured, gradients


def config_for(model: Path, *, tokens: int = 1 << 16, sharded: bool = False, **values: object) -> RetrieverConfig:
    return config_of(
        model,
        model=ModelConfig(path=str(model), freeze_vision=False, tokens_per_batch=tokens, sharded=sharded),
        optimizer=OptimizerConfig(lr=1e-4, weight_decay=0.0),
        temperature=0.1,
        **values,
    )


@pytest.mark.parametrize("values", [{}, {"late": None, "late_weight": 0.5, "dims": (16, 128)}], ids=["late", "single"])
def test_parts_of_a_batch_take_the_step_of_the_whole(values: dict[str, object], model: Path, tmp_path: Path):
    written_pairs(tmp_path, 6, negatives=[0])
    whole, gradients = stepped(config_for(model, **values), tmp_path)
    parts, others = stepped(config_for(model, tokens=50, **values), tmp_path)
    assert parts["retriever/passes"] > 4
    assert whole["retriever/passes"] == 2
    assert parts["retriever/loss"] == pytest.approx(whole["retriever/loss"], abs=1e-5)
    assert parts["retriever/grad_norm"] == pytest.approx(whole["retriever/grad_norm"], rel=1e-4)
    assert apart(others, gradients) < 1e-4


def test_a_step_is_on_the_loss_of_its_batch(model: Path, tmp_path: Path):
    """Independent of the step: all vectors at once, and the loss as it is written down."""
    written_pairs(tmp_path, 6, negatives=[0])
    config, batch = config_for(model), batch_in(tmp_path)
    retriever, form = retriever_of(config)
    with torch.no_grad():
        queries, passages = (
            retriever(form.inputs(read(items), queries=asks))[0]
            for items, asks in ((batch.queries, True), (batch.passages, False))
        )
        expected, _ = contrastive(queries, passages, torch.tensor(batch.targets), batch.allowed(), temperature=0.1)
    optimizer = Optimizer(retriever.model, config.optimizer, 10, Collectives())
    measured = step(batch, read, form, retriever, optimizer, Collectives(), config)
    assert measured["retriever/loss"] == pytest.approx(float(expected), abs=1e-5)


def on_this_rank(folder: Path, *, model: Path) -> list[tuple[dict[str, float], Gradients]]:
    return [stepped(config_for(model, tokens=60, sharded=sharded), folder) for sharded in (False, True)]


# Quick forms: the steps above, and ``trainer/test_learner`` for two ranks.
@pytest.mark.exhaustive
def test_two_workers_take_the_step_of_one_whole_and_sharded(on_two_ranks: TwoRanks, model: Path, tmp_path: Path):
    written_pairs(tmp_path, 6, negatives=[0])
    alone, gradients = stepped(config_for(model), tmp_path)
    for steps in on_two_ranks(partial(on_this_rank, model=model), tmp_path):
        for measured, others in steps:
            assert measured["retriever/loss"] == pytest.approx(alone["retriever/loss"], abs=1e-4)
            assert measured["retriever/grad_norm"] == pytest.approx(alone["retriever/grad_norm"], rel=1e-3)
            assert apart(others, gradients) < 1e-3


def test_a_content_without_a_scored_token_is_an_error_and_not_a_score():
    rows = [(torch.ones(2, 3), torch.tensor([True, False])), (torch.ones(1, 3), torch.tensor([False]))]
    assert padded(rows[:1]).scored.tolist() == [[True, False]]
    with pytest.raises(VragError, match="no token that is scored"):
        padded(rows)
    assert isinstance(padded(rows[:1]), Vectors)
