"""What the embedders on a Qwen vision-language model share: chat prompts, pixel limits, the last token's vector."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Modality, PictureSpec
from vrag_ray.embedding.models.architecture import (
    Architecture,
    Inputs,
    Prompt,
    TokenVectors,
    VllmPlan,
    as_array,
    cut_to,
    integer,
)
from vrag_ray.embedding.models.decoding import DecodedContent
from vrag_ray.embedding.source import ModelSource

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from transformers import PreTrainedModel, ProcessorMixin

Part = dict[str, str]
Message = dict[str, str | list[Part]]


@dataclass(frozen=True, slots=True)
class QwenLimits:
    """Pixels of one picture, of one frame and of all frames of a clip; tokens of a prompt."""

    min_pixels: int
    max_pixels: int
    frame_pixels: int
    clip_pixels: int
    max_tokens: int


class QwenVlEmbedding(Architecture):
    """One vector: the last token's after the model's final norm (``last_hidden_state``; with older transformers the
    last of ``hidden_states`` was before it), in a batch padded on the right. Pictures and clips stand before the words.

    Pictures are resized by transformers' processor and not by the authors' own package, whose filter differs: that is
    a part of the id. Words beyond the model's length are cut from their end; the template stays whole.
    """

    trained_for_mrl = True

    def __init__(self, source: ModelSource, config: SpaceConfig, limits: QwenLimits) -> None:
        from transformers import AutoProcessor

        super().__init__(source, config)
        read: Callable[..., ProcessorMixin] = AutoProcessor.from_pretrained
        self.processor = read(source.folder)
        self.tokenizer = self.processor.tokenizer
        self.tokenizer.padding_side = "right"
        recipe = source.recipe
        self.min_pixels = recipe.min_pixels or limits.min_pixels
        self.max_pixels = config.max_pixels or recipe.max_pixels or limits.max_pixels
        self.max_frames = config.max_frames
        self.frame_pixels = min(limits.frame_pixels, limits.clip_pixels // self.max_frames, self.max_pixels)
        longest = integer(source.config, "text_config", "max_position_embeddings")
        self.max_tokens = min(limits.max_tokens, longest)

    @property
    def dim(self) -> int:
        return integer(self.source.config, "text_config", "hidden_size")

    @property
    def modalities(self) -> frozenset[Modality]:
        return frozenset(Modality)

    @cached_property
    def patch(self) -> int:
        """Pixels a side of one visual token."""
        pictures = self.processor.image_processor
        return int(pictures.patch_size * pictures.merge_size)

    @property
    def pictures(self) -> PictureSpec:
        return PictureSpec(
            patch=self.patch,
            min_pixels=self.min_pixels,
            max_pixels=self.max_pixels,
            max_frames=self.max_frames,
            frame_pixels=self.frame_pixels,
        )

    @property
    def preprocessing(self) -> tuple[str, ...]:
        template = "".join(self._rendered(DecodedContent(text="|"), query=query, words="|") for query in (False, True))
        return (
            f"prompt-{hashlib.sha256(template.encode()).hexdigest()[:8]}",
            f"px{self.min_pixels}-{self.max_pixels}",
            f"frames{self.max_frames}x{self.frame_pixels}",
        )

    @abstractmethod
    def messages(self, parts: list[Part], *, query: bool) -> list[Message]:
        """The chat around the content's parts."""

    def suffix(self) -> str:
        """What follows the chat's last turn."""
        return ""

    def clip_mark(self, rendered: str) -> str:
        """The chat with a clip's placeholder as the model was trained on it."""
        return rendered

    def prompts(self, content: DecodedContent, *, query: bool) -> tuple[Prompt, ...]:
        picture, frames, times = content.picture, content.frames, content.frame_times
        if len(frames) == 1:
            # Two frames become one step of time: a single one stands for both.
            frames, times = frames * 2, times * 2
        around = self._rendered(content, query=query, words="")
        taken = len(self.tokenizer(around, verbose=False)["input_ids"]) + self._visual_tokens(picture, frames)
        words = cut_to(self.words(content.text), self.tokenizer, self.max_tokens - taken)
        return (Prompt(self._rendered(content, query=query, words=words), (0, 0), picture, frames, times),)

    def encode(self, prompts: Sequence[Prompt]) -> Inputs:
        pictures = [prompt.picture for prompt in prompts if prompt.picture is not None]
        clips = [prompt for prompt in prompts if prompt.frames]
        inputs: Inputs = self.processor(
            text=[prompt.text for prompt in prompts],
            images=pictures or None,
            videos=[frames_array(prompt.frames) for prompt in clips] or None,
            text_kwargs={"padding": True},
            images_kwargs={"size": self.picture_size()},
            videos_kwargs={
                "size": self.clip_size(),
                "do_sample_frames": False,
                "cap_pixels_per_frame": False,
                "video_metadata": [self.clip_metadata(prompt.times) for prompt in clips],
                "return_metadata": True,
            }
            if clips
            else {},
            return_tensors="pt",
        )
        return {name: value for name, value in inputs.items() if name != "video_metadata"}

    def forward(self, model: PreTrainedModel, inputs: Inputs) -> list[TokenVectors]:
        hidden: torch.Tensor = model(**inputs, use_cache=False).last_hidden_state
        last = inputs["attention_mask"].sum(dim=1) - 1
        rows = as_array(hidden[range(len(hidden)), last])
        return [TokenVectors((), row[None]) for row in rows]

    def vllm_plan(self) -> VllmPlan:
        clips = {"size": self.clip_size(), "do_sample_frames": False, "cap_pixels_per_frame": False}
        arguments = {"images_kwargs": {"size": self.picture_size()}, "videos_kwargs": clips}
        sees = frozenset({Modality.PICTURE, Modality.CLIP})
        return VllmPlan("embed", "LAST", self.max_tokens, sees, processor_arguments=arguments)

    def picture_size(self) -> dict[str, int]:
        return {"shortest_edge": self.min_pixels, "longest_edge": self.max_pixels}

    @abstractmethod
    def clip_size(self) -> dict[str, int]:
        """The limits as the video processor of this model counts them."""

    def _rendered(self, content: DecodedContent, *, query: bool, words: str) -> str:
        parts: list[Part] = []
        if content.picture is not None:
            parts.append({"type": "image"})
        if content.frames:
            parts.append({"type": "video"})
        if words or not parts:
            parts.append({"type": "text", "text": words})
        messages = self.messages(parts, query=query)
        # Its declared type knows texts only.
        render: Callable[..., str] = self.processor.apply_chat_template
        rendered = render(messages, add_generation_prompt=True, tokenize=False)
        return f"{self.clip_mark(rendered)}{self.suffix()}"

    def _visual_tokens(self, picture: Image | None, frames: Sequence[Image]) -> int:
        area = self.patch**2
        tokens = 0
        if picture is not None:
            tokens += min(max(picture.width * picture.height, self.min_pixels), self.max_pixels) // area
        if frames:
            pixels = min(frames[0].width * frames[0].height, self.frame_pixels)
            # Beside each step of time, its stamp and marks.
            tokens += (len(frames) + 1) // 2 * (pixels // area + 16)
        return tokens


def frames_array(frames: Sequence[Image]) -> np.ndarray:
    """(frames, height, width, 3) of bytes."""
    return np.stack([np.asarray(frame) for frame in frames])
