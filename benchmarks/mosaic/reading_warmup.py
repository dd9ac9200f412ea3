"""Before a retriever learns to compare: its language model learns to say which colour a cell has.

Whether that helps is measured by a control without it (docs/results/visual_retrieval.md). A published vision-language
model needs none of this: it can read.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.mosaic.retrieval_task import described, random_pages, shown
from benchmarks.mosaic.world.chance import drawn_from
from benchmarks.mosaic.world.colours import COLOURS
from benchmarks.mosaic.world.page import CELLS
from vrag_ray.policies.llm.vllm_prompt import pictures
from vrag_ray.training.config import OptimizerConfig, Schedule
from vrag_ray.training.trainer.optimizer import lr_at

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

BATCH, LR, RAMP, LAST_LR = 32, 2e-3, 40, 1e-4
PROMPT = "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>"
"""A page, as it is embedded later."""


def warm_up(source: Path, target: Path, *, steps: int, seed: int, plain_positions: bool, threads: int) -> float:
    """Train the model of ``source`` and save it to ``target``; the share of cells that it read right in the end.

    ``plain_positions``: tokens are counted one by one, as ColQwen2 of transformers has them; otherwise by M-RoPE.
    """
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    load: Callable[..., PreTrainedModel] = AutoModelForImageTextToText.from_pretrained
    model = load(str(source), dtype=torch.float32)
    read: Callable[..., Callable[..., dict[str, Tensor]]] = AutoProcessor.from_pretrained
    processor = read(str(source))
    ids: Callable[[str], int] = getattr(processor, "tokenizer").convert_tokens_to_ids  # noqa: B009
    end = ids("<|vision_end|>")
    colours = torch.tensor([ids(colour.value) for colour in COLOURS])
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=0.01, foreach=True)
    pages = random_pages("warm-up", steps * BATCH, seed)
    chance = drawn_from("retrieval", "reading", seed)
    schedule = OptimizerConfig(lr=LR, warmup_steps=RAMP, schedule=Schedule.COSINE, final_lr=LAST_LR)
    right: list[float] = []
    begun = time.monotonic()
    for step in range(steps):
        some = [next(pages) for _ in range(BATCH)]
        inputs = processor(
            text=[PROMPT + described(page, _in_some_order(chance)) for page in some],
            images=list(pictures([shown(page) for page in some])),
            padding=True,
            return_tensors="pt",
        )
        # All that is said, cells too: so a colour comes to be bound to the cell before it, as in a query.
        reply_mask = inputs["attention_mask"].bool() & (inputs["input_ids"] == end).cumsum(dim=1).bool()
        reply_mask &= inputs["input_ids"] != end
        rows, columns = reply_mask.nonzero(as_tuple=True)
        model_inputs = dict(inputs)
        if plain_positions:
            count = model_inputs["input_ids"].shape
            model_inputs["position_ids"] = torch.arange(count[1]).expand(3, *count)
        inner: Callable[..., object] = model.model
        hidden: Tensor = getattr(inner(**model_inputs, use_cache=False), "last_hidden_state")  # noqa: B009
        logits: Tensor = model.lm_head(hidden[rows, columns - 1])
        labels = inputs["input_ids"][rows, columns]
        loss = torch.nn.functional.cross_entropy(logits, labels)
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step, steps, schedule)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        named = torch.isin(labels, colours)
        right.append(float((logits.argmax(dim=1) == labels)[named].float().mean()))
        if (step + 1) % 50 == 0 or step + 1 == steps:
            spent = time.monotonic() - begun
            print(
                f"  reading {step + 1}/{steps}: loss {float(loss.detach()):.3f}, {right[-1]:.3f} right, {spent:.0f} s",
                flush=True,
            )
    model.save_pretrained(target)
    save: Callable[[Path], object] = getattr(processor, "save_pretrained")  # noqa: B009
    save(target)
    return sum(right[-20:]) / len(right[-20:])


def _in_some_order(chance: random.Random) -> list[str]:
    """All cells: in reading order from any of them, which is learnt first, or in disorder, which is meant."""
    if chance.random() < 0.5:
        start = chance.randrange(len(CELLS))
        return [*CELLS[start:], *CELLS[:start]]
    return chance.sample(CELLS, len(CELLS))
