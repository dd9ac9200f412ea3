"""Collections with planted vectors, made through the real writer, so that the right answer is known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import EmbedderConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError, Modality, single_vectors, texts_of
from vrag_ray.index.storage.rows import StoredPassage
from vrag_ray.index.storage.writer import CollectionWriter, now_utc
from vrag_ray.types import (
    Document,
    DocumentKind,
    DocumentStatus,
    Locator,
    MetaValue,
    Passage,
    PassageKind,
    passage_id,
)

DIM = 16
EMBEDDER = "planted/1"


class PlantedEmbedder:
    """A vector space in which equal words are equal vectors: enough to plant known neighbours."""

    id = EMBEDDER
    dim = DIM
    multi_vector = False
    modalities = frozenset({Modality.TEXT})
    pictures = None

    def readable(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.ones(len(texts), np.float32)

    def embed_passages(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        return single_vectors(self.vectors(texts_of(contents)))

    def embed_queries(self, contents: Sequence[Content]) -> list[Embedding | EmbedError]:
        return single_vectors(self.vectors(texts_of(contents)))

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.stack([sum((_word_vector(word) for word in text.split()), np.zeros(DIM)) for text in texts])
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(norms == 0, 1, norms), np.float32)


def make_planted(config: EmbedderConfig) -> PlantedEmbedder:
    return PlantedEmbedder()


def _word_vector(word: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(DIM)


def doc_id_of(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def stored(
    name: str, page: int, text: str, window: int = 0, meta: Mapping[str, MetaValue] | None = None
) -> StoredPassage:
    doc_id, locator = doc_id_of(name), Locator(page=page)
    vector = PlantedEmbedder().vectors([text])[0].astype(np.float16).tobytes()
    passage = Passage(
        passage_id(doc_id, locator, window), doc_id, PassageKind.PAGE, locator, window, text, meta=meta or {}
    )
    return StoredPassage(passage, page - 1, vector, EMBEDDER)


def document(name: str, uri: str | None = None, units: int = 1) -> Document:
    return Document(
        doc_id=doc_id_of(name), uris=(uri or f"{name}.pdf",), title=name, kind=DocumentKind.PDF,
        status=DocumentStatus.READY, units=units, size_bytes=1, embedder_id=EMBEDDER, added_at=now_utc(),
    )  # fmt: skip


def plant(root: Path, pages: dict[str, list[str]], **meta: MetaValue) -> None:
    """One document a name, one page a text, one published version."""
    with CollectionWriter(root) as writer:
        for name, texts in pages.items():
            blob = root / f"../{name}.bytes"
            blob.write_bytes(name.encode())
            writer.files.add_blob(blob)
            writer.add_passages([stored(name, i, text, meta=meta) for i, text in enumerate(texts, start=1)])
        writer.commit_documents([document(name, units=len(texts)) for name, texts in pages.items()])
        writer.publish("planted")
