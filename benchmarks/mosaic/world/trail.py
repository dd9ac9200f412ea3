"""Where a run stands: what its memory graph says of the way from the question to the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.mosaic.world.notes import Finding, Leads, read_note
from benchmarks.mosaic.world.questions import Kind, Task
from vrag_ray.agent.memory.graph import ROOT_ID, MemoryGraph, MemoryNode, NodeKind

AGAIN = " again"
"""Makes a query that was asked before a different one: the graph refuses to repeat itself."""


@dataclass(frozen=True, slots=True)
class Trail:
    """``target`` is the page to see next, after ``hop`` pages on the way to it; ``parent`` is the node that names it.

    ``query`` searches for it; empty where every query was made. ``finding`` is the answer and its node's id.
    """

    target: str
    hop: int
    parent: str
    query: str
    finding: tuple[str, Finding] | None = None


def trail_of(task: Task, graph: MemoryGraph) -> Trail:
    """Follow the notes from the page that the question names; of two notes on one page the later one counts."""
    nodes = [node for node in graph.nodes if node.kind is NodeKind.SEARCH]
    for node in reversed(nodes):
        note = read_note(node.summary)
        if isinstance(note, Finding):
            return Trail(task.page, 0, node.id, "", (node.id, note))
    queries = {node.query for node in nodes}
    # Pages on the way, each with the node that names it.
    way = [(task.page, ROOT_ID)]
    while len(way) < _pages_to_see(task):
        leading = _leading(way[-1][0], nodes)
        if leading is None:
            break
        node_id, pages = leading
        untried = [page for page in pages if page not in queries]
        way.append((untried[0] if untried else pages[-1], node_id))
    target, parent = way[-1]
    if target not in queries:
        return Trail(target, len(way) - 1, parent, target)
    # In vain: its name was misread, or the search failed. Look again where it was read, then once more for it.
    for hop in (len(way) - 2, len(way) - 1):
        page, under = way[max(hop, 0)]
        if page + AGAIN not in queries:
            return Trail(page, max(hop, 0), under, page + AGAIN)
    return Trail(target, len(way) - 1, parent, "")


def _pages_to_see(task: Task) -> int:
    return 2 if task.kind is Kind.BRANCH else task.hops


def _leading(page: str, nodes: Sequence[MemoryNode]) -> tuple[str, tuple[str, ...]] | None:
    """The latest node that remembers ``page`` and notes where it leads, and what it notes."""
    for node in reversed(nodes):
        note = read_note(node.summary)
        if isinstance(note, Leads) and any(item.title == page for item in node.items):
            return node.id, note.pages
    return None
