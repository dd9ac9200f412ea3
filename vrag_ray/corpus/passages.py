"""Decoded units become passages: the rows of a collection."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from vrag_ray.config import CorpusConfig
from vrag_ray.corpus.model import DecodedUnit, TextLine, letters_in
from vrag_ray.corpus.windows import window_spans, without_leaders
from vrag_ray.types import Box, Meta, Passage, around, passage_id

UNIT_ERROR = "error"
"""The metadata name under which a passage says what of its page or clip could not be read."""


def passages_of(doc_id: str, unit: DecodedUnit, config: CorpusConfig, doc_meta: Meta) -> list[Passage]:
    """The windows of one unit, in order; at least one, with the text ``""`` where the unit has none. Dotted lines go.

    OCR words and cues are of the whole unit and stand in its first window only, so that none is stored twice.
    The unit's own metadata wins over the document's; its error, if any, is the metadata ``error``.
    """
    meta = {**doc_meta, **unit.meta, **({UNIT_ERROR: unit.error} if unit.error else {})}
    text = without_leaders(unit.text)
    spans = window_spans(text, config.window_words, config.window_overlap)
    return [
        Passage(
            id=passage_id(doc_id, unit.locator, window),
            doc_id=doc_id,
            kind=unit.kind,
            locator=unit.locator,
            window=window,
            text=text[start:stop],
            box=box,
            words=unit.words if window == 0 else (),
            cues=unit.cues if window == 0 else (),
            meta=meta,
        )
        for window, ((start, stop), box) in enumerate(zip(spans, boxes_of(text, spans, unit.lines), strict=True))
    ]


def boxes_of(text: str, spans: Sequence[tuple[int, int]], lines: Sequence[TextLine]) -> list[Box | None]:
    """Around each span of ``text`` the lines that hold its letters and digits.

    None for a span without any, and for every span where the lines do not hold the letters of the text.
    """
    if sum(line.letters for line in lines) != letters_in(text):
        return [None] * len(spans)
    ends = list(itertools.accumulate(line.letters for line in lines))
    boxes: list[Box | None] = []
    for start, stop in spans:
        first = letters_in(text[:start])
        last = first + letters_in(text[start:stop])
        held = lines[bisect_right(ends, first) : bisect_left(ends, last) + 1] if first < last else ()
        boxes.append(around([line.box for line in held if line.letters and line.box is not None]))
    return boxes
