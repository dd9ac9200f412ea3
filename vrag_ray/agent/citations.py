"""Citations: what an answer rests on, and the check that a quote really stands in what it is quoted from."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import accumulate

from pydantic import BaseModel, ConfigDict

from vrag_ray.agent.facts import Facts, figures
from vrag_ray.agent.memory.graph import MemoryItem
from vrag_ray.agent.observation import Sighting
from vrag_ray.agent.support import MARK
from vrag_ray.imaging.coordinates import holds_centre
from vrag_ray.imaging.frame_times import late_moment
from vrag_ray.types import FULL_PAGE, Box, Cue, PageText, PassageKind, Word
from vrag_ray.types.captions import captions, quoted_cues
from vrag_ray.types.copies import with_changes
from vrag_ray.types.elements import Element, ElementKind
from vrag_ray.types.page_breaks import crossing_paragraph, crossing_text
from vrag_ray.types.superscripts import without_note_marks

LEAST_SHARE = 0.5
"""Share of the smaller of a citation's box and an element's that lies in the other, from which on it is cited."""
_QUOTED = re.compile('\u201c[^\u201d]*\u201d|\u201e[^\u201c]*\u201c|«[^»]*»|"[^"]*"')


class CitedElement(BaseModel):
    """The element of its page or clip in which a citation stands, or the run of elements from ``number`` to ``last``.

    ``bbox`` is (x0, y0, x1, y1) around all of them, in fractions of the page; ``kind`` is that of the first. In a clip
    they last from ``t_start`` to ``t_end``, in seconds of the video.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    last: int
    kind: ElementKind
    bbox: tuple[float, float, float, float]
    t_start: float | None = None
    t_end: float | None = None


