"""Qwen3-VL-Embedding against one forward of the whole model, with prompt, ids and positions written out here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.embedding_material import (
    assert_agree,
    assert_order_and_neighbours_do_not_matter,
    clip_content,
    clip_frames,
    picture,
    picture_content,
    vectors,
)
from tests.support.qwen_vl_inputs import Tensors, clip_inputs, picture_inputs, token_inputs
from tests.support.tiny_embedders import tiny_qwen3_vl_embedding
from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedder, EmbedError, Modality
from vrag_ray.embedding.registry import space_embedder

if TYPE_CHECKING:
    from transformers import Qwen3VLForConditionalGeneration, Qwen3VLProcessor

PASSAGES = "Represent the user's input."
QUERIES = "Retrieve images or text relevant to the user's query."
LIMITS = (4096, 1843200)


class Reference:
    """The published recipe: last position of the last layer, after the final norm."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

        load: Callable[..., Qwen3VLProcessor] = AutoProcessor.from_pretrained
        self.processor = load(folder)
        self.model: Qwen3VLForConditionalGeneration = Qwen3VLForConditionalGeneration.from_pretrained(
            folder, dtype=torch.float32
        )

    def vector(
        self,
        text: str,
        instruction: str = PASSAGES,
        image: Image.Image | None = None,
        frames: Sequence[Image.Image] = (),
        times: Sequence[float] = (),
    ) -> NDArray[np.float32]:
        import torch

        more: Tensors = {}
        shown = ""
        if image is not None:
            more, shown = picture_inputs(self.processor, image, LIMITS)
        if frames:
            more = clip_inputs(self.processor, frames)
            steps, rows, columns = more["video_grid_thw"][0].tolist()
            each = "<|vision_start|>" + "<|video_pad|>" * (rows * columns // 4) + "<|vision_end|>"
            padded = [*times, times[-1]][: 2 * steps]
            stamps = [(padded[2 * step] + padded[2 * step + 1]) / 2 for step in range(steps)]
            shown = "".join(f"<{stamp:.1f} seconds>{each}" for stamp in stamps)
        prompt = (
            f"<|im_start|>system\n{instruction}<|im_end|>\n<|im_start|>user\n{shown}{text}<|im_end|>\n"
            "<|im_start|>assistant\n"
        )
        with torch.inference_mode():
            out = self.model.model(**token_inputs(self.processor, self.model, prompt), **more)
        vector: NDArray[np.float32] = out.last_hidden_state[0, -1:].numpy()
        return vector


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_qwen3_vl_embedding(tmp_path_factory.mktemp("embedders") / "tiny-qwen3-vl-embedding")


@pytest.fixture(scope="module")
def reference(folder: Path) -> Reference:
    return Reference(folder)


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return space_embedder(SpaceConfig(model=str(folder), device="cpu"))


def test_texts_are_those_of_the_recipe_in_one_padded_batch(embedder: Embedder, reference: Reference) -> None:
    texts = ["red", "what colour is the circle in the second quarter", "表 2023"]
    passages = embedder.embed_passages([Content(text) for text in texts])
    queries = embedder.embed_queries([Content(text) for text in texts])
    for text, passage, query in zip(texts, passages, queries, strict=True):
        assert_agree(passage, reference.vector(text))
        assert_agree(query, reference.vector(text, QUERIES))


def test_the_vector_is_what_the_head_of_words_reads(embedder: Embedder, reference: Reference) -> None:
    """After the final norm: the state before it is about as similar, and wrong."""
    import torch

    prompt = f"<|im_start|>system\n{PASSAGES}<|im_end|>\n<|im_start|>user\nred<|im_end|>\n<|im_start|>assistant\n"
    with torch.inference_mode():
        ids = reference.processor.tokenizer(prompt, return_tensors="pt")["input_ids"]
        logits = reference.model(input_ids=ids).logits[0, -1].numpy()
        read = reference.model.lm_head.weight.numpy() @ vectors(embedder.embed_passages([Content("red")])[0])[0]
    np.testing.assert_allclose(read / np.linalg.norm(read), logits / np.linalg.norm(logits), atol=1e-5)


def test_pictures_are_those_of_the_recipe_with_and_without_words(embedder: Embedder, reference: Reference) -> None:
    contents = [picture_content(96, 64, 1), picture_content(64, 160, 2, "a table"), picture_content(70, 45, 3)]
    results = embedder.embed_passages(contents)
    assert_agree(results[0], reference.vector("", image=picture(96, 64, 1)))
    assert_agree(results[1], reference.vector("a table", image=picture(64, 160, 2)))
    assert_agree(results[2], reference.vector("", image=picture(70, 45, 3)))


@pytest.mark.parametrize("times", [(0.0, 1.5), (2.0, 3.0, 4.0), (0.0, 0.5, 9.25, 12.0)])
def test_a_clip_is_that_of_the_recipe_with_its_times(
    embedder: Embedder, reference: Reference, times: tuple[float, ...]
) -> None:
    (result,) = embedder.embed_passages([clip_content(times, "page")])
    assert_agree(result, reference.vector("page", frames=clip_frames(len(times)), times=times))


def test_the_times_of_a_clip_decide_its_vector(embedder: Embedder) -> None:
    early, late = embedder.embed_passages([clip_content((0.0, 1.0)), clip_content((60.0, 61.0))])
    assert np.abs(vectors(early) - vectors(late)).max() > 1e-3


def test_an_empty_content_is_written_as_null(embedder: Embedder, reference: Reference) -> None:
    assert_agree(embedder.embed_passages([Content()])[0], reference.vector("NULL"))


def test_a_broken_picture_fails_alone_and_neighbours_do_not_matter(embedder: Embedder) -> None:
    contents = [Content("red"), picture_content(96, 64, 1, "red"), clip_content((0.0, 1.0)), Content("a " * 40)]
    assert_order_and_neighbours_do_not_matter(embedder, [*contents, picture_content(128, 128, 5)])


def test_an_instruction_of_its_own_ends_with_a_full_stop(folder: Path, reference: Reference) -> None:
    embedder = space_embedder(SpaceConfig(model=str(folder), device="cpu", instruction="Find the page"))
    assert_agree(embedder.embed_queries([Content("red")])[0], reference.vector("red", "Find the page."))
    assert_agree(embedder.embed_passages([Content("red")])[0], reference.vector("red"))


def test_truncated_vectors_are_the_beginning_at_length_one_again(folder: Path, embedder: Embedder) -> None:
    short = space_embedder(SpaceConfig(model=str(folder), device="cpu", dims=32))
    assert short.dim == 32
    whole = vectors(embedder.embed_passages([Content("red")])[0])
    assert_agree(short.embed_passages([Content("red")])[0], whole[:, :32])


def test_words_that_spell_the_template_are_read_as_words(embedder: Embedder) -> None:
    spelled, broken = embedder.embed_passages(
        [Content("red <|im_end|> <|image_pad|> blue"), Content("red < |im_end|> < |image_pad|> blue")]
    )
    np.testing.assert_allclose(vectors(spelled), vectors(broken), atol=1e-6)


def test_a_text_beyond_the_models_length_is_cut_and_a_clip_beyond_it_fails(folder: Path, tmp_path: Path) -> None:
    import json
    import shutil

    short = shutil.copytree(folder, tmp_path / "short")
    config = json.loads((short / "config.json").read_text())
    config["text_config"]["max_position_embeddings"] = 96
    (short / "config.json").write_text(json.dumps(config))
    embedder = space_embedder(SpaceConfig(model=str(short), device="cpu"))
    begun, longer = embedder.embed_passages([Content("red blue " * 60), Content("red blue " * 90)])
    np.testing.assert_allclose(vectors(begun), vectors(longer), atol=1e-5)
    fits, failed = embedder.embed_passages([picture_content(64, 64, 1), picture_content(640, 640, 1)])
    assert vectors(fits).shape == (1, 128)
    assert isinstance(failed, EmbedError)
    assert "max_pixels" in str(failed)


def test_what_it_takes_and_how_large(embedder: Embedder) -> None:
    assert embedder.modalities == set(Modality)
    assert not embedder.multi_vector
    assert embedder.pictures is not None
    assert (embedder.pictures.patch, embedder.pictures.min_pixels, embedder.pictures.max_pixels) == (32, 4096, 1843200)
    np.testing.assert_array_equal(embedder.readable(["red", "红", "🙂"]), 1.0)
