"""What a shard knows of its rows besides their vectors, and how a filter picks among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.index.storage.rows import SHARD_COLUMNS, CorruptionError, meta_from_json, shard_checksum
from vrag_ray.index.storage.spaces import SPACE_COLUMNS, space_row_is_sound
from vrag_ray.types import Meta
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class ShardRows:
    """The rows of one shard, ordered by passage id as an index numbers them.

    ``doc_of``, ``kind_of`` and ``meta_of`` [n] are numbers of what stands beside them: ``documents`` by id, ``kinds``,
    ``metas``. ``ids`` is an Arrow string array.
    """

    ids: pa.Array
    doc_of: NDArray[np.int32]
    documents: dict[str, int]
    kind_of: NDArray[np.int8]
    kinds: list[str]
    meta_of: NDArray[np.int32]
    metas: list[Meta]

    @classmethod
    def of(cls, ids: Sequence[str], docs: Sequence[str], kinds: Sequence[str], metas: Sequence[str]) -> ShardRows:
        """From columns that are ordered by id."""
        import pyarrow as pa

        documents, doc_of = _coded(docs)
        kind_names, kind_of = _coded(kinds)
        meta_names, meta_of = _coded(metas)
        return cls(
            pa.array(ids, pa.string()),
            doc_of,
            documents,
            kind_of.astype(np.int8),
            list(kind_names),
            meta_of,
            # Parsed once, and not for every search with a filter.
            [meta_from_json(meta) for meta in meta_names],
        )

    @property
    def nbytes(self) -> int:
        return int(self.ids.nbytes) + self.doc_of.nbytes + self.kind_of.nbytes + self.meta_of.nbytes

    def mask(self, wanted: SearchFilter | None) -> NDArray[np.bool_] | None:
        """Which rows a filter lets through, [n]; None where it lets all. Conditions are evaluated once a document or
        metadata value, not a row."""
        if wanted is None or (wanted.doc_ids is None and wanted.kinds is None and not wanted.meta):
            return None
        mask = np.ones(len(self.ids), dtype=np.bool_)
        if wanted.doc_ids is not None:
            allowed = np.zeros(len(self.documents), dtype=np.bool_)
            allowed[[self.documents[doc_id] for doc_id in wanted.doc_ids if doc_id in self.documents]] = True
            mask &= allowed[self.doc_of]
        if wanted.kinds is not None:
            kinds = {str(kind) for kind in wanted.kinds}
            mask &= np.array([kind in kinds for kind in self.kinds], dtype=np.bool_)[self.kind_of]
        if wanted.meta:
            fits = np.array([wanted.matches_meta(meta) for meta in self.metas], dtype=np.bool_)
            mask &= fits[self.meta_of]
        return mask


@dataclass(frozen=True, slots=True)
class SpaceRows:
    """One shard's part of a vector space, ordered by passage id.

    ``vectors`` [total, dim] fp16 holds the passages one after the other; passage n has ``bounds[n]`` to
    ``bounds[n + 1]``. ``grids`` [n, 2] are rows and columns of picture patches, 0 where there are none; ``phashes``
    are None where no picture was drawn.
    """

    rows: ShardRows
    vectors: NDArray[np.float16]
    bounds: NDArray[np.int64]
    grids: NDArray[np.int32]
    phashes: list[int | None]


def shard_of(doc_id: str, shards: int) -> int:
    """The shard a document lives in: its SHA-256 modulo the number of shards."""
    return int(doc_id[:8], 16) % shards


def load_text_rows(
    collection: Collection, embedder_id: str, shard: int, shards: int
) -> tuple[ShardRows, NDArray[np.float16]]:
    """This shard's text windows and vectors [n, dim] of one embedder. CorruptionError for a damaged row."""
    ids: list[str] = []
    docs: list[str] = []
    kinds: list[str] = []
    metas: list[str] = []
    vectors: list[bytes] = []
    if collection.record is not None:
        with storage_faults(collection.root, "loading vectors"):
            where = f"embedder_id = '{embedder_id}' AND vector IS NOT NULL"
            for batch in collection.table("passages").to_batches(columns=[*SHARD_COLUMNS, "checksum"], filter=where):
                values = [batch.column(name).to_pylist() for name in (*SHARD_COLUMNS, "checksum")]
                for row_id, doc_id, kind, embedder, meta, vector, checksum in zip(*values, strict=True):
                    if shard_of(doc_id, shards) != shard or not collection.has_document(doc_id):
                        continue
                    if shard_checksum(row_id, doc_id, kind, embedder, meta, vector) != checksum:
                        raise _damaged(row_id, collection)
                    ids.append(row_id)
                    docs.append(doc_id)
                    kinds.append(kind)
                    metas.append(meta)
                    vectors.append(vector)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    matrix = np.frombuffer(b"".join([vectors[i] for i in order]), dtype=np.float16)
    rows = ShardRows.of(*([column[i] for i in order] for column in (ids, docs, kinds, metas)))
    return rows, matrix.reshape(len(ids), -1) if ids else matrix.reshape(0, 1)


def load_space_rows(collection: Collection, name: str, shard: int, shards: int) -> SpaceRows:
    """This shard's part of a vector space; passages without vectors are left out. CorruptionError for a damaged row."""
    dim = collection.space(name).dim
    found: list[dict[str, object]] = []
    with storage_faults(collection.root, f"loading the vectors of {name}"):
        columns = [*SPACE_COLUMNS, "checksum"]
        for batch in collection.space_table(name).to_batches(columns=columns, filter="count > 0"):
            for row in batch.to_pylist():
                if shard_of(row["doc_id"], shards) != shard or not collection.has_document(row["doc_id"]):
                    continue
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


def _damaged(row_id: str, collection: Collection) -> CorruptionError:
    return CorruptionError(f"passage {row_id} is damaged on disk: run `vrag verify {collection.root}`")


def _coded(values: Sequence[str]) -> tuple[dict[str, int], NDArray[np.int32]]:
    """The distinct values with their numbers, in order, and for each value its number."""
    numbers: dict[str, int] = {}
    codes = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.int32, len(values))
    return numbers, codes
