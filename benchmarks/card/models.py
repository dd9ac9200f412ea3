"""Models of real size and random weights: their published shapes, built on the card, with a processor that stands in.

Nothing is downloaded. A folder has config.json, a small tokenizer and the processor, and no weights: those are drawn
where the model is to run. Speed and memory are the real model's, its answers are nobody's.
"""

from __future__ import annotations

import gc
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.training.model_shapes import SHAPES, ModelShape

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase, ProcessorMixin

TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
          "<|image_pad|>", "<|video_pad|>")  # fmt: skip
WORDS = (
    "system user assistant Represent the user's input. Retrieve images or text relevant to the user's query. "
    "Describe the image. Query: What was sold in the second quarter?"
)
"""What prompts are made of, so that their words are tokens and a prompt is about as long as the real one."""
MERGE = 2
COLQWEN2_TOKENS = 768
PICTURE_TOKENS = 1800
CHAT_TEMPLATE = """\
{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\\n' -}}
  {%- if message.content is string -%}{{ message.content }}
  {%- else -%}
    {%- for part in message.content -%}
      {%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
      {%- elif part.type == 'video' -%}<|vision_start|><|video_pad|><|vision_end|>
      {%- else -%}{{ part.text }}{%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""
QWEN3_2B, QWEN3_8B = "Qwen/Qwen3-VL-2B-Instruct", "Qwen/Qwen3-VL-8B-Instruct"
QWEN2_2B, QWEN25_7B = "Qwen/Qwen2-VL-2B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct"


@dataclass(frozen=True, slots=True)
class Built:
    """A folder without weights; ``make`` draws the weights of ``kind``, a class of transformers, on a device."""

    folder: Path
    config: PreTrainedConfig
    kind: str

    def make(self, dtype: torch.dtype, device: str) -> PreTrainedModel:
        """The same weights for the same number format, in evaluation mode."""
        import torch
        import transformers

        build: Callable[..., PreTrainedModel] = getattr(transformers, self.kind)._from_config
        torch.manual_seed(0)
        with torch.device(device):
            model = build(self.config, dtype=dtype)
        model.train(mode=False)
        return model


def language_model(folder: Path, name: str, *, tiny: bool) -> Built:
    """A vision-language model as the trainer loads it; ``name`` is a key of ``SHAPES``."""
    kind = "Qwen2_5_VLForConditionalGeneration" if name == QWEN25_7B else "Qwen3VLForConditionalGeneration"
    return _saved(folder, name, kind, tiny=tiny)


def page_embedder(folder: Path, name: str, *, tiny: bool) -> Built:
    """The same as an embedder of single vectors: without its output head."""
    return _saved(folder, name, "Qwen2_5_VLModel" if name == QWEN25_7B else "Qwen3VLModel", tiny=tiny)


def late_embedder(folder: Path, *, tiny: bool) -> Built:
    """ColQwen2 on Qwen2-VL-2B: at most 768 visual tokens a page, 128 dimensions."""
    from transformers import ColQwen2Config, ColQwen2Processor, Qwen2VLImageProcessor

    tokenizer = _tokenizer()
    most = 16 if tiny else COLQWEN2_TOKENS
    pictures = Qwen2VLImageProcessor(
        patch_size=14, merge_size=MERGE, size={"shortest_edge": 4 * 28 * 28, "longest_edge": most * 28 * 28}
    )
    vlm = _config(QWEN2_2B, tokenizer, tiny=tiny) | {"model_type": "qwen2_vl"}
    config = ColQwen2Config(vlm_config=vlm, embedding_dim=32 if tiny else 128)
    config.save_pretrained(folder)
    ColQwen2Processor(pictures, tokenizer).save_pretrained(folder)
    return Built(folder, config, "ColQwen2ForRetrieval")


def page_png(number: int, pixels: int = 150) -> bytes:
    """An A4 page of text lines at ``pixels`` an inch; another one for each ``number``."""
    from PIL import Image, ImageDraw

    width, height = round(8.27 * pixels), round(11.69 * pixels)
    page = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(page)
    for at, top in enumerate(range(height // 12, height - height // 12, max(12, height // 60))):
        draw.text((width // 10, top), f"{number}.{at} " + WORDS[(7 * at + number) % 40 :], fill="black")
    buffer = io.BytesIO()
    page.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def released_memory(device: str) -> None:
    """Give freed memory back, and count peaks anew from here."""
    import torch

    if device == "cuda":
        # Cycles of Python objects may hold tensors.
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def peak_bytes(device: str) -> float | None:
    """Of all tensors together at their largest moment since ``released_memory``; None without a card."""
    import torch

    return float(torch.cuda.max_memory_allocated()) if device == "cuda" else None


def wait(device: str) -> None:
    """Until the card has done what it was given."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def _saved(folder: Path, name: str, kind: str, *, tiny: bool) -> Built:
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
        Qwen3VLConfig,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    old = name == QWEN25_7B
    tokenizer = _tokenizer()
    patch = 14 if old else 16
    area = (patch * MERGE) ** 2
    pictures = Qwen2VLImageProcessor(
        patch_size=patch, merge_size=MERGE, size={"shortest_edge": 4 * area, "longest_edge": PICTURE_TOKENS * area}
    )
    values = _config(name, tokenizer, tiny=tiny)
    describe: Callable[..., PreTrainedConfig] = Qwen2_5_VLConfig if old else Qwen3VLConfig
    config = describe(**values)
    config.save_pretrained(folder)
    clips = (Qwen2VLVideoProcessor if old else Qwen3VLVideoProcessor)(patch_size=patch, merge_size=MERGE)
    join: Callable[..., ProcessorMixin] = Qwen2_5_VLProcessor if old else Qwen3VLProcessor
    join(pictures, tokenizer, clips, chat_template=CHAT_TEMPLATE).save_pretrained(folder)
    return Built(folder, config, kind)


