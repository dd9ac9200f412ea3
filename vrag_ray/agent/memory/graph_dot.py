"""The memory graph as a picture: Graphviz DOT, for pages, papers and the user interface."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from vrag_ray.agent.memory.graph import MemoryGraph, MemoryItem, MemoryNode, NodeKind

WIDTH = 48
MAX_CHARS = 160
_HEADS = {NodeKind.ROOT: "question", NodeKind.ANSWER: "answer"}
_FILLS = {NodeKind.ROOT: "#dbe9f6", NodeKind.SEARCH: "#ffffff", NodeKind.ANSWER: "#dff0d8"}
_QUIET = "#8a8a8a"


def dot(graph: MemoryGraph) -> str:
    """A ``digraph`` for Graphviz. Once there is an answer, what it does not rest on is drawn grey."""
    every = frozenset(node.id for node in graph.nodes)
    path = graph.ancestors(graph.answer.id) if graph.answer is not None else every
    lines = [
        "digraph memory {",
        "  rankdir=TB; bgcolor=white;",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10, margin="0.15,0.1"];',
    ]
    for node in graph.nodes:
        quiet = "" if node.id in path else f', color="{_QUIET}", fontcolor="{_QUIET}"'
        label = "".join(f"{_escaped(line)}\\l" for line in _lines(node))
        lines.append(f'  {_quoted(node.id)} [label="{label}", fillcolor="{_FILLS[node.kind]}"{quiet}];')
    for node in graph.nodes:
        quiet = "" if node.id in path else f' [color="{_QUIET}"]'
        lines.extend(f"  {_quoted(parent)} -> {_quoted(node.id)}{quiet};" for parent in node.parents)
    return "\n".join([*lines, "}"]) + "\n"


def _lines(node: MemoryNode) -> Iterator[str]:
    yield _HEADS.get(node.kind, f"{node.id}: search")
    for text in (node.query, node.summary):
        yield from textwrap.wrap(_cut(text), WIDTH)
    for item in node.items:
        first, *more = textwrap.wrap(_line_of(item), WIDTH - 2)
        yield f"• {first}"
        yield from (f"  {line}" for line in more)


def _line_of(item: MemoryItem) -> str:
    frame = f" at {item.t_frame:.1f} s" if item.t_frame is not None else ""
    region = f", box {' '.join(f'{edge:.2f}' for edge in item.box.as_tuple())}" if item.box is not None else ""
    return f"{item.title or item.doc_id[:12]}, {item.locator}{frame}{region}, priority {item.priority}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
