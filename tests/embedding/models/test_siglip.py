"""SigLIP and SigLIP-2 against plain forwards of their two towers."""

from __future__ import annotations

from pathlib import Path

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
)
from tests.support.tiny_embedders import tiny_siglip, tiny_siglip2
from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedder, Modality
from vrag_ray.embedding.registry import space_embedder


@pytest.fixture(scope="module", params=["siglip", "siglip2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = {"siglip": tiny_siglip, "siglip2": tiny_siglip2}[request.param]
    return build(tmp_path_factory.mktemp("embedders") / request.param)


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return space_embedder(SpaceConfig(model=str(folder), device="cpu"))


class Reference:
    """Both towers one input at a time, as the model's own ``get_*_features`` give them."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModel, AutoProcessor

        self.processor = AutoProcessor.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, dtype=torch.float32)

    def text(self, text: str) -> NDArray[np.float32]:
        import torch

        ids = self.processor.tokenizer(text)["input_ids"]
        padded = torch.tensor([ids + [0] * (64 - len(ids))])
        with torch.inference_mode():
            return unit(self.model.get_text_features(input_ids=padded).pooler_output.numpy())

    def picture(self, image: Image.Image) -> NDArray[np.float32]:
        import torch

        # The whole processor of SigLIP-2 has defaults that overrule those of its folder.
        inputs = self.processor.image_processor(images=image, return_tensors="pt")
        with torch.inference_mode():
            return unit(self.model.get_image_features(**inputs).pooler_output.numpy())


@pytest.fixture(scope="module")
def reference(folder: Path) -> Reference:
    return Reference(folder)


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    scaled: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def test_texts_are_padded_to_64_tokens_and_read_without_a_mask(embedder: Embedder, reference: Reference) -> None:
    texts = ["red", "what colour is the circle", "表"]
    for embed in (embedder.embed_passages, embedder.embed_queries):
        for text, result in zip(texts, embed([Content(text) for text in texts]), strict=True):
            assert_agree(result, reference.text(text))


def test_texts_are_written_small(embedder: Embedder, reference: Reference) -> None:
    assert_agree(embedder.embed_queries([Content("Red CIRCLE")])[0], reference.text("red circle"))


def test_pictures_of_several_shapes_share_a_batch(embedder: Embedder, reference: Reference) -> None:
    sizes = [(64, 64), (128, 48), (40, 120)]
    results = embedder.embed_passages([picture_content(*size, seed) for seed, size in enumerate(sizes)])
    for seed, (size, result) in enumerate(zip(sizes, results, strict=True)):
        assert_agree(result, reference.picture(picture(*size, seed)))


def test_words_and_picture_of_a_query_are_averaged_and_a_passage_is_its_picture(
    embedder: Embedder, reference: Reference
) -> None:
    both = [picture_content(64, 64, 1, "red")]
    seen = reference.picture(picture(64, 64, 1))
    assert_agree(embedder.embed_queries(both)[0], (seen + reference.text("red")) / 2)
    assert_agree(embedder.embed_passages(both)[0], seen)


def test_a_clip_is_the_mean_of_its_frames(embedder: Embedder, reference: Reference) -> None:
    (result,) = embedder.embed_passages([clip_content((0.0, 1.0, 2.0))])
    frames = np.concatenate([reference.picture(frame) for frame in clip_frames(3)])
    assert_agree(result, frames.mean(axis=0, keepdims=True))


def test_a_broken_picture_fails_alone_and_neighbours_do_not_matter(embedder: Embedder) -> None:
    contents = [Content("red"), picture_content(96, 64, 1), clip_content((0.0, 1.0)), picture_content(64, 64, 2, "a")]
    assert_order_and_neighbours_do_not_matter(embedder, contents)


def test_what_it_takes_and_how_large(embedder: Embedder, folder: Path) -> None:
    assert embedder.modalities == set(Modality)
    assert embedder.pictures is not None
    assert embedder.pictures.side == (64 if folder.name == "siglip" else None)
    assert embedder.pictures.max_pixels == (64 * 64 if folder.name == "siglip" else 64 * 16 * 16)
