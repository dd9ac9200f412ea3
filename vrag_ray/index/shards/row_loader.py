"""The rows of one shard from the files of a collection, column by column, every sum verified."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.shards.shard_rows import ShardRows, SpaceRows, shard_of
from vrag_ray.index.storage import texts_before_spaces
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.column_checksums import byte_data, byte_offsets, space_checksums
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.index.storage.rows import CorruptionError, quoted
from vrag_ray.index.storage.spaces import SPACE_COLUMNS, SpaceRecord

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

ROWS_AT_ONCE = 65_536
BYTES_AT_ONCE = 64 << 20
"""Of vectors: a page of late interaction has a thousand of them."""


@dataclass(frozen=True)
class RowSelection:
    """Which rows of a table a shard reads: those of ``documents``, where they are its own.

    ``left_out`` collects the shard's documents that had rows and are not among ``documents``: half ingested ones.
    """

    documents: Container[str]
    shard: int = 0
    shards: int = 1
    left_out: set[str] = field(default_factory=set)

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The selected rows of a batch: judged once a document."""
        import pyarrow as pa

        coded = batch.column("doc_id").dictionary_encode()
        chosen = np.array([self._has(doc_id) for doc_id in coded.dictionary.to_pylist()], np.bool_)
        return batch if chosen.all() else batch.filter(pa.array(chosen[coded.indices.to_numpy()]))

    def _has(self, doc_id: str) -> bool:
        if shard_of(doc_id, self.shards) != self.shard:
            return False
        if doc_id not in self.documents:
            self.left_out.add(doc_id)
            return False
        return True


def rows_of(collection: Collection, shard: int = 0, shards: int = 1) -> RowSelection:
    """The rows that count of a whole collection, or of one shard of it."""
    return RowSelection(collection.document_sums(), shard, shards)


@dataclass(frozen=True, slots=True)
class Extent:
    """A part of a table: rows of these fragments, of these documents; None where it does not matter."""

    fragments: AbstractSet[int] | None = None
    doc_ids: AbstractSet[str] | None = None


WHOLE = (Extent(),)


def load_space_rows(
    collection: Collection, name: str, selection: RowSelection | None = None, extents: Sequence[Extent] = WHOLE
) -> SpaceRows:
    """A shard's part of a vector space; passages without vectors are left out. CorruptionError for a damaged row."""
    if collection.record is None:
        return _joined([], [], dim=1)
    space, selection = collection.space(name), selection or rows_of(collection)
    batches: list[pa.RecordBatch] = []
    vectors: list[NDArray[np.float16]] = []
    with storage_faults(collection.root, f"loading the vectors of {name}"):
        for batch in _checked(collection, space, selection, extents):
            batches.append(batch.drop_columns(["vectors"]))
            column = batch.column("vectors")
            starts = byte_offsets(column)
            data = np.frombuffer(byte_data(column), np.uint8)[starts[0] : starts[-1]]
            vectors.append(data.view(np.float16).reshape(-1, space.dim))
    return _joined(batches, vectors, dim=space.dim)


def _checked(
    collection: Collection, space: SpaceRecord, selection: RowSelection, extents: Sequence[Extent]
) -> Iterator[pa.RecordBatch]:
    """The selected rows of a space (``SPACE_COLUMNS``), every sum verified."""
    rows_at_once = min(ROWS_AT_ONCE, max(1, int(BYTES_AT_ONCE / max(1.0, space.bytes_per_passage))))
    in_passages = space.table == texts_before_spaces.PASSAGES
    columns = texts_before_spaces.COLUMNS if in_passages else (*SPACE_COLUMNS, "checksum")
    where = texts_before_spaces.where_of(space.embedder_id) if in_passages else "count > 0"
    for whole in _batches(collection.space_table(space.name), columns, where, extents, rows_at_once):
        batch = selection.of(whole)
        if not batch.num_rows:
            continue
        if in_passages:
            yield texts_before_spaces.as_space_rows(batch, space.dim)
            continue
        _check(batch, ["id", "doc_id", "kind", "meta", "vectors", "checksum"], collection)
        _check_sums(batch, space_checksums(batch), collection)
        yield batch.drop_columns(["checksum"])


def _check(batch: pa.RecordBatch, columns: Sequence[str], collection: Collection) -> None:
    """Raise CorruptionError for a row that lacks a value which every row has."""
    for name in columns:
        if batch.column(name).null_count:
            missing = batch.filter(batch.column(name).is_null())
            raise _damaged(missing.column("id")[0], collection)


