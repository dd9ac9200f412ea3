"""Collections with planted vectors, made through the real writer, so that the right answer is known."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vrag_ray.config import SpaceConfig
from vrag_ray.embedding.base import Content, Embedding, EmbedError, Modality, single_vectors, texts_of
from vrag_ray.index.storage.rows import StoredPassage, meta_to_json
from vrag_ray.index.storage.spaces import space_table
from vrag_ray.index.storage.writer import CollectionWriter, now_utc
from vrag_ray.types import (
    TEXT,
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
MODEL = "tests.support.planted:make_planted"


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


def make_planted(config: SpaceConfig) -> PlantedEmbedder:
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
    passage = Passage(
        passage_id(doc_id, locator, window), doc_id, PassageKind.PAGE, locator, window, text, meta=meta or {}
    )
    return StoredPassage(passage, page - 1)


def add_embedded(writer: CollectionWriter, passages: Sequence[StoredPassage]) -> None:
    """Passages, and their planted vectors in the space of the texts."""
    writer.add_passages(passages)
    if writer.spaces.get(TEXT) is None:
        writer.spaces.create(TEXT, embedder_id=EMBEDDER, dim=DIM, multi_vector=False, config={"model": MODEL})
    rows = [item.passage for item in passages]
    vectors = PlantedEmbedder().vectors([row.text for row in rows]).astype(np.float16)
    columns = {
        "id": pa.array([row.id for row in rows]),
        "doc_id": pa.array([row.doc_id for row in rows]),
        "kind": pa.array([str(row.kind) for row in rows]),
        "meta": pa.array([meta_to_json(row.meta) for row in rows]),
        "count": pa.array([1] * len(rows), pa.int32()),
        "grid_rows": pa.nulls(len(rows), pa.int32()),
        "grid_columns": pa.nulls(len(rows), pa.int32()),
        "phash": pa.nulls(len(rows), pa.uint64()),
        "error": pa.array([""] * len(rows)),
        "vectors": pa.array([vector.tobytes() for vector in vectors], pa.large_binary()),
    }
    writer.spaces.add(TEXT, space_table(columns))


def document(name: str, uri: str | None = None, units: int = 1) -> Document:
    return Document(
        doc_id=doc_id_of(name), uris=(uri or f"{name}.pdf",), title=name, kind=DocumentKind.PDF,
        status=DocumentStatus.READY, units=units, size_bytes=1, added_at=now_utc(),
    )  # fmt: skip


def plant(root: Path, pages: dict[str, list[str]], *, embedded: bool = True, **meta: MetaValue) -> None:
    """One document a name, one page a text, with vectors unless ``embedded`` is false; one published version."""
    with CollectionWriter(root) as writer:
        for name, texts in pages.items():
            blob = root / f"../{name}.bytes"
            blob.write_bytes(name.encode())
            writer.files.add_blob(blob)
            rows = [stored(name, i, text, meta=meta) for i, text in enumerate(texts, start=1)]
            (add_embedded if embedded else CollectionWriter.add_passages)(writer, rows)
        writer.commit_documents([document(name, units=len(texts)) for name, texts in pages.items()])
        writer.publish("planted")
