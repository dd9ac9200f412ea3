"""ColPali (vidore/colpali-v1.3-hf) by transformers' own class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import PictureSpec
from vrag_ray.embedding.models.architecture import Inputs, Prompt, integer
from vrag_ray.embedding.models.late_interaction import AUGMENTATION, LateInteraction
from vrag_ray.embedding.source import ModelSource
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from transformers import PreTrainedModel


class ColPali(LateInteraction):
    """Pictures of one fixed side: 448 px and 32 x 32 visual tokens in the published models, whatever the aspect."""

    kind = "colpali"

    def __init__(self, source: ModelSource, config: SpaceConfig) -> None:
        from transformers import ColPaliProcessor

        self.processor = ColPaliProcessor.from_pretrained(source.folder)
        super().__init__(source, config, self.processor.tokenizer)
        if config.max_pixels is not None:
            raise VragError(f"{source.name} sees pictures of one size: leave `max_pixels` out")
        self.side = integer(source.config, "vlm_config", "vision_config", "image_size")
        self.patch = integer(source.config, "vlm_config", "vision_config", "patch_size")
        self.visual_token = int(self.processor.image_token_id)

    @property
    def pictures(self) -> PictureSpec:
        area = self.side**2
        frames = self.config.max_frames
        return PictureSpec(self.patch, area, area, side=self.side, max_frames=frames, frame_pixels=area)

    @property
    def preprocessing(self) -> tuple[str, ...]:
        return (f"score-{self.score}", f"px{self.side**2}", f"frames{self.config.max_frames}")

    def query_text(self, words: str) -> tuple[str, int]:
        before = f"{self.tokenizer.bos_token}{self.processor.query_prefix}"
        return f"{before}{words}{self.processor.query_augmentation_token * AUGMENTATION}\n", len(before)

    def page_text(self) -> str:
        processor = self.processor
        return f"{processor.image_token}{self.tokenizer.bos_token}{processor.visual_prompt_prefix}\n"

    def encode_queries(self, texts: Sequence[str]) -> Inputs:
        # The begin token stands in the text: the processor has the tokenizer add none.
        encoded = self.tokenizer(
            list(texts), padding=True, return_tensors="pt", return_token_type_ids=True, add_special_tokens=True
        )
        return {name: encoded[name] for name in ("input_ids", "attention_mask", "token_type_ids")}

    def encode_pictures(self, pictures: Sequence[Image]) -> Inputs:
        inputs = self.processor.process_images(images=list(pictures))
        return {name: inputs[name] for name in ("input_ids", "attention_mask", "pixel_values", "token_type_ids")}

    def grid(self, prompt: Prompt, visual: int) -> tuple[int, int] | None:  # noqa: ARG002
        side = math.isqrt(visual)
        return (side, side) if side * side == visual else None

    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        from transformers import ColPaliForRetrieval

        return ColPaliForRetrieval.from_pretrained(self.source.folder, dtype=dtype)
