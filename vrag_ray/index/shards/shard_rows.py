"""What a shard knows of its rows besides their vectors, and how a filter picks among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.storage.rows import meta_from_json
from vrag_ray.types import Meta
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    import pyarrow as pa

    Column: TypeAlias = Sequence[str] | pa.Array


@dataclass(frozen=True)
class ShardRows:
    """The rows of one shard, ordered by passage id as an index numbers them.

    ``ids`` is an Arrow array of strings. ``doc_of``, ``kind_of`` and ``meta_of`` [n] are numbers of what stands beside
    them: ``documents`` by id, ``kinds``, and ``meta_texts``, an Arrow array of the distinct metadata in JSON.
    """

    ids: pa.Array
    doc_of: NDArray[np.int32]
    documents: dict[str, int]
    kind_of: NDArray[np.int8]
    kinds: list[str]
    meta_of: NDArray[np.int32]
    meta_texts: pa.Array

    @classmethod
    def of(cls, ids: Column, docs: Column, kinds: Column, metas: Column) -> ShardRows:
        """From columns that are ordered by id."""
        doc_of, documents = _coded(docs)
        kind_of, kind_names = _coded(kinds)
        meta_of, meta_texts = _coded(metas)
        return cls(
            _array(ids),
            doc_of,
            {doc_id: number for number, doc_id in enumerate(documents.to_pylist())},
            kind_of.astype(np.int8),
            kind_names.to_pylist(),
            meta_of,
            meta_texts,
        )

    @cached_property
    def metas(self) -> list[Meta]:
        """The distinct metadata, parsed when the first filter asks for it and not for every search with one."""
        return [meta_from_json(text) for text in self.meta_texts.to_pylist()]

    @property
    def nbytes(self) -> int:
        return int(self.ids.nbytes) + self.doc_of.nbytes + self.kind_of.nbytes + self.meta_of.nbytes

    def mask(self, filter: SearchFilter | None, alive: NDArray[np.bool_] | None = None) -> NDArray[np.bool_] | None:
        """Which of the ``alive`` rows (None: all) a filter lets through, [n]; None where it is all rows. Conditions are
        evaluated once a document or metadata value, not a row."""
        if filter is None or (filter.doc_ids is None and filter.kinds is None and not filter.meta):
            return alive
        mask = np.ones(len(self.ids), dtype=np.bool_) if alive is None else alive.copy()
        if filter.doc_ids is not None:
            allowed = np.zeros(len(self.documents), dtype=np.bool_)
            allowed[[self.documents[doc_id] for doc_id in filter.doc_ids if doc_id in self.documents]] = True
            mask &= allowed[self.doc_of]
        if filter.kinds is not None:
            kinds = {str(kind) for kind in filter.kinds}
            mask &= np.array([kind in kinds for kind in self.kinds], dtype=np.bool_)[self.kind_of]
        if filter.meta:
            fits = np.array([filter.matches_meta(meta) for meta in self.metas], dtype=np.bool_)
            mask &= fits[self.meta_of]
        return mask


@dataclass(frozen=True, slots=True)
class SpaceRows:
    """One shard's part of a vector space, ordered by passage id.

    ``vectors`` [total, dim] fp16 holds the passages one after the other; passage n has ``bounds[n]`` to
    ``bounds[n + 1]``. ``grids`` [n, 2] are rows and columns of picture patches, 0 where there are none; ``phashes``
    [n], an Arrow array of unsigned integers, are null where no picture was drawn.
    """

    rows: ShardRows
    vectors: NDArray[np.float16]
    bounds: NDArray[np.int64]
    grids: NDArray[np.int32]
    phashes: pa.Array

    @classmethod
    def of(
        cls,
        rows: ShardRows,
        vectors: NDArray[np.float16],
        *,
        counts: NDArray[np.int64] | None = None,
        grids: NDArray[np.int32] | None = None,
        phashes: pa.Array | None = None,
    ) -> SpaceRows:
        """``counts`` [n] vectors of each passage; None: one each. Without ``grids`` and ``phashes``, as for words."""
        import pyarrow as pa

        n = len(rows.ids)
        bounds = np.arange(n + 1) if counts is None else np.concatenate([[0], np.cumsum(counts)])
        return cls(
            rows,
            vectors,
            bounds.astype(np.int64),
            np.zeros((n, 2), np.int32) if grids is None else grids,
            pa.nulls(n, pa.uint64()) if phashes is None else phashes,
        )

    def drawn(self) -> dict[str, int]:
        """The perceptual hash of each passage that was drawn, by its id."""
        import pyarrow.compute as pc

        ids = self.rows.ids.filter(pc.is_valid(self.phashes))
        return dict(zip(ids.to_pylist(), self.phashes.drop_null().to_pylist(), strict=True))


def shard_of(doc_id: str, shards: int) -> int:
    """The shard a document lives in: its SHA-256 modulo the number of shards."""
    return int(doc_id[:8], 16) % shards


def _array(values: Column) -> pa.Array:
    import pyarrow as pa

    return values if isinstance(values, pa.Array) else pa.array(values, pa.large_string())


def _coded(values: Column) -> tuple[NDArray[np.int32], pa.Array]:
    """For each value its number, and the distinct values in the order of their numbers."""
    import pyarrow as pa

    array = _array(values)
    coded = array if isinstance(array, pa.DictionaryArray) else array.dictionary_encode()
    return coded.indices.to_numpy(), coded.dictionary
