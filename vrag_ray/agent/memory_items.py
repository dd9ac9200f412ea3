"""From a policy's verdicts to remembered items, and from its references to citations. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vrag_ray.agent.actions import AddAnswerNode, MemorizeEntry
from vrag_ray.agent.citations import Citation, located, stands_in
from vrag_ray.agent.memory.graph import GraphError, MemoryGraph, MemoryItem, NodeKind
from vrag_ray.agent.observation import Observation, Sighting
from vrag_ray.agent.support import Source
from vrag_ray.config import EvidenceForm
from vrag_ray.types import PassageKind

DIRECT_PRIORITY = 3
"""Of what an answer rests on without having been memorised."""


def remembered(
    entries: Sequence[MemorizeEntry], seen: Observation, stamps: Callable[[Sighting], Sequence[float]]
) -> tuple[tuple[MemoryItem, ...], tuple[str, ...]]:
    """The useful items of ``entries`` and notes on what was not taken as given. Raises on an unknown id.

    ``stamps`` gives the seconds of the frames in which a video was shown: the nearest ones are kept. Where it was not
    shown in frames, times are taken as they are, moved into the clip.
    """
    items: list[MemoryItem] = []
    notes: list[str] = []
    for entry in entries:
        sighting = seen.find(entry.information_id)
        if sighting is None:
            known = ", ".join(sighting.id for sighting in seen.sightings) or "none"
            raise GraphError(f"there is no {entry.information_id[:60]!r} in the last results: they are {known}")
        if not entry.is_useful:
            continue
        quote = entry.quote if stands_in(entry.quote, sighting) else ""
        if entry.quote.strip() and not quote:
            others = [other for other in seen.sightings if stands_in(entry.quote, other)]
            if len(others) == 1:
                # Small models copy words right and mistake the label: the words say which item is meant.
                notes.append(f"the quote given for {sighting.id} stands in {others[0].id}, which is remembered")
                sighting, quote = others[0], entry.quote
            else:
                notes.append(f"the quote given for {sighting.id} does not stand in it and was left out")
        for t_frame in _frames(entry, sighting, stamps(sighting)):
            items.append(sighting.remembered(entry.priority_score, quote=" ".join(quote.split()), t_frame=t_frame))
    # The same place with the same words is remembered once, as strongly as its strongest entry says.
    strongest: dict[MemoryItem, MemoryItem] = {}
    for item in items:
        same = item.with_priority(1)
        best = strongest.get(same)
        strongest[same] = item if best is None or item.priority > best.priority else best
    return tuple(strongest.values()), tuple(notes)


def _frames(entry: MemorizeEntry, sighting: Sighting, stamps: Sequence[float]) -> tuple[float | None, ...]:
    """Times of the frames to keep; (None,) for a sighting as a whole and for what is no video."""
    start, end = sighting.locator.t_start, sighting.locator.t_end
    if sighting.kind is not PassageKind.CLIP or start is None or end is None or not entry.key_timestamp:
        return (None,)
    if stamps:
        return tuple(dict.fromkeys(nearest(stamp, stamps) for stamp in entry.key_timestamp))
    return tuple(dict.fromkeys(min(end, max(start, stamp)) for stamp in entry.key_timestamp))


def nearest(stamp: float, stamps: Sequence[float]) -> float:
    """The frame closest to ``stamp``, the earlier of two as close."""
    return min(stamps, key=lambda one: (abs(one - stamp), one))


def settled(graph: MemoryGraph, seen: Observation | None, action: AddAnswerNode) -> tuple[MemoryGraph, tuple[str, ...]]:
    """A search answered directly keeps what the answer cites of it, or all of it where nothing is cited.

    The graph with that, and the answer's citations as references to remembered items.
    """
    if seen is None:
        return graph, action.citations
    named = {found.id: found for one in action.citations if (found := seen.find(one)) is not None}
    if not action.citations and not action.abstain:
        named = {sighting.id: sighting for sighting in seen.sightings}
    items = tuple(sighting.remembered(DIRECT_PRIORITY) for sighting in named.values())
    place = {known.casefold(): f"{seen.node_id}#{number}" for number, known in enumerate(named, start=1)}
    references = tuple(place.get(one.strip().casefold(), one) for one in action.citations)
    return graph.memorize(seen.node_id, "", items), references


def item_of(reference: str, graph: MemoryGraph) -> tuple[str, int] | None:
    """``<node id>#<number from 1>`` to the node's id and the item's index; None where it names nothing."""
    node_id, mark, number = reference.strip().rpartition("#")
    if not mark or not number.isdecimal():
        return None
    for node in graph.nodes:
        if node.id == node_id and 1 <= int(number[:9]) <= len(node.items):
            return node_id, int(number[:9]) - 1
    return None


def cited(references: Sequence[str], graph: MemoryGraph) -> tuple[Citation, ...]:
    """The items that ``references`` name, numbered from 1 in that order. Raises on one that names nothing."""
    citations: list[Citation] = []
    for number, reference in enumerate(references, start=1):
        found = item_of(reference, graph)
        if found is None:
            raise GraphError(
                f"citation {reference[:60]!r} names nothing: use ids of the last results or <node id>#<number>"
            )
        node_id, index = found
        citations.append(Citation.of(graph.node(node_id).items[index], number=number, node_id=node_id))
    return tuple(citations)


def cited_places(
    references: Sequence[str], graph: MemoryGraph, seen: Sequence[Observation], form: EvidenceForm
) -> tuple[Citation, ...]:
    """``cited``, with a box for what was never looked at closer, where one is known (``citations.located``).

    ``seen`` are all searches of the run, ``form`` is what its policy was given of their pages.
    """
    found = {each.node_id: each.sightings for each in seen}
    return tuple(
        located(one, found.get(one.node_id, ()), by_quote=form.has_text, by_passage=not form.has_pictures)
        for one in cited(references, graph)
    )


def sources_of(citations: Sequence[Citation], seen: Sequence[Observation]) -> dict[int, Source]:
    """What the sources of an answer say, by the numbers of their citations: the words of the whole page or clip, with
    the title of its document and the times that are cited; none where the page was not read."""
    found = {each.node_id: each.sightings for each in seen}
    sources: dict[int, Source] = {}
    for one in citations:
        known = [
            sighting.page.text
            for sighting in found.get(one.node_id, ())
            if sighting.page is not None and _is_at(sighting, one)
        ]
        said = "\n".join(dict.fromkeys(filter(None, known)))
        times = f"{one.t_start:.1f} {one.t_end:.1f}" if one.t_start is not None and one.t_end is not None else ""
        sources[one.number] = Source(f"{one.title}\n{one.uri}\n{times}\n{said}" if said else "", one.quote)
    return sources


def _is_at(sighting: Sighting, citation: Citation) -> bool:
    """Whether the citation is of the page, the text or the clip that was seen."""
    start, end = sighting.locator.t_start, sighting.locator.t_end
    if (sighting.doc_id, sighting.locator.page) != (citation.doc_id, citation.page):
        return False
    return citation.t_start is None or start is None or end is None or start <= citation.t_start <= end


def supporting(graph: MemoryGraph, parents: Sequence[str]) -> tuple[str, ...]:
    """References to every item that the nodes ``parents`` and their ancestors remember, in order of the graph."""
    on_path = {ancestor for parent in parents for ancestor in graph.ancestors(parent)}
    return tuple(
        f"{node.id}#{index + 1}"
        for node in graph.nodes
        if node.id in on_path and node.kind is NodeKind.SEARCH
        for index in range(len(node.items))
    )
