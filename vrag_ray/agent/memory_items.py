"""From a policy's verdicts to remembered items, and from its references to citations. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from vrag_ray.agent.actions import AddAnswerNode, MemorizeEntry
from vrag_ray.agent.citations import Citation, at_value, elements_text, located, spelled, stands_in, within
from vrag_ray.agent.memory.graph import GraphError, MemoryGraph, MemoryItem, NodeKind
from vrag_ray.agent.observation import Observation, Sighting
from vrag_ray.agent.support import Source, facts_held, holding
from vrag_ray.types import PageText, PassageKind
from vrag_ray.types.copies import with_changes
from vrag_ray.types.elements import ElementKind
from vrag_ray.types.page_breaks import crossing_text

MOST_OF_A_QUOTE = 300
"""Characters of an element up to which it is its own quote."""
_RANGE = re.compile(r"\d{1,6}(?:\s*-\s*\d{1,6})?")
_PART = re.compile(r"(?:(\d{1,3})\s*:\s*)?(\d{1,6})(?:\s*[-\u2013]\s*(\d{1,6}))?")
_ELEMENT_MARK = re.compile(rf"\[\s*{_PART.pattern}(?:\s*[,;]\s*{_PART.pattern})*\s*\]")
"""In an answer: ``[12]`` and ``[12-14]``, elements of the page that was shown last; ``[2:12]``, of the second page that
a search showed; several with commas."""
DIRECT_PRIORITY = 3
"""Of what an answer rests on without having been memorised."""


def remembered(
    entries: Sequence[MemorizeEntry],
    seen: Observation,
    stamps: Callable[[Sighting], Sequence[float]],
    learnt: str = "",
) -> tuple[tuple[MemoryItem, ...], tuple[str, ...]]:
    """The useful items of ``entries`` and notes on what was not taken as given. Raises on an unknown id, and on the
    number of an element that the item has not.

    ``stamps`` gives the seconds of the frames in which a video was shown: the nearest ones are kept. Where it was not
    shown in frames, times are taken as they are, moved into the clip. ``learnt`` is the summary of all entries: where
    others hold more of its facts than the elements that an entry names, those are remembered.
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
        others = [seen.find(other.information_id) for other in entries if other is not entry and other.is_useful]
        free = [sighting for sighting in seen.sightings if sighting not in others]
        meant = _meant(entry, sighting, seen, free, learnt)
        notes += meant.notes
        for elements in _runs(meant.elements, meant.sighting) or (None,):
            words = " ".join(_quote_within(meant.quote, elements, meant.sighting).split())
            items += [
                meant.sighting.remembered(entry.priority_score, quote=words, t_frame=t_frame, elements=elements)
                for t_frame in _frames(entry, meant.sighting, stamps(meant.sighting))
            ]
    # The same place with the same words is remembered once, as strongly as its strongest entry says.
    strongest: dict[MemoryItem, MemoryItem] = {}
    for item in items:
        same = item.with_priority(1)
        best = strongest.get(same)
        strongest[same] = item if best is None or item.priority > best.priority else best
    return tuple(strongest.values()), tuple(notes)


@dataclass(frozen=True, slots=True)
class _Meant:
    """What an entry is about, as far as the words of its item show it, and what was taken otherwise than given."""

    sighting: Sighting
    quote: str
    elements: tuple[int, ...]
    notes: tuple[str, ...]


