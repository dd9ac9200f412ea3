"""Drawing on a PDF page: text that wraps, tables, and shapes, in points from the top left.

Latin-1 is written in the standard fonts, so that nothing is embedded and the same bytes come out on every machine. What
they cannot write is written in the font that PyMuPDF carries for Chinese, and the glyphs used are embedded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, lru_cache
from typing import NamedTuple

import pymupdf

from vrag_ray.drawing.line_breaks import broken

Box = tuple[float, float, float, float]
Colour = tuple[float, float, float]
Point = tuple[float, float]

INK: Colour = (0.13, 0.17, 0.21)
MUTED: Colour = (0.42, 0.47, 0.52)
NAVY: Colour = (0.06, 0.19, 0.29)
TEAL: Colour = (0.09, 0.47, 0.55)
SAND: Colour = (0.89, 0.63, 0.22)
CORAL: Colour = (0.80, 0.29, 0.29)
MIST: Colour = (0.93, 0.95, 0.96)
RULE: Colour = (0.80, 0.84, 0.87)
WHITE: Colour = (1.0, 1.0, 1.0)
_ASCENT, _DESCENT, _AIR = 1.0, 0.28, 0.15
"""How far a line reaches above and below its baseline, and what is left free at its ends, as multiples of its size."""
_CJK_ON_PAGE = "cjk"


class Face(StrEnum):
    """The names PyMuPDF gives to its fonts; ``CJK`` (Droid Sans Fallback) stands in where the others lack a glyph."""

    REGULAR = "helv"
    BOLD = "hebo"
    ITALIC = "heit"
    MONO = "cour"
    CJK = "china-s"


class Align(StrEnum):
    LEFT = "left"
    CENTRE = "centre"
    RIGHT = "right"


class Area(NamedTuple):
    """A rectangle by its top left corner and size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def corners(self) -> tuple[Point, Point, Point, Point]:
        """Clockwise from the top left."""
        return (self.x, self.y), (self.right, self.y), (self.right, self.bottom), (self.x, self.bottom)

    def on(self, width: float, height: float) -> Box:
        """(x0, y0, x1, y1) in fractions of a page of that size."""
        return self.x / width, self.y / height, self.right / width, self.bottom / height


@dataclass(frozen=True, slots=True)
class Style:
    """How text looks; ``leading`` is the distance of baselines as a multiple of ``size``."""

    size: float = 10.0
    face: Face = Face.REGULAR
    colour: Colour = INK
    leading: float = 1.45

    def with_(self, *, face: Face | None = None, colour: Colour | None = None) -> Style:
        return replace(self, face=face or self.face, colour=colour or self.colour)

    def face_of(self, text: str) -> Face:
        """The face that can write ``text``."""
        return self.face if text.isascii() or _is_latin(text) else Face.CJK


