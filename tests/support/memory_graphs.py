"""Memory graphs made by hand: a diamond, graphs of given priorities, and the one of the golden vectors."""

from __future__ import annotations

from vrag_ray.agent.memory.graph import MemoryGraph, MemoryItem
from vrag_ray.types import Box, Locator, PassageKind


def item(priority: int = 3) -> MemoryItem:
    return MemoryItem(
        doc_id="d" * 64,
        locator=Locator(page=2),
        kind=PassageKind.PAGE,
        box=Box(0.1, 0.2, 0.3, 0.4),
        priority=priority,
        quote="as it stands",
    )


def diamond() -> MemoryGraph:
    """The answer rests on ``b`` and ``c``, both of them on ``a``; ``d`` stands aside."""
    graph = MemoryGraph.start("why?")
    graph = graph.add_search("a", ("root",), "first")
    graph = graph.add_search("b", ("a",), "left")
    graph = graph.add_search("c", ("a",), "right")
    graph = graph.add_search("d", ("root",), "aside")
    return graph.add_answer(("b", "c"), "because")


def graph_of(*nodes: tuple[str, tuple[str, ...], tuple[int, ...]], kind: PassageKind = PassageKind.PAGE) -> MemoryGraph:
    """A search a node, given by its id, its parents and the priorities of what it remembers."""
    graph = MemoryGraph.start("q")
    for node_id, parents, priorities in nodes:
        items = tuple(MemoryItem(doc_id="d", locator=Locator(page=1), kind=kind, priority=p) for p in priorities)
        graph = graph.add_search(node_id, parents, f"query {node_id}").memorize(node_id, "", items)
    return graph


GOLDEN_GRAPH = graph_of(
    ("v1", ("root",), (5, 3)), ("v2", ("v1",), (4,)), ("v3", ("root",), (2,)), ("v4", ("v1", "v2"), (5,))
)
