"""GVE (Alibaba-NLP/GVE-3B and -7B): a general video, picture and text embedder on Qwen2.5-VL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Modality
from vrag_ray.embedding.models.architecture import VllmPlan
from vrag_ray.embedding.models.qwen_vl import Message, Part, QwenLimits, QwenVlEmbedding
from vrag_ray.embedding.runtime import head_unreported
from vrag_ray.embedding.source import ModelSource

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

END = "<|endoftext|>"
LIMITS = QwenLimits(
    min_pixels=4 * 28 * 28,
    max_pixels=256 * 28 * 28,
    frame_pixels=256 * 28 * 28,
    clip_pixels=64 * 256 * 28 * 28,
    max_tokens=8192,
)


class Gve(QwenVlEmbedding):
    """A user turn alone, no instruction on either side, and one end-of-text token after the assistant's header, whose
    vector is the content's."""

    kind = "gve"

    def __init__(self, source: ModelSource, config: SpaceConfig) -> None:
        super().__init__(source, config, LIMITS)

    def messages(self, parts: list[Part], *, query: bool) -> list[Message]:  # noqa: ARG002
        return [{"role": "user", "content": parts}]

    def suffix(self) -> str:
        return END

    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        from transformers import Qwen2_5_VLModel

        with head_unreported():
            return Qwen2_5_VLModel.from_pretrained(self.source.folder, dtype=dtype)

    def vllm_plan(self) -> VllmPlan:
        # vLLM 0.32 takes no rate for clips of this model, and so places their frames differently.
        pictures = frozenset({Modality.PICTURE})
        return replace(super().vllm_plan(), sees=pictures, lacks=frozenset({Modality.CLIP}))

    def clip_size(self) -> dict[str, int]:
        # This processor's limits are those of a single frame.
        return {"shortest_edge": self.min_pixels, "longest_edge": self.frame_pixels}

    def clip_metadata(self, times: Sequence[float]) -> dict[str, object]:
        # The model knows one rate for the whole clip, no stamps.
        length = times[-1] - times[0]
        rate = (len(times) - 1) / length if length > 0 else 1.0
        return {"total_num_frames": len(times), "fps": rate, "frames_indices": list(range(len(times)))}
