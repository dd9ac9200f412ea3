"""Drawing on a PDF page: text that wraps, tables, and shapes, in points from the top left.

Only the standard Latin-1 fonts are used, so that nothing is embedded and the same bytes come out on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import pymupdf

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


class Face(StrEnum):
    """The names PyMuPDF gives to the standard fonts."""

    REGULAR = "helv"
    BOLD = "hebo"
    ITALIC = "heit"
    MONO = "cour"


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


@dataclass(frozen=True, slots=True)
class Style:
    """How text looks; ``leading`` is the distance of baselines as a multiple of ``size``."""

    size: float = 10.0
    face: Face = Face.REGULAR
    colour: Colour = INK
    leading: float = 1.45

    def with_(self, *, size: float | None = None, face: Face | None = None, colour: Colour | None = None) -> Style:
        return replace(self, size=size or self.size, face=face or self.face, colour=colour or self.colour)


class Canvas:
    """One page. Shapes are kept in order and all text lies above all shapes; ``finish`` writes them."""

    def __init__(self, page: pymupdf.Page) -> None:
        self._shape = page.new_shape()
        self.width = float(page.rect.width)
        self.height = float(page.rect.height)

    def finish(self) -> None:
        self._shape.commit()

    def text(self, x: float, y: float, text: str, style: Style, align: Align = Align.LEFT) -> None:
        """One line with its baseline at ``y``."""
        shift = {Align.LEFT: 0.0, Align.CENTRE: 0.5, Align.RIGHT: 1.0}[align]
        self._shape.insert_text(
            (x - shift * measure(text, style), y),
            text,
            fontname=style.face.value,
            fontsize=style.size,
            color=style.colour,
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
        height = style.size * 2.1
        right = x + sum(widths)
        for index, row in enumerate(rows):
            header, last = index == 0, total and index == len(rows) - 1
            if header:
                self.rect(Area(x, y, right - x, height), fill=NAVY)
            elif last:
                self.line((x, y), (right, y), NAVY, 1.0)
            elif index % 2 == 0:
                self.rect(Area(x, y, right - x, height), fill=MIST)
            face = Face.BOLD if header or last else style.face
            cell_style = style.with_(face=face, colour=WHITE if header else style.colour)
            left = x
            for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
                align = Align.LEFT if column == 0 else Align.RIGHT
                at = left + 8 if column == 0 else left + width - 8
                self.text(at, y + height * 0.66, cell, cell_style, align)
                left += width
            y += height
        self.line((x, y), (right, y), NAVY, 0.7)
        return y


def finished(document: pymupdf.Document, title: str) -> bytes:
    """The bytes of ``document``, the same on every run: no random id, no clock in the metadata."""
    document.set_metadata({"title": title, "producer": "vrag_ray demo", "creationDate": "D:20250301090000Z"})
    data: bytes = document.tobytes(garbage=3, deflate=True, no_new_id=True)
    document.close()
    return data


@lru_cache(maxsize=10_000)
def measure(text: str, style: Style) -> float:
    """Width of one line in points."""
    return float(pymupdf.get_text_length(text, fontname=style.face.value, fontsize=style.size))


def wrap(text: str, width: float, style: Style) -> list[str]:
    """Break at spaces so that each line fits ``width``; a longer word stands alone."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and measure(longer, style) > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line else lines
