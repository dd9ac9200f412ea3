"""Whether words of a PDF page show: their glyphs, drawn alone, against the pixels of the page where they stand.

Exact and slow, some 10 ms a page, for the few words that a look at their box leaves in doubt: those that stand in each
other's place, that something with colours of its own lies over, or that differ from their ground in hue alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pymupdf
from numpy.typing import NDArray
from pymupdf import mupdf

from vrag_ray.types import Box, Word

SCALE = 2.0
"""Pixels a point."""
MOST_PIXELS = 8_000_000
MOST_DRAWN = 2_000
"""Pieces of text that are drawn alone; on a page with more of them in doubtful places, the rest count as seen."""
INK, NO_INK = 0.6, 0.08
"""Shares of the darkest that a glyph draws, from which on a pixel is its ink, and up to which it is not."""
LEAST_PIXELS = 4
LEAST_OWN = 0.08
"""Share of a word's ink that lies under no other glyph, at least; below it what is drawn last is seen."""
LEAST_CONTRAST = 12.0
"""Grey levels between the ink and its ground, at least."""
LEAST_CLEAR = 1.0
"""The same in standard deviations of both."""

DESCENT = 0.22
"""Share of a word's box below the baseline, as most fonts have it."""

Pixels = NDArray[np.uint8]
Share = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """What a piece of text draws in a place: its number in the order of drawing, its letters, baseline, and ink."""

    number: int
    letters: str
    baseline: float
    ink: Share


@dataclass(slots=True, eq=False)
class _Place:
    """The box of a word in pixels, and what is drawn in it."""

    text: str
    left: int
    top: int
    right: int
    bottom: int
    drawn: list[_Drawn] = field(default_factory=list)

    @property
    def slices(self) -> tuple[slice, slice]:
        return slice(self.top, self.bottom), slice(self.left, self.right)


class _Glyphs(mupdf.FzDevice2):  # type: ignore[misc]
    """Draws each piece of text alone, where it falls into one of ``places``."""

    def __init__(self, places: Sequence[_Place], width: int, height: int) -> None:
        super().__init__()
        self.use_virtual_fill_text()
        self.use_virtual_stroke_text()
        self._places = places
        self._bounds = np.array([(p.left, p.top, p.right, p.bottom) for p in places])
        whole = mupdf.FzIrect(0, 0, width, height)
        self._grey = mupdf.FzColorspace(mupdf.FzColorspace.Fixed_GRAY)
        self._pixmap = mupdf.FzPixmap(self._grey, whole, mupdf.FzSeparations(), 0)
        self._pixmap.fz_clear_pixmap_with_value(255)
        view = mupdf.python_memoryview_from_memory(
            mupdf.ll_fz_pixmap_samples(self._pixmap.m_internal), width * height, 1
        )
        self._pixels = np.frombuffer(view, np.uint8).reshape(height, width)
        self._draw = mupdf.FzDevice(mupdf.FzMatrix(), self._pixmap)
        self._count = self._drawn = 0

    def fill_text(self, ctx, text, ctm, colorspace, color, alpha, params) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001, ARG002
        self._draw_alone(text, None, ctm, params)

    def stroke_text(self, ctx, text, stroke, ctm, colorspace, color, alpha, params) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001, ARG002
        # Filled here as well: an outline differs from its ground, and so does what it encloses on the whole.
        self._draw_alone(text, stroke, ctm, params)

    def close(self) -> None:
        self.fz_close_device()
        self._draw.fz_close_device()

    def _draw_alone(
        self,
        text: mupdf.fz_text,
        stroke: mupdf.fz_stroke_state | None,
        ctm: mupdf.fz_matrix,
        params: mupdf.fz_color_params,
    ) -> None:
        self._count += 1
        area = mupdf.ll_fz_bound_text(text, stroke, ctm)
        left, top, right, bottom = self._bounds.T
        touched = np.flatnonzero((left < area.x1) & (right > area.x0) & (top < area.y1) & (bottom > area.y0))
        if not touched.size or self._drawn == MOST_DRAWN:
            return
        self._drawn += 1
        mupdf.ll_fz_fill_text(self._draw.m_internal, text, ctm, self._grey.m_internal, [0.0], 1.0, params)
        self._note(text, ctm, [self._places[number] for number in touched])
        rows = slice(max(0, math.floor(area.y0) - 2), max(0, math.ceil(area.y1) + 2))
        self._pixels[rows, max(0, math.floor(area.x0) - 2) : max(0, math.ceil(area.x1) + 2)] = 255

    def _note(self, text: mupdf.fz_text, ctm: mupdf.fz_matrix, touched: Sequence[_Place]) -> None:
        glyphs = _origins(text, ctm)
        for place in touched:
            ink: Share = (255 - self._pixels[place.slices]).astype(np.float32) / np.float32(255)
            if ink.size and float(ink.max()) > NO_INK:
                here = [
                    (chr(code), y)
                    for code, x, y in glyphs
                    if place.left - 1 <= x < place.right - 1 and place.top <= y <= place.bottom
                ]
                letters = _letters("".join(letter for letter, _ in here))
                place.drawn.append(_Drawn(self._count, letters, here[0][1] if here else 0.0, ink))


