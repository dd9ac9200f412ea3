"""Save a Qwen vision-language model of random weights, small enough for a CPU: it proves mechanics, never quality.

Usage: ``python tools/tiny_model.py OUT [--family qwen2_5_vl|qwen3_vl] [--seed N]``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin


class Family(StrEnum):
    """Which model is imitated. The two differ in patch size, position encoding and how pictures enter the layers."""

    QWEN2_5_VL = "qwen2_5_vl"
    QWEN3_VL = "qwen3_vl"

    @property
    def patch(self) -> int:
        """Pixels a side of one patch; one visual token covers ``MERGE`` by ``MERGE`` of them."""
        return 14 if self is Family.QWEN2_5_VL else 16


END_OF_TEXT, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
VISION_START, VISION_END, IMAGE_PAD, VIDEO_PAD = (
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
SPECIAL_TOKENS = [END_OF_TEXT, IM_START, IM_END, VISION_START, VISION_END, "<|vision_pad|>", IMAGE_PAD, VIDEO_PAD]
MERGE = 2
MAX_POSITIONS = 16_384
MAX_VISUAL_TOKENS = 512
# Ten times the usual: at 0.02 all next tokens are about equally likely and no input changes that.
WEIGHT_STD = 0.2
CORPUS = ["Which colour is the cell in the first row and the second column of the picture?", "a b c d e f g h 0 1 2 3"]
CHAT_TEMPLATE = """\
{%- macro show(content) -%}
  {%- if content is string -%}{{ content }}
  {%- else -%}
    {%- for part in content -%}
      {%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
      {%- else -%}{{ part.text }}{%- endif -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
{%- if tools -%}
  {{- '<|im_start|>system\\n' -}}
  {%- if messages[0].role == 'system' -%}{{ show(messages[0].content) + '\\n\\n' }}{%- endif -%}
  {{- 'Functions you may call, one JSON object a line:\\n<tools>\\n' -}}
  {%- for tool in tools -%}{{ tool | tojson + '\\n' }}{%- endfor -%}
  {{- '</tools>\\nA call is <tool_call>{"name": …, "arguments": {…}}</tool_call><|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
  {%- if not (tools and loop.first and message.role == 'system') -%}
    {{- '<|im_start|>' + message.role + '\\n' + show(message.content) + '<|im_end|>\\n' -}}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\\n' -}}
  {%- if enable_thinking is defined -%}
    {{ '<think>\\n' if enable_thinking else '<think>\\n\\n</think>\\n\\n' }}
  {%- endif -%}
{%- endif -%}
"""


def image_prompt(question: str) -> str:
    """A user's turn with one image before ``question``, as the chat template writes it."""
    picture = f"{VISION_START}{IMAGE_PAD}{VISION_END}"
    return f"{IM_START}user\n{picture}{question}{IM_END}\n{IM_START}assistant\n"


def save_tiny_model(
    folder: Path, family: Family = Family.QWEN2_5_VL, seed: int = 0, *, layers: int = 2, heads: int = 2
) -> None:
    """Save model (float32), tokenizer and processor to ``folder``, as a hub snapshot would look.

    ``layers`` and ``heads`` (of 64) are those of the language model: more of them cost a benchmark what it is to cost.
    """
    import torch

    processor = _processor(family)
    torch.manual_seed(seed)
    model = _model(family, processor, layers, heads)
    with torch.no_grad():
        # Left random, it would end a greedy reply at any token; so a reply is as long as requested.
        model.lm_head.weight[processor.tokenizer.eos_token_id] = 0.0
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def save_tiny_text_model(folder: Path, seed: int = 0) -> None:
    """Save a Qwen2 without eyes, with the same tokenizer and chat template, and no processor."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = _processor(Family.QWEN2_5_VL).tokenizer
    tokenizer.chat_template = CHAT_TEMPLATE
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        initializer_range=WEIGHT_STD,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=MAX_POSITIONS,
        bos_token_id=tokenizer.convert_tokens_to_ids(END_OF_TEXT),
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.convert_tokens_to_ids(END_OF_TEXT),
        tie_word_embeddings=False,
    )
    make: Callable[[Qwen2Config], PreTrainedModel] = Qwen2ForCausalLM
    model = make(config)
    with torch.no_grad():
        model.lm_head.weight[tokenizer.eos_token_id] = 0.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _processor(family: Family) -> ProcessorMixin:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import (
        Qwen2_5_VLProcessor,
        Qwen2Tokenizer,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, show_progress=False))
    bpe.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS])
    tokenizer = Qwen2Tokenizer(tokenizer_object=bpe, eos_token=IM_END, pad_token=END_OF_TEXT)
    token_area = (family.patch * MERGE) ** 2
    image_processor = Qwen2VLImageProcessor(
        patch_size=family.patch,
        merge_size=MERGE,
        size={"shortest_edge": token_area, "longest_edge": token_area * MAX_VISUAL_TOKENS},
    )
    old = family is Family.QWEN2_5_VL
    video_class, processor_class = (
        (Qwen2VLVideoProcessor, Qwen2_5_VLProcessor) if old else (Qwen3VLVideoProcessor, Qwen3VLProcessor)
    )
    return processor_class(
        image_processor=image_processor,
        video_processor=video_class(patch_size=family.patch, merge_size=MERGE),
        tokenizer=tokenizer,
        chat_template=CHAT_TEMPLATE,
    )


def _model(family: Family, processor: ProcessorMixin, layers: int, heads: int) -> PreTrainedModel:
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
    )

    tokenizer = processor.tokenizer
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL_TOKENS}
    old = family is Family.QWEN2_5_VL
    head_dim = 64
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": heads * head_dim,
        "initializer_range": WEIGHT_STD,
        "intermediate_size": 2 * heads * head_dim,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": 1,
        "max_position_embeddings": MAX_POSITIONS,
        "rope_parameters": {"rope_type": "default", "mrope_section": [8, 12, 12], "rope_theta": 10_000.0},
        "bos_token_id": ids[END_OF_TEXT],
        "eos_token_id": ids[IM_END],
        "pad_token_id": ids[END_OF_TEXT],
        "tie_word_embeddings": False,
    }
    vision = {
        "depth": 2,
        "hidden_size": 64,
        "initializer_range": WEIGHT_STD,
        "intermediate_size": 128,
        "num_heads": 2,
        "out_hidden_size": text["hidden_size"],
        "patch_size": family.patch,
        "spatial_merge_size": MERGE,
        "temporal_patch_size": 2,
    }
    if old:
        vision |= {"window_size": 112, "fullatt_block_indexes": [1]}
    else:
        text |= {"head_dim": head_dim}
        text["rope_parameters"] = {**text["rope_parameters"], "mrope_interleaved": True}
        vision |= {"num_position_embeddings": 256, "deepstack_visual_indexes": [0]}
    config_class, model_class = (
        (Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration)
        if old
        else (Qwen3VLConfig, Qwen3VLForConditionalGeneration)
    )
    return model_class(
        config_class(
            text_config=text,
            vision_config=vision,
            image_token_id=ids[IMAGE_PAD],
            video_token_id=ids[VIDEO_PAD],
            vision_start_token_id=ids[VISION_START],
            vision_end_token_id=ids[VISION_END],
            tie_word_embeddings=False,
        )
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path, help="the folder to make")
    parser.add_argument("--family", type=Family, choices=list(Family), default=Family.QWEN2_5_VL)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    save_tiny_model(chosen.out, chosen.family, chosen.seed)
    print(f"saved a random-weight {chosen.family} to {chosen.out}")
