"""Pictures that only OCR can read: two photographed wall charts and a scanned maintenance sheet."""

from __future__ import annotations

from vrag_ray.drawing.canvas import INK, MUTED, NAVY, RULE, SAND, TEAL, Area, Canvas, Face, Style
from vrag_ray.drawing.charts import bar_chart, column_chart
from vrag_ray.drawing.photographs import Shot, photographed, scanned
from vrag_ray.samples.demo import facts

HEAT_SHOT = Shot(((0.055, 0.085), (0.945, 0.05), (0.965, 0.94), (0.04, 0.925)), (1.03, 0.86), (143, 138, 129), 7)
FERRY_SHOT = Shot(((0.05, 0.05), (0.95, 0.075), (0.935, 0.945), (0.065, 0.955)), (0.86, 1.02), (110, 122, 128), 11)


def heat_photo() -> bytes:
    return photographed(_draw_heat, HEAT_SHOT)


def ferry_photo() -> bytes:
    return photographed(_draw_ferry, FERRY_SHOT)


def scanned_sheet() -> bytes:
    """A PDF of one page that is a picture: it has no text layer."""
    return scanned(_draw_sheet, "Crane 2 maintenance sheet (scan)")


def _draw_heat(canvas: Canvas) -> None:
    canvas.rect(Area(0, 0, canvas.width, canvas.height), fill=(0.985, 0.98, 0.965))
    canvas.text(44, 58, "Waste heat recovered in 2024", Style(25, Face.BOLD, NAVY))
    canvas.text(44, 82, "Northmere Harbour, control room wall chart", Style(13.5, colour=MUTED))
    canvas.rect(Area(44, 94, 60, 4), fill=SAND)
    bar_chart(canvas, Area(44, 116, 540, 330), facts.HEAT_RECOVERED_MWH, unit="MWh", size=17.0)


def _draw_ferry(canvas: Canvas) -> None:
    canvas.rect(Area(0, 0, canvas.width, canvas.height), fill=(0.985, 0.985, 0.98))
    canvas.text(44, 56, "Charging the electric ferry", Style(25, Face.BOLD, NAVY))
    canvas.text(44, 80, "Mean minutes of charging for a crossing, by day of the week", Style(14, colour=MUTED))
    canvas.rect(Area(44, 92, 60, 4), fill=SAND)
    column_chart(canvas, Area(36, 112, 570, 320), facts.FERRY_CHARGE_MIN, size=15.0, colour=TEAL, digits=1)


def _draw_sheet(canvas: Canvas) -> None:
    mono = Style(11.5, Face.MONO)
    canvas.text(60, 96, "MAINTENANCE SHEET", Style(21, Face.BOLD, INK))
    canvas.text(60, 124, "Harbour crane 2, container quay", Style(13, colour=INK))
    canvas.text(60, 144, "Yearly inspection, 17 September 2024", Style(13, colour=INK))
    canvas.line((60, 162), (535, 162), INK, 1.2)
    for x, heading in zip((60, 215, 388), ("Part", "Finding", "Action"), strict=True):
        canvas.text(x, 188, heading, Style(12, Face.BOLD, INK))
    y = 200.0
    for part, finding, action in facts.CRANE_SCAN_ROWS:
        canvas.line((60, y), (535, y), RULE)
        for x, cell in zip((60, 215, 388), (part, finding, action), strict=True):
            canvas.text(x, y + 21, cell, Style(11.5))
        y += 34
    canvas.line((60, y), (535, y), INK, 1.2)
    y = canvas.paragraph(
        60,
        y + 24,
        470,
        "Load test: 42 tonnes lifted and held for ten minutes, sinking 3 mm. Result: passed. The crane was out of "
        "service from 07:30 to 15:45. Next inspection due in September 2025.",
        Style(12.5),
    )
    canvas.text(60, y + 44, "Stamp: HARBOUR WORKSHOP", mono)
    canvas.rect(Area(52, y + 24, 190, 34), stroke=INK)
