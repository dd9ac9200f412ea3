"""Qwen3-VL-Embedding (Qwen/Qwen3-VL-Embedding-2B and -8B), by its README and example code."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.models.qwen_vl import Message, Part, QwenLimits, QwenVlEmbedding
from vrag_ray.embedding.runtime import head_unreported
from vrag_ray.embedding.source import ModelSource

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

PASSAGE_INSTRUCTION = "Represent the user's input."
QUERY_INSTRUCTION = "Retrieve images or text relevant to the user's query."
EMPTY = "NULL"
"""What an empty content is written as."""
LIMITS = QwenLimits(
    min_pixels=4 * 32 * 32,
    max_pixels=1800 * 32 * 32,
    frame_pixels=768 * 32 * 32,
    clip_pixels=10 * 768 * 32 * 32,
    max_tokens=8192,
)
CLIP = "<|video_pad|>"
WRAPPED_CLIP = f"<|vision_start|>{CLIP}<|vision_end|>"
MILLISECONDS = 1000.0


class Qwen3VlEmbedding(QwenVlEmbedding):
    """System turn: the instruction. User turn: picture or clip, then words. The vector is that of the newline after
    the assistant's header. Clips carry the times of their frames in the prompt."""

    kind = "qwen3-vl-embedding"
    takes_instruction = True

    def __init__(self, source: ModelSource, config: SpaceConfig) -> None:
        super().__init__(source, config, LIMITS)
        recipe = source.recipe
        self._passage = sentence(recipe.instruction or PASSAGE_INSTRUCTION)
        self._query = sentence(config.instruction or recipe.query_instruction or QUERY_INSTRUCTION)

    def messages(self, parts: list[Part], *, query: bool) -> list[Message]:
        if parts == [{"type": "text", "text": ""}]:
            parts = [{"type": "text", "text": EMPTY}]
        instruction = self._query if query else self._passage
        system = [{"type": "text", "text": instruction}]
        return [{"role": "system", "content": system}, {"role": "user", "content": parts}]

    def clip_mark(self, rendered: str) -> str:
        return without_outer_marks(rendered)

    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        from transformers import Qwen3VLModel

        with head_unreported():
            return Qwen3VLModel.from_pretrained(self.source.folder, dtype=dtype)

    def clip_size(self) -> dict[str, int]:
        # This processor's limits count the pixels of all frames together.
        return {"shortest_edge": self.min_pixels, "longest_edge": self.frame_pixels * self.max_frames}

    def clip_metadata(self, times: Sequence[float]) -> dict[str, object]:
        return clip_metadata(times)


def clip_metadata(times: Sequence[float]) -> dict[str, object]:
    """Seconds as this model's processor reads them: a frame's stamp is its place over the rate, so as if the clip had
    a thousand frames a second."""
    places = [round(time * MILLISECONDS) for time in times]
    return {"total_num_frames": places[-1] + 1, "fps": MILLISECONDS, "frames_indices": places}


def without_outer_marks(rendered: str) -> str:
    """A chat whose clips have no marks around the whole, because each of their steps has its own: the releases of
    transformers that the model was made with (before 5.10) replaced the outer ones, later ones leave them."""
    return rendered.replace(WRAPPED_CLIP, CLIP)


def sentence(instruction: str) -> str:
    """With a full stop where the last character is no punctuation, as the authors' code has it."""
    instruction = instruction.strip()
    ended = bool(instruction) and unicodedata.category(instruction[-1]).startswith("P")
    return instruction if ended or not instruction else f"{instruction}."
