"""MaxSim in one shard and over several: as NumPy computes it, negative similarities, filters and bits included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support.planted import doc_id_of, plant
from tests.support.planted_spaces import plant_space, stored_vectors
from vrag_ray.index.shards import late_index
from vrag_ray.index.shards.late_index import LateIndex
from vrag_ray.index.shards.row_loader import load_space_rows, rows_of
from vrag_ray.index.shards.scored import merge
from vrag_ray.index.shards.shard_rows import SpaceRows
from vrag_ray.index.storage.collection import Collection
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

DIM = 8
DOCS, PAGES = 20, 5
EVERY = 10_000
Floats = NDArray[np.float32]


def unit(rows: Floats) -> Floats:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def page_of(number: int) -> Floats:
    """Between 1 and 6 vectors; each seventh page equals the one before, so that scores tie."""
    drawn = np.random.default_rng(number - 1 if number % 7 == 0 and number else number)
    return unit(drawn.standard_normal((int(drawn.integers(1, 7)), DIM)).astype(np.float32))


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    root: Path = tmp_path_factory.mktemp("late") / "c"
    plant(root, {f"d{doc}": [f"page {page}" for page in range(PAGES)] for doc in range(DOCS)})
    rows = [
        stored_vectors(f"d{doc}", page + 1, page_of(doc * PAGES + page)) for doc in range(DOCS) for page in range(PAGES)
    ]
    plant_space(root, "late", rows, dim=DIM)
    return Collection.open(root)


def index_of(rows: SpaceRows, *, binary: bool = False, exhaustive_below: int = EVERY, candidates: int = 1) -> LateIndex:
    return LateIndex(rows, binary=binary, exhaustive_below=exhaustive_below, candidates=candidates)


def maxsim(rows: SpaceRows, query: Floats, doc_ids: set[str] | None = None) -> list[tuple[str, float]]:
    """Independent of the code under test: each page for itself, from the stored half-precision values."""
    scored = []
    for number, passage_id in enumerate(rows.rows.ids.to_pylist()):
        if doc_ids is not None and passage_id.split(":")[0] not in {doc[:24] for doc in doc_ids}:
            continue
        page = rows.vectors[rows.bounds[number] : rows.bounds[number + 1]].astype(np.float64)
        scored.append((passage_id, float(np.mean(np.max(query.astype(np.float64) @ page.T, axis=1)))))
    return sorted(scored, key=lambda pair: (-round(pair[1], 6), pair[0]))


@settings(max_examples=30, deadline=None)
@example(seed=124407, k=37, length=4)  # pages whose scores differ by less than single precision tells
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, DOCS * PAGES), length=st.integers(1, 5))
def test_it_equals_numpy_and_sharded_equals_unsharded_exactly(
    collection: Collection, seed: int, k: int, length: int
) -> None:
    queries = [
        unit(np.random.default_rng(seed + n).standard_normal((length + n, DIM)).astype(np.float32)) for n in range(2)
    ]
    whole = load_space_rows(collection, "late")
    results = index_of(whole).nearest(queries, k)
    for query, scored in zip(queries, results, strict=True):
        expected = maxsim(whole, query)
        true = dict(expected)
        assert len({hit.id for hit in scored}) == len(scored) == k
        # Two pages whose true scores are nearer than single precision tells may change places; equal ones may not.
        np.testing.assert_allclose([true[hit.id] for hit in scored], [score for _, score in expected[:k]], atol=1e-6)
        np.testing.assert_allclose([hit.score for hit in scored], [true[hit.id] for hit in scored], atol=1e-6)
        assert scored == sorted(scored, key=lambda hit: (-hit.score, hit.id))
    for shards in (2, 3, 7):
        parts = [
            index_of(load_space_rows(collection, "late", rows_of(collection, n, shards))).nearest(queries, k)
            for n in range(shards)
        ]
        assert [merge((part[n] for part in parts), k) for n in range(2)] == results


def test_a_query_that_fits_nowhere_has_its_negative_best_and_no_padding_wins(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["x"], "b": ["y"]})
    axis = np.eye(DIM, dtype=np.float32)
    rows = [stored_vectors("a", 1, unit(-axis[:1] + 0.5 * axis[1:2])), stored_vectors("b", 1, -axis[[0, 0, 0]])]
    plant_space(tmp_path / "c", "late", rows, dim=DIM)
    [hits] = index_of(load_space_rows(Collection.open(tmp_path / "c"), "late")).nearest([axis[:1]], 2)
    assert [hit.id[:24] for hit in hits] == [doc_id_of("a")[:24], doc_id_of("b")[:24]]
    assert [hit.score for hit in hits] == pytest.approx([-2 / np.sqrt(5), -1.0], abs=1e-3)


def test_a_scan_in_many_parts_finds_the_same(collection: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, query = load_space_rows(collection, "late"), page_of(1000)
    expected = index_of(rows).nearest([query], 10)
    monkeypatch.setattr(late_index, "SCAN_BYTES", 4 * DIM * 3)
    assert len(index_of(rows)._parts()) > 30
    assert index_of(rows).nearest([query], 10) == expected


def test_a_filter_leaves_the_order_of_what_it_lets_through(collection: Collection) -> None:
    rows, query = load_space_rows(collection, "late"), page_of(2000)
    doc_ids = {doc_id_of("d3"), doc_id_of("d11")}
    [hits] = index_of(rows).nearest([query], 50, SearchFilter(doc_ids=sorted(doc_ids)))
    assert [hit.id for hit in hits] == [passage_id for passage_id, _ in maxsim(rows, query, doc_ids)]
    assert index_of(rows).nearest([query], 5, SearchFilter(doc_ids=[])) == [[]]


def test_with_enough_candidates_the_first_stage_loses_nothing_and_with_few_it_scores_only_those(
    collection: Collection,
) -> None:
    rows, query = load_space_rows(collection, "late"), page_of(7)
    everything = index_of(rows).nearest([query], 3)
    assert index_of(rows, exhaustive_below=0, candidates=DOCS * PAGES).nearest([query], 3) == everything
    [few] = index_of(rows, exhaustive_below=0, candidates=4).nearest([query], 3)
    assert set(few) <= set(index_of(rows).nearest([query], DOCS * PAGES)[0])
    [filtered] = index_of(rows, exhaustive_below=0, candidates=4).nearest(
        [query], 3, SearchFilter(doc_ids=[doc_id_of("d3")])
    )
    assert {hit.id[:24] for hit in filtered} == {doc_id_of("d3")[:24]}


def test_bits_take_a_sixteenth_and_score_a_float_query_against_signs(collection: Collection) -> None:
    rows, query = load_space_rows(collection, "late"), page_of(42)
    floats, bits = index_of(rows), index_of(rows, binary=True)
    vectors = rows.vectors.nbytes / len(rows.rows.ids)
    assert floats.bytes_per_passage - bits.bytes_per_passage == pytest.approx(vectors * 15 / 16)
    [hits] = bits.nearest([query], DOCS * PAGES)
    for hit in hits[:5]:
        number = rows.rows.ids.to_pylist().index(hit.id)
        signs = np.where(rows.vectors[rows.bounds[number] : rows.bounds[number + 1]] > 0, 1.0, -1.0) / np.sqrt(DIM)
        assert hit.score == pytest.approx(float(np.mean(np.max(query @ signs.T, axis=1))), abs=1e-5)


def test_a_query_of_another_dimension_is_refused(collection: Collection) -> None:
    with pytest.raises(VragError, match=r"shape \(1, 3\).*8 dimensions"):
        index_of(load_space_rows(collection, "late")).nearest([np.ones((1, 3), np.float32)], 1)
