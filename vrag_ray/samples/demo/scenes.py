"""The captioned video: seven scenes with the captions burnt in, and the same captions as a subtitle track.

Each scene draws its frame from the share of its time that has passed."""

from __future__ import annotations

import math

from vrag_ray.drawing.canvas import (
    CORAL,
    INK,
    NAVY,
    SAND,
    TEAL,
    WHITE,
    Align,
    Area,
    Canvas,
    Colour,
    Face,
    Point,
    Style,
    wrap,
)
from vrag_ray.drawing.video import Film, Layers, filmed
from vrag_ray.samples.demo import facts
from vrag_ray.samples.demo.scenery import draw_turbine, draw_waves

WIDTH, HEIGHT = 640, 360
FRAMES_PER_SECOND = 4
_HORIZON = 268.0
_STEEL: Colour = (0.95, 0.96, 0.97)
_SHADE: Colour = (0.79, 0.83, 0.86)
_CAPTION = Style(15.5, Face.BOLD, WHITE, 1.3)
_MORNING: Colour = (0.69, 0.83, 0.91)
_GREY: Colour = (0.62, 0.69, 0.74)
_EVENING: Colour = (0.95, 0.79, 0.60)
_TURBINE: Point = (420.0, 272.0)


def write_video() -> bytes:
    """An MP4 of ``facts.VIDEO_SECONDS`` seconds."""
    title = "Blade inspection of turbine T4"
    return filmed(Film(title, WIDTH, HEIGHT, facts.VIDEO_SECONDS, FRAMES_PER_SECOND, _layers, facts.VIDEO_CUES))


