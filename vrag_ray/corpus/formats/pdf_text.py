"""The words of a PDF page that a person can see and read, in reading order: its text layer, OCR where that fails.

A text layer is believed where the page's pixels bear it out (``pdf_drawn``). Lines whose letters mean nothing, and
pictures that fill the page, are read by OCR. So is a scan whose text was read badly by another OCR before, where ours
reads it better (``pdf_readable``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pymupdf

from vrag_ray.corpus.formats.pdf_fields import is_in, place_values, shown_fields, struck_boxes, without_passwords
from vrag_ray.corpus.formats.pdf_lines import Line, Upright, seen_lines, with_spaced_words, words_of
from vrag_ray.corpus.formats.pdf_objects import undecoded_pictures
from vrag_ray.corpus.formats.pdf_readable import (
    Ocr,
    bears_out,
    doubtful_lines,
    is_badly_read,
    is_read,
    is_unreadable,
    lines_not_believed,
    lines_without_letters,
    not_displaced,
    places_of,
    share_of_noise,
    shows_a_scan,
    watermarks,
    without_words_at,
    words_beside,
    words_there,
)
from vrag_ray.corpus.formats.unseen import struck_notice
from vrag_ray.corpus.line_numbers import without_line_numbers
from vrag_ray.corpus.model import UNREADABLE, TextLine, letters_in
from vrag_ray.corpus.reading_order import arranged, text_of
from vrag_ray.types import Box, Word, around

INITIAL = 1.6
"""Times the height of other words from which on a letter is an initial."""
BAD_SHARE = 0.03
"""Share of a page's characters in lines that cannot be read, from which on the page is read by OCR."""


@dataclass(frozen=True, slots=True)
class PageRead:
    """``text`` holds ``words`` line by line, halves of divided words joined; ``lines`` says where each line stands.

    ``ocr`` says that OCR read some of the words, with ``confidence`` from 0 to 1. ``undecoded`` counts the pictures of
    a page of few words that cannot be decoded.
    """

    text: str
    words: tuple[Word, ...]
    lines: tuple[TextLine, ...]
    ocr: bool = False
    notices: tuple[str, ...] = ()
    confidence: float = 1.0
    undecoded: int = 0


def read_page(page: pymupdf.Page, *, min_chars: int, ocr: Ocr | None, believed: set[str]) -> PageRead:
    """What a person reads on ``page``.

    A page whose layer has fewer than ``min_chars`` readable characters is read by ``ocr``, if anything is drawn on it.
    ``ocr`` reads the drawn page, or a box of it; None where OCR is off. ``believed`` has the fonts of the document
    whose letters OCR has borne out; those of this page join them.
    """
    aspect = page.rect.width / page.rect.height
    lines, hidden = seen_lines(page)
    lines = with_spaced_words(lines, aspect)
    notices: list[str] = []
    struck, concealed, lines = _with_annotations(page, lines)
    if hidden := hidden + concealed:
        notices.append(f"{hidden} words that are not visible on the page are left out")
    if struck:
        notices.append(struck_notice(struck))
    unreadable = [line for line in lines if is_unreadable(line.raw)]
    total, lost = (sum(len(line.raw) for line in some) for some in (lines, unreadable))
    readable = sum(len(UNREADABLE.sub("", line.raw)) for line in lines) - lost
    if lost < BAD_SHARE * total:
        unreadable = []
    too_little = readable < min_chars and (bool(lines) or bool(page.get_bboxlog()))
    doubtful, unread = lines_not_believed(
        doubtful_lines(lines, aspect) | lines_without_letters(page, lines), ocr, believed
    )
    notices += unread
    texts = [word.text for word in words_of(lines)]
    badly_read = ocr is not None and is_badly_read(page, texts)
    is_scan = shows_a_scan(page, lines, aspect)
    undecoded = undecoded_pictures(page) if page.parent.is_pdf and (is_scan or readable < min_chars) else []
    of_them = "a picture" if len(undecoded) == 1 else f"{len(undecoded)} pictures"
    undrawn = f"{of_them} on it cannot be decoded: damaged, or compressed in an unknown way"
    notices += [undrawn] if undecoded else []
    if ocr is None:
        if unreadable or doubtful:
            notices.append("its text cannot be read as it stands in the file, and OCR is off")
    elif is_scan or too_little or unreadable or doubtful or badly_read:
        seen = without_words_at(ocr(None), places_of(page, undecoded))
        remaining = [line for line in lines if line not in unreadable]
        if badly_read and 2 * share_of_noise([word.text for word in seen.words]) < share_of_noise(texts):
            remaining = [line for line in remaining if not words_there(seen.words, line)]
        if doubtful:
            remaining = [line for line in remaining if line not in doubtful or bears_out(seen.words, line)]
        if dropped := len(lines) - len(remaining):
            out_of_reach = [
                line for line in lines if line not in remaining and not is_read(words_there(seen.words, line), line)
            ]
            if 2 * len(out_of_reach) > dropped:
                notices.append(f"{dropped} lines cannot be read as they stand in the file, nor by OCR")
                places = [word.box for line in out_of_reach for word in line.words]
                seen = without_words_at(seen, places)
            # Nothing better was read: what there is stays.
            elif not seen.words:
                remaining = lines
                notices.append("its text cannot be read as it stands in the file, and OCR read nothing")
            else:
                notices.append(f"{dropped} lines cannot be read as they stand in the file: OCR read them")
        notices.extend(seen.notices)
        marks = watermarks(remaining, aspect) if is_scan else {}
        added = not_displaced(
            words_beside(seen.words, words_of(remaining), marks), seen.words, words_of(remaining), aspect
        )
        return replace(
            composed([*words_of(remaining), *added], aspect, ocr=bool(added), notices=notices),
            confidence=seen.confidence,
            undecoded=len(undecoded),
        )
    return replace(composed(words_of(lines), aspect, notices=notices), undecoded=len(undecoded))


