"""Approximate search: its recall is measured where it is built, reported, and refused below the floor."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.planted import plant
from vrag_ray.config import IndexConfig, IndexKind, Settings, SpaceConfig
from vrag_ray.index.search.retriever import ShardedRetriever
from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.ivf_index import IvfIndex
from vrag_ray.index.shards.shard_rows import ShardRows, SpaceRows
from vrag_ray.types import TEXT, VragError
from vrag_ray.types.filters import SearchFilter

ROWS, DIM = 4_000, 32
DOCS = [f"{n % 40:064x}" for n in range(ROWS)]


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float16]:
    """Fifty clusters, as real embeddings have them."""
    chance = np.random.default_rng(1)
    centres = chance.standard_normal((50, DIM))
    rows = centres[chance.integers(0, 50, ROWS)] + 0.4 * chance.standard_normal((ROWS, DIM))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16)


@pytest.fixture(scope="module")
def rows() -> ShardRows:
    return ShardRows.of([f"{n:024x}:p1:w0" for n in range(ROWS)], DOCS, ["page"] * ROWS, ["{}"] * ROWS)


def queries(vectors: NDArray[np.float16]) -> NDArray[np.float32]:
    noise = np.random.default_rng(2).standard_normal((30, DIM)) * 0.05
    return (vectors[::100][:30].astype(np.float32) + noise).astype(np.float32)


def recall(index: IvfIndex, rows: ShardRows, vectors: NDArray[np.float16]) -> float:
    exact = FlatIndex(SpaceRows.of(rows, vectors)).nearest(queries(vectors), 10)
    results = index.nearest(queries(vectors), 10)
    return float(
        np.mean([len({o.id for o in a} & {o.id for o in b}) / 10 for a, b in zip(exact, results, strict=True)])
    )


def test_scanning_enough_lists_finds_nearly_all_and_says_how_much(
    rows: ShardRows, vectors: NDArray[np.float16]
) -> None:
    index = IvfIndex(SpaceRows.of(rows, vectors), IndexKind.IVF_SQ, nprobe=24, recall_floor=0.9)
    assert index.recall >= 0.9
    assert recall(index, rows, vectors) >= 0.9
    [best] = index.nearest(queries(vectors)[:1], 3)
    assert [hit.score for hit in best] == sorted((hit.score for hit in best), reverse=True)


def test_below_the_floor_it_is_refused_with_the_measured_recall(rows: ShardRows, vectors: NDArray[np.float16]) -> None:
    with pytest.raises(VragError, match=r"ivf_pq finds 0\.\d+ of the ten nearest.*recall_floor 0\.99: raise index"):
        IvfIndex(SpaceRows.of(rows, vectors), IndexKind.IVF_PQ, nprobe=1, recall_floor=0.99)
    small = IvfIndex(SpaceRows.of(rows, vectors), IndexKind.IVF_PQ, nprobe=63, recall_floor=0.0)
    # Eight bytes of codes and eight of a number, for 64 of half-precision values.
    assert FlatIndex(SpaceRows.of(rows, vectors)).bytes_per_passage - small.bytes_per_passage == 64 - 16
    assert 0.2 < small.recall < 1.0


def test_codes_of_a_byte_need_as_many_vectors_as_a_byte_has_values(vectors: NDArray[np.float16]) -> None:
    def built(count: int) -> IvfIndex:
        rows = ShardRows.of([f"{n:024x}:p1:w0" for n in range(count)], DOCS[:count], ["page"] * count, ["{}"] * count)
        return IvfIndex(SpaceRows.of(rows, vectors[:count]), IndexKind.IVF_PQ, nprobe=16, recall_floor=0.0)

    with pytest.raises(
        VragError, match=r"ivf_pq needs at least 256 vectors.*has 255: set index\.kind to flat or ivf_sq"
    ):
        built(255)
    assert built(256).size == 256


def test_a_filter_lets_only_its_documents_through(rows: ShardRows, vectors: NDArray[np.float16]) -> None:
    index = IvfIndex(SpaceRows.of(rows, vectors), IndexKind.IVF_SQ, nprobe=63, recall_floor=0.9)
    [hits] = index.nearest(queries(vectors)[:1], 50, SearchFilter(doc_ids=[DOCS[3], DOCS[9]]))
    assert 0 < len(hits) <= 50
    assert {int(hit.id[:24], 16) % 40 for hit in hits} <= {3, 9}


def test_an_empty_shard_finds_nothing() -> None:
    index = IvfIndex(
        SpaceRows.of(ShardRows.of([], [], [], []), np.empty((0, 1), np.float16)),
        IndexKind.IVF_SQ,
        nprobe=1,
        recall_floor=1,
    )
    assert index.nearest(np.ones((2, 5), np.float32), 3) == [[], []]


def test_a_service_says_the_recall_of_each_shard_and_does_not_start_below_the_floor(tmp_path: Path) -> None:
    plant(tmp_path / "c", {f"d{n}": [f"word{n} word{n + 1}"] for n in range(60)})
    planted = SpaceConfig(model="tests.support.planted:make_planted")

    def settings(nprobe: int) -> Settings:
        index = IndexConfig(kind=IndexKind.IVF_SQ, nprobe=nprobe, threads=1)
        return Settings(collection=str(tmp_path / "c"), spaces={"text": planted}, index=index)

    async def check() -> None:
        retriever = await ShardedRetriever.start_local(settings(8))
        [status] = retriever.status().shards
        assert (status.space, status.size) == (TEXT, 60)
        assert status.recall >= 0.95
        answer = await retriever.search(["word7 word8"], top_k=1, mode=TEXT)
        assert answer.results[0][0].title == "d7"
        await retriever.close()
        with pytest.raises(VragError, match="recall_floor"):
            await ShardedRetriever.start_local(settings(1))

    asyncio.run(check())
