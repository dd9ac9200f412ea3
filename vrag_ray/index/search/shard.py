"""One shard of one collection version in memory: an exact fp16 FAISS index and what filters need. No Ray here.

Ties are exact: when the k-th and the next score are equal, the search is widened until all that tie are in hand,
and they are ordered by passage id. Together with `merge` this makes the sharded result equal the unsharded one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.search.faiss_library import load_faiss
from vrag_ray.index.search.lexical import Scored
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.rows import SHARD_COLUMNS, CorruptionError, meta_from_json, shard_checksum
from vrag_ray.index.storage.versions import find_version
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    import faiss
    import pyarrow as pa

FP16_BYTES = 2
GPU_MAX_K = 2048
_GPU_ADD_ROWS = 65536
LEAST_ROWS_OF_A_PART = 20_000
"""Fewer are scanned in about a millisecond, which handing them to a thread would not shorten."""


@dataclass(frozen=True, slots=True)
class ShardRows:
    """What a shard knows of its rows besides their vectors, ordered by passage id as FAISS numbers them.

    ``doc_of``, ``kind_of`` and ``meta_of`` [n] index the short lists beside them; ``ids`` is an Arrow string array.
    """

    ids: pa.Array
    doc_of: NDArray[np.int32]
    doc_ids: list[str]
    kind_of: NDArray[np.int8]
    kinds: list[str]
    meta_of: NDArray[np.int32]
    metas: list[str]

    @property
    def nbytes(self) -> int:
        return int(self.ids.nbytes) + self.doc_of.nbytes + self.kind_of.nbytes + self.meta_of.nbytes


def shard_of(doc_id: str, shards: int) -> int:
    """The shard a document lives in: its SHA-256 modulo the number of shards."""
    return int(doc_id[:8], 16) % shards


def load_index(
    files: CollectionFiles,
    version: int,
    embedder_id: str,
    *,
    shard: int = 0,
    shards: int = 1,
    threads: int = 1,
    on_gpu: bool = False,
) -> ShardIndex:
    """Shard number ``shard`` of ``shards`` of a collection version (0: an empty one), read from its files."""
    collection = Collection(files, find_version(files, version) if version else None)
    rows, vectors = load_rows(collection, embedder_id, shard, shards)
    return ShardIndex(rows, vectors, threads, on_gpu=on_gpu)


def load_rows(
    collection: Collection, embedder_id: str, shard: int, shards: int
) -> tuple[ShardRows, NDArray[np.float16]]:
    """This shard's rows and vectors [n, dim] of one embedder. CorruptionError when a row's checksum does not fit."""
    import pyarrow as pa

    ids: list[str] = []
    docs: list[str] = []
    kinds: list[str] = []
    metas: list[str] = []
    vectors: list[bytes] = []
    if collection.record is not None:
        with storage_faults(collection.root, "loading vectors"):
            where = f"embedder_id = '{embedder_id}' AND vector IS NOT NULL"
            for batch in collection.table("passages").to_batches(columns=[*SHARD_COLUMNS, "checksum"], filter=where):
                columns = [batch.column(name).to_pylist() for name in (*SHARD_COLUMNS, "checksum")]
                for row_id, doc_id, kind, embedder, meta, vector, checksum in zip(*columns, strict=True):
                    if shard_of(doc_id, shards) != shard or not collection.has_document(doc_id):
                        continue
                    if shard_checksum(row_id, doc_id, kind, embedder, meta, vector) != checksum:
                        raise CorruptionError(
                            f"passage {row_id} is damaged on disk: run `vrag verify {collection.root}`"
                        )
                    ids.append(row_id)
                    docs.append(doc_id)
                    kinds.append(kind)
                    metas.append(meta)
                    vectors.append(vector)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    matrix = np.frombuffer(b"".join([vectors[i] for i in order]), dtype=np.float16)
    doc_ids, doc_of = _coded([docs[i] for i in order])
    kind_names, kind_of = _coded([kinds[i] for i in order])
    meta_names, meta_of = _coded([metas[i] for i in order])
    rows = ShardRows(
        ids=pa.array([ids[i] for i in order], pa.string()),
        doc_of=doc_of,
        doc_ids=doc_ids,
        kind_of=kind_of.astype(np.int8),
        kinds=kind_names,
        meta_of=meta_of,
        metas=meta_names,
    )
    return rows, matrix.reshape(len(ids), -1) if ids else matrix.reshape(0, 1)


def _coded(values: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct values and, for each value, its number among them."""
    numbers: dict[str, int] = {}
    codes = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.int32, len(values))
    return list(numbers), codes