def _check_sums(batch: pa.RecordBatch, sums: NDArray[np.uint64], collection: Collection) -> None:
    wrong = np.flatnonzero(sums != batch.column("checksum").to_numpy())
    if len(wrong):
        raise _damaged(batch.column("id")[int(wrong[0])], collection)


def _batches(
    table: lance.LanceDataset,
    columns: Sequence[str],
    where: str,
    extents: Sequence[Extent],
    rows_at_once: int = ROWS_AT_ONCE,
) -> Iterator[pa.RecordBatch]:
    for extent in extents:
        condition, fragments = where, None
        if extent.doc_ids is not None:
            condition += f" AND doc_id IN ({quoted(sorted(extent.doc_ids))})"
        if extent.fragments is not None:
            fragments = [fragment for fragment in table.get_fragments() if fragment.fragment_id in extent.fragments]
        if (extent.doc_ids is None or extent.doc_ids) and (fragments is None or fragments):
            yield from table.scanner(
                columns=list(columns), filter=condition, fragments=fragments, batch_size=rows_at_once
            ).to_batches()


def _joined(batches: list[pa.RecordBatch], vectors: list[NDArray[np.float16]], *, dim: int) -> SpaceRows:
    """One shard's rows in the order of their ids. Takes each part of ``vectors`` out of the list, to free it."""
    import pyarrow.compute as pc

    if not batches:
        return SpaceRows.of(ShardRows.of([], [], [], []), np.empty((0, dim), np.float16))
    # Offsets of 64 bits: the ids of many rows are longer together than those of 32 can say.
    ids = _column(batches, "id", lambda array: array.cast("large_string"))
    order = pc.sort_indices(ids).to_numpy()
    coded = (_coded([batch.column(name) for batch in batches]).take(order) for name in ("doc_id", "kind", "meta"))
    rows = ShardRows.of(ids.take(order), *coded)
    counts = _column(batches, "count").to_numpy()
    grids = [_column(batches, f"grid_{side}", lambda array: array.fill_null(0)) for side in ("rows", "columns")]
    return SpaceRows.of(
        rows,
        _in_order(vectors, counts, order),
        counts=counts[order],
        grids=np.stack([grid.to_numpy() for grid in grids], axis=1)[order],
        phashes=_column(batches, "phash").take(order),
    )


def _in_order(
    parts: list[NDArray[np.float16]], counts: NDArray[np.int64], order: NDArray[np.int64]
) -> NDArray[np.float16]:
    """The vectors of the rows of all parts, ``counts`` [rows] each, as one matrix in the ``order`` of the rows [rows].

    Takes each part out of the list, to free it.
    """
    starts = np.empty(len(order), np.int64)
    starts[order] = np.concatenate([[0], np.cumsum(counts[order])])[:-1]
    # The first vector of each row, counted through all parts.
    first = np.concatenate([[0], np.cumsum(counts)])
    matrix = np.empty((int(first[-1]), parts[0].shape[1]), np.float16)
    is_single = len(matrix) == len(order)
    stop = len(counts)
    while parts:
        part = parts.pop()
        begin = int(np.searchsorted(first, first[stop] - len(part)))
        if is_single:
            matrix[starts[begin:stop]] = part
        else:
            # A page of late interaction is one copy, not one a vector.
            cuts = (first[begin : stop + 1] - first[begin]).tolist()
            for place, (low, high) in zip(starts[begin:stop].tolist(), pairwise(cuts), strict=True):
                matrix[place : place + high - low] = part[low:high]
        stop = begin
    return matrix


def _column(
    batches: list[pa.RecordBatch], name: str, change: Callable[[pa.Array], pa.Array] = lambda array: array
) -> pa.Array:
    import pyarrow as pa

    return pa.chunked_array([change(batch.column(name)) for batch in batches]).combine_chunks()


def _coded(arrays: list[pa.Array]) -> pa.DictionaryArray:
    import pyarrow as pa

    return pa.chunked_array([array.dictionary_encode() for array in arrays]).unify_dictionaries().combine_chunks()


def _damaged(row_id: object, collection: Collection) -> CorruptionError:
    return CorruptionError(f"passage {row_id} is damaged on disk: run `vrag verify -c {collection.root}`")
