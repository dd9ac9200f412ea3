"""Which passages a run embeds: each once, for all the spaces that lack it, and what the stages read of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.support.planted import doc_id_of, plant, stored
from tests.support.planted_spaces import plant_space, stored_vectors, vectors_table
from vrag_ray.embedding.base import Modality
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest.spaces.manifest import CollectionState, ReadPassages, manifest_of

WORDS, PICTURES = frozenset({Modality.TEXT}), frozenset({Modality.PICTURE})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    plant(tmp_path / "c", {"a": ["one", "\n", "three"], "b": ["four"]})
    for name in ("look", "words"):
        plant_space(tmp_path / "c", name, [], dim=4, multi_vector=False)
    return tmp_path / "c"


def passage(name: str, page: int) -> str:
    return stored(name, page, "").passage.id


def test_a_passage_is_one_row_for_all_spaces_that_lack_it_and_in_the_order_of_its_document(root: Path) -> None:
    with CollectionWriter(root) as writer:
        vectors = np.eye(1, 4, dtype=np.float32)
        writer.spaces.add("look", vectors_table([stored_vectors("a", 1, vectors)]))
        words = manifest_of(writer, {"words": WORDS}).to_pylist()
        both = manifest_of(writer, {"look": PICTURES, "words": PICTURES}).to_pylist()
    a, b = [("a", 1), ("a", 2), ("a", 3)], [("b", 1)]
    ordered = sorted([a, b], key=lambda pages: doc_id_of(pages[0][0]))
    expected = [passage(*page) for pages in ordered for page in pages]
    assert [row["id"] for row in words] == [name for name in expected if name != passage("a", 2)]
    assert {(row["material"], *row["spaces"]) for row in words} == {("text", "words")}
    assert [row["id"] for row in both] == expected
    assert {row["id"]: row["spaces"] for row in both} == {
        name: ["words"] if name == passage("a", 1) else ["look", "words"] for name in expected
    }
    assert {row["material"] for row in both} == {"picture"}


def test_the_stages_read_what_the_manifest_was_made_from(root: Path) -> None:
    with CollectionWriter(root) as writer:
        manifest, state = manifest_of(writer, {"words": WORDS}), CollectionState.of(writer)
        writer.delete(doc_id_of("a"))
        writer.publish("deleted")
    read = ReadPassages(state)
    rows = pa.concat_tables([read(manifest.slice(n, 1)) for n in range(manifest.num_rows)]).to_pylist()
    assert {(row["name"], row["text"], row["kind"]) for row in rows} == {
        ("a", "one", "page"),
        ("a", "three", "page"),
        ("b", "four", "page"),
    }
    assert all(row["blob"] == row["doc_id"] for row in rows)


def test_nothing_to_embed_is_an_empty_manifest(root: Path) -> None:
    with CollectionWriter(root) as writer:
        writer.delete(doc_id_of("a"), doc_id_of("b"))
        assert manifest_of(writer, {"words": WORDS, "look": PICTURES}).num_rows == 0
