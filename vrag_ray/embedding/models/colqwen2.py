"""ColQwen2 (vidore/colqwen2-v1.0-hf) by transformers' own class; also what our own retriever is saved as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import PictureSpec
from vrag_ray.embedding.models.architecture import Inputs, Prompt
from vrag_ray.embedding.models.late_interaction import AUGMENTATION, LateInteraction
from vrag_ray.embedding.models.source import ModelSource

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from transformers import PreTrainedModel


class ColQwen2(LateInteraction):
    """Pictures of any aspect; a visual token covers 28 x 28 px (two by two patches). Pixel limits are those of the
    folder's own processor, unless its recipe or the configuration says otherwise."""

    kind = "colqwen2"

    def __init__(self, source: ModelSource, config: SpaceConfig) -> None:
        from transformers import ColQwen2Processor

        self.processor = ColQwen2Processor.from_pretrained(source.folder)
        super().__init__(source, config, self.processor.tokenizer)
        pictures = self.processor.image_processor
        self.patch = int(pictures.patch_size * pictures.merge_size)
        self.min_pixels = source.recipe.min_pixels or int(pictures.size["shortest_edge"])
        self.max_pixels = config.max_pixels or source.recipe.max_pixels or int(pictures.size["longest_edge"])
        self.min_pixels = min(self.min_pixels, self.max_pixels)
        self.visual_token = int(self.processor.image_token_id)

    @property
    def pictures(self) -> PictureSpec:
        return PictureSpec(
            patch=self.patch,
            min_pixels=self.min_pixels,
            max_pixels=self.max_pixels,
            max_frames=self.config.max_frames,
            frame_pixels=self.max_pixels,
        )

    @property
    def preprocessing(self) -> tuple[str, ...]:
        return (f"score-{self.score}", f"px{self.min_pixels}-{self.max_pixels}", f"frames{self.config.max_frames}")

    def query_text(self, words: str) -> tuple[str, int]:
        prefix = self.processor.query_prefix
        return f"{prefix}{words}{self.processor.query_augmentation_token * AUGMENTATION}\n", len(prefix)

    def page_text(self) -> str:
        return str(self.processor.visual_prompt_prefix)

    def encode_pictures(self, pictures: Sequence[Image]) -> Inputs:
        size = {"shortest_edge": self.min_pixels, "longest_edge": self.max_pixels}
        inputs = self.processor.process_images(images=list(pictures), images_kwargs={"size": size})
        names = ("input_ids", "attention_mask", "pixel_values", "image_grid_thw")
        return {name: inputs[name] for name in names}

    def grid(self, prompt: Prompt, visual: int) -> tuple[int, int] | None:
        from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize

        assert prompt.picture is not None
        height, width = smart_resize(
            prompt.picture.height, prompt.picture.width, self.patch, self.min_pixels, self.max_pixels
        )
        rows, columns = height // self.patch, width // self.patch
        return (rows, columns) if rows * columns == visual else None

    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        from transformers import ColQwen2ForRetrieval

        return ColQwen2ForRetrieval.from_pretrained(self.source.folder, dtype=dtype)
