"""Decoded units become passages: the rows of a collection."""

from __future__ import annotations

import itertools
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import StrEnum

from vrag_ray.config import CorpusConfig
from vrag_ray.corpus.model import DecodedUnit, TextLine, letters_in
from vrag_ray.corpus.windows import window_spans, without_leaders
from vrag_ray.types import Box, Meta, Passage, PassageKind, around, passage_id

UNIT_ERROR = "error"
"""The metadata name under which a passage says what of its page or clip could not be read."""
UNIT_NOTICES = "notices"
"""The metadata name under which a passage says what of its page or clip was left out or guessed."""
TEXT_FROM_NAME = "text_from_name"
"""The metadata name by which a picture says that its text is its file's name."""
PAGE_LABEL = "page_label"
"""The metadata name of what a document itself calls a page (``viii``), where that is not its number."""
PAGE_COUNT = "page_count"
"""The metadata name, beside a label, of how many pages there are."""
OCR_CONFIDENCE = "ocr_confidence"
"""The metadata name of how far OCR trusts what it read of a page, from 0 to 1."""
BLANK = "blank"
"""The metadata name by which a page or picture says that nothing at all is on it: no space has a vector of it."""
MOST_UNIT_NOTICES = 8
LONGEST_NOTICE = 300
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols by their category that show nothing."""


def says_nothing(text: str) -> bool:
    """Whether nobody can read a word or a sign in ``text``: blanks, marks that have no shape, and punctuation alone.

    Signs beyond ASCII say something: mathematics, emoji, currencies.
    """
    return all(
        mark in _BLANK_LETTERS or unicodedata.category(mark)[0] in "ZCP" or (mark.isascii() and not mark.isalnum())
        for mark in text
    )


class Holds(StrEnum):
    """What a unit offers to a reader."""

    WORDS = "words"
    PICTURE = "picture"
    """Something to see, without words of its own."""
    NOTHING = "nothing"


def holds_of(kind: PassageKind, text: str, meta: Meta) -> Holds:
    """What a unit of that text and metadata holds. The text of a wordless picture is its file's name."""
    if not meta.get(TEXT_FROM_NAME) and not says_nothing(text):
        return Holds.WORDS
    return Holds.NOTHING if kind is PassageKind.TEXT or meta.get(BLANK) else Holds.PICTURE


def unit_notices(unit: DecodedUnit) -> list[str]:
    """The notices of a unit, bounded: a child process that an evil file has taken over may have made them."""
    return [notice[:LONGEST_NOTICE] for notice in unit.notices[:MOST_UNIT_NOTICES] if notice.strip()]


def passages_of(doc_id: str, unit: DecodedUnit, config: CorpusConfig, doc_meta: Meta) -> list[Passage]:
    """The windows of one unit, in order; at least one, with the text ``""`` where the unit has none. Dotted lines go.

    OCR words, cues and shots are of the whole unit and stand in its first window only, so that none is stored twice.
    The unit's own metadata wins over the document's; its error, if any, is the metadata ``error``, and its notices are
    the metadata ``notices``. A text that says nothing is ``""``, so that no vector is made of it.
    """
    meta = {**doc_meta, **unit.meta, **({UNIT_ERROR: unit.error} if unit.error else {})}
    if notices := unit_notices(unit):
        meta[UNIT_NOTICES] = "\n".join(notices)
    text = "" if says_nothing(unit.text) else without_leaders(unit.text)
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
            shots=unit.shots if window == 0 else (),
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
