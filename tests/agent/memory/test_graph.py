"""The memory graph refuses what would break it, with a message that says what to do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.memory_graphs import diamond, item
from vrag_ray.agent.memory.graph import GraphError, MemoryGraph, NodeKind


@pytest.mark.parametrize(
    ("node_id", "parents", "says"),
    [
        ("x", ("nowhere",), "does not exist"),
        ("x", ("x",), "own parent"),
        ("x", (), "no parents"),
        ("a", ("root",), "taken"),
        ("root", ("root",), "taken"),
        ("answer", ("root",), "kept for the answer"),
        ("", ("root",), "short title"),
        ("two\nlines", ("root",), "short title"),
        ("x" * 121, ("root",), "short title"),
    ],
)
def test_a_bad_node_is_refused_with_a_remedy(node_id: str, parents: tuple[str, ...], says: str) -> None:
    graph = MemoryGraph.start("why?").add_search("a", ("root",), "first")
    with pytest.raises(GraphError, match=says):
        graph.add_search(node_id, parents, "another")


def test_a_refusal_names_the_parents_that_may_be_given() -> None:
    with pytest.raises(GraphError, match="'root', 'a'"):
        MemoryGraph.start("why?").add_search("a", ("root",), "first").add_search("b", ("z",), "second")


def test_the_same_query_is_not_searched_twice() -> None:
    graph = MemoryGraph.start("why?").add_search("a", ("root",), "Cost of  boats")
    with pytest.raises(GraphError, match="made already, in node 'a'"):
        graph.add_search("b", ("root",), "cost of boats")


def test_duplicate_parents_count_once() -> None:
    graph = MemoryGraph.start("why?").add_search("a", ("root", "root"), "first")
    assert graph.node("a").parents == ("root",)


def test_a_later_created_parent_is_refused_in_json() -> None:
    text = (
        diamond()
        .to_json()
        .replace('"id":"a","kind":"search","parents":["root"]', '"id":"a","kind":"search","parents":["b"]')
    )
    with pytest.raises(GraphError, match="created later"):
        MemoryGraph.from_json(text)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"nodes": []}', '{"nodes": [{"id": "x", "kind": "search"}]}', "nonsense"]
)
def test_text_that_is_no_graph_is_refused(text: str) -> None:
    with pytest.raises(GraphError):
        MemoryGraph.from_json(text)


def test_nothing_comes_after_the_answer() -> None:
    with pytest.raises(GraphError, match="answer ends the graph"):
        diamond().add_search("e", ("root",), "too late")
    with pytest.raises(GraphError, match="answer ends the graph"):
        diamond().add_answer(("a",), "again")


def test_both_arms_of_a_diamond_are_ancestors_and_a_side_branch_is_not() -> None:
    assert diamond().ancestors("answer") == {"answer", "b", "c", "a", "root"}


def test_a_snapshot_stays_as_it_was() -> None:
    before = MemoryGraph.start("why?").add_search("a", ("root",), "first")
    after = before.memorize("a", "learnt", (item(),))
    assert before.node("a").summary == ""
    assert after.node("a").items == (item(),)


def test_only_search_nodes_remember() -> None:
    with pytest.raises(GraphError, match="only a search node"):
        MemoryGraph.start("why?").memorize("root", "x", ())


def test_a_graph_survives_json() -> None:
    graph = diamond().memorize("b", "learnt", (item(5), item(1)))
    assert MemoryGraph.from_json(graph.to_json()) == graph


IDS = st.sampled_from(["root", "answer", "a", "b", "c", "d", "e", "", "ä b"])


@given(st.lists(st.tuples(st.booleans(), IDS, st.lists(IDS, max_size=3), st.text(max_size=4))))
def test_no_sequence_of_adds_makes_a_cycle(steps: list[tuple[bool, str, list[str], str]]) -> None:
    graph = MemoryGraph.start("why?")
    for is_answer, node_id, parents, query in steps:
        try:
            added = (
                graph.add_answer(tuple(parents), "x") if is_answer else graph.add_search(node_id, tuple(parents), query)
            )
        except GraphError:
            continue
        assert len(added.nodes) == len(graph.nodes) + 1
        graph = added
    places = {node.id: place for place, node in enumerate(graph.nodes)}
    assert len(places) == len(graph.nodes)
    for node in graph.nodes:
        assert all(places[parent] < places[node.id] for parent in node.parents)
        assert bool(node.parents) == (node.kind is not NodeKind.ROOT)
        assert "root" in graph.ancestors(node.id)
    assert MemoryGraph.from_json(graph.to_json()) == graph
