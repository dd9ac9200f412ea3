"""Golden vectors of the memory energy, and the properties that any graph must keep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.memory_graphs import GOLDEN_GRAPH, graph_of
from vrag_ray.agent.memory.energy import energies, pixel_budgets, strongest
from vrag_ray.agent.memory.graph import MemoryGraph
from vrag_ray.types import PassageKind, VragError


def test_intrinsic_and_reinforced_energies_match_the_golden_vectors() -> None:
    items = energies(GOLDEN_GRAPH, decay=0.1, feedback=0.3)
    assert [(item.node_id, item.index) for item in items] == [("v1", 0), ("v1", 1), ("v2", 0), ("v3", 0), ("v4", 0)]
    assert [item.intrinsic for item in items] == pytest.approx([2.222455, 1.333473, 1.309969, 0.361935, 1.0], abs=1e-6)
    assert [item.energy for item in items] == pytest.approx([3.005445, 2.116464, 1.609969, 0.361935, 1.0], abs=1e-6)


@pytest.mark.parametrize(
    ("k", "pixels"),
    [(5, [486704, 342742, 260719, 161940, 58612]), (3, [585170, 412082, 313466])],
)
def test_pixel_budgets_match_the_golden_vectors(k: int, pixels: list[int]) -> None:
    best = strongest(energies(GOLDEN_GRAPH, decay=0.1, feedback=0.3), k)
    assert [pixel_budget.pixels for pixel_budget in pixel_budgets(best, 1_310_720)] == pixels


def test_energy_flows_through_a_node_without_pictures_where_the_original_stops() -> None:
    bridge = graph_of(("v1", ("root",), (5, 3)), ("v2", ("v1",), ()), ("v3", ("root",), (2,)), ("v4", ("v2",), (5,)))
    items = energies(bridge, decay=0.1, feedback=0.3)
    original = (1.481636, 0.888982)
    # v4 gives 0.3 * 1 to v2, and v2 hands on 0.3 of that.
    assert [item.energy for item in items[:2]] == pytest.approx([value + 0.09 for value in original], abs=1e-6)


def test_plain_text_takes_no_pixels_and_passes_energy_on() -> None:
    as_text = graph_of(("v1", ("root",), (5,)), ("v2", ("v1",), (5,)), kind=PassageKind.TEXT)
    assert energies(as_text, decay=0.1, feedback=0.3) == ()


def test_duplicate_parents_do_not_double_feedback() -> None:
    graph = graph_of(("v1", ("root",), (5,)), ("v2", ("v1", "v1"), (5,)))
    assert energies(graph, decay=0.1, feedback=0.3)[0].energy == pytest.approx(2.109675, abs=1e-6)


def test_nothing_remembered_means_no_budget() -> None:
    assert pixel_budgets(strongest(energies(graph_of(), decay=0.1, feedback=0.3), 5), 1000) == ()


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(VragError, match="negative"):
        pixel_budgets((), -1)


@st.composite
def graphs(draw: st.DrawFn) -> MemoryGraph:
    names = ["root"]
    nodes: list[tuple[str, tuple[str, ...], tuple[int, ...]]] = []
    for place in range(draw(st.integers(0, 6))):
        parents = tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=3)))
        nodes.append((f"v{place}", parents, tuple(draw(st.lists(st.integers(1, 5), max_size=3)))))
        names.append(f"v{place}")
    return graph_of(*nodes)


@given(graphs(), st.integers(0, 5_000_000), st.integers(0, 6))
def test_budgets_never_exceed_the_total_and_lose_less_than_a_pixel_an_item(
    graph: MemoryGraph, total: int, k: int
) -> None:
    items = energies(graph, decay=0.1, feedback=0.3)
    best = strongest(items, k)
    shares = pixel_budgets(best, total)
    assert len(shares) == min(k, len(items))
    assert sum(share.pixels for share in shares) <= total
    if shares:
        assert sum(share.pixels for share in shares) > total - len(shares) - 1e-3
        assert min(item.energy for item in best) >= max(
            (item.energy for item in items if item not in best), default=0.0
        )


@given(graphs())
def test_without_feedback_only_the_intrinsic_energy_is_left(graph: MemoryGraph) -> None:
    assert all(energy.energy == energy.intrinsic for energy in energies(graph, decay=0.1, feedback=0.0))
