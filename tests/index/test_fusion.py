"""Reciprocal rank fusion and grouping by page."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.index.fusion import best_windows, fuse
from vrag_ray.index.lexical import Scored


def ranked(*ids: str) -> list[Scored]:
    return [Scored(name, 1.0 / rank) for rank, name in enumerate(ids, start=1)]


def test_the_best_window_of_each_page_wins() -> None:
    assert [w.id for w in best_windows(ranked("d:p1:w2", "d:p1:w0", "d:p2:w0"))] == ["d:p1:w2", "d:p2:w0"]


def test_fused_score_is_the_sum_of_reciprocal_ranks_over_both_legs() -> None:
    fused = fuse(ranked("d:p1:w0", "d:p2:w0"), ranked("d:p2:w1"), k=10)
    assert [(item.id, item.score) for item in fused] == [
        ("d:p2:w1", pytest.approx(1 / 12 + 1 / 11)),
        ("d:p1:w0", pytest.approx(1 / 11)),
    ]


def test_a_page_keeps_the_window_of_the_leg_that_ranks_it_higher() -> None:
    [first, _] = fuse(ranked("d:p1:w5", "d:p2:w0"), ranked("d:p2:w0", "d:p1:w1"), k=10)
    kept = {item.id for item in fuse(ranked("d:p1:w5", "d:p2:w7"), ranked("d:p2:w0", "d:p1:w1"), k=10)}
    assert kept == {"d:p1:w5", "d:p2:w0"}
    assert first.score == pytest.approx(1 / 11 + 1 / 12)


PAGES = st.lists(st.integers(0, 30).map(lambda n: f"d:p{n}:w0"), unique=True, max_size=20)


@given(dense=PAGES, lexical=PAGES)
def test_every_page_of_either_leg_comes_out_once_in_order(dense: list[str], lexical: list[str]) -> None:
    fused = fuse(ranked(*dense), ranked(*lexical), k=10)
    assert sorted(item.id for item in fused) == sorted(set(dense) | set(lexical))
    assert fused == sorted(fused, key=lambda item: (-item.score, item.id))
