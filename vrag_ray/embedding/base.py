"""What every embedder promises to the index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vrag_ray.types import PassageKind


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors whose inner product is their similarity.

    The retriever calls it from several threads at once.
    """

    @property
    def id(self) -> str:
        """Names the vector space, weights included. It is stored with every row; different ids never mix."""

    @property
    def dim(self) -> int:
        """Length of one vector."""

    @property
    def modalities(self) -> frozenset[PassageKind]:
        """Kinds of passage this embedder has something to say about."""

    def readable(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """How much of each text this embedder understands: a share in 0..1, shape ``(len(texts),)``, in input order.

        0 is a text of pieces it knows nothing of, whose vector says nothing. Hybrid search leaves an embedder out
        for queries of which it understands less than half. One that reads every script gives 1.
        """

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float16]:
        """Vectors of shape ``(len(texts), dim)``, L2-normalised, in input order."""

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape ``(len(texts), dim)``, L2-normalised, in input order."""
