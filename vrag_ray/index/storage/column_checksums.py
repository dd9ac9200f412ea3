"""The sums of the rows of a whole batch. A text row costs a hash and a join, and what text rows share is encoded once;
vectors are hashed where they lie."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import xxhash
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

SHARED = ("doc_id", "kind", "embedder_id", "meta")
"""In the order in which they follow the id."""
SPACE_HEAD = ("id", "doc_id", "kind", "meta", "count", "grid_rows", "grid_columns", "phash", "error")
"""All columns of a space but the vectors and the sum."""


def text_checksums(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    """``rows.shard_checksum`` of each passage of a batch with ``SHARD_COLUMNS``, none of which is null; [rows]."""
    import pyarrow as pa

    ids = batch.column("id").cast(pa.large_binary()).to_pylist()
    starts, vectors = byte_offsets(batch.column("vector")).tolist(), byte_data(batch.column("vector"))
    tails, tail_of = _tails(batch)
    digest, join = xxhash.xxh3_64_intdigest, b"".join
    sums = (
        digest(join((row_id, tails[tail], vectors[start:stop])))
        for row_id, tail, start, stop in zip(ids, tail_of, starts, starts[1:], strict=False)
    )
    return np.fromiter(sums, np.uint64, batch.num_rows)


def space_checksums(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    """xxh3-64 of each row of a batch of a space's table: of ``SPACE_HEAD`` as JSON, and the vectors; [rows]."""
    heads = zip(*(batch.column(name).to_pylist() for name in SPACE_HEAD), strict=True)
    starts, vectors = byte_offsets(batch.column("vectors")).tolist(), byte_data(batch.column("vectors"))
    sums = np.empty(batch.num_rows, np.uint64)
    for n, head in enumerate(heads):
        digest = xxhash.xxh3_64(json.dumps(head, ensure_ascii=False).encode() + b"\x1f")
        digest.update(vectors[starts[n] : starts[n + 1]])
        sums[n] = digest.intdigest()
    return sums


def byte_offsets(column: pa.LargeBinaryArray) -> NDArray[np.int64]:
    """Where each value begins in ``byte_data``, and where the last one ends; [rows + 1]."""
    if not len(column):
        return np.zeros(1, np.int64)
    offsets = np.frombuffer(column.buffers()[1], np.int64)
    return offsets[column.offset : column.offset + len(column) + 1]


def byte_data(column: pa.LargeBinaryArray) -> memoryview:
    """The bytes of all values of a column, without a copy."""
    data = column.buffers()[2]
    return memoryview(b"" if data is None else data)


def _tails(batch: pa.RecordBatch) -> tuple[list[bytes], list[int]]:
    """The bytes between id and vector: each distinct one, and its number by row."""
    import pyarrow as pa

    coded = [batch.column(name).dictionary_encode() for name in SHARED]
    values = [column.dictionary.cast(pa.large_binary()).to_pylist() for column in coded]
    together = np.zeros(batch.num_rows, np.int64)
    for column, distinct in zip(coded, values, strict=True):
        together = together * len(distinct) + column.indices.to_numpy()
    keys, tail_of = np.unique(together, return_inverse=True)
    tails: list[bytes] = []
    for key in keys.tolist():
        parts, left = [b"+"], key
        for distinct in reversed(values):
            left, number = divmod(left, len(distinct))
            parts.append(distinct[number])
        tails.append(b"\x1f".join([b"", *reversed(parts)]))
    return tails, tail_of.tolist()
