"""What a table of a collection has more, or less, than when a shard first read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.index.shards.row_loader import Extent

if TYPE_CHECKING:
    import lance


@dataclass(frozen=True, slots=True)
class Taken:
    """What a shard read: the ``table``, the deleted rows of each of its ``fragments``, the checksum of each document's
    row, and the documents whose rows it ``left_out``, because they were half ingested."""

    table: str
    fragments: Mapping[int, int]
    documents: Mapping[str, int]
    left_out: frozenset[str]


@dataclass(frozen=True, slots=True)
class Change:
    """``extents`` are to be read; in what was read before, the rows of ``dropped`` documents no longer count.

    ``fresh`` documents have rows that are new or another. ``has_deletions``: rows were removed from fragments that
    were read before.
    """

    extents: tuple[Extent, ...]
    dropped: frozenset[str]
    fresh: frozenset[str]
    has_deletions: bool


def fragments_of(table: lance.LanceDataset) -> dict[int, int]:
    """The number of deleted rows by fragment. Lance never changes the other rows of a fragment."""
    return {int(fragment.fragment_id): int(fragment.num_deletions) for fragment in table.get_fragments()}


def change_since(taken: Taken, fragments: Mapping[int, int], documents: Mapping[str, int]) -> Change | None:
    """From ``taken`` to a table of these fragments and documents. None where only reading all of it tells.

    What an ingest does to rows shows in the documents' rows: one that is read again, or is gone, has another row or
    none. Rows of documents that were half ingested then lie in fragments that were read before.
    """
    appended = fragments.keys() - taken.fragments.keys()
    # A fragment without a row left is gone, and so is one that was written anew together with others.
    has_deletions = any(fragments.get(number) != count for number, count in taken.fragments.items())
    fresh = frozenset(doc_id for doc_id, _ in documents.items() - taken.documents.items())
    gone = taken.documents.keys() - documents.keys()
    changed = fresh & taken.documents.keys()
    again = changed | (taken.left_out & documents.keys())
    if has_deletions and not (changed or gone):
        return None
    return Change(
        extents=(Extent(fragments=frozenset(appended)), Extent(frozenset(taken.fragments), frozenset(again))),
        dropped=frozenset(gone | changed),
        fresh=fresh,
        has_deletions=has_deletions,
    )
