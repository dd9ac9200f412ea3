"""How answers, hits and graphs look in a terminal: pure functions from values to lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vrag_ray.agent.memory.graph import ANSWER_ID, MemoryGraph, MemoryItem, MemoryNode, NodeKind
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import SearchResponse
from vrag_ray.views.words import box_text, computed_lines, picture_path, place, shortened, unsupported_lines


def answer_lines(record: RunRecord, base_url: str | None) -> Iterator[str]:
    """Answer, sources with links where a server can show them, notices, and how the run went."""
    yield "Answer"
    yield from _indented((record.answer or record.error or f"none: the run ended as {record.status}").splitlines())
    if record.citations:
        yield ""
        yield "Sources"
    for citation in record.citations:
        # Of one collection there is nothing to tell.
        where = f" ({citation.collection})" if len(record.collections) > 1 and citation.collection else ""
        yield f"  [{citation.number}] {citation.title}, {place(citation)}{where}"
        if citation.quote:
            yield f'      "{shortened(citation.quote)}"'
        link = picture_path(citation)
        if base_url is not None and link is not None:
            yield f"      {base_url}{link}"
    if checks := [*unsupported_lines(record.answer, record.sentences), *computed_lines(record.sentences)]:
        yield ""
        yield "Checks"
        yield from _indented(checks)
    if record.notices:
        yield ""
        yield "Notices"
        yield from _indented(record.notices)
    yield ""
    yield f"{record.status} in {record.timings.total:.2f} s, {record.steps} steps, run {record.run_id}"


def graph_lines(graph: MemoryGraph) -> Iterator[str]:
    """The memory graph as a tree. A node of several parents stands below the last of them and names the others."""
    yield "Graph"
    yield from _subtree(graph, graph.nodes[0], "  ", "  ")


def _subtree(graph: MemoryGraph, node: MemoryNode, first: str, rest: str) -> Iterator[str]:
    yield first + _label(node)
    children = [child for child in graph.children(node.id) if child.parents[-1] == node.id]
    bar = "│  " if children else "   "
    for detail in _details(node):
        yield f"{rest}{bar}{detail}"
    for child in children:
        last = child is children[-1]
        yield from _subtree(graph, child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def _label(node: MemoryNode) -> str:
    others = f"  (also from {', '.join(node.parents[:-1])})" if len(node.parents) > 1 else ""
    if node.kind is NodeKind.ROOT:
        return f'question "{shortened(node.query)}"'
    if node.id == ANSWER_ID:
        return f"answer{others}"
    return f'{node.id}: search "{shortened(node.query)}"{others}'


def _details(node: MemoryNode) -> Iterator[str]:
    if node.summary:
        yield shortened(node.summary.splitlines()[0] if node.kind is NodeKind.ANSWER else node.summary)
    for item in node.items:
        yield f"kept: {_item(item)}, priority {item.priority} of 5"


def _item(item: MemoryItem) -> str:
    box = f", box {box_text(item.box.as_tuple())}" if item.box is not None else ""
    return f"{item.title}, {item.locator}{box}"


def search_lines(response: SearchResponse, queries: Sequence[str]) -> Iterator[str]:
    is_joint = len(response.collections) > 1
    for query, hits in zip(queries, response.results, strict=True):
        yield f'"{query}"'
        if not hits:
            yield "  nothing found"
        for number, hit in enumerate(hits, start=1):
            yield f"  {number}. {hit.title}, {place(hit)}  (score {hit.score:.3f})"
            if hit.region is not None:
                yield f"     seen in box {box_text(hit.region)}"
            if hit.text.strip():
                yield f"     {shortened(' '.join(hit.text.split()))}"
            yield f"     {hit.doc_id[:12]}  {hit.uri}" + (f"  in {hit.collection}" if is_joint else "")
    searched = (
        f"collections {', '.join(response.collections)}"
        if is_joint
        else f"collection version {response.collection_version}"
    )
    yield (
        f"{response.mode} search, {response.retrieval_profile} profile, {searched}, "
        f"{response.shards_ok} of {response.shards_total} shards"
    )
    for notice in response.notices:
        yield f"notice: {notice}"


def _indented(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}"
