"""How runs, hits and graphs look in a terminal: pure functions from values to lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vrag_ray.agent.citations import Citation
from vrag_ray.agent.events import (
    AnswerEvent,
    CorrectionEvent,
    CropEvent,
    ErrorEvent,
    Event,
    MaxStepsEvent,
    MemorizeEvent,
    Place,
    ReadEvent,
    SearchDoneEvent,
    SearchEvent,
    StartEvent,
    ThinkEvent,
)
from vrag_ray.agent.memory.graph import ANSWER_ID, MemoryGraph, MemoryItem, MemoryNode, NodeKind
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import SearchHit, SearchResponse

QUOTE_CHARS = 160
Corners = tuple[float, float, float, float]


def event_lines(event: Event) -> Iterator[str]:
    """What happened, for people; nothing for bookkeeping events."""
    stamp = f"{event.t:6.2f} s  "
    for line in _event_texts(event):
        yield stamp + line
        stamp = " " * len(stamp)


def _event_texts(event: Event) -> Iterator[str]:
    match event:
        case StartEvent():
            yield f"start     {event.agent} agent, at most {event.max_steps} steps"
        case ThinkEvent():
            yield f"think     {shortened(event.content)}"
        case SearchEvent():
            yield f'search    "{event.query}"'
        case SearchDoneEvent():
            yield f"found     {len(event.results)} passages, {event.shards_ok} of {event.shards_total} shards"
            for found in event.results:
                yield f"          {found.title}, {place(found)}"
        case ReadEvent():
            for page in event.pages:
                result = (
                    f"cannot be read: {page.error}"
                    if page.error
                    else f"{page.words or page.characters} " + ("words" if page.words else "characters")
                )
                yield f"read      {page.title}, {place(page)}: {result}"
        case CropEvent():
            yield f"look      {event.place.title}, {place(event.place)}"
            yield f'          "{shortened(event.text)}"'
        case MemorizeEvent():
            yield f"remember  {shortened(event.summary)}"
            for note in event.notes:
                yield f"          note: {note}"
        case _:
            yield from _ending_texts(event)


def _ending_texts(event: Event) -> Iterator[str]:
    match event:
        case CorrectionEvent():
            yield f"refused   {shortened(event.message)}"
        case ErrorEvent():
            yield f"error     {event.message}"
        case MaxStepsEvent():
            yield f"limit     {event.max_steps} steps are used up"
        case AnswerEvent():
            yield f"answer    {event.status}"


def place(where: Place | Citation | SearchHit) -> str:
    """``page 4, box 0.10 0.31 0.90 0.35`` or ``60.0-70.0 s``."""
    span = (where.span_start, where.span_end) if isinstance(where, Citation) else (None, None)
    text = where_text(where.page, where.t_start, where.t_end, span)
    return f"{text}, box {box_text(where.bbox)}" if where.bbox is not None else text


def where_text(
    page: int | None, t_start: float | None, t_end: float | None, span: tuple[int | None, int | None]
) -> str:
    if page is not None:
        return f"page {page}"
    if t_start is not None and t_end is not None:
        return f"{t_start:.1f}-{t_end:.1f} s"
    if span[0] is not None and span[1] is not None:
        return f"characters {span[0]}-{span[1]}"
    return "the text"


def box_text(box: Corners) -> str:
    return " ".join(f"{edge:.2f}" for edge in box)


def answer_lines(record: RunRecord, base_url: str | None) -> Iterator[str]:
    """Answer, sources with links where a server can show them, notices, and how the run went."""
    yield "Answer"
    yield from _indented((record.answer or record.error or f"none: the run ended as {record.status}").splitlines())
    if record.citations:
        yield ""
        yield "Sources"
    for citation in record.citations:
        yield f"  [{citation.number}] {citation.title}, {place(citation)}"
        if citation.quote:
            yield f'      "{shortened(citation.quote)}"'
        link = picture_path(citation)
        if base_url is not None and link is not None:
            yield f"      {base_url}{link}"
    if record.notices:
        yield ""
        yield "Notices"
        yield from _indented(record.notices)
    yield ""
    yield f"{record.status} in {record.timings.total:.2f} s, {record.steps} steps, run {record.run_id}"


def picture_path(citation: Citation) -> str | None:
    """The path at the gateway that shows what is cited; None for plain text."""
    if citation.page is not None:
        path = f"/v1/documents/{citation.doc_id}/pages/{citation.page}.png"
        return path if citation.bbox is None else f"{path}?bbox=" + ",".join(f"{edge:.4f}" for edge in citation.bbox)
    if citation.t_start is not None:
        return f"/v1/documents/{citation.doc_id}/frames/{citation.t_start:.1f}.png"
    return None


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
    for query, hits in zip(queries, response.results, strict=True):
        yield f'"{query}"'
        if not hits:
            yield "  nothing found"
        for number, hit in enumerate(hits, start=1):
            yield f"  {number}. {hit.title}, {place(hit)}  (score {hit.score:.3f})"
            yield f"     {shortened(' '.join(hit.text.split()))}"
            yield f"     {hit.doc_id[:12]}  {hit.uri}"
    yield (
        f"{response.mode} search, {response.retrieval_profile} profile, collection version "
        f"{response.collection_version}, {response.shards_ok} of {response.shards_total} shards"
    )
    for notice in response.notices:
        yield f"notice: {notice}"


def shortened(text: str, limit: int = QUOTE_CHARS) -> str:
    """On one line, cut at a space where it is longer than ``limit``."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[:limit].rsplit(" ", 1)[0] + " …"


def _indented(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}"
