"""Rewards against hand-computed values and against what must not pay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.agent_pages import library
from tests.support.scripted_agent import Watcher, run_to_end
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.questions.answer_scores import anls, exact_match, f1
from vrag_ray.training.rewards.reward import (
    RewardWeights,
    mixed,
    ndcg,
    overlong_penalty,
    places_by_node,
    ranked,
    well_formed,
)

X, Y, G1, G2 = [("d", f"p{number}") for number in range(4)]


@pytest.mark.parametrize(
    ("pages", "gold", "value"),
    [
        ([X, G1, Y, G2], [G1, G2], 0.650921),
        ([G1], [G1, G2], 0.613147),
        ([], [G1, G2], 0.0),
        ([G1, G1, G2], [G1, G2], 1.0),
        ([G1, X], [G1], 1.0),
        ([X, G1], [G1], 0.630930),
        ([X], [], 0.0),
    ],
)
def test_retrieval_pays_for_gold_pages_found_early_and_once(pages: list, gold: list, value: float):
    assert ndcg(pages, gold) == pytest.approx(value, abs=1e-6)


pages = st.lists(st.sampled_from([X, Y, G1, G2]), max_size=8)


@settings(deadline=None)
@given(pages, st.lists(st.sampled_from([G1, G2]), min_size=1, max_size=2, unique=True))
def test_retrieval_never_pays_more_than_one(pages: list, gold: list):
    assert 0 <= ndcg(pages, gold) <= 1 + 1e-12


def test_the_mix_is_that_of_vrag_rl_and_a_broken_form_earns_nothing():
    weights = RewardWeights()
    reward = mixed(1.0, 0.650921, True, weights)
    assert reward.total == pytest.approx(0.930184, abs=1e-6)
    assert reward.success
    broken = mixed(1.0, 1.0, False, weights)
    assert (broken.total, broken.success) == (0.0, True)


# DAPO's own limits (20,480 tokens, of which the last 4,096 cost), computed by hand from its eq. 13.
@pytest.mark.parametrize(
    ("tokens", "penalty"),
    [(0, 0.0), (16384, 0.0), (17408, -0.25), (18432, -0.5), (20480, -1.0), (20481, -1.0), (90000, -1.0)],
)
def test_length_costs_what_dapo_says(tokens: int, penalty: float):
    assert overlong_penalty(tokens, 20480, 4096) == penalty


def test_success_does_not_depend_on_the_weights():
    verdicts = {mixed(0.0, 1.0, True, RewardWeights(*shares)).success for shares in ((0.7, 0.2, 0.1), (0.1, 0.8, 0.1))}
    assert verdicts == {False}


@pytest.mark.parametrize("shares", [(0.5, 0.2, 0.1), (1.2, -0.3, 0.1), (0.7, 0.2, 0.1, 0.1), (0.8, 0.3, 0.1, -0.2)])
def test_weights_that_are_no_shares_are_refused(shares: tuple[float, ...]):
    with pytest.raises(ValueError, match="sum to 1"):
        RewardWeights(*shares)


@pytest.mark.parametrize(
    ("answer", "reference", "match", "overlap"),
    [
        ("The  Harbour!", "harbour", 1.0, 1.0),
        ("1.5 tonnes", "15 tonnes", 0.0, 0.5),
        ("in the year 1987", "1987", 0.0, 0.5),
        ("", "x", 0.0, 0.0),
        ("3,467 MWh", "3467 mwh", 1.0, 1.0),
        ("“the «harbour»”", "harbour", 1.0, 1.0),
    ],
)
def test_answers_are_compared_by_their_words(answer: str, reference: str, match: float, overlap: float):
    assert exact_match(answer, [reference, "other"]) == match
    assert f1(answer, [reference]) == pytest.approx(overlap)


@pytest.mark.parametrize(("answer", "value"), [("harbour", 1.0), ("harbuor", 5 / 7), ("quay", 0.0), ("", 0.0)])
def test_anls_forgives_spelling_and_nothing_else(answer: str, value: float):
    assert anls(answer, ["harbour"]) == pytest.approx(value)


def test_pages_and_form_are_read_from_what_the_run_did():
    keep = MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=3)
    policy = Watcher(
        AddSearchNode(id="a", parent_ids=("root",), query="units sold by region"),
        SummarizeAndMemorize(summarize="", memorize=(keep,)),
        AddSearchNode(id="b", parent_ids=("a",), query="visitors of the museum"),
        AddAnswerNode(parent_ids=("b",), answer="15"),
    )
    run, _ = run_to_end(policy, library())
    record = run.record()
    by_node = places_by_node(record)
    assert list(by_node) == ["a", "b"]
    names = ranked(record, [])
    assert [doc_id for doc_id, _ in names] == [seen.doc_id for seen in by_node["a"] + by_node["b"]]
    assert {key for _, key in names} == {"p1", "t0.000-30.000"}
    assert well_formed(record)
    talked, _ = run_to_end(Watcher("I would search and then answer 15."), library())
    assert not well_formed(talked.record())
