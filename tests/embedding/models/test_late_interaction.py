"""ColQwen2, ColPali and ColModernVBERT against plain forwards by their own processors: which vectors, and where."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.support.embedding_material import (
    TOLERANCE,
    assert_agree,
    assert_order_and_neighbours_do_not_matter,
    clip_content,
    picture,
    picture_content,
    png,
    vectors,
)
from tests.support.tiny_embedders import tiny_colmodernvbert, tiny_colpali, tiny_colqwen2
from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedder, Embedding, EmbedError, Modality
from vrag_ray.embedding.registry import space_embedder

BUILDERS: dict[str, Callable[[Path], Path]] = {
    "ColQwen2": tiny_colqwen2,
    "ColPali": tiny_colpali,
    "ColModernVBert": tiny_colmodernvbert,
}
QUERY = "what colour is the circle"


class Reference:
    """One input a time through ``process_images`` and ``process_queries``; each token's id and its vector."""

    def __init__(self, name: str, folder: Path) -> None:
        import torch
        import transformers

        self.processor = getattr(transformers, f"{name}Processor").from_pretrained(folder)
        self.model = getattr(transformers, f"{name}ForRetrieval").from_pretrained(folder, dtype=torch.float32)

    def query(self, text: str) -> tuple[list[int], NDArray[np.float32]]:
        return self._run(self.processor.process_queries(text=[text]))

    def page(self, image: Image.Image) -> tuple[list[int], NDArray[np.float32]]:
        return self._run(self.processor.process_images(images=[image]))

    def visual(self, image: Image.Image) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The visual tokens' vectors and those of the other tokens, in the prompt's order."""
        ids, rows = self.page(image)
        is_visual = np.array(ids) == self.processor.image_token_id
        return rows[is_visual], rows[~is_visual]

    def _run(self, inputs: object) -> tuple[list[int], NDArray[np.float32]]:
        import torch

        assert isinstance(inputs, dict) or hasattr(inputs, "items")
        with torch.inference_mode():
            rows = self.model(**{k: v for k, v in inputs.items() if k != "labels"}).embeddings[0].numpy()
        return inputs["input_ids"][0].tolist(), rows


@pytest.fixture(scope="module", params=BUILDERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def folder(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return BUILDERS[name](tmp_path_factory.mktemp("embedders") / name)


@pytest.fixture(scope="module")
def reference(name: str, folder: Path) -> Reference:
    return Reference(name, folder)


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return space_embedder(SpaceConfig(model=str(folder), device="cpu"))


@pytest.fixture(scope="module")
def body_embedder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    """Of a folder that says that bodies alone are scored."""
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("embedders") / "body")
    (copy / "vrag_embedding.json").write_text(json.dumps({"score": "body"}))
    return space_embedder(SpaceConfig(model=str(copy), device="cpu"))


def test_every_token_of_a_query_is_scored_and_no_padding(embedder: Embedder, reference: Reference) -> None:
    texts = ["red", QUERY, "表"]
    for text, result in zip(texts, embedder.embed_queries([Content(text) for text in texts]), strict=True):
        _, rows = reference.query(text)
        assert_agree(result, rows)


def test_a_pages_visual_tokens_come_first_then_its_other_tokens(embedder: Embedder, reference: Reference) -> None:
    images = [picture(56, 56, 1), picture(112, 56, 2), picture(128, 128, 3)]
    for image, result in zip(images, embedder.embed_passages([Content(picture=png(i)) for i in images]), strict=True):
        visual, others = reference.visual(image)
        assert isinstance(result, Embedding)
        assert result.grid is not None
        placed = result.grid[0] * result.grid[1]
        assert placed <= len(visual)
        assert_agree(Embedding(result.vectors[len(visual) :]), others)
        # The order among the visual tokens is the subject of another test; here: none is lost or made up.
        assert len(result.vectors) == len(visual) + len(others)
        distances = np.abs(result.vectors[: len(visual), None] - visual[None]).max(axis=-1)
        assert (distances.min(axis=1) < TOLERANCE).all()
        assert (distances.min(axis=0) < TOLERANCE).all()


@pytest.fixture(scope="module")
def unmixed(name: str, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    """Of a model whose attention adds nothing: a token's vector comes from its own patch alone."""
    import transformers

    copy = shutil.copytree(folder, tmp_path_factory.mktemp("embedders") / "unmixed")
    model = getattr(transformers, f"{name}ForRetrieval").from_pretrained(folder)
    outputs = ("o_proj", "out_proj", "attn.proj", "attn.Wo")
    for parameter, value in model.named_parameters():
        if parameter.rpartition(".")[0].endswith(outputs):
            value.data.zero_()
    model.save_pretrained(copy)
    return space_embedder(SpaceConfig(model=str(copy), device="cpu"))


