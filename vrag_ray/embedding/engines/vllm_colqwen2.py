"""ColQwen2 for vLLM, which has no class for it: its Qwen-VL models with a projection of every token.

Imported by vLLM alone, once ``vllm_pooling`` has named the classes to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import nn
from transformers import ColQwen2Processor, Qwen2VLVideoProcessor
from transformers.models.qwen2_vl import Qwen2VLProcessor
from vllm.config import VllmConfig
from vllm.model_executor.layers.pooler.tokwise import TokenPooler, pooler_for_token_embed
from vllm.model_executor.models.interfaces import SupportsLateInteraction
from vllm.model_executor.models.interfaces_base import default_pooling_type
from vllm.model_executor.models.qwen2_5_vl import Qwen2_5_VLForConditionalGeneration
from vllm.model_executor.models.qwen2_vl import (
    Qwen2VLDummyInputsBuilder,
    Qwen2VLForConditionalGeneration,
    Qwen2VLMultiModalProcessor,
    Qwen2VLProcessingInfo,
)
from vllm.model_executor.models.utils import WeightsMapper
from vllm.multimodal import MULTIMODAL_REGISTRY

if TYPE_CHECKING:
    from transformers import PretrainedConfig
    from vllm.multimodal.inputs import MultiModalFeatureSpec

MAPPER = WeightsMapper(
    orig_to_new_prefix={
        "vlm.language_model.": "language_model.model.",
        "vlm.visual.": "visual.",
        "embedding_proj_layer.": "pooler.head.projector.",
    }
)


class ColQwen2ProcessingInfo(Qwen2VLProcessingInfo):
    """The folder's own image processor and tokenizer, in the form in which vLLM calls Qwen2-VL's."""

    def get_hf_config(self) -> PretrainedConfig:
        return self.ctx.get_hf_config()

    def get_hf_processor(self, **kwargs: object) -> Qwen2VLProcessor:
        own = self.ctx.get_hf_processor(ColQwen2Processor, **kwargs)
        make: Callable[..., Qwen2VLProcessor] = Qwen2VLProcessor
        return make(own.image_processor, own.tokenizer, Qwen2VLVideoProcessor())

    def get_supported_mm_limits(self) -> Mapping[str, int | None]:
        return {"image": None}

    def get_mm_max_tokens_per_item(self, seq_len: int, mm_counts: Mapping[str, int]) -> Mapping[str, int]:  # noqa: ARG002
        return {"image": self.get_max_image_tokens()}


def projected_tokens(vllm_config: VllmConfig) -> TokenPooler:
    """Every token's last state through the projection (with its bias), at length 1."""
    config = vllm_config.model_config
    assert config.pooler_config is not None
    projector = nn.Linear(config.get_hidden_size(), config.hf_config.embedding_dim, dtype=config.head_dtype)
    return pooler_for_token_embed(config.pooler_config, projector=projector)


def flat_positions(count: int) -> tuple[torch.Tensor, int]:
    """One after another, as transformers' ColQwen2 numbers tokens: it hands its layers no picture grid."""
    return torch.arange(count).expand(3, -1).contiguous(), 0


class ProjectedTokens:
    """What makes a ColQwen2 of one of vLLM's Qwen-VL models: the projection, and positions one after another."""

    is_pooling_model = True
    supports_mm_device_do_normalize = False

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)  # type: ignore[call-arg]  # that of the model beside it
        self.pooler = projected_tokens(vllm_config)

    def get_mrope_input_positions(
        self,
        input_tokens: list[int],
        mm_features: list[MultiModalFeatureSpec],  # noqa: ARG002
    ) -> tuple[torch.Tensor, int]:
        return flat_positions(len(input_tokens))


@default_pooling_type(seq_pooling_type="CLS", tok_pooling_type="ALL")
@MULTIMODAL_REGISTRY.register_processor(
    Qwen2VLMultiModalProcessor, info=ColQwen2ProcessingInfo, dummy_inputs=Qwen2VLDummyInputsBuilder
)
class ColQwen2OnQwen2Vl(ProjectedTokens, Qwen2VLForConditionalGeneration, SupportsLateInteraction):
    """Of the published models."""

    hf_to_vllm_mapper = MAPPER


@default_pooling_type(seq_pooling_type="CLS", tok_pooling_type="ALL")
@MULTIMODAL_REGISTRY.register_processor(
    Qwen2VLMultiModalProcessor, info=ColQwen2ProcessingInfo, dummy_inputs=Qwen2VLDummyInputsBuilder
)
class ColQwen2OnQwen25Vl(ProjectedTokens, Qwen2_5_VLForConditionalGeneration, SupportsLateInteraction):
    """Of retrievers that are trained here from Qwen2.5-VL."""

    hf_to_vllm_mapper = MAPPER
