"""Qwen3-VL-Reranker (Qwen/Qwen3-VL-Reranker-2B and -8B), by its authors' example code."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.config import RerankerConfig
from vrag_ray.embedding.base import Content, EmbedError, PictureSpec
from vrag_ray.embedding.models.architecture import cut_to
from vrag_ray.embedding.models.decoding import decoded_content
from vrag_ray.embedding.models.qwen3_vl_embedding import EMPTY, LIMITS, clip_metadata, without_outer_marks
from vrag_ray.embedding.models.qwen_vl import Message, Part, frames_array
from vrag_ray.embedding.runtime import chosen_device, chosen_dtype
from vrag_ray.embedding.source import ModelSource
from vrag_ray.embedding.words import encodable, special_tokens, without_special
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from transformers import ProcessorMixin, Qwen3VLForConditionalGeneration

SYSTEM = (
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".'
)
INSTRUCTION = "Given a search query, retrieve relevant candidates that answer the query."
MAX_TOKENS = 10_240


@dataclass(frozen=True, slots=True)
class _Side:
    """The query or the passage, decoded."""

    words: str
    picture: Image | None
    frames: tuple[Image, ...]
    times: tuple[float, ...]

    def parts(self, words: str) -> list[Part]:
        parts: list[Part] = [{"type": "video"}] if self.frames else []
        if self.picture is not None:
            parts.append({"type": "image"})
        if words or not parts:
            parts.append({"type": "text", "text": words or EMPTY})
        return parts


class Qwen3VlReranker:
    """The model judges whether the passage meets the query; the score is sigmoid(logit of "yes" - logit of "no") at
    the place where it would answer. Words of a passage beyond the model's length are cut from their end.

    Thread-safe: calls wait for each other.
    """

    def __init__(self, source: ModelSource, config: RerankerConfig) -> None:
        from torch.nn import Module
        from transformers import AutoProcessor, Qwen3VLForConditionalGeneration

        read: Callable[..., ProcessorMixin] = AutoProcessor.from_pretrained
        self._processor = read(source.folder)
        self._tokenizer = self._processor.tokenizer
        self._tokenizer.padding_side = "right"
        self._marks = special_tokens(self._tokenizer)
        self._batch = config.batch
        self._max_pixels = config.max_pixels or source.recipe.max_pixels or LIMITS.max_pixels
        self._min_pixels = min(source.recipe.min_pixels or LIMITS.min_pixels, self._max_pixels)
        device = chosen_device(config.device)
        self._device = device
        try:
            model = Qwen3VLForConditionalGeneration.from_pretrained(
                source.folder, dtype=chosen_dtype(config.dtype, device)
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise VragError(f"the weights of {source.name} in {source.folder} cannot be loaded: {error}") from error
        model.train(mode=False)
        Module.to(model, device)
        self._model: Qwen3VLForConditionalGeneration = model
        self._answers = [self._token("yes", source.name), self._token("no", source.name)]
        self._lock = threading.Lock()
        prompt = hashlib.sha256(f"{SYSTEM}{INSTRUCTION}".encode()).hexdigest()[:8]
        self.id = f"{source.name}@{source.identity}/qwen3-vl-reranker/prompt-{prompt}/px{self._max_pixels}"

    @property
    def pictures(self) -> PictureSpec:
        processor = self._processor.image_processor
        return PictureSpec(processor.patch_size * processor.merge_size, self._min_pixels, self._max_pixels)

    def score(self, query: Content, passages: Sequence[Content]) -> list[float]:
        query_side = self._side(query, "the query")
        sides = [self._side(passage, f"passage {place}") for place, passage in enumerate(passages)]
        with self._lock:
            return [
                score
                for start in range(0, len(sides), self._batch)
                for score in self._scored(query_side, sides[start : start + self._batch])
            ]

    def _scored(self, query: _Side, passages: Sequence[_Side]) -> list[float]:
        import torch

        inputs = self._encoded(query, passages)
        with torch.inference_mode():
            on_device = {name: value.to(self._device) for name, value in inputs.items()}
            states: torch.Tensor = self._model.model(**on_device, use_cache=False).last_hidden_state
            last = on_device["attention_mask"].sum(dim=1) - 1
            yes, no = self._model.lm_head.weight[self._answers].float()
            margins = states[range(len(states)), last].float() @ (yes - no)
        return [float(score) for score in torch.sigmoid(margins)]

    def _encoded(self, query: _Side, passages: Sequence[_Side]) -> dict[str, torch.Tensor]:
        shown = [side for passage in passages for side in (query, passage)]
        pictures = [side.picture for side in shown if side.picture is not None]
        clips = [side for side in shown if side.frames]
        run: Callable[..., dict[str, torch.Tensor]] = self._processor
        size = {"shortest_edge": self._min_pixels, "longest_edge": self._max_pixels}
        clip_size = {"shortest_edge": self._min_pixels, "longest_edge": LIMITS.clip_pixels}
        encoded = run(
            text=[self._prompt(query, passage) for passage in passages],
            images=pictures or None,
            videos=[frames_array(side.frames) for side in clips] or None,
            text_kwargs={"padding": True},
            images_kwargs={"size": size},
            videos_kwargs={
                "size": clip_size,
                "do_sample_frames": False,
                "cap_pixels_per_frame": False,
                "video_metadata": [clip_metadata(side.times) for side in clips],
                "return_metadata": True,
            }
            if clips
            else {},
            return_tensors="pt",
        )
        length = encoded["input_ids"].shape[1]
        if length > MAX_TOKENS:
            raise EmbedError(f"query and passage take {length} tokens of {MAX_TOKENS}: set a lower reranker.max_pixels")
        return {name: value for name, value in encoded.items() if name != "video_metadata"}

    def _prompt(self, query: _Side, passage: _Side) -> str:
        around = len(self._tokenizer(self._chat(query, passage, ""), verbose=False)["input_ids"])
        seen = sum(self._visual_tokens(side) for side in (query, passage))
        return self._chat(query, passage, cut_to(passage.words, self._tokenizer, MAX_TOKENS - around - seen))

    def _chat(self, query: _Side, passage: _Side, words: str) -> str:
        user: list[Part] = [
            {"type": "text", "text": f"<Instruct>: {INSTRUCTION}"},
            {"type": "text", "text": "<Query>:"},
            *query.parts(query.words),
            {"type": "text", "text": "\n<Document>:"},
            *passage.parts(words),
        ]
        messages: list[Message] = [
            {"role": "system", "content": [{"type": "text", "text": SYSTEM}]},
            {"role": "user", "content": user},
        ]
        render: Callable[..., str] = self._processor.apply_chat_template
        return without_outer_marks(render(messages, add_generation_prompt=True, tokenize=False))

    def _side(self, content: Content, name: str) -> _Side:
        try:
            shown = decoded_content(content)
        except EmbedError as error:
            raise EmbedError(f"{name} cannot be read: {error}") from error
        frames, times = shown.frames, shown.frame_times
        if len(frames) == 1:
            frames, times = frames * 2, times * 2
        words = without_special(encodable(content.text), self._marks)
        return _Side(words, shown.picture, frames, times)

    def _visual_tokens(self, side: _Side) -> int:
        area = (self._processor.image_processor.patch_size * self._processor.image_processor.merge_size) ** 2
        tokens = 0
        if side.picture is not None:
            tokens += min(max(side.picture.width * side.picture.height, self._min_pixels), self._max_pixels) // area
        if side.frames:
            pixels = side.frames[0].width * side.frames[0].height
            tokens += (len(side.frames) + 1) // 2 * (pixels // area + 16)
        return tokens

    def _token(self, word: str, name: str) -> int:
        ids: list[int] = self._tokenizer(word, add_special_tokens=False)["input_ids"]
        if len(ids) != 1:
            raise VragError(f'{name} has no token "{word}", so it cannot answer: use Qwen3-VL-Reranker')
        return ids[0]
