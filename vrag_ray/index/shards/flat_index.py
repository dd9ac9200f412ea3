"""Single vectors of one shard in memory: an exact fp16 FAISS index. No Ray here.

Ties are exact: when the k-th and the next score are equal, the search is widened until all that tie are in hand,
and they are ordered by passage id. Together with `merge` this makes the sharded result equal the unsharded one. What a
GPU finds is scored again as main memory does it, so that its results are the same to the last bit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.shards.faiss_library import load_faiss
from vrag_ray.index.shards.gpu_index import MOST_RESULTS, SCORE_ERROR, GpuFlat
from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.shards.shard_rows import SpaceRows
from vrag_ray.index.shards.space_index import Floats, PageTraits, QueryVectors, single_vectors
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    import faiss

FP16_BYTES = 2
LEAST_ROWS_OF_A_PART = 20_000
"""Fewer are scanned in about a millisecond, which handing them to a thread would not shorten."""
ROWS_AT_ONCE = 65_536
LEAST_SPARE = 32
"""Rows that a GPU gives beyond ``k``, so that a second scan is seldom needed to know all that may be among the best."""


class FlatIndex:
    """Exact inner-product search over passages with one vector each; thread-safe for searching. A ``SpaceIndex``.

    With ``gpu_temp_mb`` (temporary memory there) the unfiltered search runs on a GPU, all queries in one scan. Filters
    and very large ``k`` need a copy in main memory, because GPU indexes take no selector and at most 2,048 results:
    it is made from the card when it is first needed.
    """

    recall = 1.0

    def __init__(self, space: SpaceRows, threads: int = 1, *, gpu_temp_mb: int | None = None) -> None:
        """``threads`` scan one query side by side: FAISS itself would give it one."""
        self.rows, vectors = space.rows, space.vectors
        self._phashes = space.drawn()
        self.size, self.dim = len(self.rows.ids), int(vectors.shape[1])
        parts = max(1, min(threads, self.size // LEAST_ROWS_OF_A_PART))
        self._bounds = [self.size * part // parts for part in range(parts + 1)]
        self._pool = ThreadPoolExecutor(parts, thread_name_prefix="scan") if parts > 1 else None
        self._gpu = GpuFlat(vectors, gpu_temp_mb) if self.size and gpu_temp_mb is not None else None
        self._longest = _longest(vectors) if self._gpu is not None else 1.0
        self._copying = threading.Lock()
        self._copy = None if self._gpu is not None else self._cpu_indexes(vectors)

    @property
    def _cpu(self) -> list[faiss.Index]:
        with self._copying:
            if self._copy is None:
                assert self._gpu is not None
                self._copy = self._cpu_indexes(self._gpu.vectors())
            return self._copy

    def _cpu_indexes(self, vectors: NDArray[np.float16]) -> list[faiss.Index]:
        return [_cpu_index(vectors[start:stop]) for start, stop in pairwise(self._bounds)]

    @property
    def device(self) -> str:
        """``cpu`` or ``cuda``."""
        return "cpu" if self._gpu is None else "cuda"

    @property
    def bytes_per_passage(self) -> float:
        """Memory of codes, ids and filter columns together, a passage."""
        return (self.rows.nbytes + self.size * self.dim * FP16_BYTES) / max(1, self.size)

    def nearest(
        self,
        queries: QueryVectors,
        k: int,
        filter: SearchFilter | None = None,
        alive: NDArray[np.bool_] | None = None,
    ) -> list[list[Scored]]:
        if self.size == 0 or k <= 0 or not len(queries):
            return [[] for _ in queries]
        vectors = single_vectors(queries, self.dim)
        mask = self.rows.mask(filter, alive)
        available = self.size if mask is None else int(mask.sum())
        if available == 0:
            return [[] for _ in queries]
        k = min(k, available)
        if self._gpu is None or mask is not None or k >= MOST_RESULTS:
            return [self._search_query(query, k, available, mask) for query in vectors]
        scores, numbers = self._gpu.nearest(vectors, min(k + max(k, LEAST_SPARE), available, MOST_RESULTS))
        return [self._from_gpu(self._gpu, query, scores[n], numbers[n], k) for n, query in enumerate(vectors)]

    def page_traits(self, passage_id: str, query: Floats | None) -> PageTraits | None:  # noqa: ARG002
        """A single vector has no places: the perceptual hash alone is known."""
        return PageTraits(None, self._phashes[passage_id]) if passage_id in self._phashes else None

    def _from_gpu(
        self,
        gpu: GpuFlat,
        query: NDArray[np.float32],
        scores: NDArray[np.float32],
        numbers: NDArray[np.int64],
        k: int,
    ) -> list[Scored]:
        """The ``k`` best of one query, of which the card gave at least ``k`` rows, best first."""
        # A row can be better by the error than it looks, and the k-th as much worse.
        slack = 2 * SCORE_ERROR * float(np.linalg.norm(query)) * self._longest
        while len(numbers) < self.size and scores[-1] >= scores[k - 1] - slack:
            if len(numbers) >= MOST_RESULTS:
                return self._search_query(query, k, self.size, None)
            wider_scores, wider_numbers = gpu.nearest(query[None], min(2 * len(numbers), self.size, MOST_RESULTS))
            scores, numbers = wider_scores[0], wider_numbers[0]
        chosen = np.sort(numbers[scores >= scores[k - 1] - slack])
        exact, places = _cpu_index(gpu.rows(chosen)).search(query[None], len(chosen))
        return self._ordered(exact[0], chosen[places[0]], k)

    def _ordered(self, scores: NDArray[np.float32], numbers: NDArray[np.int64], k: int) -> list[Scored]:
        best = sorted(zip((-scores).tolist(), numbers.tolist(), strict=True))[:k]
        ids: list[str] = self.rows.ids.take([number for _, number in best]).to_pylist()
        return [Scored(passage_id, -negated) for passage_id, (negated, _) in zip(ids, best, strict=True)]

    def _search_query(
        self, query: NDArray[np.float32], k: int, available: int, mask: NDArray[np.bool_] | None
    ) -> list[Scored]:
        fetch_k = min(k + 1, available)
        while True:
            scores, numbers = self._scan(query, fetch_k, mask)
            # The last of the k ties with the last in hand: what is beyond may tie as well.
            if fetch_k == available or scores[k - 1] > scores[-1]:
                break
            fetch_k = min(fetch_k * 2, available)
        return self._ordered(scores, numbers, k)

    def _scan(
        self, query: NDArray[np.float32], k: int, mask: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and row numbers of the ``k`` best rows that the mask lets through, best first."""
        batch = np.ascontiguousarray(query, dtype=np.float32).reshape(1, -1)
        every = range(len(self._cpu))
        run = map if self._pool is None else self._pool.map
        results = list(run(lambda part: self._scan_part(part, batch, k, mask), every))
        if len(results) == 1:
            return results[0]
        scores, numbers = (np.concatenate(arrays) for arrays in zip(*results, strict=True))
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
        with _single_thread():
            scores, numbers = self._cpu[part].search(batch, k, params=params)
        return scores[0], numbers[0] + start


@contextmanager
def _single_thread() -> Iterator[None]:
    """FAISS in this thread alone: for a single query it starts the threads of OpenMP all the same, which find nothing
    to do and take as much CPU time as the scan."""
    import faiss

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _longest(vectors: NDArray[np.float16]) -> float:
    """The length of the longest row; 1 for vectors of an embedder."""
    blocks = (vectors[start : start + ROWS_AT_ONCE] for start in range(0, len(vectors), ROWS_AT_ONCE))
    return max(float(np.linalg.norm(block.astype(np.float32), axis=1).max()) for block in blocks)


def _cpu_index(vectors: NDArray[np.float16]) -> faiss.Index:
    """Exact fp16 inner product; the bytes from disk become FAISS's codes as they are."""
    faiss = load_faiss()

    rows, dim = vectors.shape
    index = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    index.is_trained = True
    index.add_sa_codes(np.ascontiguousarray(vectors).view(np.uint8).reshape(rows, dim * FP16_BYTES))
    return index
