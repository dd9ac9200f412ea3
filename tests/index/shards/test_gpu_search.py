"""How flat and inverted files use a GPU, on stand-ins for the card: what only a GPU shows is in benchmarks/gpu.py."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from vrag_ray.config import IndexKind
from vrag_ray.index.shards import flat_index, ivf_index
from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.gpu_index import MOST_RESULTS, GpuFlat, refuse_unsupported
from vrag_ray.index.shards.ivf_index import IvfIndex
from vrag_ray.index.shards.shard_rows import ShardRows, SpaceRows
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    import faiss

ROWS, DIM = 5_000, 8
DOCS = [f"{n % 10:064x}" for n in range(ROWS)]


class Card:
    """Searches as the card does, counts its calls, and refuses what FAISS's GPU indexes cannot."""

    def __init__(self, vectors: NDArray[np.float16], temp_mb: int) -> None:
        self._vectors, self.temp_mb = vectors, temp_mb
        self.scans, self.copies = 0, 0

    def nearest(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        assert k <= MOST_RESULTS
        self.scans += 1
        # The card rounds queries to half precision.
        scores = queries.astype(np.float16).astype(np.float32) @ self._vectors.astype(np.float32).T
        # Of equals the card gives any: the last ones, here.
        order = np.lexsort((-np.arange(ROWS)[None].repeat(len(queries), 0), -scores))[:, :k]
        return np.take_along_axis(scores, order, 1), order

    def rows(self, numbers: NDArray[np.int64]) -> NDArray[np.float16]:
        return self._vectors[numbers]

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
    on_card = FlatIndex(SpaceRows.of(rows, vectors), gpu_temp_mb=64)
    assert isinstance(on_card._gpu, Card)
    return on_card, FlatIndex(SpaceRows.of(rows, vectors)), on_card._gpu


def test_all_queries_are_one_scan_and_nothing_is_copied_to_main_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(1)
    on_card, _, card = both(chance.standard_normal((ROWS, DIM)).astype(np.float16), monkeypatch)
    hits = on_card.nearest(chance.standard_normal((40, DIM)).astype(np.float32), 1)
    assert (card.scans, card.copies, card.temp_mb, len(hits)) == (1, 0, 64, 40)


def test_ties_filters_and_large_k_give_what_main_memory_gives(indexes: tuple[FlatIndex, FlatIndex, Card]) -> None:
    on_card, in_memory, card = indexes
    queries = np.random.default_rng(2).integers(-1, 2, (6, DIM)).astype(np.float32)
    for k in (1, 7, 100, MOST_RESULTS, ROWS):
        assert on_card.nearest(queries, k) == in_memory.nearest(queries, k)
    doc_filter = SearchFilter(doc_ids=[DOCS[2]])
    assert on_card.nearest(queries, 9, doc_filter) == in_memory.nearest(queries, 9, doc_filter)
    assert card.copies == 1


def test_scores_and_order_are_those_of_main_memory_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of vectors so near to each other that half precision puts them in another order."""
    chance = np.random.default_rng(6)
    near = np.ones(DIM) + 0.002 * chance.standard_normal((ROWS, DIM))
    vectors = (near / np.linalg.norm(near, axis=1, keepdims=True)).astype(np.float16)
    on_card, in_memory, card = both(vectors, monkeypatch)
    queries = chance.standard_normal((20, DIM)).astype(np.float32)
    rounded, _ = card.nearest(queries, 5)
    expected = in_memory.nearest(queries, 5)
    assert [[hit.score for hit in row] for row in expected] != rounded.tolist()
    assert on_card.nearest(queries, 5) == expected


def test_the_copy_is_made_once_however_many_ask(indexes: tuple[FlatIndex, FlatIndex, Card]) -> None:
    on_card, _, card = indexes
    query, doc_filter = np.ones((1, DIM), np.float32), SearchFilter(doc_ids=[DOCS[2]])
    threads = [threading.Thread(target=on_card.nearest, args=(query, 3, doc_filter)) for _ in range(4)]
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


class IvfCard:
    """An inverted file as the card has it: no selectors, few results."""

    def __init__(self, index: faiss.IndexIVF, nprobe: int, temp_mb: int) -> None:
        refuse_unsupported(index, nprobe)
        self._index, self._nprobe, self.temp_mb = index, nprobe, temp_mb
        self.scans, self.copies = 0, 0

    def nearest(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        import faiss

        assert k <= MOST_RESULTS
        self.scans += 1
        params = faiss.SearchParametersIVF(nprobe=self._nprobe)
        return self._index.search(queries, k, params=params)  # type: ignore[no-any-return]

    def on_cpu(self) -> faiss.IndexIVF:
        self.copies += 1
        return self._index


@pytest.mark.parametrize("kind", [IndexKind.IVF_SQ, IndexKind.IVF_PQ])
def test_an_inverted_file_searches_on_the_card_and_in_main_memory_where_a_filter_asks(
    kind: IndexKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = np.random.default_rng(7).standard_normal((ROWS, DIM)).astype(np.float16)
    rows = ShardRows.of([f"{n:024x}:p1:w0" for n in range(ROWS)], DOCS, ["page"] * ROWS, ["{}"] * ROWS)
    monkeypatch.setattr(ivf_index, "GpuIvf", IvfCard)
    in_memory = IvfIndex(SpaceRows.of(rows, vectors), kind, nprobe=20, recall_floor=0.0)
    on_card = IvfIndex(SpaceRows.of(rows, vectors), kind, nprobe=20, recall_floor=0.0, gpu_temp_mb=64)
    card = on_card._gpu
    assert isinstance(card, IvfCard)
    queries, before = vectors[:9].astype(np.float32), card.scans
    assert on_card.nearest(queries, 5) == in_memory.nearest(queries, 5)
    assert (card.scans - before, card.copies, card.temp_mb) == (1, 0, 64)
    assert on_card.recall == in_memory.recall
    doc_filter = SearchFilter(doc_ids=[DOCS[2]])
    for _ in range(2):
        assert on_card.nearest(queries, 5, doc_filter) == in_memory.nearest(queries, 5, doc_filter)
    assert on_card.nearest(queries[:1], ROWS) == in_memory.nearest(queries[:1], ROWS)
    assert (card.scans - before, card.copies) == (1, 1)


@pytest.mark.parametrize(
    ("factory", "nprobe", "fault"),
    [
        ("IVF2,PQ9", 1, r"ivf_pq makes 9 bytes of a vector of 36 dimensions.*set index\.kind to ivf_sq or flat"),
        ("IVF3000,SQfp16", 2500, r"index\.nprobe scans 2500 lists, and FAISS scans at most 2048 on a GPU"),
    ],
)
def test_an_inverted_file_that_faiss_has_no_gpu_code_for_is_refused_by_name(
    factory: str, nprobe: int, fault: str
) -> None:
    import faiss

    with pytest.raises(VragError, match=fault):
        refuse_unsupported(faiss.index_factory(36, factory), nprobe)


@pytest.mark.parametrize("factory", ["IVF2,PQ12", "IVF2,SQfp16"])
def test_other_inverted_files_are_not(factory: str) -> None:
    import faiss

    refuse_unsupported(faiss.index_factory(36, factory), 5000)
