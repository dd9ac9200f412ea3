"""Which words of a PDF's text layer are drawn, by the pixels of the page.

Words that are not drawn (render mode 3, white on white, no opacity, below 2 points, under a bar or a picture) are
hidden, unless they are the text of a scan beneath them. Words in each other's place, and under what is drawn later, are
held against their own glyphs (see ``pdf_ink``).
Measured: 6 ms a page beside 3 for the text alone; drawing the page small in grey is most of it. A page with words in
doubt takes some 20 ms more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pymupdf
from numpy.typing import NDArray

from vrag_ray.corpus.formats.pdf_ink import shown
from vrag_ray.corpus.model import letters_in
from vrag_ray.types import Box, Word

LOOK_DPI = 72.0
MOST_LOOK_PIXELS = 2_000_000
LEAST_INK = 12
"""Grey levels by which ink differs from what is around it, at least."""
LEAST_SHARE_OF_INK = 0.15
"""The same, as a share of the difference between the word's colour and its ground: small type is drawn faintly."""
CLEAR_SHARE_OF_INK = 0.3
"""The same, from which on the word is seen without a closer look."""
LEAST_GROUND = 0.2
"""Share of a word's box that must not have the colour of the word."""
LEAST_EVEN = 0.52
"""Share of a word's box that is of one colour, its ground; below it something with colours of its own may lie over."""
SMALL, LEAST_EVEN_SMALL = 7.0, 0.3
"""Points below which type fills more of its box at this size of the page, and the share of its ground there."""
NEAR = 2.0
"""Heights of a hidden word within which others are looked at closely."""
COLOURED = 32
"""Levels by which the channels of a colour differ: such a word may differ from its ground in hue alone."""
INK_OF_A_SCAN = 40
OFF_THE_INK = 0.6
"""Heights of a word by which the text of a scan may stand beside its ink."""
STROKES_OF_A_LETTER = 0.3
"""Strokes beside each other that a word has for each letter, at least, also where small type runs together."""
LEAST_WITH_STROKES = 0.8
"""Share of the words of a scan that have that number of strokes: other words are too faint or too small."""
SAME_PLACE = 0.5
"""Shares of height and width in which two words of one place agree."""
SAME_WORD = 0.75
"""Share of its box in which a word is drawn again where it is to look bold, or to throw a shadow."""
EVEN = 40
"""Grey levels within which pixels count as of one colour."""
LEAST_SIZE = 2.0
"""Points."""
PICTURE_SHARE = 0.5
"""A page of which pictures cover more is a scan where words cover less than ``LITTLE_TEXT``."""
Grey = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Look:
    """A word and how the file says it is drawn: ``grey`` from 0 (black) to 255, ``alpha`` likewise, ``size`` in points.

    ``x`` and ``y`` are its middle on the unturned page, in points. ``coloured`` says that it is no grey.
    """

    word: Word
    grey: float
    coloured: bool
    alpha: int
    size: float
    x: float
    y: float


def look_of(word: Word, spans: Sequence[dict[str, object]], x: float, y: float) -> Look:
    """How ``word`` is drawn, by that of the ``spans`` of its line that holds its middle (``x``, ``y``), in points."""
    if not spans:
        return Look(word, 0.0, False, 255, 12.0, x, y)
    span = spans[0]
    if len(spans) > 1:
        span = next((span for span in spans if _holds(span["bbox"], x, y)), span)
    colour = int(str(span["color"]))
    red, green, blue = colour >> 16 & 255, colour >> 8 & 255, colour & 255
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    coloured = max(red, green, blue) - min(red, green, blue) > COLOURED
    return Look(word, grey, coloured, int(str(span["alpha"])), float(str(span["size"])), x, y)


def _holds(bbox: object, x: float, y: float) -> bool:
    assert isinstance(bbox, tuple)
    return bool(bbox[0] <= x <= bbox[2] and bbox[1] <= y <= bbox[3])


