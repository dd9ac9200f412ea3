"""The memory graph for eyes: a text tree for terminals, and Graphviz DOT for pages and the UI."""

from __future__ import annotations

from vrag_ray.agent.graph import MemoryGraph, MemoryItem, MemoryNode, NodeKind

_SHAPES = {NodeKind.ROOT: "doubleoctagon", NodeKind.SEARCH: "box", NodeKind.ANSWER: "octagon"}


def text_tree(graph: MemoryGraph, *, width: int = 100) -> str:
    """One line a node, each under its first parent; further parents are named at the end of the line.

    Lines are cut to ``width`` characters. A ``*`` marks nodes that the answer rests on.
    """
    path = graph.ancestors(graph.answer.id) if graph.answer is not None else frozenset()
    lines: list[str] = []

    def draw(node: MemoryNode, stem: str, fork: str) -> None:
        mark = "*" if node.id in path else " "
        others = f" (also from {', '.join(node.parents[1:])})" if len(node.parents) > 1 else ""
        lines.append(_cut(f"{stem}{fork}{mark}{_label(node)}{others}", width))
        inner = stem + {"": "", "├─": "│ ", "└─": "  "}[fork]
        children = [child for child in graph.nodes if child.parents[:1] == (node.id,)]
        bar = "│" if children else " "
        lines.extend(_cut(f"{inner}{bar}   · {_kept(item)}", width) for item in node.items)
        for child in children:
            draw(child, inner, "└─" if child is children[-1] else "├─")

    draw(graph.nodes[0], "", "")
    return "\n".join(lines)


def dot(graph: MemoryGraph) -> str:
    """A ``digraph`` for Graphviz. Nodes and edges that the answer rests on are drawn bold."""
    path = graph.ancestors(graph.answer.id) if graph.answer is not None else frozenset()
    lines = ["digraph memory {", "  rankdir=TB;", '  node [fontname="Helvetica", fontsize=10];']
    for node in graph.nodes:
        text = "\n".join([_cut(_label(node), 60), *(_cut(_kept(item), 60) for item in node.items)])
        style = ", style=bold" if node.id in path else ""
        lines.append(f"  {_quoted(node.id)} [label={_quoted(text)}, shape={_SHAPES[node.kind]}{style}];")
    for node in graph.nodes:
        style = " [style=bold]" if node.id in path else ""
        lines.extend(f"  {_quoted(parent)} -> {_quoted(node.id)}{style};" for parent in node.parents)
    return "\n".join([*lines, "}"]) + "\n"


def _label(node: MemoryNode) -> str:
    if node.kind is NodeKind.SEARCH:
        return f"{node.id}: {node.query}" + (f" → {node.summary}" if node.summary else "")
    return f"{node.id}: {node.query or node.summary}"


def _kept(item: MemoryItem) -> str:
    where = f"{item.title or item.doc_id[:12]}, {item.locator}"
    frame = f" at {item.t_frame:.1f} s" if item.t_frame is not None else ""
    region = " [region]" if item.box is not None else ""
    quote = f": “{item.quote}”" if item.quote else ""
    return f"{where}{frame}{region}, priority {item.priority}{quote}"


def _cut(text: str, width: int) -> str:
    flat = " ".join(text.split("\n"))
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\l")
    return f'"{escaped}"'
