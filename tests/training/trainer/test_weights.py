"""Weights as an engine and a folder get them: all of them, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForImageTextToText

from benchmarks.mosaic.model import save_mosaic_model
from tests.support.mosaic_runs import TINY, processor_of, scorer_of
from vrag_ray.policies.llm.vllm_prompt import ChatFormat
from vrag_ray.training.trainer.weights import export, full_weights


def test_tied_weights_are_given_by_both_of_their_names(model: Path):
    loaded = scorer_of(model).model
    weights = dict(full_weights(loaded))
    assert loaded.config.tie_word_embeddings
    assert {"lm_head.weight", "model.language_model.embed_tokens.weight"} <= set(weights)
    assert torch.equal(weights["lm_head.weight"], weights["model.language_model.embed_tokens.weight"])


def test_what_is_given_is_the_weights_as_they_are_now(model: Path):
    loaded = scorer_of(model).model
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.add_(1.0)
    changed = dict(full_weights(loaded))
    before = dict(full_weights(scorer_of(model).model))
    assert set(changed) == set(before) == set(loaded.state_dict())
    assert all(torch.equal(changed[name], value + 1.0) for name, value in before.items())


def test_an_exported_folder_loads_to_the_same_bits_and_speaks_the_same_language(model: Path, tmp_path: Path):
    loaded = scorer_of(model).model
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.add_(torch.randn_like(parameter) * 1e-3)
    export(loaded, processor_of(model), tmp_path / "final", writes=True)
    again = AutoModelForImageTextToText.from_pretrained(str(tmp_path / "final"), dtype=torch.float32)
    theirs = again.state_dict()
    assert theirs.keys() == loaded.state_dict().keys()
    assert all(torch.equal(theirs[name], value) for name, value in loaded.state_dict().items())
    assert again.lm_head.weight is again.model.language_model.embed_tokens.weight
    text = "<tool_call> amber falcon"
    assert ChatFormat(str(tmp_path / "final")).reply_tokens(text) == ChatFormat(str(model)).reply_tokens(text)


def test_weights_that_are_not_tied_are_kept_apart(tmp_path: Path):
    save_mosaic_model(tmp_path / "untied", shape=replace(TINY, tied=False))
    loaded = scorer_of(tmp_path / "untied").model
    export(loaded, processor_of(tmp_path / "untied"), tmp_path / "final", writes=True)
    saved = load_file(tmp_path / "final/model.safetensors")
    assert not torch.equal(saved["lm_head.weight"], saved["model.embed_tokens.weight"])
    assert torch.equal(saved["lm_head.weight"], loaded.lm_head.weight)


def test_only_the_rank_that_writes_does(model: Path, tmp_path: Path):
    export(scorer_of(model).model, processor_of(model), tmp_path / "final", writes=False)
    assert not (tmp_path / "final").exists()
