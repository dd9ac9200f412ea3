"""The slide deck: six landscape slides for a council, with charts and few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pymupdf

from vrag_ray.drawing.canvas import (
    CORAL,
    INK,
    MIST,
    MUTED,
    NAVY,
    SAND,
    TEAL,
    WHITE,
    Align,
    Area,
    Canvas,
    Face,
    Style,
    finished,
)
from vrag_ray.drawing.charts import bar_chart, column_chart
from vrag_ray.samples.demo import facts
from vrag_ray.samples.demo.scenery import draw_turbine, draw_waves

WIDTH, HEIGHT, MARGIN = 960.0, 540.0, 64.0
BODY = Style(22)
TITLE = "Northmere Harbour: the plan to 2030"


def write_slides() -> bytes:
    document = pymupdf.open()
    slides: Sequence[tuple[str, Callable[[Canvas], None]]] = (
        ("The plan to 2030", _title),
        ("Where we stand", _stand),
        ("What we will build", _build),
        ("What it costs", _cost),
        ("What could go wrong", _risks),
        ("What the council decides today", _decision),
    )
    for number, (heading, draw) in enumerate(slides, start=1):
        canvas = Canvas(document.new_page(width=WIDTH, height=HEIGHT))
        if number > 1:
            canvas.rect(Area(0, 0, 14, HEIGHT), fill=NAVY)
            canvas.text(MARGIN, 84, heading, Style(36, Face.BOLD, NAVY))
            canvas.rect(Area(MARGIN, 100, 64, 4), fill=SAND)
            canvas.text(WIDTH - MARGIN, HEIGHT - 26, f"{number} / {len(slides)}", Style(12, colour=MUTED), Align.RIGHT)
            canvas.text(MARGIN, HEIGHT - 26, TITLE, Style(12, colour=MUTED))
        draw(canvas)
        canvas.finish()
    document.set_toc([[1, heading, number] for number, (heading, _) in enumerate(slides, start=1)])
    return finished(document, TITLE)


def _title(canvas: Canvas) -> None:
    canvas.rect(Area(0, 0, WIDTH, HEIGHT), fill=NAVY)
    for x, size in ((640.0, 210.0), (752.0, 262.0), (872.0, 180.0)):
        draw_turbine(canvas, (x, 480), size, angle=x)
    draw_waves(canvas, Area(0, 466, WIDTH, 74), phase=1.0)
    canvas.text(MARGIN, 170, "The plan to 2030", Style(54, Face.BOLD, WHITE))
    canvas.rect(Area(MARGIN, 192, 90, 5), fill=SAND)
    canvas.text(MARGIN, 240, "Northmere Harbour, energy desk", Style(22, colour=WHITE))
    canvas.text(MARGIN, 272, "Briefing of the harbour council", Style(22, colour=WHITE))


def _stand(canvas: Canvas) -> None:
    produced, demand = facts.total(facts.PRODUCTION_MWH)[-1], sum(facts.DEMAND_2024_MWH)
    tiles = (
        (f"{produced / demand * 100:.0f} %", "of a year's demand is", "generated in the harbour", TEAL),
        ("41 days", "of the year the turbines", "ran at full power", NAVY),
        ("133 ships", "lay at berth with their", "engines running", CORAL),
    )
    for index, (figure, first, second, colour) in enumerate(tiles):
        tile = Area(MARGIN + index * 284, 150, 264, 190)
        canvas.rect(tile, fill=MIST)
        canvas.rect(Area(tile.x, tile.y, 6, tile.height), fill=colour)
        canvas.text(tile.x + 30, tile.y + 78, figure, Style(42, Face.BOLD, colour))
        canvas.text(tile.x + 30, tile.y + 122, first, Style(18))
        canvas.text(tile.x + 30, tile.y + 148, second, Style(18))
    canvas.paragraph(
        MARGIN,
        376,
        830,
        "Over the year the sum is right. On calm summer evenings it is not: that is what we plan for.",
        BODY,
    )


def _build(canvas: Canvas) -> None:
    rows = (
        ("Project", "Size", "Start", "In use"),
        ("Second battery", "10 MWh", "2025", "2026"),
        ("Quay cables for containers", "8 MW", "2026", "2027"),
        ("Wind turbine T7", "3.4 MW", "2027", "2029"),
        ("Heat network to the old town", "5 km", "2028", "2030"),
    )
    canvas.table(MARGIN, 146, (430, 134, 134, 134), rows, Style(20), total=False)
    canvas.paragraph(MARGIN, 390, 830, "The order matters: turbine T7 pays only when the second battery stands.", BODY)


def _cost(canvas: Canvas) -> None:
    column_chart(canvas, Area(MARGIN, 140, 480, 330), facts.INVESTMENT_2030_MEUR, size=14.0, digits=1)
    x = 600.0
    canvas.text(x, 190, f"{sum(facts.INVESTMENT_2030_MEUR.values()):.1f} million euros", Style(30, Face.BOLD, TEAL))
    canvas.text(x, 220, "in all, figures in million euros", Style(17, colour=MUTED))
    canvas.bullets(
        x,
        256,
        WIDTH - MARGIN - x,
        (
            "40 percent comes from the national port fund.",
            "The rest is borrowed over 18 years.",
            "Savings cover the interest from 2028 on.",
        ),
        Style(19),
    )


def _risks(canvas: Canvas) -> None:
    risks = {"Late delivery of the turbine": 45, "Higher interest": 30, "Protected bird nests on the mole": 15}
    canvas.text(MARGIN, 156, "Estimated chance that a risk comes true", Style(18, Face.BOLD, INK))
    bar_chart(canvas, Area(MARGIN, 180, 560, 270), risks, unit="%", size=18.0)
    panel = Area(668, 150, 228, 200)
    canvas.rect(panel, fill=MIST)
    canvas.text(panel.x + 20, panel.y + 40, "If T7 is late", Style(20, Face.BOLD, CORAL))
    canvas.paragraph(
        panel.x + 20,
        panel.y + 58,
        192,
        "each year of delay costs about 610,000 euros of bought electricity.",
        Style(18),
    )


def _decision(canvas: Canvas) -> None:
    canvas.bullets(
        MARGIN,
        150,
        820,
        (
            "Order the second battery by 30 June, while the offer of 6.4 million euros holds.",
            "Ask for the bird survey on the north mole this spring.",
            "Put off the heat network until the old town has voted on it.",
        ),
        Style(24),
    )
    canvas.rect(Area(MARGIN, 392, 832, 76), fill=TEAL)
    canvas.text(
        WIDTH / 2, 438, "Next meeting: 14 May, harbour office, 18:30", Style(24, Face.BOLD, WHITE), Align.CENTRE
    )