def _meant(
    entry: MemorizeEntry, sighting: Sighting, seen: Observation, free: Sequence[Sighting], learnt: str
) -> _Meant:
    """Small models copy words and facts right, and mistake labels and numbers: the words say what is meant.

    ``free`` are the results that no other entry names.
    """
    notes: list[str] = []
    quote = entry.quote if stands_in(entry.quote, sighting) else ""
    if entry.quote.strip() and not quote:
        others = [other for other in seen.sightings if stands_in(entry.quote, other)]
        if len(others) == 1:
            notes.append(f"the quote given for {sighting.id} stands in {others[0].id}, which is remembered")
            sighting, quote = others[0], entry.quote
        else:
            notes.append(f"the quote given for {sighting.id} does not stand in it and was left out")
    named = _checked(entry.elements, sighting)
    if any(part.number in named and not part.text.strip() for part in sighting.elements):
        # What a figure shows is not in words, so none can say that something else was meant.
        return _Meant(sighting, quote, named, tuple(notes))
    if not quote and not _holds_all(learnt, sighting.text):
        others = [other for other in free if _holds_all(learnt, other.text)]
        if len(others) == 1:
            notes.append(f"what was learnt stands in {others[0].id} and not in {sighting.id}: that is remembered")
            sighting, named = others[0], ()
    if quote and not named and facts_held(learnt, quote)[0]:
        return _Meant(sighting, quote, (), tuple(notes))
    # Without a number that was given, these hold every fact, or there are none.
    held = _holding(learnt, named, sighting)
    if quote and not named:
        if not held:
            return _Meant(sighting, quote, (), tuple(notes))
        notes.append(f"the quote given for {sighting.id} says nothing of what was learnt: part {_listed(held)} does")
        quote = ""
    elif named and held != named:
        notes.append(
            f"what was learnt stands in part {_listed(held)} of {sighting.id} and not in {_listed(named)}: that is "
            "remembered"
        )
    return _Meant(sighting, quote, held, tuple(notes))


def _holds_all(learnt: str, text: str) -> bool:
    """Whether every fact of ``learnt`` stands in ``text``; never where it has none."""
    held, every = facts_held(learnt, text)
    return 0 < every == held


def _checked(numbers: Sequence[int], sighting: Sighting) -> tuple[int, ...]:
    """The numbers in their order on the page; none for an item that has no elements. Raises on one that it has not."""
    known = [element.number for element in sighting.elements]
    unknown = sorted(set(numbers) - set(known))
    if unknown and known:
        raise GraphError(
            f"{sighting.id} has no part with the number {unknown[0]}: its numbers go from {known[0]} to {known[-1]}"
        )
    return tuple(sorted(set(numbers))) if known else ()


def _holding(learnt: str, named: tuple[int, ...], sighting: Sighting) -> tuple[int, ...]:
    """The elements that hold what was learnt: those that were named, unless others hold more of its facts.

    Small models say the facts right and mistake the numbers. Where none was named, those that hold every fact, and of a
    crop none: the policy chose its box.
    """
    if sighting.region is not None and not named:
        return ()
    parts = {element.number: element.text for element in sighting.elements}
    held = holding(learnt, parts)
    (of_held, every), (of_named, _) = (
        facts_held(learnt, "\n".join(parts[number] for number in numbers)) for numbers in (held, named)
    )
    return held if of_held > (of_named if named else every - 1) else named


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _runs(numbers: Sequence[int], sighting: Sighting) -> tuple[tuple[int, int], ...]:
    """Runs of neighbouring elements of ``numbers``: the run with the first of them first."""
    known = [element.number for element in sighting.elements]
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        # Cells of tables have numbers of their own, which are not shown.
        follows = runs and known.index(number) == known.index(runs[-1][1]) + 1
        runs[-1:] = [(runs[-1][0], number)] if follows else [*runs[-1:], (number, number)]
    return tuple(
        sorted(runs, key=lambda run: min(numbers.index(number) for number in numbers if run[0] <= number <= run[1]))
    )


def _quote_within(quote: str, elements: tuple[int, int] | None, sighting: Sighting) -> str:
    """The quote, where it stands in ``elements``; of a single one that is short, its own words in place of none."""
    if elements is None:
        return quote
    words = elements_text(sighting.elements, elements)
    if quote.strip() and spelled(quote) in spelled(words):
        return quote
    is_prose = all(element.kind is not ElementKind.TABLE for element in within(sighting.elements, elements))
    return words if is_prose and len(words) <= MOST_OF_A_QUOTE else ""


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
    return min(stamps, key=lambda time: (abs(time - stamp), time))


