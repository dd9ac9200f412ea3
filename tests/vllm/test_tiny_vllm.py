"""vLLM on this machine's CPU, with a picture in the prompt: mechanics, not quality (the weights are random)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from tests.support.paths import ROOT
from tests.support.tiny_vllm import VLLM_ENVIRONMENT

SCRIPT = ROOT / "tests/support/run_vllm.py"
TOKENS = 24
QUESTION = "Which colour is the cell in the first row?"

# Quick form: ``tests/e2e/learning/test_rl``, where engine and trainer agree on what they both compute.
pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.vllm,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None,
        reason="vLLM IS NOT INSTALLED: nothing about model serving is tested here; run `make setup`",
    ),
]


@dataclass(frozen=True)
class Generation:
    """What vLLM made, and from what."""

    model: Path
    prompt: str
    picture: Image.Image
    prompt_ids: list[int]
    token_ids: list[int]
    logprobs: list[float]
    finish_reason: str


def mosaic(first: tuple[int, int, int]) -> Image.Image:
    """Three by four cells of 28 px, one visual token each, the top left one in the colour ``first``."""
    picture = Image.new("RGB", (112, 84), (20, 120, 60))
    picture.paste((240, 240, 240), (28, 28, 84, 56))
    picture.paste(first, (0, 0, 28, 28))
    return picture


@pytest.fixture(scope="session")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    from tiny_model import image_prompt, save_tiny_model

    folder = tmp_path_factory.mktemp("tiny-qwen")
    save_tiny_model(folder / "model")
    picture = mosaic(first=(200, 30, 40))
    picture.save(folder / "picture.png")
    prompt = image_prompt(QUESTION)
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "tests/support/run_vllm.py",
            folder / "model",
            folder / "picture.png",
            prompt,
            str(TOKENS),
        ],
        env=os.environ | VLLM_ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"vLLM failed:\n{done.stderr[-4000:]}"
    record = json.loads(done.stdout.strip().splitlines()[-1])
    return Generation(folder / "model", prompt, picture, **record)


def reference_logprobs(generation: Generation, picture: Image.Image) -> list[float]:
    """The log-probs of vLLM's tokens under one float32 forward of transformers."""
    import torch
    from transformers import AutoProcessor, Qwen2_5_VLForConditionalGeneration

    processor = AutoProcessor.from_pretrained(generation.model)
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(generation.model, dtype=torch.float32).eval()
    inputs = processor(text=[generation.prompt], images=[picture], return_tensors="pt")
    prompt_ids = inputs["input_ids"][0].tolist()
    assert prompt_ids == generation.prompt_ids, "vLLM and transformers do not read the same prompt"
    answer = torch.tensor([generation.token_ids])
    for name in ("attention_mask", "mm_token_type_ids"):
        if name in inputs:
            filler = torch.ones_like(answer) if name == "attention_mask" else torch.zeros_like(answer)
            inputs[name] = torch.cat([inputs[name], filler], dim=1)
    inputs["input_ids"] = torch.cat([inputs["input_ids"], answer], dim=1)
    with torch.inference_mode():
        logits = model(**inputs).logits[0, len(prompt_ids) - 1 : -1]
    return torch.log_softmax(logits, dim=-1).gather(1, answer[0].unsqueeze(1)).squeeze(1).tolist()


def test_vllm_generates_exactly_the_requested_tokens(generation: Generation) -> None:
    assert generation.finish_reason == "length"
    assert len(generation.token_ids) == len(generation.logprobs) == TOKENS


def test_vllm_and_transformers_agree_on_every_logprob(generation: Generation) -> None:
    expected = reference_logprobs(generation, generation.picture)
    assert generation.logprobs == pytest.approx(expected, abs=1e-4, rel=0)


def test_the_picture_decides_the_logprobs(generation: Generation) -> None:
    other = reference_logprobs(generation, mosaic(first=(30, 40, 200)))
    difference = max(abs(a - b) for a, b in zip(generation.logprobs, other, strict=True))
    assert difference > 1e-2, "the agreement above would also hold for a model that ignores the picture"
