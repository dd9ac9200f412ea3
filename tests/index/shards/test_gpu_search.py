"""How a flat index uses a GPU, on a stand-in for the card: what only a GPU can show is in benchmarks/gpu.py."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from vrag_ray.index.shards import flat_index
from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.gpu_index import MOST_RESULTS, GpuFlat
from vrag_ray.index.shards.shard_rows import ShardRows
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

ROWS, DIM = 5_000, 8
DOCS = [f"{n % 10:064x}" for n in range(ROWS)]


class Card:
    """Searches as the card does, says how often it was asked, and refuses what FAISS's GPU indexes cannot."""

    def __init__(self, vectors: NDArray[np.float16], temp_mb: int) -> None:
        self._vectors, self.temp_mb = vectors, temp_mb
        self.scans, self.copies = 0, 0

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        assert k <= MOST_RESULTS
        self.scans += 1
        scores = queries @ self._vectors.astype(np.float32).T
        # Of equals the card gives any: the last ones, here.
        order = np.lexsort((-np.arange(ROWS)[None].repeat(len(queries), 0), -scores))[:, :k]
        return np.take_along_axis(scores, order, 1), order

    def vectors(self) -> NDArray[np.float16]:
        self.copies += 1
        return self._vectors


@pytest.fixture
def indexes(monkeypatch: pytest.MonkeyPatch) -> tuple[FlatIndex, FlatIndex, Card]:
    """On the card and in main memory. Values are coarse, so that many scores tie."""
    return both(np.random.default_rng(0).integers(-1, 2, (ROWS, DIM)).astype(np.float16), monkeypatch)


def both(vectors: NDArray[np.float16], monkeypatch: pytest.MonkeyPatch) -> tuple[FlatIndex, FlatIndex, Card]:
    rows = ShardRows.of([f"{n:024x}:p1:w0" for n in range(ROWS)], DOCS, ["page"] * ROWS, ["{}"] * ROWS)
    monkeypatch.setattr(flat_index, "GpuFlat", Card)
    on_card = FlatIndex(rows, vectors, gpu_temp_mb=64)
    assert isinstance(on_card._gpu, Card)
    return on_card, FlatIndex(rows, vectors), on_card._gpu


def test_all_queries_are_one_scan_and_nothing_is_copied_to_main_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(1)
    on_card, _, card = both(chance.standard_normal((ROWS, DIM)).astype(np.float16), monkeypatch)
    found = on_card.search(chance.standard_normal((40, DIM)).astype(np.float32), 1)
    assert (card.scans, card.copies, card.temp_mb, len(found)) == (1, 0, 64, 40)


def test_ties_filters_and_large_k_give_what_main_memory_gives(indexes: tuple[FlatIndex, FlatIndex, Card]) -> None:
    on_card, in_memory, card = indexes
    queries = np.random.default_rng(2).integers(-1, 2, (6, DIM)).astype(np.float32)
    for k in (1, 7, 100, MOST_RESULTS, ROWS):
        assert on_card.search(queries, k) == in_memory.search(queries, k)
    wanted = SearchFilter(doc_ids=[DOCS[2]])
    assert on_card.search(queries, 9, wanted) == in_memory.search(queries, 9, wanted)
    assert card.copies == 1


def test_the_copy_is_made_once_however_many_ask(indexes: tuple[FlatIndex, FlatIndex, Card]) -> None:
    on_card, _, card = indexes
    query, wanted = np.ones((1, DIM), np.float32), SearchFilter(doc_ids=[DOCS[2]])
    threads = [threading.Thread(target=on_card.search, args=(query, 3, wanted)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert card.copies == 1


def test_without_a_gpu_it_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    import faiss

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 0, raising=False)
    with pytest.raises(VragError, match=r"index\.num_gpus is above 0 and FAISS sees no GPU.*set index\.num_gpus to 0"):
        GpuFlat(np.zeros((1, 4), np.float16), 64)
