"""One optimiser step of the trainer's own scorer, loss and optimiser, at real size, against the memory plan."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.card.models import (
    QWEN3_2B,
    QWEN25_7B,
    Built,
    language_model,
    page_png,
    peak_bytes,
    released_memory,
    wait,
)
from benchmarks.card.runner import Row, Setup
from vrag_ray.imaging import fitting
from vrag_ray.planning.memory_plan import GIB, OVERHEAD, memory_plan
from vrag_ray.training.algorithms.credit_assignment import TrainSample
from vrag_ray.training.collectives import Collectives
from vrag_ray.training.config import ModelConfig, RLConfig, preset_values
from vrag_ray.training.trainer.batch import collate
from vrag_ray.training.trainer.image_processing import Pixels
from vrag_ray.training.trainer.learner import Learner
from vrag_ray.training.trainer.lora import add_adapters
from vrag_ray.training.trainer.optimizer import Optimizer
from vrag_ray.training.trainer.scorer import Scorer, prepared
from vrag_ray.training.trajectory import Call

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, ProcessorMixin

PRESET = "lora-24gb"
"""Whose lengths, algorithm and optimiser are taken; a full step differs by what is trained, and in which format."""
CALLS, REPLY = 3, 512
"""Calls of one sample, as many as the memory plan plans for, and tokens of a reply."""
PICTURES = 8
"""Of one call; each of about 390 visual tokens."""
TIMED = 2
GB = 1e9


@dataclass(frozen=True, slots=True)
class Step:
    """``name`` is a key of ``SHAPES``; ``rank`` 0 trains all weights but the vision tower's. ``sharded``, on one rank:
    weights stay in ``dtype`` and are gathered in bfloat16, as the presets for several GPUs have it."""

    name: str
    rank: int
    dtype: str
    sharded: bool = False


STEPS = {
    "lora-2b": Step(QWEN3_2B, 32, "bfloat16"),
    "lora-7b": Step(QWEN25_7B, 32, "bfloat16"),
    "full-2b": Step(QWEN3_2B, 0, "float32", sharded=True),
    "full-2b-float32": Step(QWEN3_2B, 0, "float32"),
    "full-7b": Step(QWEN25_7B, 0, "float32", sharded=True),
    # Weights, gradients and AdamW's state as `model.dtype: bfloat16` has them; no preset trains all weights so.
    "full-7b-bf16": Step(QWEN25_7B, 0, "bfloat16"),
}


def optimiser_step(setup: Setup, part: str) -> Iterator[Row]:
    """Tokens a second and peak memory of a step, and of bfloat16 its log-probs against float32.

    Without enough memory a row says so, with what the plan had computed.
    """
    import torch

    step = STEPS[part]
    config = step_config(step)
    plan = None
    if not setup.tiny:
        phases = memory_plan(config, 80 * GIB).phases
        # Without an engine; and CUDA's own part is not seen by torch.
        totals = [phase.total - OVERHEAD for phase in phases if phase.name in ("update", "optimiser")]
        plan = max(totals) / GB
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield from _measured(
                setup, config.model, config, language_model(Path(folder), step.name, tiny=setup.tiny), plan
            )
    except torch.OutOfMemoryError as error:
        yield Row("peak", None, "GB", plan, f"out of memory: {next(iter(str(error).splitlines()), '')}"[:200])
        if plan is not None:
            yield Row("memory computed for a step", plan, "GB", remark="by the memory plan, without an engine")


def _measured(
    setup: Setup, model_config: ModelConfig, config: RLConfig, built: Built, plan: float | None
) -> Iterator[Row]:
    import torch
    from transformers import AutoProcessor

    torch.backends.cuda.matmul.allow_tf32 = False
    dtype = getattr(torch, model_config.dtype)
    read: Callable[[Path], ProcessorMixin] = AutoProcessor.from_pretrained
    pixels = Pixels(read(built.folder))
    length = 96 if setup.tiny else config.rollout.engine.max_model_len
    calls = _calls(pixels, 1 if setup.tiny else PICTURES, length, 16 if setup.tiny else REPLY)
    began = time.perf_counter()
    halves = dtype != torch.float32
    model = built.make(torch.float32 if halves and model_config.lora_rank else dtype, setup.device)
    wait(setup.device)
    yield Row("weights drawn", time.perf_counter() - began, "s")
    pad_id = int(model.config.get_text_config().pad_token_id or 0)
    if halves and model_config.lora_rank:
        exact = _logps(Scorer(model), pixels, calls[:1], pad_id)
        for weight in model.parameters():
            # Weights alone, as a checkpoint is loaded: the frequencies of the positions stay exact.
            weight.data = weight.data.to(dtype)
        apart = (_logps(Scorer(model), pixels, calls[:1], pad_id) - exact).abs()
        remark = (
            f"of {len(apart)} reply tokens, largest {float(apart.max()):.4f}; mean log-prob {float(exact.mean()):.2f}"
        )
        yield Row("log-probs, |bfloat16 - float32|", float(apart.mean()), "nats", remark=remark)
    released_memory(setup.device)
    prepared(model, model_config, str(built.folder))
    if model_config.lora_rank:
        add_adapters(model, model_config, seed=0)
    yield from _vision_tower(model, pixels, calls, setup.device)
    scorer, ranks = Scorer(model), Collectives()
    if model_config.sharded:
        _only_rank(setup.device)
        scorer.shard(setup.device, model_config.compute_dtype)
    optimizer = Optimizer(model, config.optimizer, 100, ranks)
    learner = Learner(scorer, optimizer, pixels, ranks, pad_id=pad_id, tokens_per_batch=CALLS * length)
    sampled = _logps(scorer, pixels, calls, pad_id).tolist()
    size = len(sampled) // len(calls)
    scored = [replace(call, logprobs=tuple(sampled[at * size : (at + 1) * size])) for at, call in enumerate(calls)]
    samples = [TrainSample(tuple(scored), 1.0, keep=True)]
    # The first step makes AdamW's state; only the next ones are as all that follow.
    first = learner.update([samples], config.recipe)[0]
    wait(setup.device)
    released_memory(setup.device)
    began = time.perf_counter()
    rounds = 1 if setup.tiny else TIMED
    for _ in range(rounds):
        learner.update([samples], config.recipe)
    wait(setup.device)
    seconds = (time.perf_counter() - began) / rounds
    tokens = sum(call.tokens for call in calls)
    visual = sum(call.prompt_ids.count(pixels.image_token_id) for call in calls)
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    yield Row(
        "a step",
        seconds,
        "s",
        remark=f"{trained / 1e6:,.1f} million weights learn; gradient norm {first.grad_norm:.3g}",
    )
    yield Row("tokens of prompts and replies", tokens / seconds, "tokens/s", remark=f"{tokens:,}, {visual:,} visual")
    peak = peak_bytes(setup.device)
    yield Row("peak", peak and peak / GB, "GB", plan, "computed by the memory plan" if peak else "no card")


def _vision_tower(model: PreTrainedModel, pixels: Pixels, calls: Sequence[Call], device: str) -> Iterator[Row]:
    """Its forward pass over all pictures of the calls. Frozen, it runs once a step, and never backwards."""
    import torch

    batch = collate(calls, pixels, 0).to(torch.device(device))
    encode: Callable[..., object] = model.model.get_image_features
    with torch.no_grad():
        encode(batch.pixels, batch.grids, return_dict=True)
        wait(device)
        began = time.perf_counter()
        encode(batch.pixels, batch.grids, return_dict=True)
        wait(device)
    seconds = time.perf_counter() - began
    yield Row("the vision tower", seconds, "s", remark="a forward pass over the pictures of a step; a part of it")


def _only_rank(device: str) -> None:
    """torch.distributed with this process alone, as a worker of one has it."""
    from torch import distributed

    backend = "nccl" if device == "cuda" else "gloo"
    with tempfile.NamedTemporaryFile(delete=False) as meeting:
        distributed.init_process_group(backend, init_method=f"file://{meeting.name}", rank=0, world_size=1)


def _logps(scorer: Scorer, pixels: Pixels, calls: Sequence[Call], pad_id: int) -> Tensor:
    """Of the replies' tokens, call after call, in float32 on the CPU."""
    import torch

    with torch.no_grad():
        return scorer(collate(calls, pixels, pad_id).to(scorer.device)).logp.float().cpu()


