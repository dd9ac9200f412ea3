"""The documents of a later version are those of a fresh reading, and unchanged ones are not read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.planted import doc_id_of, document, plant
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.rows import CorruptionError
from vrag_ray.index.storage.writer import CollectionWriter


@pytest.fixture
def root(tmp_path: Path) -> Path:
    plant(tmp_path / "c", {f"doc{number}": ["a lighthouse"] for number in range(20)})
    return tmp_path / "c"


def test_only_what_has_changed_is_read_again(root: Path) -> None:
    before = Collection.open(root)
    old = {listed.doc_id: listed for listed in before.documents()}
    with CollectionWriter(root) as writer:
        writer.delete(doc_id_of("doc3"))
        writer.commit_documents([replace(document("doc4"), title="renamed"), document("new")])
        writer.publish("changed")
    after = Collection.open(root, earlier=before)
    assert after.documents() == Collection.open(root).documents()
    now = {listed.doc_id: listed for listed in after.documents()}
    assert now[doc_id_of("doc4")].title == "renamed"
    assert set(now) == set(old) - {doc_id_of("doc3")} | {doc_id_of("new")}
    same = set(now) - {doc_id_of("doc4"), doc_id_of("new")}
    assert all(now[doc_id] is old[doc_id] for doc_id in same)
    assert Collection.open(root, 1, earlier=after).documents() == before.documents()


def test_where_most_has_changed_everything_is_read(root: Path) -> None:
    before = Collection.open(root)
    before.documents()
    with CollectionWriter(root) as writer:
        writer.commit_documents([replace(document(f"doc{number}"), title="renamed") for number in range(15)])
        writer.publish("changed")
    after = Collection.open(root, earlier=before)
    assert after.documents() == Collection.open(root).documents()
    assert sum(listed.title == "renamed" for listed in after.documents()) == 15


def test_a_damaged_row_of_a_changed_document_is_reported(root: Path) -> None:
    before = Collection.open(root)
    before.documents()
    with CollectionWriter(root) as writer:
        writer.commit_documents([document("new")])
        writer._documents.update({"title": "'another'", "checksum": "7"}, where=f"doc_id = '{doc_id_of('new')}'")
        writer.publish("damaged")
    with pytest.raises(CorruptionError, match="document row"):
        Collection.open(root, earlier=before).documents()