def settled(graph: MemoryGraph, seen: Observation | None, action: AddAnswerNode) -> tuple[MemoryGraph, tuple[str, ...]]:
    """A search answered directly keeps what the answer cites of it, or all of it where nothing is cited.

    The graph with that, and the answer's citations as references to remembered items.
    """
    if seen is None:
        return graph, action.citations
    named = {citation: part for citation in action.citations if (part := _part_of(citation, seen)) is not None}
    if not action.citations and not action.abstain:
        named = {sighting.id: (sighting, None) for sighting in seen.sightings}
    parts = list(dict.fromkeys(named.values()))
    items = tuple(
        sighting.remembered(
            DIRECT_PRIORITY, elements=elements, quote=" ".join(_quote_within("", elements, sighting).split())
        )
        for sighting, elements in parts
    )
    place = {citation: f"{seen.node_id}#{parts.index(part) + 1}" for citation, part in named.items()}
    references = tuple(place.get(citation, citation) for citation in action.citations)
    return graph.memorize(seen.node_id, "", items), references


def _part_of(reference: str, seen: Observation) -> tuple[Sighting, tuple[int, int] | None] | None:
    """A result and, of ``Text 1:12`` or ``Text 1:12-15``, its elements; None for what names no result."""
    sighting = seen.find(reference)
    if sighting is not None:
        return sighting, None
    label, _, numbers = reference.strip().strip("[]").rpartition(":")
    sighting = seen.find(label) if label and _RANGE.fullmatch(numbers.strip()) else None
    if sighting is None:
        return None
    first, _, last = numbers.partition("-")
    runs = _runs(_checked([int(first), int(last or first)], sighting), sighting)
    return sighting, (runs[0][0], runs[-1][1]) if runs else None


def with_cited_elements(
    answer: str, graph: MemoryGraph, seen: Sequence[Observation]
) -> tuple[str, MemoryGraph, tuple[str, ...]]:
    """``answer`` whose marks (``_ELEMENT_MARK``) are the numbers of citations instead; the graph that remembers the
    elements that they name; and the references to those, in the order of the citations.

    ``seen`` are all searches of the run. Raises on a page that was not shown, and on an element that it has not.
    """
    results = [(search.node_id, page) for search in seen for page in search.sightings if page.region is None]
    references: dict[tuple[int, int, int], str] = {}
    pieces: list[str] = []
    end = 0
    for mark in _ELEMENT_MARK.finditer(answer):
        for page_number, first, last in _PART.findall(mark[0]):
            part = place, low, high = int(page_number or len(results)), int(first), int(last or first)
            if not 1 <= place <= len(results):
                raise GraphError(f"{mark[0]} names page {place}: {len(results)} pages were shown, numbered from 1")
            node_id, sighting = results[place - 1]
            known = [element.number for element in sighting.elements]
            if not known:
                raise GraphError(f"{mark[0]} names a part of page {place}, which has no numbers: leave the mark out")
            if low not in known or high not in known or high < low:
                raise GraphError(f"{mark[0]} is no part of page {place}: its numbers go from {known[0]} to {known[-1]}")
            if part not in references:
                node = graph.node(node_id)
                quote = " ".join(_quote_within("", (low, high), sighting).split())
                item = sighting.remembered(DIRECT_PRIORITY, elements=(low, high), quote=quote)
                graph = graph.memorize(node_id, node.summary, (*node.items, item))
                references[part] = f"{node_id}#{len(node.items) + 1}"
            pieces += answer[end : mark.start()], f"[{list(references).index(part) + 1}]"
            end = mark.start()
        end = mark.end()
    return "".join([*pieces, answer[end:]]), graph, tuple(references.values())


