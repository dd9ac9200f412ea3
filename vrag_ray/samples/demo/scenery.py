"""A wind turbine and waves, for the cover, the slides and the video."""

from __future__ import annotations

import math

from vrag_ray.drawing.canvas import TEAL, WHITE, Area, Canvas, Point


def draw_turbine(canvas: Canvas, foot: Point, size: float, *, angle: float) -> Point:
    """A tower of height ``size`` on ``foot`` with three blades, the first at ``angle`` degrees; returns the hub."""
    x, y = foot
    hub = (x, y - size)
    canvas.polygon(
        [(x - size * 0.028, y), (x + size * 0.028, y), (x + size * 0.012, hub[1]), (x - size * 0.012, hub[1])], WHITE
    )
    for blade in range(3):
        canvas.polygon(blade_outline(hub, size * 0.62, angle + 120.0 * blade), WHITE)
    canvas.circle(hub, size * 0.03, WHITE)
    return hub


def blade_outline(hub: Point, length: float, angle: float) -> list[Point]:
    """A blade from ``hub``: narrow at the root, widest at a fifth, pointed at the tip. 0 degrees points right."""
    along = (math.cos(math.radians(angle)), math.sin(math.radians(angle)))
    across = (-along[1], along[0])
    profile = ((0.0, 0.014), (0.2, 0.055), (1.0, 0.006), (1.0, -0.006), (0.2, -0.018), (0.0, -0.014))
    return [
        (
            hub[0] + length * (s * along[0] + w * across[0]),
            hub[1] + length * (s * along[1] + w * across[1]),
        )
        for s, w in profile
    ]


def draw_waves(canvas: Canvas, area: Area, *, phase: float) -> None:
    """A band of water whose upper edge is a wave moved by ``phase`` radians."""
    steps = 60
    crest = [
        (area.x + area.width * i / steps, area.y + area.height * 0.18 * math.sin(phase + i * 0.62))
        for i in range(steps + 1)
    ]
    canvas.polygon([*crest, (area.right, area.bottom), (area.x, area.bottom)], TEAL)