class ShardIndex:
    """Exact inner-product search over vectors [n, dim] fp16; thread-safe for searching.

    With ``on_gpu`` the unfiltered search runs there; filters and very large ``k`` use the CPU copy, because
    GPU indexes take no selector and at most 2,048 results.
    """

    def __init__(
        self, rows: ShardRows, vectors: NDArray[np.float16], threads: int = 1, *, on_gpu: bool = False
    ) -> None:
        """``threads`` scan one query side by side: FAISS itself would give it one."""
        self.rows = rows
        self.size, self.dim = len(rows.ids), int(vectors.shape[1])
        parts = max(1, min(threads, self.size // LEAST_ROWS_OF_A_PART))
        self._bounds = [self.size * part // parts for part in range(parts + 1)]
        self._cpu = [_cpu_index(vectors[start:stop]) for start, stop in pairwise(self._bounds)]
        self._pool = ThreadPoolExecutor(parts, thread_name_prefix="scan") if parts > 1 else None
        self._gpu = _gpu_index(vectors) if self.size and on_gpu else None

    @property
    def bytes_per_vector(self) -> float:
        """Memory of codes, ids and filter columns together, a vector."""
        return (self.rows.nbytes + self.size * self.dim * FP16_BYTES) / max(1, self.size)

    def search(self, queries: NDArray[np.float32], k: int, wanted: SearchFilter | None = None) -> list[list[Scored]]:
        """The ``k`` best windows of each query, [queries, dim] float32, by (-score, id); fewer when fewer match."""
        if self.size == 0 or k <= 0:
            return [[] for _ in queries]
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise VragError(f"queries have shape {queries.shape}, this shard holds vectors of {self.dim} dimensions")
        mask = self._mask(wanted)
        available = self.size if mask is None else int(mask.sum())
        if available == 0:
            return [[] for _ in queries]
        return [self._search_one(query, min(k, available), available, mask) for query in queries]

    def _search_one(
        self, query: NDArray[np.float32], k: int, available: int, mask: NDArray[np.bool_] | None
    ) -> list[Scored]:
        fetch_k = min(k + 1, available)
        while True:
            scores, numbers = self._scan(query, fetch_k, mask)
            # The last of the k ties with the last in hand: what is beyond may tie as well.
            if fetch_k == available or scores[k - 1] > scores[-1]:
                break
            fetch_k = min(fetch_k * 2, available)
        best = sorted(zip((-scores).tolist(), numbers.tolist(), strict=True))[:k]
        return [Scored(self.rows.ids[number].as_py(), -negated) for negated, number in best]

    def _scan(
        self, query: NDArray[np.float32], k: int, mask: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and row numbers of the ``k`` best rows that the mask lets through, best first."""
        batch = np.ascontiguousarray(query, dtype=np.float32).reshape(1, -1)
        if mask is None and self._gpu is not None and k <= GPU_MAX_K:
            scores, numbers = self._gpu.search(batch, k)
            return scores[0], numbers[0]
        every = range(len(self._cpu))
        run = map if self._pool is None else self._pool.map
        found = list(run(lambda part: self._scan_part(part, batch, k, mask), every))
        if len(found) == 1:
            return found[0]
        scores, numbers = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        best = np.argsort(-scores, kind="stable")[:k]
        return scores[best], numbers[best]

    def _scan_part(
        self, part: int, batch: NDArray[np.float32], k: int, mask: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        import faiss

        start, stop = self._bounds[part : part + 2]
        allowed = None if mask is None else mask[start:stop]
        k = min(k, stop - start if allowed is None else int(allowed.sum()))
        if k == 0:
            return np.empty(0, np.float32), np.empty(0, np.int64)
        params = None
        if allowed is not None:
            selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
            params = faiss.SearchParameters(sel=selector)
        scores, numbers = self._cpu[part].search(batch, k, params=params)
        return scores[0], numbers[0] + start

    def _mask(self, wanted: SearchFilter | None) -> NDArray[np.bool_] | None:
        """Which rows a filter lets through; conditions are evaluated once a document or metadata value, not a row."""
        if wanted is None or (wanted.doc_ids is None and wanted.kinds is None and not wanted.meta):
            return None
        rows = self.rows
        mask = np.ones(self.size, dtype=np.bool_)
        if wanted.doc_ids is not None:
            allowed = set(wanted.doc_ids)
            mask &= np.array([doc_id in allowed for doc_id in rows.doc_ids], dtype=np.bool_)[rows.doc_of]
        if wanted.kinds is not None:
            kinds = {str(kind) for kind in wanted.kinds}
            mask &= np.array([kind in kinds for kind in rows.kinds], dtype=np.bool_)[rows.kind_of]
        if wanted.meta:
            fits = np.array([wanted.matches_meta(meta_from_json(meta)) for meta in rows.metas], dtype=np.bool_)
            mask &= fits[rows.meta_of]
        return mask


def merge(parts: Iterable[Sequence[Scored]], k: int) -> list[Scored]:
    """The ``k`` best of several lists, each ordered by (-score, id), in the same order."""
    return list(islice(heapq.merge(*parts, key=lambda scored: scored.sort_key), k))


def _cpu_index(vectors: NDArray[np.float16]) -> faiss.Index:
    """Exact fp16 inner product; the bytes from disk become FAISS's codes as they are."""
    faiss = load_faiss()

    rows, dim = vectors.shape
    index = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    index.is_trained = True
    index.add_sa_codes(np.ascontiguousarray(vectors).view(np.uint8).reshape(rows, dim * FP16_BYTES))
    return index


def _gpu_index(vectors: NDArray[np.float16]) -> faiss.Index:
    faiss = load_faiss()

    if faiss.get_num_gpus() == 0:
        raise VragError(
            "index.num_gpus is above 0 and FAISS sees no GPU here: install the extra `gpu`, or set index.num_gpus to 0"
        )
    config = faiss.GpuIndexFlatConfig()
    config.useFloat16 = True
    index = faiss.GpuIndexFlatIP(faiss.StandardGpuResources(), vectors.shape[1], config)
    for start in range(0, len(vectors), _GPU_ADD_ROWS):
        index.add(vectors[start : start + _GPU_ADD_ROWS].astype(np.float32))
    return index