def without_references(action: AddAnswerNode) -> AddAnswerNode:
    """``action`` that names neither nodes nor evidence, and has no marks of elements in its answer."""
    answer = _ELEMENT_MARK.sub("", action.answer)
    return with_changes(action, {"answer": answer, "parent_ids": (), "citations": ()})


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
        place = item_of(reference, graph)
        if place is None:
            raise GraphError(
                f"citation {reference[:60]!r} names nothing: use ids of the last results or <node id>#<number>"
            )
        node_id, index = place
        citations.append(Citation.of(graph.node(node_id).items[index], number=number, node_id=node_id))
    return tuple(citations)


def cited_places(
    references: Sequence[str], graph: MemoryGraph, seen: Sequence[Observation], *, by_quote: bool, by_passage: bool
) -> tuple[Citation, ...]:
    """``cited``, with a box for what was never looked at closer, where one is known (``citations.located``).

    ``seen`` are all searches of the run.
    """
    by_node = {each.node_id: each.sightings for each in seen}
    named = elements_of(references, graph)
    return tuple(
        located(
            sighting,
            by_node.get(sighting.node_id, ()),
            by_quote=by_quote,
            by_passage=by_passage,
            elements=named.get(sighting.number),
        )
        for sighting in cited(references, graph)
    )


def with_values(
    citations: Sequence[Citation], seen: Sequence[Observation], answer: str, question: str
) -> tuple[Citation, ...]:
    """Each with the box of the figure that ``answer`` states of it, where one is known (``citations.at_value``)."""
    by_node = {each.node_id: each.sightings for each in seen}

    def page_of(citation: Citation) -> PageText | None:
        pages = (sighting.page for sighting in by_node.get(citation.node_id, ()) if _is_at(sighting, citation))
        return next((page for page in pages if page is not None), None)

    pages = map(page_of, citations)
    return tuple(
        citation if page is None else at_value(citation, answer, question, page)
        for citation, page in zip(citations, pages, strict=True)
    )


def elements_of(references: Sequence[str], graph: MemoryGraph) -> dict[int, tuple[int, int]]:
    """The elements that items are about, first and last, by the numbers of the citations that ``references`` become."""
    named: dict[int, tuple[int, int]] = {}
    for number, reference in enumerate(references, start=1):
        place = item_of(reference, graph)
        elements = graph.node(place[0]).items[place[1]].elements if place is not None else None
        if elements is not None:
            named[number] = elements
    return named


def sources_of(
    citations: Sequence[Citation], seen: Sequence[Observation], named: Mapping[int, tuple[int, int]]
) -> dict[int, Source]:
    """What the sources of an answer say, by the numbers of their citations: the words of the whole page or clip, with
    the title of its document and the times that are cited, and of those ``named`` the words of their elements; none
    where the page was not read."""
    by_node = {each.node_id: each.sightings for each in seen}
    sources: dict[int, Source] = {}
    for citation in citations:
        known = [
            sighting.page
            for sighting in by_node.get(citation.node_id, ())
            if sighting.page is not None and _is_at(sighting, citation)
        ]
        texts = (text for page in known if page.text for text in (page.text, crossing_text(page)) if text)
        words = "\n".join(dict.fromkeys(texts))
        times = (
            f"{citation.t_start:.1f} {citation.t_end:.1f}"
            if citation.t_start is not None and citation.t_end is not None
            else ""
        )
        around = f"{citation.title}\n{citation.uri}\n{times}\n"
        parts = within(known[0].elements, named[citation.number]) if known and citation.number in named else ()
        part = "\n".join(element.text for element in parts if element.text.strip())
        if any(not element.text.strip() for element in parts):
            # What a figure shows is not in words: none say anything against it.
            words = ""
        sources[citation.number] = Source(
            f"{around}{words}" if words else "", citation.quote, f"{around}{part}" if words and part else ""
        )
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
