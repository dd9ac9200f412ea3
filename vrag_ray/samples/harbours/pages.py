"""What stands on a harbour's pages. Each function draws one and returns where its answers stand, in points."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from vrag_ray.drawing.canvas import INK, MUTED, NAVY, SAND, Area, Canvas, Face, Style, measure, table_cells
from vrag_ray.drawing.charts import bar_chart, column_chart
from vrag_ray.drawing.photographs import Shot
from vrag_ray.samples.harbours.facts import QUARTERS, YEARS, Harbour, Quantity
from vrag_ray.samples.harbours.wording import WORDINGS

MARGIN = 56.0
SLIDE = (720, 405)
_BODY = Style(12)
_BULLET = Style(18)


class SheetLine(StrEnum):
    """A line of the crane sheet that a question is about."""

    INSPECTED = "inspected"
    LOAD = "load"


def draw_prose(canvas: Canvas, harbour: Harbour) -> None:
    sentence = WORDINGS[harbour.language].opened.format(name=harbour.name, opened=harbour.opened)
    canvas.paragraph(MARGIN, 140, canvas.width - 2 * MARGIN, sentence, _BODY)


def draw_table(canvas: Canvas, harbour: Harbour) -> Mapping[tuple[Quantity, int], Area]:
    """The cells of the numbers."""
    wording = WORDINGS[harbour.language]
    rows = [(wording.corner, *(str(year) for year in YEARS))]
    rows += [
        (wording.quantities[quantity], *(f"{value:,}" for value in harbour.table[quantity])) for quantity in Quantity
    ]
    widths, style = (240.0, 78.0, 78.0, 78.0), Style(11)
    canvas.table(MARGIN, 140, widths, rows, style, total=False)
    _, *of_quantities = table_cells(MARGIN, 140, widths, len(rows), style)
    return {
        (quantity, year): cell
        for quantity, (_, *cells) in zip(Quantity, of_quantities, strict=True)
        for year, cell in zip(YEARS, cells, strict=True)
    }


def draw_lifts(canvas: Canvas, harbour: Harbour) -> Mapping[str, Area]:
    """The columns of ``QUARTERS``."""
    values = dict(zip(QUARTERS, map(float, harbour.lifts), strict=True))
    return column_chart(canvas, Area(MARGIN, 140, 460, 280), values)


def draw_title_slide(canvas: Canvas, harbour: Harbour) -> None:
    canvas.rect(Area(0, 0, *SLIDE), fill=NAVY)
    canvas.text(50, 200, f"{harbour.name} Harbour", Style(36, Face.BOLD, SAND))


def draw_facts_slide(canvas: Canvas, harbour: Harbour) -> Area:
    """The bullet of the tug."""
    canvas.text(50, 70, f"{harbour.name} in brief", Style(26, Face.BOLD, NAVY))
    tug = f"The tug of {harbour.name} is the {harbour.tug}"
    below = canvas.bullets(50, 110, 600, [tug], _BULLET)
    canvas.bullets(50, below, 600, [f"Opened in {harbour.opened}", "Open day and night"], _BULLET)
    return Area(50, 110, _BULLET.size * 1.5 + measure(tug, _BULLET), _BULLET.size * _BULLET.leading)


def draw_sheet(canvas: Canvas, harbour: Harbour) -> Mapping[SheetLine, Area]:
    canvas.text(60, 96, "CRANE SHEET", Style(21, Face.BOLD, INK))
    canvas.text(60, 130, f"Harbour of {harbour.name}", Style(14, colour=INK))
    line = f"Crane of {harbour.name} inspected on {harbour.inspected}"
    inspected = canvas.text(60, 156, line, Style(14, colour=INK))
    canvas.line((60, 172), (535, 172), INK, 1.2)
    line = f"Load test: the crane of {harbour.name} lifted {harbour.load_t} tonnes"
    load = canvas.text(60, 190 + 13.5, line, Style(13.5))
    canvas.text(60, 190 + 13.5 * 2.45, "and held them for ten minutes. Passed.", Style(13.5))
    return {SheetLine.INSPECTED: inspected, SheetLine.LOAD: load}


def draw_electricity(canvas: Canvas, harbour: Harbour) -> Mapping[str, Area]:
    """The bars of ``CONSUMERS``."""
    canvas.rect(Area(0, 0, canvas.width, canvas.height), fill=(0.985, 0.98, 0.965))
    canvas.text(44, 58, f"{harbour.name}: electricity in 2024", Style(25, Face.BOLD, NAVY))
    canvas.text(44, 82, "Wall chart of the control room", Style(13.5, colour=MUTED))
    values = {name: float(value) for name, value in harbour.electricity.items()}
    return bar_chart(canvas, Area(44, 104, 540, 350), values, unit="MWh", size=17.0)


def shot_of(harbour: Harbour) -> Shot:
    """Hung and lit a little differently for each harbour."""
    shift = (harbour.look % 7) / 200
    corners = ((0.05, 0.06 + shift), (0.945, 0.05), (0.955, 0.94), (0.045 + shift, 0.93))
    return Shot(corners, (1.03, 0.88 + shift), (143 - harbour.look % 30, 138, 129), harbour.look)