@pytest.mark.parametrize("size", [(112, 112), (112, 56), (56, 112)])
def test_the_grid_is_in_reading_order(unmixed: Embedder, size: tuple[int, int]) -> None:
    """What changes in one place of the page changes the vector of that place."""
    plain = Image.new("RGB", size, (120, 130, 140))
    (before,) = unmixed.embed_passages([Content(picture=png(plain))])
    assert isinstance(before, Embedding)
    assert before.grid is not None
    rows, columns = before.grid
    width, height = size[0] / columns, size[1] / rows
    assert rows >= 2
    assert columns >= 2
    for row in range(rows):
        for column in range(columns):
            marked = plain.copy()
            corners = (column * width, row * height, (column + 1) * width, (row + 1) * height)
            marked.paste((255, 0, 0), tuple(map(round, corners)))
            (after,) = unmixed.embed_passages([Content(picture=png(marked))])
            moved = np.linalg.norm(vectors(after)[: rows * columns] - before.vectors[: rows * columns], axis=1)
            assert moved.argmax() == row * columns + column


def test_by_body_a_query_is_its_own_words(body_embedder: Embedder, reference: Reference) -> None:
    ids, rows = reference.query(QUERY)
    tokenizer = reference.processor.tokenizer
    (result,) = body_embedder.embed_queries([Content(QUERY)])
    places = [place for place in range(len(ids)) if np.abs(vectors(result) - rows[place]).max(axis=1).min() < TOLERANCE]
    text = tokenizer.decode([ids[place] for place in places])
    assert text.strip().removeprefix("Question: ").strip() == QUERY
    assert len(places) == len(vectors(result))


def test_by_body_a_page_is_its_visual_tokens(body_embedder: Embedder, embedder: Embedder) -> None:
    contents = [picture_content(112, 56, 1)]
    whole, body = embedder.embed_passages(contents)[0], body_embedder.embed_passages(contents)[0]
    assert isinstance(whole, Embedding)
    assert isinstance(body, Embedding)
    assert body.grid == whole.grid
    assert len(body.vectors) < len(whole.vectors)
    np.testing.assert_allclose(body.vectors, whole.vectors[: len(body.vectors)], atol=TOLERANCE)
    assert body_embedder.id != embedder.id


def test_a_query_of_words_and_a_picture_has_the_vectors_of_both(embedder: Embedder) -> None:
    words, seen, both = embedder.embed_queries(
        [Content(QUERY), picture_content(56, 56, 1), picture_content(56, 56, 1, QUERY)]
    )
    np.testing.assert_allclose(vectors(both), np.concatenate([vectors(words), vectors(seen)]), atol=TOLERANCE)


def test_a_clip_has_the_vectors_of_all_its_frames(embedder: Embedder) -> None:
    clip = clip_content((0.0, 1.0))
    pages = embedder.embed_passages([Content(picture=frame) for frame in clip.frames])
    (result,) = embedder.embed_passages([clip])
    np.testing.assert_allclose(vectors(result), np.concatenate([vectors(page) for page in pages]), atol=TOLERANCE)
    assert isinstance(result, Embedding)
    assert result.grid is None


def test_words_alone_are_no_passage(embedder: Embedder) -> None:
    assert embedder.multi_vector
    assert embedder.modalities == {Modality.PICTURE, Modality.CLIP}
    (result,) = embedder.embed_passages([Content("red")])
    assert isinstance(result, EmbedError)


def test_a_broken_picture_fails_alone_and_neighbours_do_not_matter(embedder: Embedder) -> None:
    contents = [picture_content(56, 112, 4), picture_content(112, 112, 1), clip_content((0.0, 1.0))]
    assert_order_and_neighbours_do_not_matter(embedder, contents)


def test_pooling_averages_patches_of_passages_only(folder: Path, embedder: Embedder) -> None:
    pooling = space_embedder(SpaceConfig(model=str(folder), device="cpu", token_pooling=2))
    assert pooling.id == f"{embedder.id}/pool2"
    whole, pooled = (model.embed_passages([picture_content(112, 112, 1)])[0] for model in (embedder, pooling))
    assert isinstance(whole, Embedding)
    assert isinstance(pooled, Embedding)
    assert pooled.grid is not None
    assert pooled.grid == tuple(-(-side // 2) for side in whole.grid or ())
    query = [picture_content(112, 112, 1)]
    np.testing.assert_array_equal(vectors(pooling.embed_queries(query)[0]), vectors(embedder.embed_queries(query)[0]))
