"""The embedder under test and texts that differ in length, script and order."""

from __future__ import annotations

import random

import pytest

from vrag_ray.embedding.minilm.text import TextEmbedder
from vrag_ray.embedding.minilm.weights import MiniLmWeights, load_weights

WORDS = ["the", "matrix", "of", "function", "returns", "value", "when", "index", "stays", "below", "sparse", "columns"]


@pytest.fixture(scope="session")
def weights() -> MiniLmWeights:
    return load_weights(None)


@pytest.fixture(scope="session")
def embedder(weights: MiniLmWeights) -> TextEmbedder:
    return TextEmbedder(weights)


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Unsorted lengths from none to far beyond 256 wordpieces, with the text that breaks tokenizers in between."""
    chance = random.Random(7)
    windows = [" ".join(chance.choices(WORDS, k=count)) for count in (150, 3, 41, 600, 1, 90, 253, 254, 255, 12)]
    odd = ["", " \n\t ", "Größe naïve 東京都の人口は? 🙂 e\u0301", "x" * 5000, "a\x00b", "x = A\\b; # 1.5e-3", "مرحبا"]
    return [text for pair in zip(windows, odd, strict=False) for text in pair] + windows[len(odd) :]
