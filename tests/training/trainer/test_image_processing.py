"""Pictures as the model reads them: the numbers and the tokens are those of the family's own processor."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from PIL import Image
from transformers import AutoProcessor

from tests.support.pictures import noise_png
from vrag_ray.training.trainer import image_processing as module
from vrag_ray.training.trainer.image_processing import Pixels
from vrag_ray.types import VragError

SIZES = ((112, 112), (128, 128), (56, 224), (300, 40), (33, 71), (640, 480))
BOTH = pytest.mark.parametrize("family", ["model", "qwen3"])


@pytest.fixture
def folder(family: str, request: pytest.FixtureRequest) -> Path:
    path = request.getfixturevalue(family)
    assert isinstance(path, Path)
    return path


def fresh(folder: Path) -> Pixels:
    return Pixels(AutoProcessor.from_pretrained(str(folder)))


@BOTH
@pytest.mark.parametrize("size", SIZES)
def test_a_picture_is_cut_up_by_the_models_own_processor(folder: Path, size: tuple[int, int]):
    picture = noise_png(*size)
    own = AutoProcessor.from_pretrained(str(folder)).image_processor
    expected = own(images=[Image.open(io.BytesIO(picture)).convert("RGB")], return_tensors="pt")
    patches = fresh(folder).patches([picture])[0]
    assert torch.equal(patches.values, expected["pixel_values"])
    assert [patches.grid] == [tuple(row) for row in expected["image_grid_thw"].tolist()]


@BOTH
def test_a_prompt_is_widened_as_the_models_own_processor_widens_it(folder: Path):
    processor = AutoProcessor.from_pretrained(str(folder))
    picture = "<|vision_start|><|image_pad|><|vision_end|>"
    text = f"<|im_start|>user\nWhat {picture}{picture} and {picture}?<|im_end|>\n"
    pngs = tuple(noise_png(*size) for size in SIZES[2:5])
    images = [Image.open(io.BytesIO(png)).convert("RGB") for png in pngs]
    expected = processor(text=[text], images=images)["input_ids"][0]
    pixels = fresh(folder)
    wide = pixels.expand_image_tokens(tuple(processor.tokenizer(text)["input_ids"]), pngs)
    assert wide == tuple(expected)
    assert wide.count(pixels.image_token_id) == sum(map(pixels.visual_tokens, pngs)) > 3


def test_a_prompt_without_pictures_stays_as_it_is(model: Path):
    assert fresh(model).expand_image_tokens((1, 2, 3), ()) == (1, 2, 3)


@pytest.mark.parametrize(("marks", "count"), [(0, 1), (1, 0), (1, 2), (3, 2)])
def test_every_picture_has_its_one_token_or_the_prompt_is_refused(model: Path, marks: int, count: int):
    pixels = fresh(model)
    ids = (1, *[pixels.image_token_id] * marks, 2)
    with pytest.raises(VragError, match=f"{count} pictures and {marks} image tokens"):
        pixels.expand_image_tokens(ids, tuple(noise_png(56, 56, seed) for seed in range(count)))


def test_a_picture_is_cut_up_once(model: Path):
    pixels = fresh(model)
    assert pixels.patches([noise_png(112, 112)])[0] is pixels.patches([noise_png(112, 112)])[0]
    assert pixels.patches([noise_png(112, 112)])[0] is not pixels.patches([noise_png(112, 112, seed=1)])[0]


def test_the_picture_cache_is_bounded_in_bytes_and_all_pictures_are_still_read(
    model: Path, monkeypatch: pytest.MonkeyPatch
):
    size = fresh(model).patches([noise_png(112, 112)])[0].values.nbytes
    monkeypatch.setattr(module, "CACHED_BYTES", 2 * size)
    pixels = fresh(model)
    first, _, third, last = [pixels.patches([noise_png(112, 112, seed)])[0] for seed in range(4)]
    assert pixels.patches([noise_png(112, 112, 2)])[0] is third
    assert pixels.patches([noise_png(112, 112, 3)])[0] is last
    again = pixels.patches([noise_png(112, 112, 0)])[0]
    assert again is not first
    assert torch.equal(again.values, first.values)


def test_what_is_no_picture_is_refused(model: Path):
    with pytest.raises(VragError, match="picture 1 of 1 cannot be read as PNG"):
        fresh(model).patches([b"no picture"])
