"""Single vectors of one shard on a GPU, by FAISS's GPU classes: one search at a time, with temporary memory of a stated
size.

FAISS's GPU indexes may not be used from two threads at once, even for reading, and by default take as much temporary
memory as they like, which vLLM on the same card must know of. They take no selector and give at most ``MOST_RESULTS``.
"""

from __future__ import annotations

import threading
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.shards.faiss_library import load_faiss
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import faiss

MOST_RESULTS = 2048
"""FAISS's limit of a GPU search, and of the lists that it scans."""
SCORE_ERROR = 1e-3
"""More than a score on the card can differ from one in single precision, for vectors of length 1: FAISS rounds the
query to half precision, which moves an inner product by at most 2^-11."""
CODE_BYTES = (1, 2, 3, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 96)
"""Bytes a vector of product quantisation that FAISS 1.15 has GPU code for."""
_ROWS_AT_ONCE = 65_536


def gpu_faiss() -> ModuleType:
    """FAISS. Raises VragError where it sees no GPU."""
    faiss = load_faiss()
    if faiss.get_num_gpus() == 0:
        raise VragError(
            "index.num_gpus is above 0 and FAISS sees no GPU here: install the extra `gpu`, or set index.num_gpus to 0"
        )
    return faiss


class GpuFlat:
    """Inner-product search over [n, dim] fp16 vectors on the first GPU that this process may use."""

    def __init__(self, vectors: NDArray[np.float16], temp_mb: int) -> None:
        """Raises VragError where FAISS sees no GPU."""
        faiss = gpu_faiss()
        # Kept, because the index uses it for as long as it lives.
        self._resources = faiss.StandardGpuResources()
        self._resources.setTempMemory(temp_mb << 20)
        config = faiss.GpuIndexFlatConfig()
        config.useFloat16 = True
        self._index = faiss.GpuIndexFlatIP(self._resources, vectors.shape[1], config)
        self._lock = threading.Lock()
        for start in range(0, len(vectors), _ROWS_AT_ONCE):
            self._index.add(vectors[start : start + _ROWS_AT_ONCE].astype(np.float32))

    def nearest(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and row numbers [queries, k], best first, all queries in one scan. See ``SCORE_ERROR``."""
        with self._lock:
            return self._index.search(queries, k)  # type: ignore[no-any-return]

    def rows(self, numbers: NDArray[np.int64]) -> NDArray[np.float16]:
        """The vectors of some rows, [n, dim], back from the card."""
        with self._lock:
            return self._index.reconstruct_batch(numbers).astype(np.float16)  # type: ignore[no-any-return]

    def vectors(self) -> NDArray[np.float16]:
        """All vectors, [n, dim], back from the card."""
        with self._lock:
            parts = [
                self._index.reconstruct_n(start, min(_ROWS_AT_ONCE, self._index.ntotal - start)).astype(np.float16)
                for start in range(0, self._index.ntotal, _ROWS_AT_ONCE)
            ]
        return np.concatenate(parts)


class GpuIvf:
    """An inverted file that was trained and filled in main memory, on the first GPU that this process may use."""

    def __init__(self, index: faiss.IndexIVF, nprobe: int, temp_mb: int) -> None:
        """Raises VragError where FAISS sees no GPU, or has no GPU code for such an index."""
        faiss = gpu_faiss()
        refuse_unsupported(index, nprobe)
        self._resources = faiss.StandardGpuResources()
        self._resources.setTempMemory(temp_mb << 20)
        options = faiss.GpuClonerOptions()
        # Of product quantisation the lookup tables, which must fit the card's shared memory.
        options.useFloat16 = True
        self._index = faiss.index_cpu_to_gpu(self._resources, 0, index, options)
        self._params = faiss.SearchParametersIVF(nprobe=min(nprobe, int(index.nlist)))
        self._lock = threading.Lock()

    def nearest(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and row numbers [queries, k], best first; the number is -1 where the scanned lists have no more."""
        with self._lock:
            return self._index.search(queries, k, params=self._params)  # type: ignore[no-any-return]

    def on_cpu(self) -> faiss.IndexIVF:
        """A copy in main memory."""
        with self._lock:
            return gpu_faiss().index_gpu_to_cpu(self._index)


def refuse_unsupported(index: faiss.IndexIVF, nprobe: int) -> None:
    """Raise VragError, which names the setting, where FAISS has no GPU code for ``index``."""
    lists = min(nprobe, int(index.nlist))
    if lists > MOST_RESULTS:
        raise VragError(
            f"index.nprobe scans {lists} lists, and FAISS scans at most {MOST_RESULTS} on a GPU: set it lower, or "
            "index.num_gpus to 0"
        )
    code = int(index.code_size)
    if hasattr(index, "pq") and code not in CODE_BYTES:
        raise VragError(
            f"index.kind ivf_pq makes {code} bytes of a vector of {index.d} dimensions, and FAISS has GPU code for "
            f"{', '.join(map(str, CODE_BYTES))}: set index.kind to ivf_sq or flat, or index.num_gpus to 0"
        )
