"""Collections from before texts were a space: the vectors of texts stand in the table of the passages.

A reader is given them as the space ``text``, whose table is that of the passages. The next writer copies them into a
table of their own (``space_writer.SpaceWriter``), so that no text is embedded again.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.config.embedding import MINILM
from vrag_ray.index.storage.column_checksums import byte_offsets, text_checksums
from vrag_ray.index.storage.rows import READ_AGAIN, SHARD_COLUMNS, CorruptionError, quoted
from vrag_ray.index.storage.spaces import SPACE_COLUMNS, SpaceRecord, space_schema
from vrag_ray.types import TEXT

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

PASSAGES = "passages.lance"
COLUMNS = (*SHARD_COLUMNS, "checksum")
_FP16_BYTES = 2
_ID_OF_MINILM = "minilm-l6-v2/"


def text_space_of(passages: lance.LanceDataset, documents: lance.LanceDataset) -> SpaceRecord | None:
    """The space of the vectors that the passages have of the embedder that most documents name; None without vectors.

    A collection may hold vectors of a second embedder, where a change of it was interrupted: those were never searched
    together, and are left out.
    """
    ids = Counter(documents.to_table(columns=["embedder_id"])["embedder_id"].to_pylist())
    named = [embedder_id for embedder_id, _ in ids.most_common() if embedder_id not in ("", READ_AGAIN)]
    for embedder_id in named:
        where = where_of(embedder_id)
        first = passages.to_table(columns=["vector"], filter=where, limit=1)["vector"]
        if len(first):
            count = passages.count_rows(where)
            return SpaceRecord(
                name=TEXT,
                table=PASSAGES,
                version=int(passages.version),
                embedder_id=embedder_id,
                dim=len(first[0].as_py()) // _FP16_BYTES,
                multi_vector=False,
                passages=count,
                vectors=count,
                # Of another model the settings have to say what it is.
                config={"model": MINILM} if embedder_id.startswith(_ID_OF_MINILM) else {},
                traits={"modalities": ["text"]},
            )
    return None


def where_of(embedder_id: str) -> str:
    """The condition for the passages that have a vector of this embedder."""
    return f"embedder_id = {quoted([embedder_id])} AND vector IS NOT NULL"


def as_space_rows(batch: pa.RecordBatch, dim: int) -> pa.RecordBatch:
    """Passages (``COLUMNS``) as rows of a space, without their sums. Raises CorruptionError for a damaged row."""
    import pyarrow as pa

    wrong = np.diff(byte_offsets(batch.column("vector"))) != dim * _FP16_BYTES
    for name in COLUMNS:
        wrong |= batch.column(name).is_null().to_numpy(zero_copy_only=False)
    if not wrong.any():
        wrong = text_checksums(batch) != batch.column("checksum").to_numpy()
    if wrong.any():
        row_id = batch.column("id")[int(np.argmax(wrong))]
        raise CorruptionError(f"passage {row_id} is damaged on disk: run `vrag verify`")
    n = batch.num_rows
    columns = {name: batch.column(name) for name in ("id", "doc_id", "kind", "meta")} | {
        "count": pa.array(np.ones(n, np.int32)),
        "grid_rows": pa.nulls(n, pa.int32()),
        "grid_columns": pa.nulls(n, pa.int32()),
        "phash": pa.nulls(n, pa.uint64()),
        "error": pa.array([""] * n, pa.string()),
        "vectors": batch.column("vector"),
    }
    schema = space_schema()
    fields = [schema.field(name) for name in SPACE_COLUMNS]
    return pa.record_batch([columns[field.name] for field in fields], schema=pa.schema(fields))


def other_copies(passages: lance.LanceDataset, embedder_id: str) -> str:
    """The condition for passages of another embedder beside those of this one, of documents that were being embedded
    anew when a run was interrupted; "" where there are none."""
    owners = passages.to_table(columns=["doc_id", "embedder_id"]).group_by(["doc_id", "embedder_id"]).aggregate([])
    pairs = list(zip(owners["doc_id"].to_pylist(), owners["embedder_id"].to_pylist(), strict=True))
    own = {doc_id for doc_id, embedder in pairs if embedder == embedder_id}
    twice = sorted({doc_id for doc_id, embedder in pairs if embedder != embedder_id} & own)
    return f"doc_id IN ({quoted(twice)}) AND embedder_id != {quoted([embedder_id])}" if twice else ""
