"""Positions by layout against those that the model gives a whole batch itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support.model_calls import call, calls_of
from tests.support.mosaic_runs import pad_of, pixels_of
from tests.support.pictures import noise_png
from vrag_ray.training.config import ModelConfig
from vrag_ray.training.trainer.batch import collate
from vrag_ray.training.trainer.mrope import Positions
from vrag_ray.training.trainer.scorer import load_model


def test_positions_are_those_that_the_model_gives_itself(folder: Path) -> None:
    model = load_model(ModelConfig(path=str(folder)), str(folder))
    pixels = pixels_of(folder)
    batch = collate(calls_of(folder), pixels, pad_of(folder))
    assert batch.grids is not None and batch.shown is not None
    own, _ = model.model.get_rope_index(
        batch.input_ids,
        mm_token_type_ids=batch.is_image,
        image_grid_thw=batch.grids[batch.shown],
        attention_mask=batch.attention_mask,
    )
    positions = Positions(model).of(batch.is_image, batch.layouts)
    real = batch.attention_mask.bool()
    assert positions.shape == own.shape == (3, *real.shape)
    assert torch.equal(positions[:, real], own[:, real])


def test_calls_without_pictures_count_from_zero(model: Path) -> None:
    batch = collate([call(model, "What?"), call(model, "What is in b2?")], pixels_of(model), pad_of(model))
    positions = Positions(load_model(ModelConfig(path=str(model)), str(model))).of(batch.is_image, batch.layouts)
    assert torch.equal(positions, torch.arange(batch.input_ids.shape[1]).expand_as(positions))


def test_the_model_computes_positions_once_for_all_prompts_of_a_layout(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_model(ModelConfig(path=str(model)), str(model))
    real, requests = loaded.model.get_rope_index, []

    def counting(*args: object, **named: object) -> object:
        requests.append(named)
        return real(*args, **named)

    monkeypatch.setattr(loaded.model, "get_rope_index", counting)
    positions = Positions(loaded)
    square, wide = noise_png(112, 112), noise_png(224, 56)
    alike = [call(model, square, "b2?", reply=reply) for reply in ("red", "amber falcon", "blue")]
    for calls in (alike, [*alike, call(model, wide, "b2?"), call(model, "Look", square, "b2?")]):
        batch = collate(calls, pixels_of(model), pad_of(model))
        positions.of(batch.is_image, batch.layouts)
    assert len(requests) == 3