class Canvas:
    """One page. Shapes stay in order and all text lies above all shapes; ``finish`` writes them."""

    def __init__(self, page: pymupdf.Page) -> None:
        self._page = page
        self._shape = page.new_shape()
        self.width = float(page.rect.width)
        self.height = float(page.rect.height)

    def finish(self) -> None:
        self._shape.commit()

    def text(self, x: float, y: float, text: str, style: Style, align: Align = Align.LEFT) -> Area:
        """One line with its baseline at ``y``; returns where it stands, with a little air."""
        shift = {Align.LEFT: 0.0, Align.CENTRE: 0.5, Align.RIGHT: 1.0}[align]
        width = measure(text, style)
        left = x - shift * width
        face = style.face_of(text)
        if face is Face.CJK:
            self._write_cjk(left, y, text, style)
        else:
            self._shape.insert_text((left, y), text, fontname=face.value, fontsize=style.size, color=style.colour)
        air = style.size * _AIR
        return Area(left - air, y - style.size * _ASCENT, width + 2 * air, style.size * (_ASCENT + _DESCENT))

    def _write_cjk(self, x: float, y: float, text: str, style: Style) -> None:
        if not any(font[4] == _CJK_ON_PAGE for font in self._page.get_fonts()):
            self._page.insert_font(fontname=_CJK_ON_PAGE, fontbuffer=_cjk_font().buffer)
        self._shape.insert_text(
            (x, y),
            text,
            fontname=_CJK_ON_PAGE,
            fontsize=style.size,
            color=style.colour,
            fill=style.colour,
            # The font has one weight: a thin line around each glyph makes it bold.
            render_mode=2 if style.face is Face.BOLD else 0,
            border_width=0.03,
        )

    def paragraph(self, x: float, y: float, width: float, text: str, style: Style) -> float:
        """Wrapped lines from the top edge ``y``; returns the bottom edge."""
        for line in wrap(text, width, style):
            self.text(x, y + style.size, line, style)
            y += style.size * style.leading
        return y

    def bullets(self, x: float, y: float, width: float, items: Sequence[str], style: Style) -> float:
        for item in items:
            self.rect(Area(x, y + style.size * 0.42, style.size * 0.34, style.size * 0.34), fill=SAND)
            y = self.paragraph(x + style.size * 1.3, y, width - style.size * 1.3, item, style) + style.size * 0.55
        return y

    def rect(self, area: Area, *, fill: Colour | None = None, stroke: Colour | None = None) -> None:
        self._shape.draw_rect(pymupdf.Rect(area.x, area.y, area.right, area.bottom))
        self._shape.finish(fill=fill, color=stroke, width=0.7)

    def line(self, start: Point, end: Point, colour: Colour = RULE, width: float = 0.7) -> None:
        self._shape.draw_line(start, end)
        self._shape.finish(color=colour, width=width)

    def polyline(self, points: Sequence[Point], colour: Colour, width: float = 1.6) -> None:
        self._shape.draw_polyline([pymupdf.Point(*point) for point in points])
        self._shape.finish(color=colour, width=width, closePath=False, lineJoin=1, lineCap=1)

    def polygon(self, points: Sequence[Point], fill: Colour) -> None:
        self._shape.draw_polyline([pymupdf.Point(*point) for point in points])
        self._shape.finish(fill=fill, color=None, closePath=True)

    def circle(self, centre: Point, radius: float, fill: Colour) -> None:
        self._shape.draw_circle(pymupdf.Point(*centre), radius)
        self._shape.finish(fill=fill, color=None)

    def table(
        self, x: float, y: float, widths: Sequence[float], rows: Sequence[Sequence[str]], style: Style, *, total: bool
    ) -> float:
        """A table with a header row, the first column to the left and the others to the right; returns its bottom."""
        right = x + sum(widths)
        areas = table_cells(x, y, widths, len(rows), style)
        for index, (row, row_areas) in enumerate(zip(rows, areas, strict=True)):
            y, height = row_areas[0].y, row_areas[0].height
            header, last = index == 0, total and index == len(rows) - 1
            if header:
                self.rect(Area(x, y, right - x, height), fill=NAVY)
            elif last:
                self.line((x, y), (right, y), NAVY, 1.0)
            elif index % 2 == 0:
                self.rect(Area(x, y, right - x, height), fill=MIST)
            face = Face.BOLD if header or last else style.face
            cell_style = style.with_(face=face, colour=WHITE if header else style.colour)
            for column, (cell, area) in enumerate(zip(row, row_areas, strict=True)):
                align = Align.LEFT if column == 0 else Align.RIGHT
                at = area.x + 8 if column == 0 else area.right - 8
                self.text(at, y + height * 0.66, cell, cell_style, align)
        bottom = areas[-1][0].bottom
        self.line((x, bottom), (right, bottom), NAVY, 0.7)
        return bottom


def table_cells(x: float, y: float, widths: Sequence[float], rows: int, style: Style) -> list[list[Area]]:
    """Where ``Canvas.table`` puts its cells, row by row."""
    height = style.size * 2.1
    areas: list[list[Area]] = []
    for _ in range(rows):
        left = x
        areas.append([])
        for width in widths:
            areas[-1].append(Area(left, y, width, height))
            left += width
        y += height
    return areas


def around(*areas: Area) -> Area:
    """The smallest that holds all."""
    x, y = min(area.x for area in areas), min(area.y for area in areas)
    return Area(x, y, max(area.right for area in areas) - x, max(area.bottom for area in areas) - y)


def finished(document: pymupdf.Document, title: str) -> bytes:
    """The bytes of ``document``, the same on every run: no random id, no clock in the metadata."""
    document.set_metadata({"title": title, "producer": "vrag_ray demo", "creationDate": "D:20250301090000Z"})
    if any(font[4] == _CJK_ON_PAGE for page in document.pages() for font in page.get_fonts()):
        document.subset_fonts()
    data: bytes = document.tobytes(garbage=3, deflate=True, no_new_id=True)
    document.close()
    return data


@lru_cache(maxsize=10_000)
def measure(text: str, style: Style) -> float:
    """Width of one line in points."""
    face = style.face_of(text)
    if face is Face.CJK:
        return float(_cjk_font().text_length(text, style.size))
    return float(pymupdf.get_text_length(text, fontname=face.value, fontsize=style.size))


def wrap(text: str, width: float, style: Style) -> list[str]:
    """Break at spaces and between Chinese characters so that each line fits ``width``; a longer word stands alone."""
    return broken(text, lambda line: measure(line, style) <= width)


@cache
def _cjk_font() -> pymupdf.Font:
    return pymupdf.Font(Face.CJK.value)


def _is_latin(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True
