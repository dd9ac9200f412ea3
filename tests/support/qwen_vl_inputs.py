"""What a Qwen-VL model is given in one forward of a prompt, written out without the product's code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    import torch
    from transformers import (
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen3VLForConditionalGeneration,
        Qwen3VLProcessor,
    )

    Processor = Qwen2_5_VLProcessor | Qwen3VLProcessor
    Model = Qwen2_5_VLForConditionalGeneration | Qwen3VLForConditionalGeneration

Tensors = dict[str, "torch.Tensor"]
Limits = tuple[int, int]
"""The smallest and the largest picture, in pixels."""


def token_inputs(processor: Processor, model: Model, prompt: str) -> Tensors:
    """Ids of one prompt, and which of them stand for a picture (1) or a clip (2)."""
    import torch

    ids = processor.tokenizer(prompt, return_tensors="pt")["input_ids"]
    kinds = (ids == model.config.image_token_id).int() + 2 * (ids == model.config.video_token_id).int()
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "mm_token_type_ids": kinds}


def picture_inputs(processor: Processor, image: Image.Image, limits: Limits) -> tuple[Tensors, str]:
    """Patches and grid of a picture, and the part of the prompt that stands for it."""
    size = {"shortest_edge": limits[0], "longest_edge": limits[1]}
    read = processor.image_processor(images=[image], size=size, return_tensors="pt")
    tokens = "<|image_pad|>" * (int(read["image_grid_thw"].prod()) // 4)
    tensors = {name: read[name] for name in ("pixel_values", "image_grid_thw")}
    return tensors, f"<|vision_start|>{tokens}<|vision_end|>"


def clip_inputs(processor: Processor, frames: Sequence[Image.Image], limits: Limits | None = None) -> Tensors:
    """Patches and grid of a clip; as large as it is without ``limits``."""
    stacked = np.stack([np.asarray(frame) for frame in frames])
    size = None if limits is None else {"shortest_edge": limits[0], "longest_edge": limits[1]}
    read = processor.video_processor(
        videos=[stacked], do_sample_frames=False, do_resize=size is not None, size=size, return_tensors="pt"
    )
    return {name: read[name] for name in ("pixel_values_videos", "video_grid_thw")}
