"""Factories that the model of a space can point at: one that works, some that do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError, Modality, single_vectors, texts_of

NOT_A_FACTORY = 3


class LetterEmbedder:
    """Counts of the letters a to z: enough of an embedder to differ from a broken one."""

    dim = 26
    multi_vector = False
    modalities = frozenset({Modality.TEXT})
    pictures = None

    def __init__(self, config: SpaceConfig, id: str) -> None:
        self.config = config
        self.id = id

    def readable(self, texts: Sequence[str]) -> NDArray[np.float32]:
        shares = [sum(letter.isascii() for letter in text) / max(1, len(text)) for text in texts]
        return np.array(shares, np.float32)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = np.array([[text.count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)
        lengths: NDArray[np.float32] = np.sqrt(np.sum(counts**2, axis=1, keepdims=True))
        vectors: NDArray[np.float32] = counts / np.maximum(lengths, np.float32(1e-9))
        return vectors

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        return single_vectors(self.vectors(texts_of(contents)))

    def embed_queries(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        return single_vectors(self.vectors(texts_of(contents)))


def letters(config: SpaceConfig) -> LetterEmbedder:
    return LetterEmbedder(config, "letters/1")


class ChoosyEmbedder(LetterEmbedder):
    """Refuses some texts, as a model does with a limit of tokens."""

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        results = super().embed_passages(contents)
        return [
            EmbedError("too long for this model") if "refused" in content.text else result
            for content, result in zip(contents, results, strict=True)
        ]


def choosy(config: SpaceConfig) -> ChoosyEmbedder:
    return ChoosyEmbedder(config, "choosy/1")


def nameless(config: SpaceConfig) -> LetterEmbedder:
    return LetterEmbedder(config, "")


def not_an_embedder(config: SpaceConfig) -> dict[str, str]:
    return {"model": config.model}


class BreakingEmbedder(LetterEmbedder):
    """Breaks at the first passage."""

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        raise RuntimeError("the model is out of order")


def breaking(config: SpaceConfig) -> BreakingEmbedder:
    return BreakingEmbedder(config, "breaking/1")