def composed(words: Sequence[Word], aspect: float, *, ocr: bool = False, notices: Sequence[str] = ()) -> PageRead:
    """``words`` in reading order, as text and as places."""
    ordered, regions = arranged(_with_initials(without_line_numbers(words, aspect)), aspect)
    lines = [
        TextLine(letters_in("".join(word.text for word in row)), around([word.box for word in row]))
        for region in regions
        for row in region
    ]
    return PageRead(text_of(regions), tuple(ordered), tuple(lines), ocr, tuple(notices))


def _with_annotations(page: pymupdf.Page, lines: Sequence[Line]) -> tuple[int, int, list[Line]]:
    """How many words annotations strike out, how many are passwords, and ``lines`` without these, with the values of
    fields at their labels."""
    if not page.parent.is_pdf:
        return 0, 0, [*lines]
    upright = Upright(page)
    boxes = [box for rect in struck_boxes(page) if (box := upright.box(rect.x0, rect.y0, rect.x1, rect.y1)) is not None]
    struck = concealed = 0
    if boxes:
        for line in lines:
            remaining = [word for word in line.words if not any(is_in(word, box) for box in boxes)]
            struck += len(line.words) - len(remaining)
            line.words = remaining
    further: list[list[Word]] = []
    if page.first_widget is not None:
        words, fields = [line.words for line in lines], shown_fields(page, upright.box)
        concealed = without_passwords(fields, words)
        further = place_values(page, fields, words)
    whole = [*lines, *(Line(words, " ".join(word.text for word in words), "") for words in further)]
    return struck, concealed, [line for line in whole if line.words]


def _with_initials(words: Sequence[Word]) -> Sequence[Word]:
    """``words`` with each initial that stands over several lines in the first of them, before what it begins."""
    large = [word for word in words if len(word.text) == 1 and word.turn == 0 and word.text.isupper()]
    if not large:
        return words
    usual = float(np.median([word.box.y1 - word.box.y0 for word in words]))
    arranged_words = list(words)
    for initial in large:
        box = initial.box
        if box.y1 - box.y0 < INITIAL * usual:
            continue
        beside = [
            word
            for word in words
            if word.turn == 0
            and word.box.y1 - word.box.y0 < (box.y1 - box.y0) / INITIAL
            and box.y0 < (word.box.y0 + word.box.y1) / 2 < box.y1
            and -0.5 * (box.x1 - box.x0) < word.box.x0 - box.x1 < box.x1 - box.x0
        ]
        beside.sort(key=lambda word: word.box.y0)
        if len(beside) < 2:
            continue
        first = beside[0]
        arranged_words.remove(initial)
        place = next(number for number, word in enumerate(arranged_words) if word is first)
        if first.text[0].islower():
            whole = Box(box.x0, first.box.y0, first.box.x1, first.box.y1)
            arranged_words[place] = Word(initial.text + first.text, whole, 0)
        else:
            upper = Box(box.x0, first.box.y0, min(box.x1, first.box.x0), first.box.y1)
            arranged_words.insert(place, Word(initial.text, upper, 0))
    return arranged_words
