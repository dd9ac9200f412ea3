"""The yearbook: eight A4 pages with an outline, prose, three tables, a column chart and a line chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pymupdf

from vrag_ray.drawing.canvas import (
    CORAL,
    INK,
    MIST,
    MUTED,
    NAVY,
    RULE,
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
from vrag_ray.drawing.charts import Series, column_chart, line_chart
from vrag_ray.samples.demo import facts
from vrag_ray.samples.demo.scenery import draw_turbine, draw_waves

WIDTH, HEIGHT, MARGIN = 595.0, 842.0, 62.0
COLUMN = WIDTH - 2 * MARGIN
BODY = Style(11.5)
SMALL = Style(8.5, colour=MUTED)
TITLE = "Northmere Harbour Energy Yearbook 2024"


def write_report() -> bytes:
    document = pymupdf.open()
    pages: Sequence[tuple[str, Callable[[Canvas], None]]] = (
        ("Cover", _cover),
        ("The year in brief", _brief),
        ("Electricity production", _production),
        ("Shore power", _shore_power),
        ("Wind and demand by month", _months),
        ("Carbon dioxide avoided", _carbon),
        ("Battery and grid connection", _battery),
        ("Method and definitions", _method),
    )
    for number, (heading, draw) in enumerate(pages, start=1):
        canvas = Canvas(document.new_page(width=WIDTH, height=HEIGHT))
        if number > 1:
            _furniture(canvas, heading, number)
        draw(canvas)
        canvas.finish()
    document.set_toc([[1, heading, number] for number, (heading, _) in enumerate(pages, start=1)])
    return finished(document, TITLE)


def _furniture(canvas: Canvas, heading: str, number: int) -> None:
    canvas.text(MARGIN, 46, TITLE, SMALL)
    canvas.text(WIDTH - MARGIN, HEIGHT - 36, str(number), SMALL, Align.RIGHT)
    canvas.text(MARGIN, HEIGHT - 36, "All figures are made up for demonstration.", SMALL)
    canvas.line((MARGIN, 54), (WIDTH - MARGIN, 54))
    canvas.text(MARGIN, 100, heading, Style(22, Face.BOLD, NAVY))
    canvas.rect(Area(MARGIN, 110, 46, 3), fill=SAND)


def _cover(canvas: Canvas) -> None:
    canvas.rect(Area(0, 0, WIDTH, 520), fill=NAVY)
    for x, base, size in ((330.0, 520.0, 150.0), (430.0, 520.0, 215.0), (522.0, 520.0, 120.0)):
        draw_turbine(canvas, (x, base), size, angle=25.0 + x)
    draw_waves(canvas, Area(0, 498, WIDTH, 22), phase=0.0)
    canvas.text(MARGIN, 150, "Northmere", Style(44, Face.BOLD, WHITE))
    canvas.text(MARGIN, 200, "Harbour", Style(44, Face.BOLD, WHITE))
    canvas.rect(Area(MARGIN, 222, 64, 4), fill=SAND)
    canvas.text(MARGIN, 262, "Energy Yearbook 2024", Style(20, Face.REGULAR, WHITE))
    tiles = (
        (facts.thousands(facts.total(facts.PRODUCTION_MWH)[-1]), "MWh generated in the harbour"),
        (facts.thousands(facts.total(facts.SHORE_POWER_MWH)[-1]), "MWh given to ships at berth"),
        (facts.thousands(facts.CO2_AVOIDED_T["2024"]), "tonnes of CO2 avoided"),
    )
    for index, (figure, caption) in enumerate(tiles):
        x = MARGIN + index * 162
        canvas.text(x, 610, figure, Style(28, Face.BOLD, TEAL))
        canvas.text(x, 632, caption, Style(9.5, Face.REGULAR, MUTED))
    canvas.text(MARGIN, HEIGHT - 60, "Harbour office, energy desk", BODY)
    canvas.text(MARGIN, HEIGHT - 44, "The harbour and all figures are made up for demonstration.", SMALL)


def _brief(canvas: Canvas) -> None:
    produced, shore = facts.total(facts.PRODUCTION_MWH), facts.total(facts.SHORE_POWER_MWH)
    y = _prose(
        canvas,
        138,
        f"In 2024 the harbour generated {facts.thousands(produced[-1])} MWh of electricity on its own ground, "
        f"{(produced[-1] / produced[-2] - 1) * 100:.0f} percent more than in the year before. A windy winter did most "
        "of it: the six turbines on the north mole ran at full power for 41 days, twelve days more than in 2023.",
        f"Ships at berth took {facts.thousands(shore[-1])} MWh of shore power. The growth came from the cruise berth, "
        "whose second cable was laid in spring, and from the electric ferry, which now charges at every call.",
        "The harbour battery went through its first full year. It was cycled 311 times and let the harbour ride "
        "through two faults of the mainland cable, on 9 February and on 27 November, without dimming a single lamp.",
    )
    canvas.text(MARGIN, y + 22, "What changed", Style(13, Face.BOLD, NAVY))
    y = canvas.bullets(
        MARGIN,
        y + 36,
        COLUMN,
        (
            "Turbine T4 stood still for 19 days after a crack was found in blade B.",
            "The cold store of the fish market now heats the auction hall with its waste heat.",
            "The tidal gate got new bearings and reached its best year so far.",
            "Night lighting on the container quay was changed to dimmed lamps, saving 118 MWh.",
        ),
        BODY,
    )
    box = Area(MARGIN, y + 22, COLUMN, 128)
    canvas.rect(box, fill=MIST)
    canvas.text(box.x + 18, box.y + 28, "How to read this book", Style(12, Face.BOLD, TEAL))
    canvas.paragraph(
        box.x + 18,
        box.y + 40,
        box.width - 36,
        "Energy is given in megawatt-hours (MWh) as metered, without rounding. Years are calendar years. A dash of "
        "colour in a table marks every second row and carries no meaning. Tables are numbered through the book.",
        BODY,
    )


def _production(canvas: Canvas) -> None:
    y = _prose(
        canvas,
        138,
        "Four sources feed the harbour grid. Wind is by far the largest: the turbines T1 to T6 are rated at "
        "0.9 megawatts each and stand in the open on the north mole, where the mean wind is 8.4 metres per second.",
        "Solar roofs cover the ferry terminal, both warehouses and, since 2023, the ice factory. The tidal gate turns "
        "two small turbines four times a day. The heat engine behind the cold store was started in 2022.",
    )
    y = _table(canvas, y + 26, "Table 1. Electricity generated by source, in MWh", facts.PRODUCTION_MWH, "Source")
    _prose(
        canvas,
        y + 26,
        "Wind gave between 85 and 89 percent of the sum in every year. The weak year 2023 was calm rather "
        "than faulty: availability of the turbines was 97.2 percent then and 95.8 percent in 2024, the year of "
        "the blade repair.",
        "No electricity was bought for the pumps of the dry dock between April and September, for the first time.",
    )


def _shore_power(canvas: Canvas) -> None:
    y = _prose(
        canvas,
        138,
        "Ships that take shore power can stop their engines at berth. The harbour sells it at 19.4 cents per "
        "kilowatt-hour at the ferry quay and at 23.8 cents at all other berths; the price includes the cable crew.",
        "The cruise berth was connected in autumn 2022. Its first cable could serve one ship of middle size; the "
        "second one, in use since May 2024, carries 12 megawatts.",
    )
    y = _table(canvas, y + 26, "Table 2. Shore power delivered by berth, in MWh", facts.SHORE_POWER_MWH, "Berth")
    _prose(
        canvas,
        y + 26,
        "Of 1,204 calls of ships that have a shore connection, 1,071 used it. The commonest reason not to was a stay "
        "of less than two hours.",
        "A third connection for the container quay is being planned together with the second battery.",
    )


def _months(canvas: Canvas) -> None:
    y = _prose(
        canvas,
        138,
        "From October to March the turbines alone generated more than the whole harbour used. In summer it was the "
        "other way round: July was the calmest month, with 846 MWh of wind against a demand of 1,468 MWh.",
    )
    canvas.text(MARGIN, y + 26, "Figure 1. Wind generation and demand by month, 2024 (MWh)", Style(11, Face.BOLD, NAVY))
    chart = Area(MARGIN, y + 46, COLUMN, 330)
    line_chart(
        canvas,
        chart,
        facts.MONTHS,
        (
            Series("Wind generation", facts.WIND_2024_MWH, TEAL),
            Series("Harbour demand", facts.DEMAND_2024_MWH, CORAL),
        ),
        bounds=(600.0, 2200.0),
    )
    _prose(
        canvas,
        chart.bottom + 18,
        "Demand is nearly even over the year. It dips in May, between the heating season and the cooling season of the "
        "fish market, and is highest in December, when the ferry runs its heaters on every crossing.",
        "The gap of summer is closed by the solar roofs for the larger part, and for the rest from the mainland.",
    )


def _carbon(canvas: Canvas) -> None:
    y = _prose(
        canvas,
        138,
        "Avoided emissions are counted against ships' diesel generators for shore power, and against the mix of the "
        "mainland grid for everything else. Ships make up about two thirds of the sum.",
    )
    canvas.text(MARGIN, y + 26, "Figure 2. Carbon dioxide avoided, in tonnes a year", Style(11, Face.BOLD, NAVY))
    chart = Area(MARGIN, y + 44, COLUMN, 290)
    column_chart(canvas, chart, facts.CO2_AVOIDED_T)
    _prose(
        canvas,
        chart.bottom + 18,
        "The step from 2023 to 2024 is the largest so far. It is due to the cruise berth in the main: a cruise ship "
        "burns about 1.6 tonnes of marine gas oil an hour at berth when it has no cable.",
        "The harbour's own boats are not in the figure. They burned 212 tonnes of fuel in 2024, 30 less than before.",
    )


def _battery(canvas: Canvas) -> None:
    y = _prose(
        canvas,
        138,
        "The battery stands in six containers beside the substation. It shaves the peaks of the ferry's charging, "
        "which would otherwise need a second mainland cable, and keeps the harbour running when that cable fails.",
    )
    rows = (
        ("Property", "Value"),
        ("Usable capacity", f"{facts.BATTERY_MWH} MWh"),
        ("Greatest power", f"{facts.BATTERY_POWER_MW} MW"),
        ("Round-trip efficiency in 2024", f"{facts.BATTERY_EFFICIENCY_PERCENT} %"),
        ("Full cycles in 2024", "311"),
        ("Cell chemistry", "lithium iron phosphate"),
        ("Expected end of life", "2039"),
    )
    canvas.text(MARGIN, y + 26, "Table 3. The harbour battery", Style(11, Face.BOLD, NAVY))
    y = canvas.table(MARGIN, y + 38, (260.0, COLUMN - 260.0), rows, Style(11), total=False)
    canvas.text(MARGIN, y + 40, "Faults of the mainland cable", Style(13, Face.BOLD, NAVY))
    y = canvas.bullets(
        MARGIN,
        y + 54,
        COLUMN,
        (
            "9 February: the battery carried the harbour for 47 minutes, until the operator had switched over.",
            "27 November: a dredger cut the cable. Battery and wind together held for 5 hours and 12 minutes.",
            "In both cases the cold stores were switched off first, as planned, and lost less than one degree.",
        ),
        BODY,
    )
    _prose(canvas, y + 8, "A second battery of the same make is part of the plan to 2030; see the council's slides.")


def _method(canvas: Canvas) -> None:
    y = _prose(
        canvas,
        138,
        "All figures come from 64 meters that are read every quarter of an hour. Gaps of up to four readings are "
        "filled by the mean of their neighbours; longer gaps are left out and named in the meter log. In 2024 the gaps "
        "made up 0.3 percent of all readings, most of them on the day of the November cable fault.",
    )
    definitions = (
        ("Availability", "Share of the hours of a year in which a turbine could run, whether or not there was wind."),
        ("Shore power", "Electricity that a ship takes from the quay in place of its own generators."),
        ("Demand", "All electricity used on harbour ground, ships at berth included, losses of the battery excluded."),
        ("Round-trip efficiency", "Energy drawn from the battery over energy put into it, measured at the substation."),
        ("Tonne", "A metric tonne of 1,000 kilograms."),
    )
    y += 20
    for term, meaning in definitions:
        canvas.line((MARGIN, y), (WIDTH - MARGIN, y), RULE)
        canvas.text(MARGIN, y + 20.5, term, Style(11.5, Face.BOLD, TEAL))
        y = max(y + 34, canvas.paragraph(MARGIN + 160, y + 9, COLUMN - 160, meaning, BODY) + 9)
    canvas.line((MARGIN, y), (WIDTH - MARGIN, y), RULE)
    _prose(
        canvas,
        y + 22,
        "Until 2022 the tidal gate was metered by hand once a week. Its figures for 2021 are therefore good to about "
        "two percent; all others are good to half a percent.",
    )


def _prose(canvas: Canvas, y: float, *paragraphs: str) -> float:
    for text in paragraphs:
        y = canvas.paragraph(MARGIN, y, COLUMN, text, BODY.with_(colour=INK)) + 8
    return y


def _table(canvas: Canvas, y: float, caption: str, table: Mapping[str, tuple[int, ...]], corner: str) -> float:
    rows = [(corner, *(str(year) for year in facts.YEARS))]
    rows += [(name, *(facts.thousands(value) for value in values)) for name, values in table.items()]
    rows.append(("Total", *(facts.thousands(value) for value in facts.total(table))))
    canvas.text(MARGIN, y, caption, Style(11, Face.BOLD, NAVY))
    widths = (COLUMN - 4 * 78.0, 78.0, 78.0, 78.0, 78.0)
    return canvas.table(MARGIN, y + 12, widths, rows, Style(11), total=True)
