"""bge-m3 against a plain forward of XLM-RoBERTa: the first token's state, at length 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.embedding_material import assert_agree, assert_order_and_neighbours_do_not_matter, vectors
from tests.support.tiny_embedders import tiny_bge_m3
from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.embedding.base import Content, Embedder, EmbedError, Modality
from vrag_ray.embedding.registry import space_embedder

TEXTS = ["red", "what colour is the circle in the second quarter", "表 图", ""]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bge_m3(tmp_path_factory.mktemp("embedders") / "tiny-bge-m3")


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return space_embedder(SpaceConfig(model=str(folder), device="cpu"))


def expected(folder: Path, text: str) -> NDArray[np.float32]:
    import torch
    from transformers import AutoTokenizer, XLMRobertaModel

    ids = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")["input_ids"][:, :64]
    with torch.inference_mode():
        states = XLMRobertaModel.from_pretrained(folder, dtype=torch.float32)(input_ids=ids).last_hidden_state
    vector: NDArray[np.float32] = states[:, 0].numpy()
    return vector


def test_texts_are_those_of_the_recipe_in_one_padded_batch(embedder: Embedder, folder: Path) -> None:
    for embed in (embedder.embed_passages, embedder.embed_queries):
        for text, result in zip(TEXTS, embed([Content(text) for text in TEXTS]), strict=True):
            assert_agree(result, expected(folder, text))


def test_a_long_text_is_cut_at_the_models_length(embedder: Embedder) -> None:
    full, longer = embedder.embed_passages([Content("red " * 100), Content("red " * 400)])
    np.testing.assert_allclose(vectors(full), vectors(longer), atol=1e-6)


def test_a_broken_picture_fails_alone_and_neighbours_do_not_matter(embedder: Embedder) -> None:
    assert_order_and_neighbours_do_not_matter(embedder, [Content(text) for text in TEXTS])


def test_a_picture_is_the_wrong_modality(embedder: Embedder) -> None:
    assert embedder.modalities == {Modality.TEXT}
    assert embedder.pictures is None
    (result,) = embedder.embed_passages([Content("red", picture=b"")])
    assert isinstance(result, EmbedError)
    assert "reads text only" in str(result)


def test_what_it_can_read_is_the_share_of_known_pieces(embedder: Embedder) -> None:
    shares = embedder.readable(["red circle", "red platypus", "platypus", "", "表 unbekannt unbekannt 图"])
    np.testing.assert_allclose(shares, [1.0, 0.5, 0.0, 1.0, 0.5])


def test_it_serves_as_the_text_space_of_a_collection(embedder: Embedder, folder: Path) -> None:
    settings = Settings.model_validate({"embedder": {"name": str(folder)}})
    assert space_embedder(settings.filled_spaces["text"]).id == embedder.id
