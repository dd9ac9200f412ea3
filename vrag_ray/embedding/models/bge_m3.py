"""bge-m3 (BAAI/bge-m3): text in more than a hundred languages, the dense vector of its three."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
    from transformers import PreTrainedModel

MAX_TOKENS = 8192
MARKS = 2
"""Tokens around every text."""


class BgeM3(Architecture):
    """XLM-RoBERTa: the vector of the first token, no prompt on either side, at most 8,192 tokens of a text."""

    kind = "bge-m3"

    def __init__(self, source: ModelSource, config: SpaceConfig) -> None:
        from transformers import AutoTokenizer

        super().__init__(source, config)
        self.tokenizer = AutoTokenizer.from_pretrained(source.folder)
        # Positions of this family begin behind the padding's number, 1.
        self._max_tokens = min(MAX_TOKENS, integer(source.config, "max_position_embeddings") - 2)

    @property
    def dim(self) -> int:
        return integer(self.source.config, "hidden_size")

    @property
    def modalities(self) -> frozenset[Modality]:
        return frozenset({Modality.TEXT})

    @property
    def pictures(self) -> PictureSpec | None:
        return None

    @property
    def preprocessing(self) -> tuple[str, ...]:
        return ("cls", f"tokens{self._max_tokens}")

    def prompts(self, content: DecodedContent, *, query: bool) -> tuple[Prompt, ...]:  # noqa: ARG002
        # Here, and not by the tokenizer, so that every engine reads the same beginning.
        text = cut_to(self.words(content.text), self.tokenizer, self._max_tokens - MARKS)
        return (Prompt(text, (0, len(text))),)

    def load(self, dtype: torch.dtype) -> PreTrainedModel:
        from transformers import XLMRobertaModel

        return XLMRobertaModel.from_pretrained(self.source.folder, dtype=dtype, add_pooling_layer=False)

    def encode(self, prompts: Sequence[Prompt]) -> Inputs:
        texts = [prompt.text for prompt in prompts]
        encoded = self.tokenizer(texts, padding=True, return_tensors="pt")
        return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"]}

    def forward(self, model: PreTrainedModel, inputs: Inputs) -> list[TokenVectors]:
        first = as_array(model(**inputs).last_hidden_state[:, 0])
        return [TokenVectors((), row[None]) for row in first]

    def vllm_plan(self) -> VllmPlan:
        return VllmPlan("embed", "CLS", self._max_tokens)