def _config(name: str, tokenizer: PreTrainedTokenizerBase, *, tiny: bool) -> dict[str, object]:
    """config.json of ``name`` as far as it decides sizes, with the ids of the stand-in's tokens."""
    shape = _tiny(SHAPES[name], len(tokenizer)) if tiny else SHAPES[name]
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in TOKENS}
    half = shape.head_size // 2
    sections = [half - 2 * (3 * half // 8), 3 * half // 8, 3 * half // 8]
    rope: dict[str, object] = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": sections}
    text: dict[str, object] = {
        "hidden_size": shape.hidden, "intermediate_size": shape.intermediate, "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads, "vocab_size": shape.vocabulary,
        "tie_word_embeddings": shape.tied, "max_position_embeddings": 32_768, "rope_parameters": rope,
        "bos_token_id": ids["<|endoftext|>"], "eos_token_id": ids["<|im_end|>"], "pad_token_id": ids["<|endoftext|>"],
    }  # fmt: skip
    vision: dict[str, object] = {
        "depth": shape.vision.depth, "num_heads": 2 if tiny else 16, "spatial_merge_size": MERGE,
        "temporal_patch_size": 2, "patch_size": 14, "hidden_size": shape.vision.hidden,
        "intermediate_size": shape.vision.intermediate, "out_hidden_size": shape.hidden,
    }  # fmt: skip
    depth = shape.vision.depth
    if name == QWEN2_2B:
        del vision["intermediate_size"], vision["out_hidden_size"]
        vision |= {"embed_dim": shape.vision.hidden, "hidden_size": shape.hidden}
        vision["mlp_ratio"] = shape.vision.intermediate // shape.vision.hidden
    elif name == QWEN25_7B:
        vision |= {"window_size": 112, "fullatt_block_indexes": [1] if tiny else [7, 15, 23, 31]}
    else:
        text["head_dim"] = shape.head_size
        rope["mrope_interleaved"] = True
        deep = {24: [5, 11, 17], 27: [8, 16, 24]}.get(depth, [0])
        vision |= {"patch_size": 16, "num_position_embeddings": 2304, "deepstack_visual_indexes": deep}
    return {
        "text_config": text, "vision_config": vision, "tie_word_embeddings": shape.tied,
        "image_token_id": ids["<|image_pad|>"], "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"], "vision_end_token_id": ids["<|vision_end|>"],
    }  # fmt: skip


def _tiny(shape: ModelShape, vocabulary: int) -> ModelShape:
    """The same family, for a dry run on a CPU. The counted parameters are not those of it."""
    vision = replace(shape.vision, depth=2, hidden=64, intermediate=128)
    return replace(
        shape, layers=2, hidden=128, intermediate=256, heads=2, kv_heads=1, head_size=64, vocabulary=vocabulary,
        vision=vision,
    )  # fmt: skip


def _tokenizer() -> PreTrainedTokenizerBase:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import Qwen2Tokenizer

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        [WORDS] * 4, trainers.BpeTrainer(vocab_size=512, initial_alphabet=alphabet, show_progress=False)
    )
    bpe.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in TOKENS])
    return Qwen2Tokenizer(
        tokenizer_object=bpe, bos_token=None, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )  # fmt: skip
