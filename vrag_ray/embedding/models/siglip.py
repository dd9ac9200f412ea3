"""SigLIP and SigLIP-2: a small text tower and a picture tower that meet in one space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Embedding, Modality, PictureSpec
from vrag_ray.embedding.models.architecture import (
    Architecture,
    Inputs,
    Prompt,
    TokenVectors,
    as_array,
    integer,
    unit_rows,
)
from vrag_ray.embedding.models.decoding import DecodedContent
from vrag_ray.embedding.source import ModelSource
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from transformers import PreTrainedModel, ProcessorMixin
    from transformers.modeling_outputs import BaseModelOutputWithPooling

MAX_TOKENS = 64


class Siglip(Architecture):
    """Pictures of one fixed side (``siglip``), which is what most SigLIP-2 checkpoints are too.

    Texts are written small, padded on the right to 64 tokens and read without a mask, as in training: the vector is
    that of the last position, padding or not. A query of words and a picture is the mean of both vectors, a clip the
    mean of its frames; a passage with a picture is embedded by the picture alone, because 64 tokens hold no page.
    """

    kind = "siglip"
    has_fixed_size = True

    def __init__(self, source: ModelSource, config: SpaceConfig) -> None:
        from transformers import AutoProcessor

        super().__init__(source, config)
        if self.has_fixed_size and config.max_pixels is not None:
            raise VragError(f"{source.name} sees pictures of one size: leave `max_pixels` out")
        read: Callable[..., ProcessorMixin] = AutoProcessor.from_pretrained
        self.processor = read(source.folder)
        self.tokenizer = self.processor.tokenizer
        self.tokenizer.padding_side = "right"
        self._max_tokens = min(MAX_TOKENS, integer(source.config, "text_config", "max_position_embeddings"))

    @property
    def dim(self) -> int:
        return integer(self.source.config, "vision_config", "hidden_size")

    @property
    def modalities(self) -> frozenset[Modality]:
        return frozenset(Modality)

    @property
    def pictures(self) -> PictureSpec:
        vision = self.source.config.get("vision_config")
        side = int(vision.get("image_size", 224)) if isinstance(vision, dict) else 224
        patch = int(vision.get("patch_size", 16)) if isinstance(vision, dict) else 16
        return PictureSpec(
            patch=patch,
            min_pixels=side**2,
            max_pixels=side**2,
            side=side,
            max_frames=self.config.max_frames,
            frame_pixels=side**2,
        )

    @property
    def preprocessing(self) -> tuple[str, ...]:
        return (f"lower-tokens{self._max_tokens}", f"px{self.pictures.max_pixels}", f"frames{self.config.max_frames}")

    def prompts(self, content: DecodedContent, *, query: bool) -> tuple[Prompt, ...]:
        pictures = [Prompt(picture=frame) for frame in content.frames]
        if content.picture is not None:
            pictures.append(Prompt(picture=content.picture))
        if pictures and not (query and content.text.strip()):
            return tuple(pictures)
        text = self.words(content.text).lower()
        return (Prompt(text, (0, len(text))), *pictures)

    def join(self, parts: Sequence[Embedding]) -> Embedding:
        return Embedding(unit_rows(np.concatenate([part.vectors for part in parts]).mean(axis=0, keepdims=True)))

    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        from transformers import SiglipModel

        return SiglipModel.from_pretrained(self.source.folder, dtype=dtype)

    def encode(self, prompts: Sequence[Prompt]) -> Inputs:
        pictures = [prompt.picture for prompt in prompts if prompt.picture is not None]
        if pictures:
            return self.encode_pictures(pictures)
        texts = [prompt.text for prompt in prompts]
        encoded = self.tokenizer(
            texts, padding="max_length", truncation=True, max_length=self._max_tokens, return_tensors="pt"
        )
        return {"input_ids": encoded["input_ids"]}

    def pooled(self, model: PreTrainedModel, tower: str, inputs: Inputs) -> list[TokenVectors]:
        """The attention-pooled vector of a picture, or the projected last position of a text."""
        run: Callable[..., BaseModelOutputWithPooling] = getattr(model, tower)
        pooled = run(**inputs).pooler_output
        assert pooled is not None
        return [TokenVectors((), row[None]) for row in as_array(pooled)]

    def encode_pictures(self, pictures: Sequence[Image]) -> Inputs:
        encoded = self.processor.image_processor(list(pictures), return_tensors="pt")
        return {"pixel_values": encoded["pixel_values"]}

    def forward(self, model: PreTrainedModel, inputs: Inputs) -> list[TokenVectors]:
        if "pixel_values" not in inputs:
            return self.pooled(model, "text_model", inputs)
        return self.pooled(model, "vision_model", {**inputs, "pixel_values": inputs["pixel_values"].to(model.dtype)})


class Siglip2(Siglip):
    """Pictures of any aspect (NaFlex): at most ``num_patches`` patches, their padding masked."""

    kind = "siglip2"
    has_fixed_size = False

    def __init__(self, source: ModelSource, config: SpaceConfig) -> None:
        super().__init__(source, config)
        pictures = self.processor.image_processor
        self._patch = int(pictures.patch_size)
        self._patches = int(pictures.max_num_patches)
        if config.max_pixels is not None:
            self._patches = max(1, min(self._patches, config.max_pixels // self._patch**2))

    @property
    def pictures(self) -> PictureSpec:
        pixels = self._patches * self._patch**2
        # The processor enlarges what is smaller, so that a page is best drawn as large as it may be.
        return PictureSpec(
            patch=self._patch,
            min_pixels=pixels // 2,
            max_pixels=pixels,
            max_frames=self.config.max_frames,
            frame_pixels=pixels,
        )

    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        from transformers import Siglip2Model

        return Siglip2Model.from_pretrained(self.source.folder, dtype=dtype)

    def encode_pictures(self, pictures: Sequence[Image]) -> Inputs:
        encoded = self.processor.image_processor(list(pictures), max_num_patches=self._patches, return_tensors="pt")
        return {
            "pixel_values": encoded["pixel_values"],
            "pixel_attention_mask": encoded["pixel_attention_mask"],
            "spatial_shapes": encoded["spatial_shapes"],
        }