def hidden_words(page: pymupdf.Page, looks: Sequence[Look], in_one_place: Collection[int]) -> set[int]:
    """The ids of the words that no reader of the page sees. ``in_one_place`` are those of words that share theirs."""
    grey = _grey(page)
    drawn: list[Look] = []
    undrawn: list[Look] = []
    unseen: list[Look] = []
    hidden: set[int] = set()
    doubtful: set[int] = set()
    for look in looks:
        if look.size < LEAST_SIZE:
            hidden.add(id(look.word))
        elif look.alpha == 0:
            undrawn.append(look)
        elif (shows := _shows(grey, look)) is False:
            hidden.add(id(look.word))
            unseen.append(look)
        else:
            drawn.append(look)
            if shows is None or id(look.word) in in_one_place:
                doubtful.add(id(look.word))
    over, scanned = _under_pictures(page, drawn, doubtful)
    doubtful = (doubtful | over) - scanned
    # Leaders and dashes are no words that anybody misses.
    judged = [look.word for look in drawn if id(look.word) in doubtful and letters_in(look.word.text)]
    hidden |= _covered(page, judged)
    # What lies over some words may lie over those beside them.
    lost = [look.word.box for look in drawn if id(look.word) in hidden and _is_word(look)]
    lost += [look.word.box for look in unseen if _is_word(look)]
    if lost:
        near = [box.padded(NEAR * (box.y1 - box.y0), NEAR * (box.y1 - box.y0)) for box in lost]
        rest = [look.word for look in drawn if id(look.word) not in doubtful | scanned]
        hidden |= _covered(page, [word for word in rest if any(overlap(word.box, box) > 0 for box in near)])
    # The text of a scan is not drawn itself: its pixels show the words, and no other words stand there.
    taken = [look.word.box for look in drawn if id(look.word) not in hidden] if undrawn else []
    inked: list[tuple[Look, bool]] = []
    for look in undrawn:
        box = look.word.box
        x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
        # OCR of old scans puts words a little beside their ink.
        slack = OFF_THE_INK * min(box.x1 - box.x0, box.y1 - box.y0)
        pixels = _pixels(grey, box.padded(slack, slack))
        has_ink = pixels.size and int(pixels.max()) - int(pixels.min()) >= INK_OF_A_SCAN
        if not has_ink or any(b.x0 <= x <= b.x1 and b.y0 <= y <= b.y1 for b in taken):
            hidden.add(id(look.word))
        else:
            along = pixels.T if look.word.turn % 180 else pixels
            inked.append((look, _has_strokes(along, len(look.word.text))))
    # Lines and edges of boxes are ink too, on a page that is no scan.
    if sum(has_strokes for _, has_strokes in inked) < LEAST_WITH_STROKES * len(inked):
        hidden |= {id(look.word) for look, has_strokes in inked if not has_strokes}
    return hidden


def _has_strokes(pixels: Grey, count: int) -> bool:
    """Whether ``pixels``, of which the rows lie along a word of ``count`` letters, hold as many strokes beside each
    other as these have: lines and edges of boxes that stand around a word are fewer."""
    ink = np.abs(pixels.astype(np.int16) - int(np.median(pixels))) >= INK_OF_A_SCAN
    strokes = int(np.count_nonzero(np.diff(ink.astype(np.int8), axis=1, prepend=0) == 1, axis=1).max())
    return strokes >= max(2, STROKES_OF_A_LETTER * count) if count > 1 else strokes > 0


def _covered(page: pymupdf.Page, words: Sequence[Word]) -> set[int]:
    return {id(word) for word, seen in zip(words, shown(page, words), strict=True) if not seen} if words else set()


def _grey(page: pymupdf.Page) -> Grey:
    scale = LOOK_DPI / 72.0
    scale *= min(1.0, math.sqrt(MOST_LOOK_PIXELS / max(1.0, page.rect.width * page.rect.height * scale * scale)))
    pixmap = page.get_pixmap(matrix=pymupdf.Matrix(scale, scale), colorspace=pymupdf.csGRAY, alpha=False)
    return np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)[:, : pixmap.width]


def _pixels(grey: Grey, box: Box) -> Grey:
    height, width = grey.shape
    top, bottom = int(box.y0 * height), math.ceil(box.y1 * height)
    left, right = int(box.x0 * width), math.ceil(box.x1 * width)
    return grey[top:bottom, left:right]


