"""Where the nodes of a memory graph stand in a picture: in layers below their parents. Pure.

A node's layer is the length of its longest path from the root. Within a layer, nodes stand below the mean place of
their parents and keep their order of creation where that is equal, so that a growing graph moves little.
"""

from __future__ import annotations

from collections.abc import Mapping

from vrag_ray.agent.memory.graph import MemoryGraph


def layers(graph: MemoryGraph) -> tuple[tuple[str, ...], ...]:
    """Node ids by layer, from the root down, from left to right."""
    depth: dict[str, int] = {}
    for node in graph.nodes:
        depth[node.id] = 1 + max((depth[parent] for parent in node.parents), default=-1)
    rows: list[tuple[str, ...]] = []
    middle: dict[str, float] = {}
    for level in range(1 + max(depth.values())):
        nodes = [node for node in graph.nodes if depth[node.id] == level]
        # Sorting is stable: equals keep their order of creation.
        nodes.sort(key=lambda node: _mean([middle[parent] for parent in node.parents]))
        rows.append(tuple(node.id for node in nodes))
        for place, node in enumerate(nodes):
            middle[node.id] = (place + 0.5) / len(nodes)
    return tuple(rows)


def places(
    graph: MemoryGraph, width: float, heights: Mapping[str, float], gap: tuple[float, float]
) -> tuple[dict[str, tuple[float, float]], tuple[float, float]]:
    """The top left corner of each node, and the size of the whole, with ``gap`` (x, y) between nodes and layers."""
    rows = layers(graph)
    total = max(len(row) for row in rows) * (width + gap[0]) - gap[0]
    corners: dict[str, tuple[float, float]] = {}
    top = 0.0
    for row in rows:
        left = (total - (len(row) * (width + gap[0]) - gap[0])) / 2
        for place, node_id in enumerate(row):
            corners[node_id] = (left + place * (width + gap[0]), top)
        top += max(heights[node_id] for node_id in row) + gap[1]
    return corners, (total, top - gap[1])


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.5
