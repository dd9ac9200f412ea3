"""Rank measures agree with ir-measures, and so with trec_eval."""

from __future__ import annotations

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.evaluation.measures.ranking import RANK_MEASURES, in_order, rank_measures

ITEMS = [f"d{n}" for n in range(40)]
GRADES = st.dictionaries(st.sampled_from(ITEMS), st.integers(0, 3), min_size=1)
# Few different scores, so that there are ties.
SCORES = st.dictionaries(st.sampled_from(ITEMS), st.sampled_from([0.0, 0.5, 0.5000001, 1.0, 7.25, -3.0]), max_size=30)


@given(grades=GRADES, scores=SCORES)
def test_random_runs_are_measured_as_by_ir_measures(grades: dict[str, int], scores: dict[str, float]) -> None:
    ours = rank_measures(in_order(scores), grades)
    # A query of the run alone is left out there, one of the qrels alone counts as 0 here.
    run = {"q": scores} if scores else {"q": {"nothing": 0.0}}
    theirs = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in RANK_MEASURES], {"q": grades}, run)
    for measure, value in theirs.items():
        assert ours[str(measure)] == pytest.approx(value, abs=1e-9), str(measure)


def test_known_ranks() -> None:
    values = rank_measures(["x", "a", "y", "b"], {"a": 1, "b": 1, "c": 1})
    assert values["RR"] == 0.5
    assert values["R@5"] == pytest.approx(2 / 3)
    assert (values["Success@1"], values["Success@5"]) == (0.0, 1.0)


def test_a_measure_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="MAP"):
        rank_measures(["a"], {"a": 1}, ["MAP"])