def _origins(text: mupdf.fz_text, ctm: mupdf.fz_matrix) -> list[tuple[int, float, float]]:
    """The character of each glyph and the pixel where it begins."""
    origins: list[tuple[int, float, float]] = []
    span = text.head
    while span:
        held = mupdf.FzTextSpan(span)
        for number in range(held.m_internal.len):
            item = held.items(number)
            if item.ucs > 0:
                x, y = item.x * ctm.a + item.y * ctm.c + ctm.e, item.x * ctm.b + item.y * ctm.d + ctm.f
                origins.append((item.ucs, x, y))
        span = span.next
    return origins


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def shown(page: pymupdf.Page, words: Sequence[Word]) -> list[bool]:
    """Whether a reader of ``page`` sees each of ``words``.

    Words whose glyphs are not drawn as text, such as those of some Type 3 fonts, count as seen.
    """
    scale = min(SCALE, math.sqrt(MOST_PIXELS / max(1.0, page.rect.width * page.rect.height)))
    matrix = pymupdf.Matrix(scale, scale)
    pixmap = page.get_pixmap(matrix=matrix, colorspace=pymupdf.csRGB, alpha=False)
    width, height = pixmap.width, pixmap.height
    pixels = np.frombuffer(pixmap.samples, np.uint8).reshape(height, width, 3)
    places = [_place(word.text, word.box, width, height) for word in words]
    glyphs = _Glyphs(places, width, height)
    everything = mupdf.FzRect(mupdf.FzRect.Fixed_INFINITE)
    drawing = page.get_displaylist()
    mupdf.fz_run_display_list(
        drawing.this, glyphs, mupdf.FzMatrix(scale, 0, 0, scale, 0, 0), everything, mupdf.FzCookie()
    )
    glyphs.close()
    return [_is_shown(place, pixels[place.slices]) for place in places]


def _place(text: str, box: Box, width: int, height: int) -> _Place:
    left, top = math.floor(box.x0 * width), math.floor(box.y0 * height)
    return _Place(_letters(text), left, top, math.ceil(box.x1 * width), math.ceil(box.y1 * height))


def _is_shown(place: _Place, pixels: Pixels) -> bool:
    own = [drawn for drawn in place.drawn if drawn.letters == place.text] or place.drawn
    if not own:
        return True
    # Where two lines with the same word run into each other, this is the word that stands right here.
    off = [abs(drawn.baseline - place.bottom + DESCENT * (place.bottom - place.top)) for drawn in own]
    own = [drawn for drawn, away in zip(own, off, strict=True) if away <= min(off) + 1]
    mine, others = _union(own, pixels), _union([drawn for drawn in place.drawn if drawn not in own], pixels)
    most = float(mine.max())
    ink, free = mine > INK * most, others <= NO_INK
    alone, ground = ink & free, (mine <= NO_INK * most) & free
    if np.count_nonzero(alone) < max(LEAST_PIXELS, LEAST_OWN * np.count_nonzero(ink)):
        return max(drawn.number for drawn in own) == max(drawn.number for drawn in place.drawn)
    if np.count_nonzero(ground) < LEAST_PIXELS:
        return True
    # Of letters in outline alone the rim differs from the ground.
    rim = (mine > NO_INK * most) & (mine <= INK * most) & free
    return _differ(pixels[alone], pixels[ground]) or _differ(pixels[rim], pixels[ground])


def _differ(inked: Pixels, ground: Pixels) -> bool:
    if len(inked) < LEAST_PIXELS:
        return False
    contrast = np.abs(inked.mean(axis=0) - ground.mean(axis=0))
    spread = np.sqrt((inked.var(axis=0) + ground.var(axis=0)) / 2)
    return bool(((contrast >= LEAST_CONTRAST) & (contrast >= LEAST_CLEAR * spread)).any())


def _union(pieces: Sequence[_Drawn], like: Pixels) -> Share:
    whole = np.zeros(like.shape[:2], np.float32)
    for drawn in pieces:
        np.maximum(whole, drawn.ink, out=whole)
    return whole
