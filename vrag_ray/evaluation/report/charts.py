"""Curves as SVG: the share of questions that have a right result among the first k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from vrag_ray.evaluation.folder import Row
from vrag_ray.evaluation.report.style import SERIES

MOST_RANKS = 20
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 300, 48, 16, 132, 40


def success_by_rank(rows: Sequence[Row]) -> list[float]:
    """For k from 1 to ``MOST_RANKS``, of questions that have gold."""
    judged = [row for row in rows if row.gold]
    ranks = [
        next((rank for rank, item in enumerate(row.found, start=1) if item in set(row.gold)), MOST_RANKS + 1)
        for row in judged
    ]
    return [sum(rank <= k for rank in ranks) / max(1, len(ranks)) for k in range(1, MOST_RANKS + 1)]


def success_chart(by_system: Mapping[str, Sequence[Row]]) -> str:
    """One line a system, named at its end. The numbers are in the table beside it."""
    plot_width, plot_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(rank: int) -> float:
        return _LEFT + plot_width * (rank - 1) / (MOST_RANKS - 1)

    def y(share: float) -> float:
        return _TOP + plot_height * (1 - share)

    parts = [
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        'aria-label="Share of questions with a right result among the first k, by system">'
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            f'<line class="axis" x1="{_LEFT}" x2="{x(MOST_RANKS):.1f}" y1="{y(share):.1f}" y2="{y(share):.1f}"/>'
        )
        parts.append(f'<text x="{_LEFT - 8}" y="{y(share) + 4:.1f}" text-anchor="end">{share:.2f}</text>')
    for rank in (1, 5, 10, 15, 20):
        parts.append(f'<text x="{x(rank):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{rank}</text>')
    parts.append(
        f'<text x="{_LEFT + plot_width / 2:.1f}" y="{_HEIGHT - 2}" text-anchor="middle">first k results</text>'
    )
    curves = {system: success_by_rank(rows) for system, rows in by_system.items()}
    labels = _apart({system: y(curve[-1]) for system, curve in curves.items()})
    for number, (system, curve) in enumerate(curves.items()):
        colour = SERIES[number % len(SERIES)]
        points = " ".join(f"{x(k):.1f},{y(share):.1f}" for k, share in enumerate(curve, start=1))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        where = f'x="{x(MOST_RANKS) + 22:.1f}" y="{labels[system] + 4:.1f}"'
        parts.append(
            f'<rect x="{x(MOST_RANKS) + 8:.1f}" y="{labels[system] - 5:.1f}" width="10" height="10" fill="{colour}"/>'
        )
        parts.append(f"<text {where}>{escape(system)}</text>")
    return "".join([*parts, "</svg>"])


def _apart(heights: Mapping[str, float], least: float = 16.0) -> dict[str, float]:
    """Labels moved down until none is on another."""
    placed: dict[str, float] = {}
    floor = -least
    for system, height in sorted(heights.items(), key=lambda pair: pair[1]):
        floor = max(height, floor + least)
        placed[system] = floor
    return placed
