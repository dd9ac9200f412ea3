"""ColQwen2 (vidore/colqwen2-v1.0-hf) by transformers' own class; also what our own retriever is saved as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Modality, PictureSpec
from vrag_ray.embedding.models.architecture import Inputs, Prompt, VllmPlan, integer
from vrag_ray.embedding.models.late_interaction import AUGMENTATION, LateInteraction
from vrag_ray.embedding.source import ModelSource

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from transformers import PretrainedConfig, PreTrainedModel


MAX_TOKENS = 8192
VLLM_CLASSES = {
    "qwen2_vl": {"ColQwen2OnQwen2Vl": "vrag_ray.embedding.engines.vllm_colqwen2:ColQwen2OnQwen2Vl"},
    "qwen2_5_vl": {"ColQwen2OnQwen25Vl": "vrag_ray.embedding.engines.vllm_colqwen2:ColQwen2OnQwen25Vl"},
}
"""By the model underneath."""


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

    def vllm_plan(self) -> VllmPlan | None:
        base = self.source.config.get("vlm_config")
        kind = str(base.get("model_type")) if isinstance(base, Mapping) else ""
        if kind not in VLLM_CLASSES:
            return None
        longest = integer(self.source.config, "vlm_config", "text_config", "max_position_embeddings")
        size = {"shortest_edge": self.min_pixels, "longest_edge": self.max_pixels}
        return VllmPlan(
            task="token_embed",
            pooling=None,
            max_tokens=min(longest, MAX_TOKENS),
            sees=frozenset({Modality.PICTURE}),
            processor_arguments={"images_kwargs": {"size": size}},
            classes=VLLM_CLASSES[kind],
            config=_vision_language_config,
        )

    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        from transformers import ColQwen2ForRetrieval

        return ColQwen2ForRetrieval.from_pretrained(self.source.folder, dtype=dtype)


def _vision_language_config(config: PretrainedConfig) -> PretrainedConfig:
    """That of the model underneath, which says that it is projected; its language head is never used."""
    # vLLM asks once with a blank configuration, to see whether the model's type is changed.
    inner: PretrainedConfig | None = getattr(config, "vlm_config", None)
    if inner is None:
        return config
    inner.architectures = list(VLLM_CLASSES[inner.model_type])
    inner.embedding_dim = config.embedding_dim
    inner.tie_word_embeddings = True
    inner.get_text_config().tie_word_embeddings = True
    return inner
