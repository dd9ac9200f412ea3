"""What each trajectory and each segment is credited with."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vrag_ray.training.advantages import ancestors, ggpo_keep, group_advantages

GRAPH = {"root": [], "a": ["root"], "b": ["root"], "c": ["a"], "answer": ["c", "a"]}
SEGMENTS = ["a", "b", "c", None, "answer"]


def test_advantages_are_normalised_within_their_group():
    rewards = torch.tensor([[1.0, 0.0, 0.0], [2.0, 4.0, 6.0]], dtype=torch.float64)
    expected = [[1.1546985, -0.5773493, -0.5773493], [-0.9999995, 0.0, 0.9999995]]
    assert group_advantages(rewards).tolist() == [pytest.approx(row, abs=1e-6) for row in expected]
    assert group_advantages(rewards, normalize_std=False)[1].tolist() == [-2.0, 0.0, 2.0]


@pytest.mark.parametrize("reward", [0.0, 0.1, 1 / 3, 0.7])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_group_that_teaches_nothing_has_exactly_no_advantage(reward: float, size: int):
    assert group_advantages(torch.full((2, size), reward)).tolist() == [[0.0] * size] * 2


def test_rewards_must_be_by_group():
    with pytest.raises(ValueError, match="groups, size"):
        group_advantages(torch.zeros(3))


def test_the_answer_rests_on_all_its_ancestors_and_on_nothing_else():
    assert ancestors(GRAPH, "answer") == {"root", "a", "c", "answer"}
    diamond = {"root": [], "x": ["root"], "y": ["root"], "answer": ["x", "y"]}
    assert ancestors(diamond, "answer") == set(diamond)
    assert ancestors(GRAPH, "nobody") == frozenset()


def test_parents_that_are_none_have_no_effect():
    odd = {"root": [], "a": ["root", "a", "nobody", "later"], "later": ["a"], "answer": ["a", "a"]}
    assert ancestors(odd, "answer") == {"root", "a", "answer"}


def test_of_a_success_only_what_the_answer_rests_on_is_kept():
    assert ggpo_keep(GRAPH, "answer", True, {"b"}, SEGMENTS) == [True, False, True, False, True]


def test_of_a_failure_all_is_kept_but_the_searches_that_found_something():
    assert ggpo_keep(GRAPH, "answer", False, {"a"}, SEGMENTS) == [False, True, True, True, True]
    assert ggpo_keep(GRAPH, None, False, set(), SEGMENTS[:-1]) == [True] * 4


def test_an_answer_on_the_root_alone_keeps_only_itself():
    assert ggpo_keep({**GRAPH, "answer": ["root"]}, "answer", True, set(), SEGMENTS) == [False] * 4 + [True]


names = st.sampled_from("abcdefgh")
graphs = st.dictionaries(names, st.lists(names, max_size=4), max_size=8)


@settings(deadline=None)
@given(graphs, st.sets(names), st.booleans(), st.permutations("abcdefgh"))
def test_renaming_nodes_and_ordering_parents_change_nothing(
    graph: dict[str, list[str]], valuable: set[str], success: bool, letters: list[str]
):
    new = dict(zip("abcdefgh", letters, strict=True))
    renamed = {new[node]: [new[parent] for parent in reversed(parents)] for node, parents in graph.items()}
    answer = next(reversed(graph), None)
    mine = ggpo_keep(graph, answer, success, valuable, list(graph))
    theirs = ggpo_keep(
        renamed, None if answer is None else new[answer], success, {new[node] for node in valuable}, list(renamed)
    )
    assert mine == theirs
    assert not graph or mine[-1], "the answer's own segment is always kept"


@settings(deadline=None)
@given(graphs, names, names)
def test_another_edge_can_only_keep_more_of_a_success(graph: dict[str, list[str]], child: str, parent: str):
    answer = next(reversed(graph), None)
    if child not in graph:
        return
    before = ggpo_keep(graph, answer, True, set(), list(graph))
    after = ggpo_keep({**graph, child: [*graph[child], parent]}, answer, True, set(), list(graph))
    assert all(now or not was for was, now in zip(before, after, strict=True))
