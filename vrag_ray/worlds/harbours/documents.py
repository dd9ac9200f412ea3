"""The documents of a harbour: a yearbook (prose, a table, a chart), slides, a scanned sheet, a photographed chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pymupdf

from vrag_ray.drawing.canvas import INK, MUTED, NAVY, SAND, Area, Canvas, Face, Style, finished
from vrag_ray.drawing.charts import bar_chart, column_chart
from vrag_ray.drawing.photographs import SHEET, Shot, photographed, scanned
from vrag_ray.worlds.harbours.facts import QUARTERS, YEARS, Harbour, Quantity
from vrag_ray.worlds.harbours.wording import WORDINGS

TEXT_PAGE, TABLE_PAGE, CHART_PAGE = 1, 2, 3
FACTS_SLIDE = 2
_MARGIN = 56.0
_SLIDE = (720, 405)
_BODY = Style(12)


def yearbook_name(harbour: Harbour) -> str:
    return f"{harbour.slug}-yearbook.pdf"


def slides_name(harbour: Harbour) -> str:
    return f"{harbour.slug}-slides.pdf"


def sheet_name(harbour: Harbour) -> str:
    return f"{harbour.slug}-crane-sheet.pdf"


def photo_name(harbour: Harbour) -> str:
    return f"{harbour.slug}-electricity.jpg"


def documents_of(harbour: Harbour, seed: int) -> Mapping[str, Callable[[], bytes]]:
    """What makes each, by its file name."""
    return {
        yearbook_name(harbour): lambda: _yearbook(harbour),
        slides_name(harbour): lambda: _slides(harbour),
        sheet_name(harbour): lambda: scanned(
            lambda canvas: _sheet(canvas, harbour), f"{harbour.name}, crane sheet", seed=seed
        ),
        photo_name(harbour): lambda: photographed(lambda canvas: _electricity(canvas, harbour), _shot(seed)),
    }


def _yearbook(harbour: Harbour) -> bytes:
    wording = WORDINGS[harbour.language]
    document = pymupdf.open()
    title = wording.title.format(name=harbour.name)
    for heading, draw in (
        (title, _prose),
        (wording.figures.format(name=harbour.name), _table),
        (wording.lifts.format(name=harbour.name), _lifts),
    ):
        canvas = Canvas(document.new_page(width=SHEET[0], height=SHEET[1]))
        canvas.text(_MARGIN, 96, heading, Style(19, Face.BOLD, NAVY))
        canvas.rect(Area(_MARGIN, 108, 46, 3), fill=SAND)
        draw(canvas, harbour)
        canvas.finish()
    return finished(document, title)


def _prose(canvas: Canvas, harbour: Harbour) -> None:
    said = WORDINGS[harbour.language].opened.format(name=harbour.name, opened=harbour.opened)
    canvas.paragraph(_MARGIN, 140, canvas.width - 2 * _MARGIN, said, _BODY)


def _table(canvas: Canvas, harbour: Harbour) -> None:
    wording = WORDINGS[harbour.language]
    rows = [(wording.corner, *(str(year) for year in YEARS))]
    rows += [
        (wording.quantities[quantity], *(f"{value:,}" for value in harbour.table[quantity])) for quantity in Quantity
    ]
    canvas.table(_MARGIN, 140, (240.0, 78.0, 78.0, 78.0), rows, Style(11), total=False)


def _lifts(canvas: Canvas, harbour: Harbour) -> None:
    column_chart(canvas, Area(_MARGIN, 140, 460, 280), dict(zip(QUARTERS, map(float, harbour.lifts), strict=True)))


def _slides(harbour: Harbour) -> bytes:
    document = pymupdf.open()
    canvas = Canvas(document.new_page(width=_SLIDE[0], height=_SLIDE[1]))
    canvas.rect(Area(0, 0, *_SLIDE), fill=NAVY)
    canvas.text(50, 200, f"{harbour.name} Harbour", Style(36, Face.BOLD, SAND))
    canvas.finish()
    canvas = Canvas(document.new_page(width=_SLIDE[0], height=_SLIDE[1]))
    canvas.text(50, 70, f"{harbour.name} in brief", Style(26, Face.BOLD, NAVY))
    bullets = (f"The tug of {harbour.name} is the {harbour.tug}", f"Opened in {harbour.opened}", "Open day and night")
    canvas.bullets(50, 110, 600, bullets, Style(18))
    canvas.finish()
    return finished(document, f"{harbour.name} Harbour, slides")


def _sheet(canvas: Canvas, harbour: Harbour) -> None:
    canvas.text(60, 96, "CRANE SHEET", Style(21, Face.BOLD, INK))
    canvas.text(60, 130, f"Harbour of {harbour.name}", Style(14, colour=INK))
    canvas.text(60, 156, f"Crane of {harbour.name} inspected on {harbour.inspected}", Style(14, colour=INK))
    canvas.line((60, 172), (535, 172), INK, 1.2)
    said = (
        f"Load test: the crane of {harbour.name} lifted {harbour.load_t} tonnes and held them for ten minutes. Passed."
    )
    canvas.paragraph(60, 190, 470, said, Style(13.5))


def _electricity(canvas: Canvas, harbour: Harbour) -> None:
    canvas.rect(Area(0, 0, canvas.width, canvas.height), fill=(0.985, 0.98, 0.965))
    canvas.text(44, 58, f"{harbour.name}: electricity in 2024", Style(25, Face.BOLD, NAVY))
    canvas.text(44, 82, "Wall chart of the control room", Style(13.5, colour=MUTED))
    values = {name: float(value) for name, value in harbour.electricity.items()}
    bar_chart(canvas, Area(44, 104, 540, 350), values, unit="MWh", size=17.0)


def _shot(seed: int) -> Shot:
    """Hung and lit a little differently for each seed."""
    shift = (seed % 7) / 200
    corners = ((0.05, 0.06 + shift), (0.945, 0.05), (0.955, 0.94), (0.045 + shift, 0.93))
    return Shot(corners, (1.03, 0.88 + shift), (143 - seed % 30, 138, 129), seed)
