"""Curves: the share of questions that have a right result among the first k, in pixels of the chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vrag_ray.evaluation.folder import Row

MOST_RANKS = 20
COLOURS = ("#0b6e99", "#b3541e", "#4b7f1f", "#8a3ffc", "#a31545", "#5c5c5c")
"""One a system; each is distinct from the background, and the label is beside it too."""
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 300, 48, 16, 132, 40


@dataclass(frozen=True, slots=True)
class Curve:
    """Of one system: ``points`` as SVG writes them, ``label_y`` where its name stands, at the end of the line."""

    system: str
    colour: str
    points: str
    label_y: float


@dataclass(frozen=True, slots=True)
class Chart:
    """``shares`` are the heights of the horizontal lines with their labels, ``ranks`` the places of those below."""

    width: int
    height: int
    left: int
    right: int
    shares: tuple[tuple[float, str], ...]
    ranks: tuple[tuple[float, int], ...]
    curves: tuple[Curve, ...]


def success_by_rank(rows: Sequence[Row]) -> list[float]:
    """For k from 1 to ``MOST_RANKS``, of questions that have gold."""
    judged = [row for row in rows if row.gold]
    ranks = [
        next((rank for rank, item in enumerate(row.found, start=1) if item in set(row.gold)), MOST_RANKS + 1)
        for row in judged
    ]
    return [sum(rank <= k for rank in ranks) / max(1, len(ranks)) for k in range(1, MOST_RANKS + 1)]


def success_chart(by_system: Mapping[str, Sequence[Row]]) -> Chart:
    """One line a system, named at its end. The numbers are in the table beside it."""
    plot_width, plot_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(rank: int) -> float:
        return round(_LEFT + plot_width * (rank - 1) / (MOST_RANKS - 1), 1)

    def y(share: float) -> float:
        return round(_TOP + plot_height * (1 - share), 1)

    values = {system: success_by_rank(rows) for system, rows in by_system.items()}
    labels = _apart({system: y(shares[-1]) for system, shares in values.items()})
    return Chart(
        _WIDTH,
        _HEIGHT,
        _LEFT,
        _WIDTH - _RIGHT,
        tuple((y(share), f"{share:.2f}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)),
        tuple((x(rank), rank) for rank in (1, 5, 10, 15, 20)),
        tuple(
            Curve(
                system,
                COLOURS[number % len(COLOURS)],
                " ".join(f"{x(k)},{y(share)}" for k, share in enumerate(shares, start=1)),
                labels[system],
            )
            for number, (system, shares) in enumerate(values.items())
        ),
    )


def _apart(heights: Mapping[str, float], least: float = 16.0) -> dict[str, float]:
    """Labels moved down until none is on another."""
    placed: dict[str, float] = {}
    floor = -least
    for system, height in sorted(heights.items(), key=lambda pair: pair[1]):
        floor = max(height, floor + least)
        placed[system] = floor
    return placed
