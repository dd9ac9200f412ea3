"""Single vectors of one shard in memory: an exact fp16 FAISS index. No Ray here.

Ties are exact: when the k-th and the next score are equal, the search is widened until all that tie are in hand,
and they are ordered by passage id. Together with `merge` this makes the sharded result equal the unsharded one.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.search.faiss_library import load_faiss
from vrag_ray.index.search.scored import Scored
from vrag_ray.index.search.shard_rows import ShardRows
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    import faiss

FP16_BYTES = 2
GPU_MAX_K = 2048
_GPU_ADD_ROWS = 65536
LEAST_ROWS_OF_A_PART = 20_000
"""Fewer are scanned in about a millisecond, which handing them to a thread would not shorten."""


class FlatIndex:
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
        mask = self.rows.mask(wanted)
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
