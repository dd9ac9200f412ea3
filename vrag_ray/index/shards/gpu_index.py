"""Vectors of one shard on a GPU: exact, one search at a time, with temporary memory of a stated size.

FAISS's GPU indexes may not be used from two threads at once, even for reading, and by default take as much temporary
memory as they like, which vLLM on the same card must know of.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.shards.faiss_library import load_faiss
from vrag_ray.types import VragError

MOST_RESULTS = 2048
"""FAISS's limit of a GPU search."""
_ROWS_AT_ONCE = 65_536


class GpuFlat:
    """Inner-product search over [n, dim] fp16 vectors on the first GPU that this process may use."""

    def __init__(self, vectors: NDArray[np.float16], temp_mb: int) -> None:
        """Raises VragError where FAISS sees no GPU."""
        faiss = load_faiss()
        if faiss.get_num_gpus() == 0:
            raise VragError(
                "index.num_gpus is above 0 and FAISS sees no GPU here: install the extra `gpu`, or set index.num_gpus "
                "to 0"
            )
        # Kept, because the index uses it for as long as it lives.
        self._resources = faiss.StandardGpuResources()
        self._resources.setTempMemory(temp_mb << 20)
        config = faiss.GpuIndexFlatConfig()
        config.useFloat16 = True
        self._index = faiss.GpuIndexFlatIP(self._resources, vectors.shape[1], config)
        self._lock = threading.Lock()
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            self._index.add(vectors[start : start + _ROWS_AT_ONCE].astype(np.float32))

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and row numbers [queries, k], best first, all queries in one scan."""
        with self._lock:
            return self._index.search(queries, k)  # type: ignore[no-any-return]

    def vectors(self) -> NDArray[np.float16]:
        """All vectors, [n, dim], back from the card."""
        with self._lock:
            parts = [
                self._index.reconstruct_n(start, min(_ROWS_AT_ONCE, self._index.ntotal - start)).astype(np.float16)
                for start in range(0, self._index.ntotal, _ROWS_AT_ONCE)
            ]
        return np.concatenate(parts)