class Citation(BaseModel):
    """One numbered source of an answer.

    ``page`` is 1-based, and ``label`` is what the document calls it, of ``pages``, where that is another name;
    ``t_start`` and ``t_end`` are seconds of a video: of the captions that say the quote, or of the picture in which it
    is written, else of the shot of the moment that was kept, or from that to the end of its clip; ``span_start`` and
    ``span_end`` are character offsets of a text. ``bbox`` is (x0, y0, x1, y1) in fractions of the page, None for the
    whole of it. With ``seen_by_search`` it is only where a vector leg of the search saw its query: nobody looked closer
    there. ``element`` is the paragraph, table or other element of the page around ``bbox``, None where the words of the
    page were not read. ``value_bbox`` is the box of the one figure in ``bbox`` that the answer states, of its whole
    cell where it stands in a table; None for none, or several. ``quote`` stands in the source word for word. ``score``
    is the retrieval score, ``node_id`` the memory node, ``collection`` that of several which the source is from.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    doc_id: str
    title: str
    uri: str
    kind: PassageKind
    page: int | None = None
    label: str = ""
    pages: int = 0
    t_start: float | None = None
    t_end: float | None = None
    span_start: int | None = None
    span_end: int | None = None
    bbox: tuple[float, float, float, float] | None = None
    seen_by_search: bool = False
    element: CitedElement | None = None
    value_bbox: tuple[float, float, float, float] | None = None
    quote: str = ""
    score: float = 0.0
    node_id: str
    collection: str = ""

    @property
    def moment(self) -> float | None:
        """Of a video, the second whose frame shows what is cited: what is written, or stays, shortly before it goes,
        when all of it has come; speech, as it begins. None for what is no video."""
        if self.t_start is None or self.t_end is None or self.element is None or self.element.kind is ElementKind.CUE:
            return self.t_start
        return late_moment(self.t_start, self.t_end)

    @classmethod
    def of(cls, item: MemoryItem, *, number: int, node_id: str) -> Citation:
        return cls(
            number=number,
            doc_id=item.doc_id,
            title=item.title,
            uri=item.uri,
            kind=item.kind,
            page=item.locator.page,
            label=item.locator.label,
            pages=item.locator.pages,
            t_start=item.t_frame if item.t_frame is not None else item.locator.t_start,
            t_end=item.locator.t_end,
            span_start=item.locator.span_start,
            span_end=item.locator.span_end,
            bbox=item.box.as_tuple() if item.box is not None else None,
            quote=item.quote,
            score=item.score,
            node_id=node_id,
            collection=item.collection,
        )


def located(
    citation: Citation,
    sightings: Sequence[Sighting],
    *,
    by_quote: bool,
    by_passage: bool,
    elements: tuple[int, int] | None = None,
) -> Citation:
    """In a video with the times of its quote, or of its shot. On a page around its quote, where that stands in the
    region that was looked at; where none was, with a box if a place on its page is known; else the page is cited.

    ``sightings`` are the results of its node's search. ``by_quote``: for a policy that read words, around those of its
    quote, where they stand together. ``by_passage``: for a policy that read words alone, else around the lines of the
    passage that matched. Else, without a quote, where a vector leg of the search saw its query. ``elements`` are those
    that the item is about, first and last: then the box is theirs, or around the quote in them.
    """
    if citation.kind is PassageKind.CLIP:
        return _timed(citation, sightings, elements)
    place = (citation.doc_id, citation.page)
    sighting = next((sighting for sighting in sightings if (sighting.doc_id, sighting.locator.page) == place), None)
    if citation.page is None or sighting is None:
        return citation
    words = sighting.page.words if sighting.page is not None else ()
    quote = _part_on_page(citation.quote, sighting.page) if sighting.page is not None else citation.quote
    if elements is not None and sighting.page is not None:
        return _at_elements(citation, quote, within(sighting.page.elements, elements), words)
    citation = _boxed(citation, quote, sighting, words, by_quote=by_quote, by_passage=by_passage)
    parts = sighting.page.elements if sighting.page is not None else ()
    if citation.bbox is None or citation.seen_by_search:
        return citation
    return with_changes(citation, {"element": _element_around(Box(*citation.bbox), parts)})


def at_value(citation: Citation, answer: str, question: str, page: PageText) -> Citation:
    """With ``value_bbox``, where exactly one of the words of its ``page`` in its box is a figure of ``answer``.

    Figures that the answer quotes, or that stand in the question itself, do not count.
    """
    if citation.bbox is None:
        return citation
    region, known = Box(*citation.bbox), Facts(question)
    own = _QUOTED.sub(" ", MARK.sub(" ", answer))
    stated = [figure for figure in figures(own) if not known.has(figure)]
    boxes = [
        word.box
        for word in page.words
        if holds_centre(region, word.box)
        and any(figure.agrees(printed.value) for printed in figures(word.text) for figure in stated)
    ]
    if len(boxes) != 1:
        return citation
    [figure] = boxes
    cells = (cell for cell in (Box(*corners) for corners in page.cells) if holds_centre(cell, figure))
    return with_changes(citation, {"value_bbox": next(cells, figure).as_tuple()})


def within(elements: Sequence[Element], numbers: tuple[int, int]) -> tuple[Element, ...]:
    """Those of a page from the first to the last of ``numbers``, a table as one."""
    first, last = numbers
    return tuple(element for element in elements if first <= element.number <= last and element.table is None)


def elements_text(elements: Sequence[Element], numbers: tuple[int, int]) -> str:
    """Their words, one element after the other."""
    return "\n".join(element.text for element in within(elements, numbers) if element.text.strip())


def _at_elements(citation: Citation, quote: str, elements: Sequence[Element], words: Sequence[Word]) -> Citation:
    if not elements:
        return citation
    bounds = reduce(Box.union, (element.box for element in elements))
    cited = CitedElement(
        number=elements[0].number, last=elements[-1].number, kind=elements[0].kind, bbox=bounds.as_tuple()
    )
    box = _lines_of(quote, [word for word in words if holds_centre(bounds, word.box)]) or bounds
    return with_changes(citation, {"element": cited, "bbox": box.as_tuple()})


def _boxed(
    citation: Citation, quote: str, sighting: Sighting, words: Sequence[Word], *, by_quote: bool, by_passage: bool
) -> Citation:
    box: Box | None
    if citation.bbox is not None:
        region = Box(*citation.bbox)
        box = _lines_of(quote, [word for word in words if holds_centre(region, word.box)]) or region
    else:
        box = _lines_of(quote, words) if by_quote else None
        box = sighting.passage_box if box is None and by_passage else box
    if box is not None:
        return with_changes(citation, {"bbox": box.as_tuple()})
    if citation.quote or sighting.seen_at is None:
        # Where the query was seen is not where the quote stands.
        return citation
    return with_changes(citation, {"bbox": sighting.seen_at.as_tuple(), "seen_by_search": True})


def _element_around(box: Box, elements: Sequence[Element]) -> CitedElement | None:
    """The elements of a page, the cells of tables apart, in which ``box`` stands or which stand in it."""
    held = [element for element in elements if element.table is None and _share(box, element.box) >= LEAST_SHARE]
    if not held:
        return None
    bounds = reduce(Box.union, (element.box for element in held))
    return CitedElement(number=held[0].number, last=held[-1].number, kind=held[0].kind, bbox=bounds.as_tuple())


def _share(box: Box, element: Box) -> float:
    """How much of the smaller of the two lies in the other."""
    return box.shared(element) / min(box.area, element.area)


def _timed(citation: Citation, sightings: Sequence[Sighting], numbers: tuple[int, int] | None) -> Citation:
    """With the times, and in the picture the place, of the elements of its clip that have ``numbers``, else of its
    quote, or without one of the shot of its moment; unchanged where none of these is known."""
    clip = next(
        (
            sighting
            for sighting in sightings
            if sighting.page is not None
            and (sighting.doc_id, sighting.locator.t_end) == (citation.doc_id, citation.t_end)
        ),
        None,
    )
    if clip is None or clip.page is None:
        return citation
    parts = clip.page.elements
    if numbers is not None:
        return _over(citation, within(parts, numbers))
    moment = citation.t_start
    if not citation.quote:
        if moment is None or moment == clip.locator.t_start:
            # A clip as a whole is cited from its start: that is no moment.
            return citation
        return _over(citation, [part for part in parts if part.kind is ElementKind.SHOT and _lasts_at(part, moment)])
    return _quoted(citation, clip.page)


def _quoted(citation: Citation, clip: PageText) -> Citation:
    """With the times, and the place, of what says or writes its quote in ``clip``."""
    parts, moment = clip.elements, citation.t_start
    for held in _spoken_and_written(parts):
        places = quoted_cues(citation.quote, [_cue_of(part) for part in held], moment)
        if places is not None:
            return _over(citation, held[places.start : places.stop])
    # The lines of a text with stamps of its own, or of an old collection.
    cues = captions(clip.text, clip.locator)
    places = quoted_cues(citation.quote, cues, moment)
    if places is None:
        return citation
    return with_changes(citation, {"t_start": cues[places[0]].start, "t_end": cues[places[-1]].end})


def _spoken_and_written(parts: Sequence[Element]) -> tuple[list[Element], list[Element]]:
    """The elements of a clip apart: between two sentences of speech, a caption may have other words."""
    written = [part for part in parts if part.kind not in (ElementKind.CUE, ElementKind.SHOT)]
    return [part for part in parts if part.kind is ElementKind.CUE], written


def _over(citation: Citation, parts: Sequence[Element]) -> Citation:
    """From the first to the last of ``parts`` of a clip, with a box around those that are written in one picture."""
    if not parts:
        return citation
    starts, ends = [part.t_start or 0.0 for part in parts], [part.t_end or 0.0 for part in parts]
    start, end = min(starts), max(ends)
    bounds = reduce(Box.union, (part.box for part in parts))
    cited = CitedElement(
        number=parts[0].number,
        last=parts[-1].number,
        kind=parts[0].kind,
        bbox=bounds.as_tuple(),
        t_start=start,
        t_end=end,
    )
    has_place = bounds != FULL_PAGE and len(set(starts)) == len(set(ends)) == 1
    return with_changes(
        citation,
        {
            "t_start": start,
            "t_end": end,
            "element": cited,
            "bbox": bounds.as_tuple() if has_place and citation.bbox is None else citation.bbox,
        },
    )


def _lasts_at(shot: Element, moment: float) -> bool:
    return shot.t_start is not None and shot.t_end is not None and shot.t_start <= moment < shot.t_end


def _cue_of(part: Element) -> Cue:
    return Cue(part.t_start or 0.0, part.t_end or 0.0, part.text)


def _lines_of(quote: str, words: Sequence[Word]) -> Box | None:
    """Around the first words of a page that spell the quote, one after the other, whatever line ends divide in them."""
    sought = spelled(quote)
    if not sought:
        return None
    keys = [spelled(word.text) for word in words]
    text = "".join(keys)
    starts = [0, *accumulate(map(len, keys))]
    place = text.find(sought)
    while place >= 0 and place not in starts:
        # Not from within a word: "8" stands in "28", and means another figure.
        place = text.find(sought, place + 1)
    if place < 0:
        return None
    first, last = bisect_right(starts, place) - 1, bisect_left(starts, place + len(sought))
    return reduce(Box.union, (word.box for word in words[first:last]))


def stands_in(quote: str, sighting: Sighting) -> bool:
    """Whether ``quote`` is a stretch of the sighting's text in reading order, or of the passage that matched.

    Line ends, divided words and ligatures make no difference.
    """
    sought = spelled(quote)
    if not sought:
        return bool(quote.strip()) and " ".join(quote.split()) in " ".join(sighting.text.split())
    texts = [sighting.text, *([sighting.passage_text] if sighting.region is None else []), *_untimed(sighting)]
    if sighting.page is not None:
        texts.append(crossing_text(sighting.page))
    return any(sought in spelled(text) for text in texts)


def _part_on_page(quote: str, page: PageText) -> str:
    """The letters of ``quote`` that stand on ``page``, where the rest stands on the next one; else ``quote``."""
    paragraph = crossing_paragraph(page)
    if paragraph is None:
        return quote
    own, sought = spelled(paragraph.text), spelled(quote)
    place = spelled(crossing_text(page)).find(sought)
    return sought[: len(own) - place] if sought and 0 <= place < len(own) < place + len(sought) else quote


def _untimed(sighting: Sighting) -> Iterator[str]:
    """Speech and written words of a clip without the times between its lines."""
    if sighting.kind is not PassageKind.CLIP or sighting.region is not None or sighting.page is None:
        return
    for held in (*_spoken_and_written(sighting.page.elements), captions(sighting.page.text, sighting.locator)):
        yield " ".join(part.text for part in held)


def spelled(text: str) -> str:
    """The letters and digits of ``text``, ligatures apart, without case: what a faithful quote shares with it.

    Superscript marks of notes are left out: a quote may leave them out too, and never has them as digits of a figure.
    """
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", without_note_marks(text)).casefold()))
