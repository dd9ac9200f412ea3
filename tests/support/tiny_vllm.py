"""Models of random weights behind Ray Serve on this machine's CPU: mechanics, not quality."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from tests.support.patience import HANGS_AFTER_S
from vrag_ray.agent.chat import Delta, ImagePart, Message, Role
from vrag_ray.config import Settings, VllmConfig
from vrag_ray.policies.llm.chat_model import ChatRequest, Sampling, TokenDelta, TokenRequest
from vrag_ray.serving.deployments.policy import ServedModel, serve_policy, served_policy
from vrag_ray.types import Completion

needs_vllm = [
    pytest.mark.vllm,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None,
        reason="vLLM IS NOT INSTALLED: nothing about model serving is tested here; run `make setup`",
    ),
]
VLLM_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_CI_ENV": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "HF_HUB_OFFLINE": "1",
}
QUESTION = "Which colour is the cell in the first row?"
HIDDEN = 128
RANK = 8


@contextmanager
def served(model: Path, app: str, **more: object) -> Iterator[ServedModel]:
    """The model in the folder ``model``, until the block ends."""
    from ray import serve

    values = {
        "model": str(model),
        "dtype": "float32",
        "max_model_len": 4096,
        "max_num_seqs": 8,
        "max_images": 3,
        "enforce_eager": True,
        "num_cpus": 0.5,
        "num_gpus": 0,
        "engine_args": {"block_size": 32},
    }
    settings = Settings(vllm=VllmConfig.model_validate(values | more))
    serve_policy(settings, app)
    yield served_policy(app)
    serve.delete(app)


def png(colour: tuple[int, int, int] = (200, 30, 40)) -> bytes:
    """A picture of 128 by 96 pixels with its top left quarter in ``colour``."""
    data = io.BytesIO()
    picture = Image.new("RGB", (128, 96), (20, 120, 60))
    picture.paste(colour, (0, 0, 64, 48))
    picture.save(data, "PNG")
    return data.getvalue()


def ask(*parts: ImagePart | str, tokens: int = 24, session: str = "", adapter: str = "") -> ChatRequest:
    messages = (Message.of(Role.SYSTEM, "Answer in one word."), Message.of(Role.USER, *parts))
    return ChatRequest(messages, Sampling(max_tokens=tokens, temperature=0.0), session=session, adapter=adapter)


async def chatted(model: ServedModel, request: ChatRequest) -> Completion:
    """The whole reply, once its deltas are seen to add up to it."""
    *deltas, done = [piece async for piece in model.chat(request)]
    assert isinstance(done, Completion)
    assert "".join(delta.content for delta in deltas if isinstance(delta, Delta)) == done.text
    return done


async def generated(model: ServedModel, request: TokenRequest) -> tuple[tuple[int, ...], Completion]:
    """The prompt as the model read it and the whole reply, once its deltas are seen to add up to it."""
    *deltas, done = [piece async for piece in model.generate(request)]
    assert isinstance(done, Completion)
    tokens = [delta for delta in deltas if isinstance(delta, TokenDelta)]
    assert len(tokens) == len(deltas)
    assert done.token_ids == tuple(token for delta in tokens for token in delta.token_ids)
    assert done.logprobs == tuple(value for delta in tokens for value in delta.logprobs)
    assert not any(delta.prompt_ids for delta in tokens[1:])
    return tokens[0].prompt_ids, done


def save_adapter(folder: Path, seed: int) -> None:
    """A LoRA adapter of random weights for the language layers of a tiny Qwen2.5-VL, in PEFT's file format."""
    import torch
    from safetensors.torch import save_file

    random = torch.Generator().manual_seed(seed)
    tensors = {}
    for layer in range(2):
        name = f"base_model.model.model.language_model.layers.{layer}.self_attn.q_proj"
        tensors[f"{name}.lora_A.weight"] = torch.randn((RANK, HIDDEN), generator=random) * 0.2
        tensors[f"{name}.lora_B.weight"] = torch.randn((HIDDEN, RANK), generator=random) * 0.2
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 2 * RANK, "target_modules": ["q_proj"], "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(config))


async def until(value: Callable[[], Awaitable[int]], expected: int, seconds: float = HANGS_AFTER_S) -> None:
    """Wait for ``value`` to be ``expected``, or fail."""
    async with asyncio.timeout(seconds):
        while await value() != expected:  # noqa: ASYNC110  the event is in another process
            await asyncio.sleep(0.05)
