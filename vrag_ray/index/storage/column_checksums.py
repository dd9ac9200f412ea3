"""The sums of ``rows.shard_checksum`` for a whole batch: a row costs a hash and a join, and what rows share is encoded
once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

SHARED = ("doc_id", "kind", "embedder_id", "meta")
"""In the order in which they follow the id."""


def text_checksums(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    """xxh3-64 of each row of a batch with ``SHARD_COLUMNS``, none of which is null; [rows]."""
    import pyarrow as pa

    ids = batch.column("id").cast(pa.large_binary()).to_pylist()
    starts = vector_offsets(batch).tolist()
    vectors = memoryview(batch.column("vector").buffers()[2])
    tails, tail_of = _tails(batch)
    digest, join = xxhash.xxh3_64_intdigest, b"".join
    sums = (
        digest(join((row_id, tails[tail], vectors[start:stop])))
        for row_id, tail, start, stop in zip(ids, tail_of, starts, starts[1:], strict=False)
    )
    return np.fromiter(sums, np.uint64, batch.num_rows)


def vector_offsets(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Where each vector begins in the data buffer of the column ``vector``, and where the last one ends; [rows + 1]."""
    column = batch.column("vector")
    offsets = np.frombuffer(column.buffers()[1], np.int64)
    return offsets[column.offset : column.offset + batch.num_rows + 1]


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
