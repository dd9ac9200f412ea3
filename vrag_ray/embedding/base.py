"""What every embedder promises to the index: contents to unit vectors, one result each, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vrag_ray.types import VragError


class Modality(StrEnum):
    """What a content is made of besides words."""

    TEXT = "text"
    PICTURE = "picture"
    CLIP = "clip"

    @classmethod
    def of(cls, picture: object | None, frames: Sequence[object]) -> Modality:
        if frames:
            return cls.CLIP
        return cls.TEXT if picture is None else cls.PICTURE


@dataclass(frozen=True, slots=True)
class PictureSpec:
    """How an embedder wants its pictures drawn.

    Both sides are multiples of ``patch`` pixels, and their product lies in ``min_pixels`` to ``max_pixels``; with
    ``side`` every picture is exactly ``side`` x ``side``, whatever its aspect. A clip is shown as at most
    ``max_frames`` frames, ``fps`` a second, of at most ``frame_pixels`` each.
    """

    patch: int
    min_pixels: int
    max_pixels: int
    side: int | None = None
    max_frames: int = 0
    fps: float = 1.0
    frame_pixels: int = 0


@dataclass(frozen=True, slots=True)
class Content:
    """What is embedded: words, a picture, the frames of a clip, or words with one of the two.

    Pictures are PNG files of RGB as the embedder's ``PictureSpec`` asks for; ``frame_times`` are seconds, one a frame.
    """

    text: str = ""
    picture: bytes | None = None
    frames: tuple[bytes, ...] = ()
    frame_times: tuple[float, ...] = ()

    @property
    def modality(self) -> Modality:
        return Modality.of(self.picture, self.frames)


@dataclass(frozen=True, slots=True)
class Embedding:
    """The vectors of one content, [n, dim] float32, each of length 1; ``n`` is 1 for an embedder of single vectors.

    ``grid`` (rows, columns) says that the first rows x columns vectors are patches of the picture in reading order,
    which together cover it evenly; None where vectors have no place.
    """

    vectors: NDArray[np.float32]
    grid: tuple[int, int] | None = None


class EmbedError(VragError):
    """This content cannot be embedded; the message says why. The others of its batch are."""


@dataclass(frozen=True, slots=True)
class Residence:
    """Where an embedder's weights lie, ``cpu`` or ``cuda``, and their bytes."""

    device: str
    nbytes: int


@runtime_checkable
class Resident(Protocol):
    """An embedder that knows where its weights lie; one of a user's factory need not."""

    @property
    def residence(self) -> Residence | None:
        """None where the engine that holds the weights does not say."""


LEAST_READABLE = 0.5
"""An embedder that knows less of a text than this share of its pieces (``Embedder.readable``) makes a vector of it that
says nothing: such a query stays out of hybrid search, such a title out of the vectors of its document."""


@runtime_checkable
class Embedder(Protocol):
    """Turns contents into unit vectors whose inner product is their similarity.

    An embedder of several vectors a content (``multi_vector``: late interaction) is compared by MaxSim: the mean over
    the query's vectors of their best inner product with a vector of the passage. Called from several threads at once.
    """

    @property
    def id(self) -> str:
        """Names the vector space: model, revision, prompts, pixels and dims, but not the engine that computes it.

        It is stored with the vectors; different ids never mix.
        """

    @property
    def dim(self) -> int:
        """Length of one vector."""

    @property
    def multi_vector(self) -> bool:
        """Whether a content has several vectors."""

    @property
    def modalities(self) -> frozenset[Modality]:
        """What passages it takes. Where it takes no pictures, pages are embedded by their words."""

    @property
    def pictures(self) -> PictureSpec | None:
        """How it wants pictures; None where it takes none."""

    def readable(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """How much of each text this embedder understands: a share in 0..1, shape ``(len(texts),)``, in input order.

        0 is a text of pieces it knows nothing of, whose vector says nothing. Hybrid search leaves an embedder out
        for queries of which it understands less than half. One that reads every script gives 1.
        """

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        """One result for each content, in input order. A content that cannot be embedded gets an error of its own."""

    def embed_queries(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        """As ``embed_passages``, with the prompt of questions. A query may be words, a picture, or both."""


def texts_of(contents: Sequence[Content]) -> list[str]:
    """The words alone, for an embedder that takes nothing else."""
    return [content.text for content in contents]


def single_vectors(rows: NDArray[np.float32]) -> list[Embedding | EmbedError]:
    """Each row of [n, dim] as the one vector of a content."""
    return [Embedding(row[None]) for row in rows]


def stacked(embeddings: Sequence[Embedding | EmbedError]) -> NDArray[np.float32]:
    """The single vectors of contents as one matrix [n, dim]. Raises the first error there is."""
    for embedding in embeddings:
        if isinstance(embedding, EmbedError):
            raise embedding
    vectors = [embedding.vectors[0] for embedding in embeddings if isinstance(embedding, Embedding)]
    return np.stack(vectors) if vectors else np.empty((0, 0), np.float32)
