"""A tiny Qwen3-VL on two tensor-parallel ranks; what families share is tested with Qwen2.5-VL (test_policy.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tiny_vllm import QUESTION, ask, chatted, needs_vllm, png, served
from vrag_ray.agent.chat import ImagePart
from vrag_ray.serving.deployments.policy import ServedModel

# Quick form: ``test_policy`` asks the same of Qwen2.5-VL.
pytestmark = [*needs_vllm, pytest.mark.anyio, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tiny_model import Family, save_tiny_model

    folder = tmp_path_factory.mktemp("families")
    save_tiny_model(folder / "model", Family.QWEN3_VL, seed=0)
    save_tiny_model(folder / "new", Family.QWEN3_VL, seed=1)
    return folder


@pytest.fixture(scope="module")
def model(serving: None, folder: Path) -> Iterator[ServedModel]:
    with served(folder / "model", "qwen3", tensor_parallel=2) as running:
        yield running


async def test_qwen3_vl_sees_the_picture_and_streams_its_reply(model: ServedModel):
    red, again, blue = [
        await chatted(model, ask(ImagePart(png(colour)), QUESTION))
        for colour in ((200, 30, 40), (200, 30, 40), (30, 40, 200))
    ]
    assert len(red.token_ids) == len(red.logprobs) == 24
    assert again.token_ids == red.token_ids
    assert again.usage["cached_tokens"] > 0
    assert abs(blue.logprobs[0] - red.logprobs[0]) > 1e-3


async def test_qwen3_vl_takes_new_weights_while_it_serves(model: ServedModel, folder: Path):
    request = ask(ImagePart(png()), QUESTION)
    before = await chatted(model, request)
    await model.load_weights(str(folder / "new"), "v1")
    changed = await chatted(model, request)
    await model.load_weights(str(folder / "model"), "v2")
    again = await chatted(model, request)
    assert (changed.weights, again.weights) == ("v1", "v2")
    assert changed.token_ids != before.token_ids
    assert again.token_ids == before.token_ids
    assert again.logprobs == pytest.approx(before.logprobs, abs=1e-4)
