"""Which document a uri names, however documents are put in and in batches of any size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.index.storage.document_rows import DocumentRows
from vrag_ray.types import Document, DocumentKind, DocumentStatus

PUT = st.lists(
    st.tuples(st.sampled_from("abcd"), st.lists(st.sampled_from("uvwxyz"), min_size=1, max_size=3, unique=True)),
    max_size=12,
)


def document(doc_id: str, uris: list[str]) -> Document:
    return Document(doc_id, tuple(uris), doc_id, DocumentKind.TEXT, DocumentStatus.READY, 1, 1, "e", "2026-01-01")


def apply(rows: DocumentRows, batch: list[Document]) -> None:
    changed, orphans = rows.changes(batch)
    assert not {document.doc_id for document in changed} & set(orphans)
    for doc_id in orphans:
        rows.remove(doc_id)
    for document in changed:
        rows.put(document)


@given(puts=PUT)
def test_one_batch_ends_as_one_by_one_does(puts: list[tuple[str, list[str]]]) -> None:
    together, singly = DocumentRows([]), DocumentRows([])
    documents = [document(doc_id, uris) for doc_id, uris in puts]
    apply(together, documents)
    for single in documents:
        apply(singly, [single])
    assert dict(together.by_id) == dict(singly.by_id)
    owned = [uri for document in together.by_id.values() for uri in document.uris]
    assert len(owned) == len(set(owned))
    assert all(
        together.owner_of(uri) == document.doc_id for document in together.by_id.values() for uri in document.uris
    )
    assert {uri for uri in "uvwxyz" if together.owner_of(uri)} == set(owned)


def test_a_document_that_loses_its_last_uri_is_an_orphan_and_one_with_another_is_kept() -> None:
    rows = DocumentRows([document("old", ["u"]), document("two", ["v", "w"])])
    changed, orphans = rows.changes([document("new", ["u", "v"])])
    assert orphans == ["old"]
    assert {document.doc_id: document.uris for document in changed} == {"new": ("u", "v"), "two": ("w",)}
    assert rows.owner_of("u") == "old"