def _calls(pixels: Pixels, pictures: int, length: int, reply: int) -> list[Call]:
    """As many as a sample has, each ``length`` tokens long; words are drawn, pictures are pages."""
    chance = random.Random(0)
    made: list[Call] = []
    for number in range(CALLS):
        shown = tuple(
            fitting.resized(
                page_png(pictures * number + place, 80), 28, 4 * 28 * 28, 401_408 if pictures > 1 else 16 * 28 * 28
            )[0]
            for place in range(pictures)
        )
        tokens = [pixels.visual_tokens(png) for png in shown]
        words = length - reply - sum(tokens)
        ids: list[int] = [chance.randrange(200) for _ in range(words)]
        for many in tokens:
            ids += [pixels.image_token_id] * many
            # Pictures stand apart, as their marks do.
            ids.append(ids.pop(0))
        made.append(Call(tuple(ids), shown, tuple(chance.randrange(200) for _ in range(reply))))
    return made


def step_config(step: Step) -> RLConfig:
    """The preset with another model, as a user would set it."""
    values = preset_values(PRESET) | {"name": "gpu", "examples": "-", "steps": 1}
    environment, model = values["environment"], values["model"]
    assert isinstance(environment, dict) and isinstance(model, dict)
    family = "qwen2_5_vl" if step.name == QWEN25_7B else "qwen3_vl"
    agent = environment["agent"] | {"family": family}
    if family == "qwen2_5_vl":
        # Its visual tokens cover 28 pixels a side, not 32: as many tokens, so that prompts fit all the same.
        agent |= {name: agent[name] * 28**2 // 32**2 for name in ("picture_pixels", "memory_pixels")}
        agent["frame_pixels"] = 128 * 28**2
    values["environment"] = environment | {"collection": "-", "agent": agent}
    spread = {"sharded": True, "compute_dtype": "bfloat16"} if step.sharded else {}
    values["model"] = model | {"path": step.name, "lora_rank": step.rank, "dtype": step.dtype} | spread
    return RLConfig.model_validate(values)
