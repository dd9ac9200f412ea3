"""The documents of one version, every row verified; those that are as they were come from an earlier version's list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.index.storage.rows import CorruptionError, document_from_row, document_is_sound, quoted
from vrag_ray.types import Document

if TYPE_CHECKING:
    import lance

ROWS_AT_ONCE = 1000
MOST_CHANGED = 0.25
"""Of the documents: where more are new or another, the whole table is read instead of these rows."""


@dataclass(frozen=True, slots=True)
class DocumentList:
    """``sums`` are the checksums of the rows, by id: another one where the row is another."""

    by_id: Mapping[str, Document]
    sums: Mapping[str, int]

    @classmethod
    def read(cls, table: lance.LanceDataset, earlier: DocumentList | None = None) -> DocumentList:
        """Raises CorruptionError for a damaged row. Reading a row takes 30 µs, so that of many only new ones are."""
        sums = document_sums(table)
        known = earlier.sums if earlier is not None else {}
        changed = [doc_id for doc_id, _ in sums.items() - known.items()]
        if earlier is None or len(changed) > len(sums) * MOST_CHANGED:
            return cls(dict(read_documents(table)), sums)
        fresh = dict(read_rows(table, changed))
        return cls({doc_id: fresh.get(doc_id) or earlier.by_id[doc_id] for doc_id in sums}, sums)


def document_sums(table: lance.LanceDataset) -> dict[str, int]:
    """The checksum of each document's row by id, as it stands on disk."""
    columns = table.to_table(columns=["doc_id", "checksum"])
    return dict(zip(columns["doc_id"].to_pylist(), columns["checksum"].to_pylist(), strict=True))


def read_documents(table: lance.LanceDataset, where: str | None = None) -> Iterator[tuple[str, Document]]:
    """Every document by id. Raises CorruptionError for a row whose sum does not fit."""
    for row in table.to_table(filter=where).to_pylist():
        if not document_is_sound(row):
            raise CorruptionError(f"document row {row['doc_id']} is damaged on disk: run `vrag verify`")
        document = document_from_row(row)
        yield document.doc_id, document


def read_rows(table: lance.LanceDataset, doc_ids: Iterable[str]) -> Iterator[tuple[str, Document]]:
    """The documents with these ids. Raises CorruptionError as above."""
    sorted_ids = sorted(doc_ids)
    for start in range(0, len(sorted_ids), ROWS_AT_ONCE):
        yield from read_documents(table, f"doc_id IN ({quoted(sorted_ids[start : start + ROWS_AT_ONCE])})")
