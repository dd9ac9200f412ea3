"""The sums of the rows of a whole batch. What rows share is encoded once, so that a row costs two joins and a hash."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
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
_ESCAPED = r'["\\\x00-\x1f]'
"""What JSON writes in another way."""
_LONG = 8192
"""Bytes of vectors of a row from which on copying them takes longer than a call."""


def text_checksums(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    """``rows.shard_checksum`` of each passage of a batch with ``SHARD_COLUMNS``, none of which is null; [rows]."""
    import pyarrow as pa

    shared, tail_of = _distinct(batch, SHARED)
    tails = ["\x1f".join(["", *map(str, values), "+"]).encode() for values in shared]
    ids = batch.column("id").cast(pa.large_binary()).to_pylist()
    return _sums((b"".join((row_id, tails[n])) for row_id, n in zip(ids, tail_of, strict=True)), batch.column("vector"))


def space_checksums(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    """xxh3-64 of each row of a batch of a space's table: of ``SPACE_HEAD`` as JSON, and the vectors; [rows]."""
    shared, tail_of = _distinct(batch, SPACE_HEAD[1:])
    tails = [f", {_json(values)[1:]}\x1f".encode() for values in shared]
    ids = _json_strings(batch.column("id"))
    heads = (b"".join((b"[", row_id, tails[n])) for row_id, n in zip(ids, tail_of, strict=True))
    return _sums(heads, batch.column("vectors"))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json_strings(column: pa.StringArray) -> list[bytes]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pc.any(pc.match_substring_regex(column, _ESCAPED)).as_py():
        return [_json(text).encode() for text in column.to_pylist()]
    quoted: list[bytes] = pc.binary_join_element_wise('"', column, '"', "").cast(pa.binary()).to_pylist()
    return quoted


def _sums(heads: Iterable[bytes], vectors: pa.LargeBinaryArray) -> NDArray[np.uint64]:
    """xxh3-64 of each row's head and its vectors behind it."""
    starts, data = byte_offsets(vectors).tolist(), byte_data(vectors)
    rows = zip(heads, starts, starts[1:], strict=False)
    digest = _digest_of_long if len(data) > _LONG * len(vectors) else _digest
    return np.fromiter((digest(head, data[start:stop]) for head, start, stop in rows), np.uint64, len(vectors))


def _digest(head: bytes, vectors: memoryview) -> int:
    return xxhash.xxh3_64_intdigest(b"".join((head, vectors)))


def _digest_of_long(head: bytes, vectors: memoryview) -> int:
    """Without a copy of the vectors, at the cost of two calls."""
    digest = xxhash.xxh3_64(head)
    digest.update(vectors)
    return digest.intdigest()


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


def _distinct(batch: pa.RecordBatch, columns: Sequence[str]) -> tuple[list[tuple[object, ...]], list[int]]:
    """The distinct values of these columns together, and their number by row."""
    together = np.zeros(batch.num_rows, np.int64)
    first = np.zeros(min(1, batch.num_rows), np.int64)
    for name in columns:
        coded = batch.column(name).dictionary_encode(null_encoding="encode")
        if len(coded.dictionary) > 1:
            pairs = together * len(coded.dictionary) + coded.indices.to_numpy()
            # Numbered anew column by column: products of all numbers of values are too large.
            _, first, together = np.unique(pairs, return_index=True, return_inverse=True)
    values = (batch.column(name).take(first).to_pylist() for name in columns)
    return list(zip(*values, strict=True)), together.tolist()
