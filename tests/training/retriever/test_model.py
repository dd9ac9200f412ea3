"""From a folder to a retriever: which models one is made of, and what is trained of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers", reason="NO TRANSFORMERS: retrievers are not trained here")
from transformers import AutoModelForImageTextToText, ColQwen2ForRetrieval

from benchmarks.mosaic.model import save_mosaic_model
from tests.support.mosaic_runs import TINY
from tests.support.retriever_material import LATE, config_of, retriever_of
from vrag_ray.training.config import ModelConfig
from vrag_ray.training.retriever.config import Scored
from vrag_ray.training.retriever.model import is_late, load_processor, load_retriever
from vrag_ray.training.retriever.recipe import EMBEDDING_FILE, instructions_of, scored_of, spec_of, write_embedding_file
from vrag_ray.types import VragError


def test_a_late_interaction_model_has_the_layers_it_is_made_of_and_loads_as_transformers_own(
    model: Path, tmp_path: Path
):
    retriever, _ = retriever_of(config_of(model))
    retriever.model.save_pretrained(tmp_path)
    load_processor(config_of(model), str(model), given="it").save_pretrained(tmp_path)
    loaded = ColQwen2ForRetrieval.from_pretrained(tmp_path)
    language = AutoModelForImageTextToText.from_pretrained(model)
    for name, weight in language.model.state_dict().items():
        assert torch.equal(loaded.vlm.state_dict()[name], weight), name
    assert loaded.embedding_proj_layer.weight.shape == (16, 128)
    # And from there on, without a second statement of how it was made.
    again = load_retriever(config_of(tmp_path, late=None), str(tmp_path), given="it")
    assert is_late(again.config)
    assert torch.equal(again.embedding_proj_layer.weight, retriever.model.embedding_proj_layer.weight)
    processor = load_processor(config_of(tmp_path, late=None), str(tmp_path), given="it")
    assert (processor.visual_prompt_prefix, processor.query_prefix) == (LATE.page_prompt, LATE.query_prefix)
    with pytest.raises(VragError, match=r"late\.dims is 8, but it has 16: leave it out"):
        load_retriever(config_of(tmp_path, late={"dims": 8}), str(tmp_path), given="it")


def test_a_model_that_no_retriever_is_made_of_is_named_with_those_that_are(model: Path, qwen3: Path, tmp_path: Path):
    with pytest.raises(
        VragError, match=r"it is a qwen3_vl model: .* a ColQwen2 model, with `late` a Qwen2-VL or Qwen2\.5-VL model"
    ):
        load_retriever(config_of(qwen3), str(qwen3), given="it")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(VragError, match=r"it is a bert model: .* without it a Qwen2\.5-VL or Qwen3-VL model"):
        load_retriever(config_of(tmp_path, late=None), str(tmp_path), given="it")
    with pytest.raises(VragError, match=r"model\.path it sees no pictures: "):
        load_processor(config_of(tmp_path), str(tmp_path), given="it")
    with pytest.raises(VragError, match=r"model\.path it cannot be loaded: "):
        load_processor(config_of(tmp_path), str(tmp_path / "none"), given="it")


def test_a_frozen_tower_and_a_head_that_says_words_are_not_trained(folder: Path, tmp_path: Path):
    frozen = ModelConfig(path=str(folder))
    model = load_retriever(config_of(folder, late=None, model=frozen), str(folder), given="it")
    assert not any(parameter.requires_grad for parameter in model.model.visual.parameters())
    assert all(parameter.requires_grad for parameter in model.model.language_model.parameters())
    assert model.lm_head.weight.requires_grad, "it is the embedding of words, too"
    save_mosaic_model(tmp_path, shape=replace(TINY, tied=False))
    model = load_retriever(config_of(tmp_path, late=None), str(tmp_path), given="it")
    assert not model.lm_head.weight.requires_grad


def test_what_an_embedder_has_to_know_is_written_and_read_again(model: Path, qwen3: Path, tmp_path: Path):
    config = config_of(model, dims=(8, 16))
    processor = load_processor(config, str(model), given="it")
    late = load_retriever(config, str(model), given="it").config
    write_embedding_file(tmp_path, late, processor, config, str(model))
    assert json.loads((tmp_path / EMBEDDING_FILE).read_text()) == {
        "min_pixels": 28 * 28,
        "max_pixels": 112 * 112,
        "mrl": True,
        "score": "body",
    }
    assert scored_of(config_of(tmp_path, late=None), str(tmp_path)) is Scored.BODY
    assert scored_of(config_of(model, late=None), str(model)) is Scored.ALL
    embedder_config = config_of(qwen3, late=None, query_instruction="Find the mosaic", max_pixels=64 * 64)
    processor = load_processor(embedder_config, str(qwen3), given="it")
    write_embedding_file(
        tmp_path, load_retriever(embedder_config, str(qwen3), given="it").config, processor, embedder_config, str(qwen3)
    )
    again = config_of(tmp_path, late=None)
    assert instructions_of(again, str(tmp_path)) == ("Find the mosaic.", "Represent the user's input.")
    assert spec_of(processor, again, str(tmp_path)).max_pixels == 64 * 64
    with pytest.raises(VragError, match="max_pixels 100 is less than one visual token of 32 x 32 pixels"):
        spec_of(processor, config_of(tmp_path, max_pixels=100), str(tmp_path))