def _shows(grey: Grey, look: Look) -> bool | None:
    """Whether the pixels of a word's box show ink of its colour on another ground; None where they leave it open."""
    pixels = _pixels(grey, look.word.box)
    if not pixels.size:
        return False
    low, high = int(pixels.min()), int(pixels.max())
    if look.grey < 128 and high - low > 96 and look.grey - low > -96:
        # The usual case, dark on light, at once.
        ground = np.count_nonzero(pixels > max(high - EVEN, look.grey + LEAST_INK))
        least_even = LEAST_EVEN if look.size >= SMALL else LEAST_EVEN_SMALL
        return True if ground >= least_even * pixels.size or not _is_word(look) else None
    middle = float(np.median(pixels))
    other = np.abs(pixels.astype(np.int16) - round(look.grey)) > LEAST_INK
    least = max(LEAST_INK, LEAST_SHARE_OF_INK * abs(look.grey - middle))
    if np.count_nonzero(other) < LEAST_GROUND * pixels.size or max(high - middle, middle - low) < least:
        return None if look.coloured and high > low else False
    towards = middle - low if look.grey < middle else high - middle
    if towards < CLEAR_SHARE_OF_INK * abs(look.grey - middle):
        return None
    even = np.count_nonzero(np.abs(pixels.astype(np.int16) - round(middle)) < EVEN)
    return True if even >= LEAST_EVEN * pixels.size or not _is_word(look) else None


def _is_word(look: Look) -> bool:
    """False for signs, dashes and single letters, which may fill most of their box."""
    return len(look.word.text) > 2 and look.word.text.isalnum()


def crowded_lines(places: Sequence[tuple[float, float, float, float]], goes_back: Sequence[bool]) -> set[int]:
    """The numbers of the lines that stand in the place of others, or go back over their own words."""
    left, top, right, bottom = np.array(places).T
    wide = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    high = np.minimum.outer(bottom, bottom) - np.maximum.outer(top, top)
    letter = np.minimum(right - left, bottom - top)
    common = (wide > 0) & (high > 0) & (wide * high > SAME_PLACE * np.minimum.outer(letter, letter) ** 2)
    np.fill_diagonal(common, False)
    return set(np.flatnonzero(common.any(axis=0) | np.array(goes_back)).tolist())


def words_in_one_place(looks: Sequence[Look]) -> tuple[set[int], set[int]]:
    """The ids of the words that are drawn again in their place, as for bold type; of those that share theirs."""
    twice: set[int] = set()
    shared: set[int] = set()
    if not looks:
        return twice, shared
    left, top, right, bottom = np.array([look.word.box.as_tuple() for look in looks]).T
    middle, height, width = (top + bottom) / 2, bottom - top, right - left
    for number in range(len(looks) - 1):
        rest = slice(number + 1, None)
        level = np.abs(middle[rest] - middle[number]) < SAME_PLACE * np.minimum(height[rest], height[number])
        common = np.minimum(right[rest], right[number]) - np.maximum(left[rest], left[number])
        for other in np.flatnonzero(level & (common > SAME_PLACE * np.minimum(width[rest], width[number]))):
            word, over = looks[number].word, looks[number + 1 + int(other)].word
            shared |= {id(word), id(over)}
            if word.text == over.text and overlap(word.box, over.box) > SAME_WORD < overlap(over.box, word.box):
                twice.add(id(word))
    return twice, shared


def _under_pictures(page: pymupdf.Page, looks: Sequence[Look], doubtful: Collection[int]) -> tuple[set[int], set[int]]:
    """The ids of the words over which a picture is drawn later that lets nothing through; of those under a scan.

    A scan fills the page, and its pixels show the words.
    """
    if not page.get_images():
        return set(), set()
    log = page.get_bboxlog()
    texts = [(place, bbox) for place, (kind, bbox) in enumerate(log) if kind in ("fill-text", "stroke-text")]
    opaque = [info["bbox"] for info in page.get_image_info() if not info["has-mask"]]
    area = page.rect.width * page.rect.height
    covered: set[int] = set()
    scanned: set[int] = set()
    for place, (kind, bbox) in enumerate(log):
        if kind != "fill-image":
            continue
        is_scan = area_of(bbox) > PICTURE_SHARE * area
        if not any(all(abs(a - b) < 1 for a, b in zip(bbox, info, strict=True)) for info in opaque):
            continue
        for look in looks:
            if is_scan and id(look.word) not in doubtful:
                continue
            if _holds(bbox, look.x, look.y):
                drawn_at = [at for at, box in texts if _holds(box, look.x, look.y)]
                if drawn_at and max(drawn_at) < place:
                    (scanned if is_scan else covered).add(id(look.word))
    return covered, scanned


def area_of(bbox: Sequence[float]) -> float:
    """In square points; 0 of a rectangle without one."""
    return max(0.0, bbox[2] - bbox[0]) * max(0.0, bbox[3] - bbox[1])


def overlap(box: Box, other: Box) -> float:
    """The share of ``box`` that lies in ``other``."""
    return box.shared(other) / box.area
