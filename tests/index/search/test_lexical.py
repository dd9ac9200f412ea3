"""Search for words: the same hits whether the names of passages are held in memory or read for each search."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.planted import plant
from vrag_ray.index.search.lexical import lexical_search
from vrag_ray.index.storage import collection as collection_module
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types.filters import SearchFilter

BERTHS = {f"doc{number}": [f"berth {number} of the harbour", f"crane {number}"] for number in range(12)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Of two versions, the second without a document of the first and with one more."""
    plant(tmp_path / "c", BERTHS)
    with CollectionWriter(tmp_path / "c") as writer:
        writer.delete(Collection.open(tmp_path / "c").documents()[3].doc_id)
        writer.publish("delete")
    plant(tmp_path / "c", {"later": ["berth of ferries at the harbour"]})
    return tmp_path / "c"


def test_names_in_memory_change_no_hit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Collection.open(root)
    doc_ids = [document.doc_id for document in small.documents()]
    assert len(doc_ids) == len(BERTHS)
    filters = (None, SearchFilter(doc_ids=doc_ids[:3]), SearchFilter(doc_ids=[]))
    queries = [
        (query, limit, chosen)
        for query in ("berth harbour", "crane 7", "ship")
        for limit in (1, 100)
        for chosen in filters
    ]
    held = [lexical_search(small, *query) for query in queries]
    assert small.passage_names() is not None
    monkeypatch.setattr(collection_module, "MOST_ROWS", 3)
    large = Collection.open(root)
    assert large.passage_names() is None
    read = [lexical_search(large, *query) for query in queries]
    assert [[hit.score for hit in hits] for hits in held] == [[hit.score for hit in hits] for hits in read]
    # Which of several with the same score are among the best is Lance's choice.
    whole = [number for number, (_, limit, _) in enumerate(queries) if limit == 100]
    assert [held[number] for number in whole] == [read[number] for number in whole]
    assert any(held) and not any(hits for hits, (query, _, _) in zip(held, queries, strict=True) if query == "ship")


def test_a_collection_without_passages_has_no_hit(tmp_path: Path) -> None:
    assert lexical_search(Collection.open_or_create(tmp_path / "c"), "berth", 3, None) == []
