"""Citations: what an answer rests on, and the check that a quote really stands in what it is quoted from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce

from pydantic import BaseModel, ConfigDict

from vrag_ray.agent.memory.graph import MemoryItem
from vrag_ray.agent.observation import Sighting
from vrag_ray.types import Box, PassageKind, Word
from vrag_ray.types.captions import captions, quoted_range


class Citation(BaseModel):
    """One numbered source of an answer.

    ``page`` is 1-based; ``t_start`` and ``t_end`` are seconds of a video: of the captions that say the quote, else from
    the moment that was kept to the end of its clip; ``span_start`` and ``span_end`` are character offsets of a text.
    ``bbox`` is (x0, y0, x1, y1) in fractions of the page, None for the whole of it. With ``seen_by_search`` it is only
    where a vector leg of the search saw its query: nobody looked closer there. ``quote`` stands in the source word for
    word. ``score`` is the retrieval score, ``node_id`` the memory node, ``collection`` the one of several that the
    source is from.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: int
    doc_id: str
    title: str
    uri: str
    kind: PassageKind
    page: int | None = None
    t_start: float | None = None
    t_end: float | None = None
    span_start: int | None = None
    span_end: int | None = None
    bbox: tuple[float, float, float, float] | None = None
    seen_by_search: bool = False
    quote: str = ""
    score: float = 0.0
    node_id: str
    collection: str = ""

    @classmethod
    def of(cls, item: MemoryItem, *, number: int, node_id: str) -> Citation:
        return cls(
            number=number,
            doc_id=item.doc_id,
            title=item.title,
            uri=item.uri,
            kind=item.kind,
            page=item.locator.page,
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


def located(citation: Citation, found: Sequence[Sighting], *, by_quote: bool, by_passage: bool) -> Citation:
    """In a video with the times of its quote. On a page with a box, where it has none (nothing was cropped) and a place
    on its page is known; else the page is cited.

    ``found`` is what the search of its node found. ``by_quote``: for who was given words, around those of its quote,
    where they stand together. ``by_passage``: for who was given words alone, else around the lines of the passage that
    matched. Else, without a quote, where a vector leg of the search saw its query.
    """
    if citation.kind is PassageKind.CLIP and citation.quote:
        return _timed(citation, found)
    if citation.bbox is not None or citation.page is None:
        return citation
    place = (citation.doc_id, citation.page)
    sighting = next((one for one in found if (one.doc_id, one.locator.page) == place), None)
    if sighting is None:
        return citation
    words = sighting.page.words if by_quote and sighting.page is not None else ()
    box = _lines_of(citation.quote, words)
    if box is None and by_passage:
        box = sighting.passage_box
    if box is not None:
        return citation.model_copy(update={"bbox": box.as_tuple()})
    if citation.quote or sighting.seen_at is None:
        # Where the query was seen is not where the quote stands.
        return citation
    return citation.model_copy(update={"bbox": sighting.seen_at.as_tuple(), "seen_by_search": True})


def _timed(citation: Citation, found: Sequence[Sighting]) -> Citation:
    """From the start to the end of the captions that say the quote; unchanged where none do."""
    for sighting in found:
        start, end = sighting.locator.t_start, sighting.locator.t_end
        if sighting.doc_id != citation.doc_id or sighting.page is None or end is None or end != citation.t_end:
            continue
        span = quoted_range(citation.quote, captions(sighting.page.text, sighting.locator), citation.t_start)
        if span is not None and start is not None:
            return citation.model_copy(update={"t_start": span[0], "t_end": span[1]})
    return citation


def _lines_of(quote: str, words: Sequence[Word]) -> Box | None:
    """Around the first words of a page that are the quote's, one after the other."""
    wanted = quote.split()
    texts = [word.text for word in words]
    for start in range(len(texts) - len(wanted) + 1 if wanted else 0):
        if texts[start : start + len(wanted)] == wanted:
            return reduce(Box.union, (word.box for word in words[start : start + len(wanted)]))
    return None


def stands_in(quote: str, sighting: Sighting) -> bool:
    """Whether ``quote`` is a stretch of the sighting's text, or made only of words that stand in its region.

    The second form is for tables and charts, whose rows are not always contiguous in reading order.
    """
    wanted = quote.split()
    if not wanted:
        return False
    flat = " ".join(wanted)
    if flat in " ".join(sighting.text.split()):
        return True
    if sighting.region is None and flat in " ".join(sighting.passage_text.split()):
        return True
    there = Counter(word.text for word in sighting.words)
    return not Counter(wanted) - there