def _layers(seconds: float) -> Layers:
    length = facts.VIDEO_SECONDS / len(facts.VIDEO_CUES)
    scene = int(seconds // length)
    return (
        lambda canvas: _draw_scene(canvas, scene, seconds / length - scene, seconds),
        lambda canvas: _draw_caption(canvas, facts.VIDEO_CUES[scene][2]),
    )


def _draw_scene(canvas: Canvas, scene: int, share: float, seconds: float) -> None:
    """Scene 0 to 6 at ``share`` (0 to 1) of its length; ``seconds`` of the whole video move the water."""
    draw = (_arrive, _stop, _climb, _crack, _wind, _repair, _release)[scene]
    draw(canvas, share, seconds)


def _draw_caption(canvas: Canvas, caption: str) -> None:
    lines = wrap(caption, WIDTH - 60, _CAPTION)
    height = 22 + len(lines) * _CAPTION.size * _CAPTION.leading
    bar = Area(0, HEIGHT - height, WIDTH, height)
    canvas.rect(bar, fill=INK)
    canvas.rect(Area(0, bar.y, 8, height), fill=SAND)
    canvas.paragraph(30, bar.y + 9, WIDTH - 60, caption, _CAPTION)


def _sea(canvas: Canvas, sky: Colour, seconds: float) -> None:
    canvas.rect(Area(0, 0, WIDTH, HEIGHT), fill=sky)
    draw_waves(canvas, Area(0, _HORIZON, WIDTH, HEIGHT - _HORIZON), phase=seconds * 1.4)


def _arrive(canvas: Canvas, share: float, seconds: float) -> None:
    _sea(canvas, _MORNING, seconds)
    canvas.circle((120, 80), 30, (0.99, 0.93, 0.72))
    draw_turbine(canvas, _TURBINE, 160, angle=seconds * 54)
    x = 20 + 190 * share
    canvas.polygon([(x, 268), (x + 92, 268), (x + 80, 288), (x + 12, 288)], NAVY)
    canvas.rect(Area(x + 20, 246, 38, 22), fill=_STEEL)
    canvas.rect(Area(x + 26, 251, 26, 7), fill=NAVY)


def _stop(canvas: Canvas, share: float, seconds: float) -> None:
    _sea(canvas, _MORNING, seconds)
    turned = 90.0 - 150.0 * (1.0 - min(1.0, share * 1.6)) ** 2
    draw_turbine(canvas, _TURBINE, 160, angle=turned)
    locked = share > 0.65
    _badge(canvas, "ROTOR LOCKED" if locked else "STOPPING", CORAL if locked else SAND)


def _climb(canvas: Canvas, share: float, seconds: float) -> None:
    _sea(canvas, _MORNING, seconds)
    hub = draw_turbine(canvas, (360.0, 330.0), 240, angle=90)
    y = 250.0 - 165.0 * share
    _drone(canvas, (hub[0] - 92 + 4 * math.sin(seconds * 3), y))
    _badge(canvas, f"PHOTO {max(1, round(180 * share))} OF 180", TEAL)


def _crack(canvas: Canvas, share: float, seconds: float) -> None:
    canvas.rect(Area(0, 0, WIDTH, HEIGHT), fill=_MORNING)
    _blade_close_up(canvas)
    _crack_line(canvas, filled=0.0)
    radius = 54 + 5 * math.sin(seconds * 4)
    ring = [(330 + radius * math.cos(i * math.pi / 18), 132 + radius * math.sin(i * math.pi / 18)) for i in range(37)]
    canvas.polyline(ring, CORAL, 3.0)
    if share > 0.15:
        canvas.line((384, 118), (450, 78), CORAL, 2.0)
        canvas.text(456, 82, "23 cm", Style(24, Face.BOLD, CORAL))


def _wind(canvas: Canvas, share: float, seconds: float) -> None:
    _sea(canvas, _GREY, seconds * 2.5)
    draw_turbine(canvas, _TURBINE, 160, angle=90)
    for index in range(9):
        x = (seconds * 240 + index * 137) % (WIDTH + 160) - 160
        y = 40 + index * 23
        canvas.line((x, y), (x + 90, y - 4), _STEEL, 1.6)
    _drone(canvas, (180 + 20 * math.sin(seconds * 5), 90 + 150 * share))
    _badge(canvas, f"WIND {11 + 3 * min(1.0, share * 1.5):.0f} m/s", CORAL)


def _repair(canvas: Canvas, share: float, seconds: float) -> None:
    canvas.rect(Area(0, 0, WIDTH, HEIGHT), fill=_MORNING)
    _blade_close_up(canvas)
    _crack_line(canvas, filled=share)
    x = 284 + 92 * share
    for rope in (x - 26, x + 26):
        canvas.line((rope, 0), (rope, 186), NAVY, 2.0)
    canvas.rect(Area(x - 38, 186, 76, 12), fill=SAND)
    canvas.rect(Area(x - 10, 166 + 2 * math.sin(seconds * 20), 20, 14), fill=NAVY)
    _badge(canvas, f"FILLED {100 * share:.0f} %", TEAL)


def _release(canvas: Canvas, share: float, seconds: float) -> None:
    _sea(canvas, _EVENING, seconds)
    canvas.circle((150, 190 + 40 * share), 38, (0.97, 0.56, 0.31))
    draw_waves(canvas, Area(0, _HORIZON, WIDTH, HEIGHT - _HORIZON), phase=seconds * 1.4)
    draw_turbine(canvas, _TURBINE, 160, angle=90 + 54 * 10 * share * share)
    _badge(canvas, "RELEASED 16:20", TEAL)


def _badge(canvas: Canvas, text: str, colour: Colour) -> None:
    canvas.rect(Area(24, 22, 206, 36), fill=colour)
    canvas.text(127, 46, text, Style(17, Face.BOLD, WHITE), Align.CENTRE)


def _drone(canvas: Canvas, centre: Point) -> None:
    x, y = centre
    canvas.rect(Area(x - 12, y - 5, 24, 11), fill=INK)
    for side in (-1, 1):
        canvas.line((x, y - 3), (x + side * 26, y - 9), INK, 2.0)
        canvas.line((x + side * 26 - 13, y - 11), (x + side * 26 + 13, y - 11), NAVY, 1.4)
    canvas.circle((x, y + 8), 4, CORAL)


def _blade_close_up(canvas: Canvas) -> None:
    canvas.polygon([(0, 96), (240, 84), (WIDTH, 108), (WIDTH, 250), (240, 276), (0, 262)], _STEEL)
    canvas.polygon([(0, 196), (240, 204), (WIDTH, 190), (WIDTH, 250), (240, 276), (0, 262)], _SHADE)
    canvas.text(70, 170, "B", Style(54, Face.BOLD, NAVY))


def _crack_line(canvas: Canvas, *, filled: float) -> None:
    points = [(284 + i * 11.5, 132 + (9 if i % 2 else -9) * (1 - abs(i - 4) / 6)) for i in range(9)]
    canvas.polyline(points, INK, 2.4)
    done = points[: round(filled * len(points))]
    if len(done) > 1:
        canvas.polyline(done, SAND, 6.0)
