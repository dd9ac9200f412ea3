"""Tokenizer, chat template and image processor of the mosaic models."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from benchmarks.mosaic.tokenizer_corpus import tokenizer_corpus_chats
from benchmarks.mosaic.vocabulary import vocabulary
from benchmarks.mosaic.world.drawing import page_side
from vrag_ray.agent.chat import ImagePart, Message
from vrag_ray.imaging.coordinates import FAMILIES
from vrag_ray.types import FamilyName

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import ProcessorMixin

SPECIAL_TOKENS = {
    "end_of_text": "<|endoftext|>",
    "im_start": "<|im_start|>",
    "im_end": "<|im_end|>",
    "vision_start": "<|vision_start|>",
    "vision_end": "<|vision_end|>",
    "vision_pad": "<|vision_pad|>",
    "image_pad": "<|image_pad|>",
    "video_pad": "<|video_pad|>",
}
MERGE = 2
BYTES_AND_MERGES = 320
"""Size of the vocabulary that spells what has no token of its own: all bytes, and the commonest pairs of the tokens."""
CHAT_TEMPLATE = """\
{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '\\n' -}}
  {%- if message.content is string -%}{{ message.content }}
  {%- else -%}
    {%- for part in message.content -%}
      {%- if part.type == 'image' -%}<|vision_start|><|image_pad|><|vision_end|>
      {%- else -%}{{ part.text }}{%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""


def mosaic_processor(family: FamilyName) -> ProcessorMixin:
    """A processor as ``transformers`` loads it: a page becomes 4 x 4 visual tokens."""
    from transformers import (
        Qwen2_5_VLProcessor,
        Qwen2Tokenizer,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    tokenizer = Qwen2Tokenizer(
        tokenizer_object=_tokenizer(family),
        bos_token=None,
        eos_token=SPECIAL_TOKENS["im_end"],
        pad_token=SPECIAL_TOKENS["end_of_text"],
    )
    known = FAMILIES[family]
    patch = known.patch // MERGE
    image_processor = Qwen2VLImageProcessor(
        patch_size=patch,
        merge_size=MERGE,
        size={"shortest_edge": known.patch**2, "longest_edge": page_side(known) ** 2},
    )
    old = family is FamilyName.QWEN2_5_VL
    video_class, processor_class = (
        (Qwen2VLVideoProcessor, Qwen2_5_VLProcessor) if old else (Qwen3VLVideoProcessor, Qwen3VLProcessor)
    )
    return processor_class(
        image_processor=image_processor,
        video_processor=video_class(patch_size=patch, merge_size=MERGE),
        tokenizer=tokenizer,
        chat_template=CHAT_TEMPLATE,
    )


def chat_text(messages: tuple[Message, ...]) -> str:
    """A whole chat as ``CHAT_TEMPLATE`` writes it."""
    picture = "".join(SPECIAL_TOKENS[name] for name in ("vision_start", "image_pad", "vision_end"))
    turns = (
        f"{message.role.value}\n"
        + "".join(picture if isinstance(part, ImagePart) else part.text for part in message.parts)
        for message in messages
    )
    return "".join(f"{SPECIAL_TOKENS['im_start']}{turn}{SPECIAL_TOKENS['im_end']}\n" for turn in turns)


def _tokenizer(family: FamilyName) -> Tokenizer:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

    pieces = _pieces(family)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=BYTES_AND_MERGES, initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator(pieces, trainer)
    bpe.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS.values()])
    bpe.add_tokens([AddedToken(piece, normalized=False) for piece in pieces])
    return bpe


@cache
def _pieces(family: FamilyName) -> tuple[str, ...]:
    """The vocabulary, for which 2,500 chats are played: seconds."""
    return vocabulary(family, map(chat_text, tokenizer_corpus_chats(family)))
