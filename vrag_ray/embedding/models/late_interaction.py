"""What ColPali's family shares: a vector for each token, and the rule which of them are scored."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Embedding, EmbedError, Modality
from vrag_ray.embedding.models.architecture import (
    Architecture,
    Inputs,
    Prompt,
    TokenVectors,
    as_array,
    cut_to,
    integer,
)
from vrag_ray.embedding.models.decoding import DecodedContent
from vrag_ray.embedding.recipe import Score
from vrag_ray.embedding.source import ModelSource

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MAX_QUERY_TOKENS = 512
AUGMENTATION = 10
"""Tokens that a query ends with beside its words; the published models were trained to use them as room to think."""


class LateInteraction(Architecture):
    """Passages are pictures or clips (all frames' vectors, without places), since these models were trained on pages;
    words beside a picture are not embedded, because they stand on it. Queries are words, a picture, or both, and then
    have the vectors of both.

    Of a passage the visual tokens come first, in reading order, then by ``Score.ALL`` the template's tokens in theirs.
    Padding is never scored.
    """

    multi_vector = True
    visual_token: int
    """Its id in the prompt, one for each visual token."""

    def __init__(self, source: ModelSource, config: SpaceConfig, tokenizer: PreTrainedTokenizerBase) -> None:
        super().__init__(source, config)
        self.tokenizer = tokenizer
        self.tokenizer.padding_side = "right"
        self.score = source.recipe.score

    @property
    def dim(self) -> int:
        return integer(self.source.config, "embedding_dim")

    @property
    def modalities(self) -> frozenset[Modality]:
        return frozenset({Modality.PICTURE, Modality.CLIP})

    @abstractmethod
    def query_text(self, words: str) -> tuple[str, int]:
        """The prompt around a query's words, and where in it they begin."""

    @abstractmethod
    def page_text(self) -> str:
        """The prompt of a picture, with one placeholder for it."""

    @abstractmethod
    def encode_pictures(self, pictures: Sequence[Image]) -> Inputs: ...

    @abstractmethod
    def grid(self, prompt: Prompt, visual: int) -> tuple[int, int] | None:
        """Rows and columns of the first rows x columns of ``visual`` tokens, once ``reading_order`` is applied."""

    def reading_order(self, prompt: Prompt, visual: int) -> Sequence[int]:  # noqa: ARG002
        """Places of the visual tokens in the prompt's own order, those of the grid first."""
        return range(visual)

    def prompts(self, content: DecodedContent, *, query: bool) -> tuple[Prompt, ...]:
        pictures = [*content.frames]
        if content.picture is not None:
            pictures.append(content.picture)
        prompts = [Prompt(self.page_text(), picture=picture) for picture in pictures]
        if not query and not prompts:
            raise EmbedError(f"{self.source.name} embeds pictures and clips as passages, not words alone")
        if query and (content.text.strip() or not prompts):
            words = cut_to(self.words(content.text), self.tokenizer, MAX_QUERY_TOKENS)
            text, start = self.query_text(words)
            prompts.insert(0, Prompt(text, (start, start + len(words))))
        return tuple(prompts)

    def encode(self, prompts: Sequence[Prompt]) -> Inputs:
        pictures = [prompt.picture for prompt in prompts if prompt.picture is not None]
        if pictures:
            return self.encode_pictures(pictures)
        return self.encode_queries([prompt.text for prompt in prompts])

    def encode_queries(self, texts: Sequence[str]) -> Inputs:
        """Texts as ``query_text`` wrote them."""
        encoded: Inputs = self.tokenizer(list(texts), padding=True, return_tensors="pt", return_token_type_ids=False)
        return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"]}

    def forward(self, model: PreTrainedModel, inputs: Inputs) -> list[TokenVectors]:
        vectors = as_array(self.token_vectors(model, inputs))
        ids, mask = inputs["input_ids"].cpu().numpy(), inputs["attention_mask"].cpu().numpy().astype(bool)
        return [
            TokenVectors(tuple(map(int, row[in_text])), rows[in_text])
            for row, in_text, rows in zip(ids, mask, vectors, strict=True)
        ]

    def token_vectors(self, model: PreTrainedModel, inputs: Inputs) -> torch.Tensor:
        vectors: torch.Tensor = model(**inputs).embeddings
        return vectors

    def embedding(self, prompt: Prompt, output: TokenVectors) -> Embedding:
        if prompt.picture is None:
            return Embedding(output.vectors if self.score is Score.ALL else self._body(prompt, output))
        is_visual = np.array(output.token_ids) == self.visual_token
        visual = output.vectors[is_visual]
        vectors = visual[list(self.reading_order(prompt, len(visual)))]
        if self.score is Score.ALL:
            vectors = np.concatenate([vectors, output.vectors[~is_visual]])
        return Embedding(vectors, self.grid(prompt, len(visual)))

    def join(self, parts: Sequence[Embedding]) -> Embedding:
        return parts[0] if len(parts) == 1 else Embedding(np.concatenate([part.vectors for part in parts]))

    def _body(self, prompt: Prompt, output: TokenVectors) -> np.ndarray:
        """The vectors of the query's own words; of an empty query all there are, so that it has one."""
        offsets = self.tokenizer(prompt.text, return_offsets_mapping=True)["offset_mapping"]
        start, stop = prompt.body
        overlapping = [
            place for place, (first, last) in enumerate(offsets) if first < stop and last > start and first < last
        ]
        return output.vectors[overlapping] if overlapping else output.vectors
