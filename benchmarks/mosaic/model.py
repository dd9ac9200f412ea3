"""A Qwen vision-language model of random weights that can learn this world, saved as a hub snapshot would look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.mosaic.processor import SPECIAL_TOKENS, mosaic_processor
from vrag_ray.types import FamilyName

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

MAX_POSITIONS = 4096
ROPE_THETA = 1000.0


@dataclass(frozen=True, slots=True)
class ModelShape:
    """How large the model is. ``heads`` of 64 make the language model's width, ``vision_heads`` of 32 the tower's."""

    layers: int = 4
    heads: int = 2
    kv_heads: int = 2
    head_dim: int = 64
    mlp: int = 512
    vision_depth: int = 2
    vision_heads: int = 2
    vision_mlp: int = 128
    tied: bool = True
    initializer_range: float = 0.04


def save_mosaic_model(
    folder: Path, family: FamilyName = FamilyName.QWEN2_5_VL, seed: int = 0, *, shape: ModelShape | None = None
) -> None:
    """Save model (float32), tokenizer and processor to ``folder``; the same files for the same seed and shape."""
    import torch

    processor = mosaic_processor(family)
    # The caller's random numbers are left where they were.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _model(family, processor, shape or ModelShape())
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def _sections(frequencies: int, *, interleaved: bool) -> list[int]:
    """How many of the rotary frequencies, fastest first, tell time, row and column of a visual token.

    Where each takes a run of its own, the published shares would leave the slowest ones to the columns: at 32
    frequencies, four columns would differ by a hundredth of a turn. Text is not affected.
    """
    if interleaved:
        share = frequencies // 3
        return [frequencies - 2 * share, share, share]
    rows = frequencies // 8
    return [1, rows, frequencies - 1 - rows]


def _model(family: FamilyName, processor: ProcessorMixin, shape: ModelShape) -> PreTrainedModel:
    from transformers import (
        GenerationConfig,
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
    )

    tokenizer = processor.tokenizer
    ids = {name: tokenizer.convert_tokens_to_ids(token) for name, token in SPECIAL_TOKENS.items()}
    old = family is FamilyName.QWEN2_5_VL
    text: dict[str, object] = {
        "vocab_size": len(tokenizer),
        "hidden_size": shape.heads * shape.head_dim,
        "intermediate_size": shape.mlp,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "max_position_embeddings": MAX_POSITIONS,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": ROPE_THETA,
            "mrope_section": _sections(shape.head_dim // 2, interleaved=not old),
        }
        | ({} if old else {"mrope_interleaved": True}),
        "bos_token_id": ids["end_of_text"],
        "eos_token_id": ids["im_end"],
        "pad_token_id": ids["end_of_text"],
        "initializer_range": shape.initializer_range,
        "tie_word_embeddings": shape.tied,
    } | ({} if old else {"head_dim": shape.head_dim})
    vision: dict[str, object] = {
        "depth": shape.vision_depth,
        "hidden_size": 32 * shape.vision_heads,
        "intermediate_size": shape.vision_mlp,
        "num_heads": shape.vision_heads,
        "out_hidden_size": shape.heads * shape.head_dim,
        "patch_size": processor.image_processor.patch_size,
        "spatial_merge_size": processor.image_processor.merge_size,
        "temporal_patch_size": 2,
        "initializer_range": shape.initializer_range,
    } | (
        {"window_size": 112, "fullatt_block_indexes": list(range(shape.vision_depth))}
        if old
        else {"num_position_embeddings": 64, "deepstack_visual_indexes": [0]}
    )
    config_class, model_class = (
        (Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration)
        if old
        else (Qwen3VLConfig, Qwen3VLForConditionalGeneration)
    )
    model = model_class(
        config_class(
            text_config=text,
            vision_config=vision,
            image_token_id=ids["image_pad"],
            video_token_id=ids["video_pad"],
            vision_start_token_id=ids["vision_start"],
            vision_end_token_id=ids["vision_end"],
            tie_word_embeddings=shape.tied,
        )
    )
    generation: Callable[..., GenerationConfig] = GenerationConfig
    model.generation_config = generation(
        do_sample=True,
        temperature=1.0,
        bos_token_id=ids["end_of_text"],
        eos_token_id=[ids["im_end"], ids["end_of_text"]],
        pad_token_id=ids["end_of_text"],
    )
    return model
