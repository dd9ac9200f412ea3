"""Fusion of legs by their scores, and grouping by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.index.search.fusion import Leg, best_windows, fuse, unfused
from vrag_ray.index.shards.scored import Scored, merge


def leg(name: str, pages: Mapping[str, float], weight: float = 1.0, *, complete: bool = True) -> Leg:
    ranked = sorted((Scored(page, score) for page, score in pages.items()), key=lambda scored: scored.sort_key)
    return Leg(name, ranked, complete, weight)


def scores(*legs: Leg) -> list[tuple[str, float]]:
    return [(item.id, pytest.approx(item.score)) for item in fuse(legs)]


def test_the_best_window_of_each_page_wins() -> None:
    windows = [Scored("d:p1:w2", 3.0), Scored("d:p1:w0", 2.0), Scored("d:p2:w0", 1.0)]
    assert [w.id for w in best_windows(windows)] == ["d:p1:w2", "d:p2:w0"]


def test_fused_score_is_the_weighted_mean_of_each_legs_share_of_its_best() -> None:
    lexical = leg("lexical", {"d:p1:w0": 10.0, "d:p2:w0": 5.0}, 0.6)
    dense = leg("dense", {"d:p1:w0": 0.2, "d:p2:w0": 0.8}, 0.2)
    assert scores(lexical, dense) == [
        ("d:p1:w0", (0.6 * 1.0 + 0.2 * 0.25) / 0.8),
        ("d:p2:w0", (0.6 * 0.5 + 0.2 * 1.0) / 0.8),
    ]


def test_a_page_far_ahead_in_one_leg_is_not_outvoted_by_small_differences_in_the_other() -> None:
    """Cause of the fault: by rank, 10.2 against 2.9 counted no more than 0.31 against 0.30."""
    lexical = leg("lexical", {"d:p5:w0": 10.2, "d:p1:w0": 2.9, "d:p2:w0": 2.8, "d:p3:w0": 2.7}, 0.5)
    dense = leg("dense", {"d:p1:w0": 0.31, "d:p2:w0": 0.305, "d:p3:w0": 0.304, "d:p5:w0": 0.3}, 0.5)
    assert fuse([lexical, dense])[0].id == "d:p5:w0"


def test_a_page_that_a_cut_list_does_not_name_has_at_most_its_last_share_and_none_where_the_list_is_whole() -> None:
    other = leg("lexical", {"d:p9:w0": 1.0})
    cut = leg("dense", {"d:p1:w0": 0.8, "d:p2:w0": 0.4}, complete=False)
    whole = leg("dense", {"d:p1:w0": 0.8, "d:p2:w0": 0.4})
    assert dict(scores(other, cut))["d:p9:w0"] == (1.0 + 0.5) / 2
    assert dict(scores(other, whole))["d:p9:w0"] == (1.0 + 0.0) / 2


def test_a_leg_that_found_nothing_changes_nothing() -> None:
    only = leg("lexical", {"d:p1:w0": 4.0, "d:p2:w0": 1.0}, 0.3)
    assert scores(only, leg("dense", {}, 0.7)) == scores(only) == [("d:p1:w0", 1.0), ("d:p2:w0", 0.25)]
    assert fuse([]) == fuse([leg("dense", {})]) == []


def test_similarities_at_or_below_zero_count_as_nothing_in_common() -> None:
    assert scores(leg("dense", {"d:p1:w0": 0.5, "d:p2:w0": -0.5})) == [("d:p1:w0", 1.0), ("d:p2:w0", 0.0)]
    assert scores(leg("dense", {"d:p1:w0": -0.1, "d:p2:w0": -0.5})) == [("d:p1:w0", 0.0), ("d:p2:w0", 0.0)]


def test_a_page_keeps_the_window_of_the_leg_that_gives_it_most_and_the_scores_of_all() -> None:
    lexical = leg("lexical", {"d:p1:w0": 9.0, "d:p2:w0": 3.0}, 0.5)
    dense = leg("dense", {"d:p1:w7": 0.6, "d:p2:w7": 0.6}, 0.5)
    by_id = {item.id: item.by_leg for item in fuse([lexical, dense])}
    assert by_id == {"d:p1:w0": {"lexical": 9.0, "dense": 0.6}, "d:p2:w7": {"lexical": 3.0, "dense": 0.6}}


def test_a_single_leg_keeps_its_own_scores() -> None:
    assert [(item.id, item.score) for item in unfused(leg("dense", {"d:p1:w0": 0.3}))] == [("d:p1:w0", 0.3)]


PAGES = st.dictionaries(
    st.integers(0, 30).map(lambda n: f"d:p{n}:w0"), st.sampled_from([-0.2, 0.0, 0.25, 0.5, 0.75, 1.5]), max_size=20
)
WEIGHTS = st.sampled_from([0.2, 0.5, 1.0])


@given(legs=st.lists(st.builds(leg, st.uuids().map(str), PAGES, WEIGHTS, complete=st.booleans()), max_size=4))
def test_every_page_of_any_leg_comes_out_once_in_order_with_a_score_in_0_to_1(legs: Sequence[Leg]) -> None:
    fused = fuse(legs)
    assert sorted(item.id for item in fused) == sorted({window.id for leg in legs for window in leg.pages})
    assert fused == sorted(fused, key=lambda item: (-item.score, item.id))
    assert all(0.0 <= item.score <= 1.0 + 1e-9 for item in fused)


@given(lexical=PAGES, dense=PAGES, shards=st.sampled_from([2, 3, 7]), k=st.integers(1, 20))
def test_fused_result_is_the_same_for_any_sharding_of_the_dense_leg(
    lexical: dict[str, float], dense: dict[str, float], shards: int, k: int
) -> None:
    words = leg("lexical", lexical, 0.4)
    whole = leg("dense", dense).pages
    parts = [[scored for scored in whole if crc32(scored.id.encode()) % shards == shard] for shard in range(shards)]
    sharded, unsharded = merge((part[:k] for part in parts), k), merge([whole], k)
    assert fuse([words, Leg("dense", sharded, len(sharded) < k, 0.6)]) == fuse(
        [words, Leg("dense", unsharded, len(unsharded) < k, 0.6)]
    )
