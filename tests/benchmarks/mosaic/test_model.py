"""The small models: saved as a snapshot, the same for the same seed, and able to see in four columns."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from benchmarks.mosaic.model import ModelShape, save_mosaic_model
from tests.support.mosaic_episodes import FAMILIES

SMALL = ModelShape(layers=2, mlp=128, vision_depth=1)


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("model")
    save_mosaic_model(path, request.param, seed=1)
    return path


def load(folder: Path) -> torch.nn.Module:
    from transformers import AutoModelForImageTextToText

    model: torch.nn.Module = AutoModelForImageTextToText.from_pretrained(folder)
    return model.eval()


def test_a_model_of_one_to_two_million_float32_weights_with_one_table_of_tokens(folder: Path) -> None:
    model = load(folder)
    parameters = list(model.parameters())
    assert 1_000_000 < sum(parameter.numel() for parameter in parameters) < 2_000_000
    assert {parameter.dtype for parameter in parameters} == {torch.float32}
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight  # type: ignore[operator]


def test_a_picture_is_read_with_its_words_and_every_cell_matters(folder: Path) -> None:
    from transformers import AutoProcessor

    model, processor = load(folder), AutoProcessor.from_pretrained(folder)
    side = 4 * 2 * processor.image_processor.patch_size
    text = ["<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>red<|im_end|>\n<|im_start|>assistant\n"]

    def logits_without(cell: int | None) -> torch.Tensor:
        image = Image.new("RGB", (side, side), (255, 0, 0))
        if cell is not None:
            row, column = divmod(cell, 4)
            image.paste(
                (0, 0, 255), (column * side // 4, row * side // 4, (column + 1) * side // 4, (row + 1) * side // 4)
            )
        inputs = processor(text=text, images=[image], return_tensors="pt")
        with torch.no_grad():
            logits: torch.Tensor = model(**inputs).logits[0, -1]
        return logits

    plain = logits_without(None)
    assert torch.isfinite(plain).all()
    moved = torch.stack([(logits_without(cell) - plain) for cell in range(16)])
    assert (moved.abs().amax(1) > 1e-6).all()
    assert torch.unique(moved.round(decimals=6), dim=0).shape[0] == 16, "where the cell is must make a difference"


def test_an_untrained_model_expects_nothing_in_particular(folder: Path) -> None:
    model = load(folder)
    with torch.no_grad():
        logits = model(input_ids=torch.arange(0, 200).unsqueeze(0)).logits
    spread = torch.nn.functional.cross_entropy(logits[0, :-1], torch.arange(1, 200))
    assert abs(spread.item() - torch.tensor(float(logits.shape[-1])).log().item()) < 1.0


def test_it_samples_until_the_turn_ends(folder: Path) -> None:
    from transformers import AutoTokenizer, GenerationConfig

    tokenizer, config = AutoTokenizer.from_pretrained(folder), GenerationConfig.from_pretrained(folder)
    assert config.do_sample
    assert config.temperature == 1.0
    assert tokenizer.convert_tokens_to_ids("<|im_end|>") in config.eos_token_id
    assert config.pad_token_id == tokenizer.pad_token_id


def test_the_seed_decides_the_weights_and_leaves_other_random_numbers_alone(tmp_path: Path) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        save_mosaic_model(tmp_path / name, seed=seed, shape=SMALL)
    assert torch.equal(torch.rand(3), expected)
    weights = {name: (tmp_path / name / "model.safetensors").read_bytes() for name in "abc"}
    assert weights["a"] == weights["b"]
    assert weights["a"] != weights["c"]


def test_tokens_for_reading_and_for_speaking_can_be_kept_apart(tmp_path: Path) -> None:
    save_mosaic_model(tmp_path, shape=ModelShape(layers=2, mlp=128, vision_depth=1, tied=False))
    model = load(tmp_path)
    assert model.get_input_embeddings().weight is not model.get_output_embeddings().weight  # type: ignore[operator]
