"""MaxSim by torch in half precision, on torch's CPU device: what a GPU runs too. Its results equal NumPy's exactly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vrag_ray.index.shards import max_sim
from vrag_ray.index.shards.late_index import LateIndex
from vrag_ray.index.shards.max_sim import SCORE_ERROR, MaxSimScan
from vrag_ray.index.shards.shard_rows import ShardRows, SpaceRows
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

PAGES, DIM = 400, 24
Floats = NDArray[np.float32]


def unit(rows: Floats) -> Floats:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def space() -> SpaceRows:
    """Pages of 1 to 9 vectors, in clusters, so that many scores are nearer to each other than half precision tells;
    each fifth page is the one before."""
    chance = np.random.default_rng(3)
    centres = chance.standard_normal((6, DIM)).astype(np.float32)
    pages: list[Floats] = []
    for number in range(PAGES):
        if number % 5 == 4:
            pages.append(pages[-1])
            continue
        drawn = centres[number % 6] + 0.02 * chance.standard_normal((int(chance.integers(1, 10)), DIM))
        pages.append(unit(drawn.astype(np.float32)))
    ids = [f"{n // 10:024x}:p{n % 10}:w0" for n in range(PAGES)]
    return SpaceRows.of(
        ShardRows.of(ids, [f"{n // 10:064x}" for n in range(PAGES)], ["page"] * PAGES, ["{}"] * PAGES),
        np.concatenate(pages).astype(np.float16),
        counts=np.array([len(page) for page in pages]),
    )


@pytest.fixture(scope="module")
def queries() -> list[Floats]:
    chance = np.random.default_rng(4)
    return [unit(chance.standard_normal((length, DIM)).astype(np.float32)) for length in (1, 7, 32)]


def both(space: SpaceRows, *, binary: bool = False, exhaustive_below: int = PAGES) -> tuple[LateIndex, LateIndex]:
    """By NumPy, and by torch."""
    plain = LateIndex(space, binary=binary, exhaustive_below=exhaustive_below, candidates=50)
    return plain, LateIndex(space, binary=binary, exhaustive_below=exhaustive_below, candidates=50, device="cpu")


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("exhaustive_below", [PAGES, 10])
@pytest.mark.parametrize("block_bytes", [max_sim.BLOCK_BYTES, 4_000])
def test_results_are_numpys_to_the_last_bit(
    space: SpaceRows,
    queries: list[Floats],
    binary: bool,
    exhaustive_below: int,
    block_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(max_sim, "BLOCK_BYTES", block_bytes)
    plain, by_torch = both(space, binary=binary, exhaustive_below=exhaustive_below)
    alive = np.random.default_rng(5).random(PAGES) < 0.8
    few = SearchFilter(doc_ids=[f"{n:064x}" for n in (3, 4, 17)])
    for k in (1, 10, 60, PAGES):
        assert by_torch.nearest(queries, k) == plain.nearest(queries, k)
        assert by_torch.nearest(queries, k, None, alive) == plain.nearest(queries, k, None, alive)
        assert by_torch.nearest(queries, k, few) == plain.nearest(queries, k, few)


def test_the_scan_alone_is_within_its_stated_error_and_not_exact(space: SpaceRows, queries: list[Floats]) -> None:
    """Else nothing would show that the best are scored again."""
    scan = MaxSimScan(space.vectors, space.bounds, DIM, binary=False, device="cpu")
    exact = LateIndex(space, exhaustive_below=PAGES, candidates=1)._scan(queries)
    difference = np.abs(scan.scores(queries) - exact)
    assert 0 < difference.max() < SCORE_ERROR
    numbers = np.array([7, 3, 399], np.int64)
    np.testing.assert_array_equal(scan.scores(queries, numbers), scan.scores(queries)[:, numbers])


def test_an_empty_shard_needs_no_device(space: SpaceRows) -> None:
    empty = SpaceRows.of(ShardRows.of([], [], [], []), space.vectors[:0])
    assert LateIndex(empty, exhaustive_below=1, candidates=1, device="cpu").nearest([np.ones((1, DIM))], 3) == [[]]


def test_vectors_that_do_not_fit_the_card_are_refused_with_what_helps(
    space: SpaceRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (1_000_000, 24_000_000_000))
    with pytest.raises(VragError, match=r"the GPU has 0\.0 GB free: set more index\.shards.*index\.num_gpus to 0"):
        MaxSimScan(space.vectors, space.bounds, DIM, binary=False, device="cuda")
