"""Queries and passages as a retriever's own processor prepares them, and which of their tokens are scored.

Vectors of a trained folder must be those that its embedder computes, so the forms are the published ones:
``ColQwen2Processor`` for late interaction, the chat template with the last token pooled for single vectors
(Qwen3-VL-Embedding, with a system prompt; GVE on Qwen2.5-VL, with an end-of-text token instead).
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from vrag_ray.embedding.base import Content, PictureSpec
from vrag_ray.embedding.models.late_interaction import AUGMENTATION
from vrag_ray.training.retriever.config import Scored
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from torch import Tensor
    from transformers import PreTrainedTokenizerFast, ProcessorMixin


@dataclass(frozen=True, slots=True)
class Inputs:
    """One forward pass: what the model takes, by name, and ``scored`` [contents, tokens], bool."""

    tensors: Mapping[str, Tensor]
    scored: Tensor

    def to(self, device: torch.device) -> Inputs:
        return Inputs({name: tensor.to(device) for name, tensor in self.tensors.items()}, self.scored.to(device))


class Form(Protocol):
    """How contents become inputs. Contents of one call all have a picture, or none of them has one."""

    def inputs(self, contents: Sequence[Content], *, queries: bool) -> Inputs:
        """Padded on the right. Raises VragError for a content that this kind of model does not take."""

    def tokens(self, content: Content) -> int:
        """About how many tokens a content takes, prompt included."""


class LateForm:
    """Pages and queries for ColQwen2. Words alone are a query, a picture is a page (also as a query)."""

    def __init__(self, processor: ProcessorMixin, scored: Scored) -> None:
        self._processor = processor
        self._tokenizer: PreTrainedTokenizerFast = processor.tokenizer
        self._tokenizer.padding_side = "right"
        self._scored = scored
        self._prefix = str(getattr(processor, "query_prefix"))  # noqa: B009  ColQwen2's own, not the base class's
        self._image_token_id = int(getattr(processor, "image_token_id"))  # noqa: B009
        self._pictures: Callable[..., Mapping[str, Tensor]] = getattr(processor, "process_images")  # noqa: B009
        self._queries: Callable[..., Mapping[str, Tensor]] = getattr(processor, "process_queries")  # noqa: B009
        self._prompt_tokens = len(self._tokenizer(str(getattr(processor, "visual_prompt_prefix")))["input_ids"])  # noqa: B009
        self._spec = picture_spec(processor)

    def inputs(self, contents: Sequence[Content], *, queries: bool) -> Inputs:
        if any(content.text and content.picture is not None for content in contents):
            raise VragError("ColQwen2 takes a text or a picture, not both in one: leave the text out")
        if contents[0].picture is not None:
            tensors = dict(self._pictures(images=[opened(content) for content in contents]))
            body = tensors["input_ids"] == self._image_token_id
        elif queries:
            texts = [content.text for content in contents]
            tensors = dict(self._queries(text=texts))
            body = body_of(self._tokenizer, [self._whole(text) for text in texts], len(self._prefix), texts)
        else:
            raise VragError(f"passages of ColQwen2 are pictures, not words: {contents[0].text[:60]!r}")
        if self._scored is Scored.ALL:
            return Inputs(tensors, tensors["attention_mask"].bool())
        # A token does not look at those after it: what follows the last scored one is computed for nothing.
        width = int(body.any(dim=0).nonzero().max()) + 1 if bool(body.any()) else body.shape[1]
        for name in ("input_ids", "attention_mask"):
            tensors[name] = tensors[name][:, :width]
        return Inputs(tensors, body[:, :width])

    def tokens(self, content: Content) -> int:
        if content.picture is not None:
            return self._prompt_tokens + visual_tokens(content.picture, self._spec)
        return len(self._tokenizer(self._whole(content.text))["input_ids"])

    def _whole(self, text: str) -> str:
        return f"{self._prefix}{text}{str(self._tokenizer.pad_token) * AUGMENTATION}\n"


class SingleForm:
    """A chat up to where the assistant would speak, and ``end``; the last token's state is the vector."""

    def __init__(
        self, processor: ProcessorMixin, query_instruction: str, passage_instruction: str, end: str = ""
    ) -> None:
        self._end = end
        self._processor: Callable[..., Mapping[str, Tensor]] = processor
        self._tokenizer: PreTrainedTokenizerFast = processor.tokenizer
        self._tokenizer.padding_side = "right"
        self._render: Callable[..., str] = processor.apply_chat_template
        self._instructions = {True: query_instruction, False: passage_instruction}
        self._image_token_id = int(getattr(processor, "image_token_id"))  # noqa: B009  each family's own
        self._spec = picture_spec(processor)
        self._overhead = len(self._tokenizer(self._chat("", picture=True, queries=True))["input_ids"])

    def inputs(self, contents: Sequence[Content], *, queries: bool) -> Inputs:
        shown = [opened(content) for content in contents if content.picture is not None]
        wholes = [
            self._chat(content.text, picture=content.picture is not None, queries=queries) for content in contents
        ]
        tensors = dict(self._processor(text=wholes, images=shown or None, padding=True, return_tensors="pt"))
        if shown:
            return Inputs(tensors, tensors["input_ids"] == self._image_token_id)
        # Where the words begin: two chats that differ in nothing but these differ from there on.
        first, other = (self._chat(text, picture=False, queries=queries) for text in "ab")
        start = next(place for place, (here, there) in enumerate(zip(first, other, strict=True)) if here != there)
        return Inputs(tensors, body_of(self._tokenizer, wholes, start, [content.text for content in contents]))

    def tokens(self, content: Content) -> int:
        seen = 0 if content.picture is None else visual_tokens(content.picture, self._spec)
        return self._overhead + seen + (len(self._tokenizer(content.text)["input_ids"]) if content.text else 0)

    def _chat(self, text: str, *, picture: bool, queries: bool) -> str:
        instruction = self._instructions[queries]
        parts = [{"type": "image"}] * picture + [{"type": "text", "text": text}] * bool(text)
        system = [{"role": "system", "content": [{"type": "text", "text": instruction}]}] * bool(instruction)
        chat = [*system, {"role": "user", "content": parts}]
        return self._render(chat, add_generation_prompt=True, tokenize=False) + self._end


