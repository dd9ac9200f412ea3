"""Where a harbour's answers stand: its pages are drawn once more, in points, and nothing is rendered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pymupdf

from vrag_ray.drawing.canvas import Box, Canvas
from vrag_ray.drawing.photographs import CHART, SHEET, in_photograph, in_scan
from vrag_ray.questions.examples import GoldPage
from vrag_ray.samples.harbours.clip import seconds_of
from vrag_ray.samples.harbours.documents import (
    CHART_PAGE,
    FACTS_SLIDE,
    TABLE_PAGE,
    clip_name,
    photo_name,
    sheet_name,
    slides_name,
    yearbook_name,
)
from vrag_ray.samples.harbours.facts import Harbour, Quantity
from vrag_ray.samples.harbours.pages import (
    SLIDE,
    SheetLine,
    draw_electricity,
    draw_facts_slide,
    draw_lifts,
    draw_sheet,
    draw_table,
    shot_of,
)

T = TypeVar("T")


class Places:
    """The gold of a harbour's questions."""

    def __init__(self, harbour: Harbour) -> None:
        self._harbour = harbour
        self._cells = self._areas(draw_table, SHEET)
        self._columns = self._areas(draw_lifts, SHEET)
        self._bars = self._areas(draw_electricity, CHART)
        self._lines = self._areas(draw_sheet, SHEET)
        self._bullet = self._areas(draw_facts_slide, SLIDE)

    def cell(self, quantity: Quantity, year: int) -> GoldPage:
        return _gold(yearbook_name(self._harbour), TABLE_PAGE, self._cells[quantity, year].on(*SHEET))

    def lifts(self, quarter: str) -> GoldPage:
        return _gold(yearbook_name(self._harbour), CHART_PAGE, self._columns[quarter].on(*SHEET))

    def electricity(self, consumer: str) -> GoldPage:
        box = in_photograph(self._bars[consumer], shot_of(self._harbour))
        return _gold(photo_name(self._harbour), 1, box)

    def sheet(self, line: SheetLine) -> GoldPage:
        return _gold(sheet_name(self._harbour), 1, in_scan(self._lines[line]))

    def tug(self) -> GoldPage:
        return _gold(slides_name(self._harbour), FACTS_SLIDE, self._bullet.on(*SLIDE))

    def call(self, scene: int) -> GoldPage:
        start, end = seconds_of(scene)
        return GoldPage(file_name=clip_name(self._harbour), t_start=start, t_end=end)

    def _areas(self, draw: Callable[[Canvas, Harbour], T], size: tuple[int, int]) -> T:
        with pymupdf.open() as document:
            return draw(Canvas(document.new_page(width=size[0], height=size[1])), self._harbour)


def _gold(name: str, page: int, box: Box) -> GoldPage:
    x0, y0, x1, y1 = (round(value, 4) for value in box)
    return GoldPage(file_name=name, page=page, box=(x0, y0, x1, y1))
