"""The memory graph as SVG: queries, what was learnt, and which pictures stay in memory at which cost. Pure.

All words of models and documents are escaped, so that the picture holds no markup but its own. It refers to nothing
outside itself.

Nodes stand in layers below their parents: a node's layer is the length of its longest path from the root. Within a
layer, nodes stand below the mean place of their parents and keep their order of creation where that is equal, so that a
growing graph moves little.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from vrag_ray.agent.memory.graph import MemoryGraph, MemoryNode, NodeKind
from vrag_ray.views.run_view import RunView
from vrag_ray.views.words import counted, without_note

WIDTH = 200.0
GAP = (24.0, 36.0)
MARGIN = 8.0
LINE = 15.0
PAD = 10.0
CHARS, LINES = 27, 3
GLYPH = 11.0
FEW = 10_000
HEADS = {NodeKind.ROOT: "question", NodeKind.SEARCH: "search", NodeKind.ANSWER: "answer"}


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours of a picture, as CSS values; ``fills`` by kind of node."""

    text: str
    quiet: str
    line: str
    accent: str
    fills: dict[NodeKind, str]


LIGHT = Palette(
    "#1c2733",
    "#68737f",
    "#a9b4c0",
    "#0b6e99",
    {NodeKind.ROOT: "#dbe9f6", NodeKind.SEARCH: "#ffffff", NodeKind.ANSWER: "#dcf0dd"},
)
DARK = Palette(
    "#e8edf2",
    "#9aa7b4",
    "#55616e",
    "#56b8e0",
    {NodeKind.ROOT: "#1f3a52", NodeKind.SEARCH: "#20262d", NodeKind.ANSWER: "#1f4026"},
)


def svg(view: RunView, palette: Palette = LIGHT, *, selected: str = "") -> str:
    """The graph of ``view``. Once there is an answer, what it does not rest on is drawn in quiet colours."""
    graph = view.graph
    heights = {node.id: _height(node) for node in graph.nodes}
    corners, (width, height) = places(graph, WIDTH, heights, GAP)
    path = graph.ancestors(graph.answer.id) if graph.answer is not None else frozenset(heights)
    size = f"{width + 2 * MARGIN:.0f} {height + 2 * MARGIN:.0f}"
    width_px, height_px = size.split()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width_px}" height="{height_px}" '
        f'viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {size}" font-family="Source Sans, Helvetica, Arial, sans-serif">'
    ]
    for node in graph.nodes:
        colour = palette.text if node.id in path else palette.line
        for parent in node.parents:
            parts.append(_edge(corners[parent], heights[parent], corners[node.id], colour))
    for node in graph.nodes:
        parts.extend(_box(view, node, corners[node.id], palette, on_path=node.id in path, chosen=node.id == selected))
    return "\n".join([*parts, "</svg>"]) + "\n"


def described(view: RunView) -> str:
    """The picture in words, for those who cannot see it."""
    nodes = [
        f"{node.id}, {HEADS[node.kind]} from {' and '.join(node.parents)}" for node in view.graph.nodes if node.parents
    ]
    counts = f"{counted(len(view.remembered), 'picture')} kept, {len(view.dropped)} dropped"
    return f"Memory graph: the question, {'; '.join(nodes) or 'nothing yet'}; {counts}"


def megapixels(pixels: int) -> str:
    """``1.25 MP``; few pixels as they are."""
    return f"{pixels / 1e6:.2f} MP" if pixels >= FEW else f"{pixels:,} pixels"


def node_energy(view: RunView, node_id: str) -> float:
    """Energy of the node's remembered pictures together."""
    return sum(picture.energy for (owner, _), picture in view.remembered.items() if owner == node_id)


def _lines(node: MemoryNode) -> list[str]:
    text = without_note(node.summary) if node.kind is NodeKind.ANSWER else node.query
    return textwrap.wrap(_printable(text), CHARS, max_lines=LINES, placeholder=" …")


def _height(node: MemoryNode) -> float:
    pictures = any(item.visual for item in node.items)
    return 2 * PAD + LINE * (1 + len(_lines(node))) + (GLYPH + 8 + LINE if pictures else 0.0)


def _edge(start: tuple[float, float], height: float, end: tuple[float, float], colour: str) -> str:
    x0, y0 = start[0] + WIDTH / 2, start[1] + height
    x1, y1 = end[0] + WIDTH / 2, end[1]
    bend = GAP[1] / 2
    return (
        f'<path d="M{x0:.1f} {y0:.1f}C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1 - 5:.1f}" '
        f'fill="none" stroke="{colour}" stroke-width="1.2"/>'
        f'<path d="M{x1 - 4:.1f} {y1 - 7:.1f}L{x1 + 4:.1f} {y1 - 7:.1f}L{x1:.1f} {y1:.1f}Z" fill="{colour}"/>'
    )


def _box(
    view: RunView, node: MemoryNode, corner: tuple[float, float], palette: Palette, *, on_path: bool, chosen: bool
) -> Iterator[str]:
    x, y = corner
    edge = palette.accent if chosen else palette.text if on_path else palette.line
    ink = palette.text if on_path else palette.quiet
    yield (
        f'<g data-node="{_attribute(node.id)}"><rect x="{x:.1f}" y="{y:.1f}" width="{WIDTH:.0f}" '
        f'height="{_height(node):.1f}" rx="8" fill="{palette.fills[node.kind]}" stroke="{edge}" '
        f'stroke-width="{2.5 if chosen else 1}"/>'
    )
    head = HEADS[node.kind] if node.kind is not NodeKind.SEARCH else f"{node.id[:18]} · search"
    baseline = y + PAD + 11
    yield _text(x + PAD, baseline, head, ink, weight="600")
    for line in _lines(node):
        baseline += LINE
        yield _text(x + PAD, baseline, line, ink)
    yield from _pictures(view, node, x + PAD, baseline + 8, palette)
    yield "</g>"


def _pictures(view: RunView, node: MemoryNode, x: float, y: float, palette: Palette) -> Iterator[str]:
    """A square for each picture: full where it is remembered, struck out where it was dropped."""
    visual = [index for index, item in enumerate(node.items) if item.visual]
    if not visual:
        return
    for place, index in enumerate(visual):
        left = x + place * (GLYPH + 5)
        in_memory = (node.id, index) in view.remembered
        fill = palette.accent if in_memory else "none"
        yield (
            f'<rect x="{left:.1f}" y="{y:.1f}" width="{GLYPH:.0f}" height="{GLYPH:.0f}" rx="2" fill="{fill}" '
            f'stroke="{palette.accent if in_memory else palette.quiet}"/>'
        )
        if (node.id, index) in view.dropped:
            yield (
                f'<path d="M{left:.1f} {y + GLYPH:.1f}L{left + GLYPH:.1f} {y:.1f}" stroke="{palette.quiet}" '
                'stroke-width="1.5"/>'
            )
    pixels = sum(picture.pixels for (owner, _), picture in view.remembered.items() if owner == node.id)
    share = f"energy {node_energy(view, node.id):.2f} · {megapixels(pixels)}" if pixels else "no pixels"
    yield _text(x, y + GLYPH + LINE - 1, share, palette.quiet, size=11)


def _text(x: float, y: float, text: str, colour: str, *, weight: str = "400", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" fill="{colour}">{escape(text)}</text>'
    )


def _attribute(text: str) -> str:
    return escape(_printable(text), {'"': "&quot;"})


def _printable(text: str) -> str:
    """Without the control characters that XML has no place for."""
    return "".join(character if character.isprintable() else " " for character in text)


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
