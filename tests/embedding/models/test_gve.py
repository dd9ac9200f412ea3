"""GVE against one forward of the whole model, with prompt, ids and positions written out here."""

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
)
from tests.support.qwen_vl_inputs import Tensors, clip_inputs, picture_inputs, token_inputs
from tests.support.tiny_embedders import tiny_gve
from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedder
from vrag_ray.embedding.registry import space_embedder

if TYPE_CHECKING:
    from transformers import Qwen2_5_VLForConditionalGeneration, Qwen2_5_VLProcessor

LIMITS = (3136, 256 * 28 * 28)


class Reference:
    """A user turn alone, and an end-of-text token behind the assistant's header, whose last state is the vector."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration

        load: Callable[..., Qwen2_5_VLProcessor] = AutoProcessor.from_pretrained
        self.processor = load(folder)
        self.model: Qwen2_5_VLForConditionalGeneration = Qwen2_5_VLForConditionalGeneration.from_pretrained(
            folder, dtype=torch.float32
        )

    def vector(
        self,
        text: str,
        image: Image.Image | None = None,
        frames: Sequence[Image.Image] = (),
        seconds_a_frame: float = 1,
    ) -> NDArray[np.float32]:
        import torch

        more: Tensors = {}
        shown = ""
        if image is not None:
            more, shown = picture_inputs(self.processor, image, LIMITS)
        if frames:
            more = clip_inputs(self.processor, frames, LIMITS)
            shown = f"<|vision_start|>{'<|video_pad|>' * (int(more['video_grid_thw'].prod()) // 4)}<|vision_end|>"
            more["second_per_grid_ts"] = torch.tensor([2 * seconds_a_frame])
        prompt = f"<|im_start|>user\n{shown}{text}<|im_end|>\n<|im_start|>assistant\n<|endoftext|>"
        with torch.inference_mode():
            out = self.model.model(**token_inputs(self.processor, self.model, prompt), **more)
        vector: NDArray[np.float32] = out.last_hidden_state[0, -1:].numpy()
        return vector


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gve(tmp_path_factory.mktemp("embedders") / "tiny-gve")


@pytest.fixture(scope="module")
def reference(folder: Path) -> Reference:
    return Reference(folder)


@pytest.fixture(scope="module")
def embedder(folder: Path) -> Embedder:
    return space_embedder(SpaceConfig(model=str(folder), device="cpu"))


def test_texts_pictures_and_both_are_those_of_the_recipe(embedder: Embedder, reference: Reference) -> None:
    contents = [
        Content("what colour is the circle"),
        picture_content(96, 64, 1),
        Content("red"),
        picture_content(640, 480, 2, "a table"),
    ]
    expected = [
        reference.vector("what colour is the circle"),
        reference.vector("", picture(96, 64, 1)),
        reference.vector("red"),
        reference.vector("a table", picture(640, 480, 2)),
    ]
    for embed in (embedder.embed_passages, embedder.embed_queries):
        for result, vector in zip(embed(contents), expected, strict=True):
            assert_agree(result, vector)


@pytest.mark.parametrize("times", [(0.0, 2.0, 4.0, 6.0), (1.0, 1.5, 2.0)])
def test_a_clip_is_that_of_the_recipe_at_its_rate(
    embedder: Embedder, reference: Reference, times: tuple[float, ...]
) -> None:
    (result,) = embedder.embed_passages([clip_content(times, "page")])
    assert_agree(result, reference.vector("page", frames=clip_frames(len(times)), seconds_a_frame=times[1] - times[0]))


def test_a_broken_picture_fails_alone_and_neighbours_do_not_matter(embedder: Embedder) -> None:
    contents = [Content("red"), picture_content(96, 64, 1), clip_content((0.0, 1.0)), Content("a " * 40)]
    assert_order_and_neighbours_do_not_matter(embedder, contents)


def test_at_most_256_visual_tokens_see_a_page(embedder: Embedder) -> None:
    assert embedder.pictures is not None
    assert embedder.pictures.max_pixels // embedder.pictures.patch**2 == 256
