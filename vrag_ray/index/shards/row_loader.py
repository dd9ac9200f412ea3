"""The rows of one shard from the files of a collection, column by column, every sum verified."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.shards.shard_rows import ShardRows, SpaceRows, shard_of
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.column_checksums import text_checksums, vector_offsets
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.index.storage.rows import SHARD_COLUMNS, CorruptionError, quoted
from vrag_ray.index.storage.spaces import SPACE_COLUMNS, space_row_is_sound

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

ROWS_AT_ONCE = 65_536


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


def load_text_rows(
    collection: Collection, embedder_id: str, selection: RowSelection | None = None, extents: Sequence[Extent] = WHOLE
) -> tuple[ShardRows, NDArray[np.float16]]:
    """A shard's text windows and vectors [n, dim] of one embedder. CorruptionError for a damaged row."""
    import pyarrow.compute as pc

    parts: list[pa.RecordBatch] = []
    vectors: list[NDArray[np.float16]] = []
    for batch in _text_batches(collection, embedder_id, selection or rows_of(collection), extents):
        parts.append(batch.select(["id", "doc_id", "kind", "meta"]))
        vectors.append(_matrix(batch, collection))
    if not parts:
        return ShardRows.of([], [], [], []), np.empty((0, 1), np.float16)
    if len({part.shape[1] for part in vectors}) > 1:
        raise CorruptionError(f"{collection.root} holds vectors of several lengths made by {embedder_id}")
    ids = _joined([part.column("id") for part in parts])
    order = pc.sort_indices(ids).to_numpy()
    rows = ShardRows.of(
        ids.take(order),
        *(_coded([part.column(name) for part in parts]).take(order) for name in ("doc_id", "kind", "meta")),
    )
    return rows, _in_order(vectors, order)


def load_space_rows(
    collection: Collection, name: str, selection: RowSelection | None = None, extents: Sequence[Extent] = WHOLE
) -> SpaceRows:
    """A shard's part of a vector space; passages without vectors are left out. CorruptionError for a damaged row."""
    dim, selection = collection.space(name).dim, selection or rows_of(collection)
    found: list[dict[str, object]] = []
    with storage_faults(collection.root, f"loading the vectors of {name}"):
        for whole in _batches(collection.space_table(name), [*SPACE_COLUMNS, "checksum"], "count > 0", extents):
            for row in selection.of(whole).to_pylist():
                if not space_row_is_sound(row):
                    raise _damaged(row["id"], collection)
                found.append(row)
    found.sort(key=lambda row: str(row["id"]))
    counts = np.array([row["count"] for row in found], np.int64)
    joined = b"".join([row["vectors"] for row in found if isinstance(row["vectors"], bytes)])
    return SpaceRows(
        rows=ShardRows.of(*([str(row[name]) for row in found] for name in ("id", "doc_id", "kind", "meta"))),
        vectors=np.frombuffer(joined, np.float16).reshape(-1, dim),
        bounds=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        grids=np.array([[row["grid_rows"] or 0, row["grid_columns"] or 0] for row in found], np.int32).reshape(-1, 2),
        phashes=[row["phash"] if isinstance(row["phash"], int) else None for row in found],
    )


def _text_batches(
    collection: Collection, embedder_id: str, selection: RowSelection, extents: Sequence[Extent]
) -> Iterator[pa.RecordBatch]:
    if collection.record is None:
        return
    columns = [*SHARD_COLUMNS, "checksum"]
    where = f"embedder_id = '{embedder_id}' AND vector IS NOT NULL"
    with storage_faults(collection.root, "loading vectors"):
        for whole in _batches(collection.table("passages"), columns, where, extents):
            batch = selection.of(whole)
            if not batch.num_rows:
                continue
            for name in columns:
                if batch.column(name).null_count:
                    missing = batch.filter(batch.column(name).is_null())
                    raise _damaged(missing.column("id")[0], collection)
            wrong = np.flatnonzero(text_checksums(batch) != batch.column("checksum").to_numpy())
            if len(wrong):
                raise _damaged(batch.column("id")[int(wrong[0])], collection)
            yield batch


def _batches(
    table: lance.LanceDataset, columns: Sequence[str], where: str, extents: Sequence[Extent]
) -> Iterator[pa.RecordBatch]:
    for extent in extents:
        condition, fragments = where, None
        if extent.doc_ids is not None:
            condition += f" AND doc_id IN ({quoted(sorted(extent.doc_ids))})"
        if extent.fragments is not None:
            fragments = [fragment for fragment in table.get_fragments() if fragment.fragment_id in extent.fragments]
        if (extent.doc_ids is None or extent.doc_ids) and (fragments is None or fragments):
            yield from table.scanner(
                columns=list(columns), filter=condition, fragments=fragments, batch_size=ROWS_AT_ONCE
            ).to_batches()


def _matrix(batch: pa.RecordBatch, collection: Collection) -> NDArray[np.float16]:
    """The vectors of a batch, [rows, dim]: a view of its memory."""
    offsets = vector_offsets(batch)
    lengths = np.diff(offsets)
    if (lengths != lengths[0]).any():
        raise _damaged(str(batch.column("id")[int(np.argmax(lengths != lengths[0]))]), collection)
    data = np.frombuffer(batch.column("vector").buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    return data.view(np.float16).reshape(batch.num_rows, -1)


def _in_order(vectors: list[NDArray[np.float16]], order: NDArray[np.int64]) -> NDArray[np.float16]:
    """The parts as one matrix whose row n is row ``order[n]`` of them. Takes each part out of the list, to free it."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    matrix = np.empty((len(order), vectors[0].shape[1]), np.float16)
    stop = len(order)
    while vectors:
        part = vectors.pop()
        matrix[place[stop - len(part) : stop]] = part
        stop -= len(part)
    return matrix


def _joined(arrays: list[pa.Array]) -> pa.Array:
    """Offsets of 64 bits: the ids of many rows are longer together than those of 32 can say."""
    import pyarrow as pa

    return pa.chunked_array([array.cast(pa.large_string()) for array in arrays]).combine_chunks()


def _coded(arrays: list[pa.Array]) -> pa.DictionaryArray:
    import pyarrow as pa

    return pa.chunked_array([array.dictionary_encode() for array in arrays]).unify_dictionaries().combine_chunks()


def _damaged(row_id: object, collection: Collection) -> CorruptionError:
    return CorruptionError(f"passage {row_id} is damaged on disk: run `vrag verify -c {collection.root}`")
