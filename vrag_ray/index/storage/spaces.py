"""Vector spaces beside that of the texts: a Lance table each, so that one is added, rebuilt or dropped on its own.

A space belongs to one embedder. Its table has one row for each passage that the embedder took, by passage id, with all
its vectors (one, or many for late interaction) as fp16 bytes. A passage that could not be embedded has a row with its
error and no vectors, and is not tried again. Which spaces a version of the collection has, and at which version of
their tables, is in the version record; a dropped table stays for the older versions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import xxhash
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "spaces"
SPACE_COLUMNS = ("id", "doc_id", "kind", "meta", "count", "grid_rows", "grid_columns", "phash", "error", "vectors")


@dataclass(frozen=True, slots=True)
class SpaceRecord:
    """One space of one version. ``config`` is the ``SpaceConfig`` it was made with, and ``traits`` what its embedder
    said of itself, both as JSON values.

    ``table`` is the folder below the collection, ``version`` Lance's. ``passages`` counts the rows that have vectors,
    ``failed`` those that could not be embedded, ``vectors`` all vectors.
    """

    name: str
    table: str
    version: int
    embedder_id: str
    dim: int
    multi_vector: bool
    passages: int = 0
    failed: int = 0
    vectors: int = 0
    config: dict[str, object] = field(default_factory=dict)
    traits: dict[str, object] = field(default_factory=dict)

    @property
    def bytes_per_passage(self) -> float:
        """On disk and, unless it is binarised, in memory."""
        return self.vectors * self.dim * 2 / max(1, self.passages)


@dataclass(frozen=True, slots=True)
class StoredVectors:
    """What a space keeps of a passage: ``vectors`` [n, dim] fp16, n = 0 where ``error`` says why there are none.

    ``grid`` as in ``Embedding``. ``phash`` is the perceptual hash of the picture, None where none was drawn.
    """

    passage_id: str
    doc_id: str
    kind: str
    meta: str
    vectors: NDArray[np.float16]
    grid: tuple[int, int] | None = None
    phash: int | None = None
    error: str = ""


def space_schema() -> pa.Schema:
    import pyarrow as pa

    types: dict[str, pa.DataType] = {
        "count": pa.int32(), "grid_rows": pa.int32(), "grid_columns": pa.int32(), "phash": pa.uint64(),
        "vectors": pa.large_binary(),
    }  # fmt: skip
    fields = [(name, types.get(name, pa.string())) for name in SPACE_COLUMNS]
    return pa.schema([*fields, ("checksum", pa.uint64())])


def space_table(rows: Sequence[StoredVectors]) -> pa.Table:
    import pyarrow as pa

    values = [_row(row) for row in rows]
    return pa.Table.from_pylist(values, schema=space_schema())


def space_row_is_sound(row: dict[str, object]) -> bool:
    return row["checksum"] == space_checksum(row)


def space_checksum(row: dict[str, object]) -> int:
    """xxh3-64 of a whole row but for the sum itself."""
    head = json.dumps([row[name] for name in SPACE_COLUMNS[:-1]], ensure_ascii=False).encode()
    vectors = row["vectors"]
    return int(xxhash.xxh3_64_intdigest(head + b"\x1f" + (vectors if isinstance(vectors, bytes) else b"")))


def _row(stored: StoredVectors) -> dict[str, object]:
    rows, columns = stored.grid if stored.grid is not None else (None, None)
    row: dict[str, object] = {
        "id": stored.passage_id,
        "doc_id": stored.doc_id,
        "kind": stored.kind,
        "meta": stored.meta,
        "count": len(stored.vectors),
        "grid_rows": rows,
        "grid_columns": columns,
        "phash": stored.phash,
        "error": stored.error,
        "vectors": np.ascontiguousarray(stored.vectors, np.float16).tobytes(),
    }
    row["checksum"] = space_checksum(row)
    return row
