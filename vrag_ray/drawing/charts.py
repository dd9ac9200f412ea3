"""Vector charts whose every value is written beside its mark, so that a reader without eyes can find it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vrag_ray.drawing.canvas import (
    INK,
    MUTED,
    NAVY,
    RULE,
    TEAL,
    WHITE,
    Align,
    Area,
    Canvas,
    Colour,
    Face,
    Point,
    Style,
    around,
    measure,
)


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    values: Sequence[float]
    colour: Colour


def column_chart(
    canvas: Canvas,
    area: Area,
    values: Mapping[str, float],
    *,
    size: float = 9.0,
    colour: Colour = TEAL,
    digits: int = 0,
) -> Mapping[str, Area]:
    """Upright bars: value above, name below. Returns where each stands with both, by its name."""
    top = _round_up(max(values.values()) * 1.08)
    plot = _axes(canvas, area, 0.0, top, size)
    slot = plot.width / len(values)
    areas: dict[str, Area] = {}
    for index, (name, value) in enumerate(values.items()):
        height = plot.height * value / top
        left = plot.x + slot * (index + 0.2)
        column = Area(left, plot.bottom - height, slot * 0.6, height)
        canvas.rect(column, fill=colour)
        centre = left + slot * 0.3
        label = Style(size, Face.BOLD, INK)
        written = f"{value:,.{digits}f}"
        above = canvas.text(centre, plot.bottom - height - size * 0.45, written, label, Align.CENTRE)
        named = Style(size, Face.REGULAR, MUTED)
        below = canvas.text(centre, plot.bottom + size * 1.5, name, named, Align.CENTRE)
        areas[name] = around(column, above, below)
    return areas


def bar_chart(
    canvas: Canvas, area: Area, values: Mapping[str, float], *, unit: str, size: float = 11.0
) -> Mapping[str, Area]:
    """Lying bars, each under a line with its name and its value. Returns where each stands with both, by its name."""
    slot = area.height / len(values)
    most = max(values.values())
    areas: dict[str, Area] = {}
    for index, (name, value) in enumerate(values.items()):
        top = area.y + slot * index
        line = canvas.text(area.x, top + size, f"{name}: {value:,.0f} {unit}", Style(size, Face.BOLD, INK))
        bar = Area(area.x, top + size * 1.5, area.width * value / most, max(4.0, slot - size * 2.4))
        canvas.rect(bar, fill=TEAL if index else NAVY)
        areas[name] = around(line, bar)
    return areas


def line_chart(
    canvas: Canvas,
    area: Area,
    names: Sequence[str],
    series: Sequence[Series],
    *,
    bounds: tuple[float, float],
    size: float = 8.0,
) -> None:
    """Lines over named positions with a legend on top; the value axis spans ``bounds``.

    The highest value of a position is written above its point and the others below, which keeps labels apart.
    """
    legend_x = area.x + 34
    for row in series:
        canvas.line((legend_x, area.y + 4), (legend_x + 18, area.y + 4), row.colour, 2.2)
        canvas.text(legend_x + 23, area.y + 7, row.name, Style(size + 0.5, Face.BOLD, row.colour))
        legend_x += 170
    floor, top = bounds
    plot = _axes(canvas, Area(area.x, area.y + 20, area.width, area.height - 20), floor, top, size)
    slot = plot.width / len(names)
    for index, name in enumerate(names):
        at = plot.x + slot * (index + 0.5)
        canvas.text(at, plot.bottom + size * 1.6, name, Style(size, Face.REGULAR, MUTED), Align.CENTRE)
    scale = plot.height / (top - floor)
    points: dict[str, list[Point]] = {
        row.name: [
            (plot.x + slot * (index + 0.5), plot.bottom - scale * (value - floor))
            for index, value in enumerate(row.values)
        ]
        for row in series
    }
    for row in series:
        canvas.polyline(points[row.name], row.colour)
    for row in series:
        style = Style(size - 1, Face.REGULAR, row.colour)
        for index, ((x, y), value) in enumerate(zip(points[row.name], row.values, strict=True)):
            highest = value >= max(other.values[index] for other in series)
            baseline = y - size * 0.8 if highest else y + size * 1.6
            label = f"{value:,.0f}"
            width = measure(label, style) + 2.0
            canvas.rect(Area(x - width / 2, baseline - style.size * 0.8, width, style.size), fill=WHITE)
            canvas.circle((x, y), 2.2, row.colour)
            canvas.text(x, baseline, label, style, Align.CENTRE)


def _axes(canvas: Canvas, area: Area, floor: float, top: float, size: float) -> Area:
    """Grid lines with their values at the left; returns the area of the marks."""
    gutter = size * 4.2
    plot = Area(area.x + gutter, area.y + size, area.width - gutter, area.height - size * 3.2)
    for index in range(5):
        y = plot.bottom - plot.height * index / 4
        canvas.line((plot.x, y), (plot.right, y), NAVY if index == 0 else RULE, 0.9 if index == 0 else 0.5)
        value = floor + (top - floor) * index / 4
        canvas.text(
            plot.x - size * 0.6, y + size * 0.33, f"{value:,.0f}", Style(size, Face.REGULAR, MUTED), Align.RIGHT
        )
    return plot


def _round_up(value: float) -> float:
    """The next number whose quarters are short to write."""
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 1.2, 1.6, 2.0, 3.2, 4.0, 6.0, 8.0, 10.0) if step * power >= value)
