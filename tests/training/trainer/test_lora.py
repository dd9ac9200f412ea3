"""Adapters in a real model: what learns, what is stored, what is exported, and what the model is without them."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.support.model_calls import calls_of
from tests.support.mosaic_runs import pad_of, pixels_of
from vrag_ray.training.config import ModelConfig
from vrag_ray.training.trainer.batch import collate
from vrag_ray.training.trainer.lora import adapter_state, add_adapters, merged, restore_adapters, without_adapters
from vrag_ray.training.trainer.scorer import Scorer, load_model


def adapted(model: Path, seed: int = 3) -> Scorer:
    config = ModelConfig(path=str(model), lora_rank=4, lora_alpha=8)
    scorer = Scorer(load_model(config, str(model)), 1.0)
    add_adapters(scorer.model, config, seed)
    return scorer


def scored(scorer: Scorer, folder: Path) -> torch.Tensor:
    return scorer(collate(calls_of(folder), pixels_of(folder), pad_of(folder))).logp


def taught(model: Path) -> Scorer:
    """After one plain step on its adapters."""
    scorer = adapted(model)
    scored(scorer, model).sum().backward()
    with torch.no_grad():
        for parameter in scorer.model.parameters():
            if parameter.grad is not None:
                parameter.sub_(0.5 * parameter.grad.sign())
    return scorer


def test_adapters_alone_learn_and_begin_as_nothing(model: Path):
    scorer, plain = adapted(model), Scorer(load_model(ModelConfig(path=str(model)), str(model)), 1.0)
    torch.testing.assert_close(scored(scorer, model), scored(plain, model), atol=1e-6, rtol=0)
    learning = {name for name, parameter in scorer.model.named_parameters() if parameter.requires_grad}
    assert learning == {name for name, _ in scorer.model.named_parameters() if "lora_" in name}
    assert not any("visual" in name for name in learning)
    again = adapter_state(adapted(model).model)
    assert all(torch.equal(again[name], weight) for name, weight in adapter_state(scorer.model).items())


def test_what_is_exported_says_what_the_adapted_model_says_and_without_adapters_it_is_as_before(model: Path):
    scorer, plain = taught(model), Scorer(load_model(ModelConfig(path=str(model)), str(model)), 1.0)
    before, after = scored(plain, model), scored(scorer, model)
    assert (after - before).abs().max() > 0.1, "the step has changed what it says"
    with without_adapters(scorer.model):
        torch.testing.assert_close(scored(scorer, model), before, atol=1e-6, rtol=0)
    exported = dict(merged(scorer.model))
    assert exported.keys() == plain.model.state_dict().keys()
    plain.model.load_state_dict(exported)
    torch.testing.assert_close(scored(plain, model), after, atol=1e-4, rtol=0)


def test_stored_adapters_are_restored_to_the_same_bits(model: Path):
    scorer, other = taught(model), adapted(model, seed=4)
    restore_adapters(other.model, adapter_state(scorer.model))
    assert torch.equal(scored(other, model), scored(scorer, model))