def body_of(tokenizer: PreTrainedTokenizerFast, wholes: Sequence[str], start: int, texts: Sequence[str]) -> Tensor:
    """[contents, tokens], bool: the tokens of ``texts``, each of which begins at ``start`` in its whole."""
    import torch

    spans = tokenizer(list(wholes), padding=True, return_offsets_mapping=True, return_tensors="pt")["offset_mapping"]
    ends = torch.tensor([start + len(text) for text in texts])[:, None]
    begun, ended = spans[..., 0], spans[..., 1]
    body: Tensor = (begun < ends) & (ended > start) & (ended > begun)
    return body


def opened(content: Content) -> Image:
    """The picture of ``content``, as RGB."""
    from PIL import Image

    return Image.open(io.BytesIO(content.picture or b""), formats=("PNG",)).convert("RGB")


def picture_spec(processor: ProcessorMixin, max_pixels: int | None = None) -> PictureSpec:
    """What the image processor leaves as it is: whole merged patches, within its limits and ``max_pixels``."""
    image = processor.image_processor
    patch = int(image.patch_size) * int(image.merge_size)
    smallest, largest = int(image.size["shortest_edge"]), int(image.size["longest_edge"])
    most = min(largest, max_pixels or largest)
    if most < patch * patch:
        raise VragError(f"max_pixels {most} is less than one visual token of {patch} x {patch} pixels: give more")
    return PictureSpec(patch=patch, min_pixels=min(smallest, most), max_pixels=most)


def visual_tokens(png: bytes, spec: PictureSpec) -> int:
    from vrag_ray.imaging.fitting import size_of

    return size_of(png).pixels // spec.patch**2
