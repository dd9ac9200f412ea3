"""The clip of a harbour's gate camera: a scene for each ship, its caption burnt in."""

from __future__ import annotations

from vrag_ray.drawing.canvas import CORAL, INK, MIST, NAVY, SAND, TEAL, WHITE, Align, Area, Canvas, Colour, Face, Style
from vrag_ray.drawing.video import Film, Layers
from vrag_ray.samples.harbours.facts import CALLS, Call, Harbour

SCENE_SECONDS = 10
_WIDTH, _HEIGHT = 512, 288
_FRAMES_PER_SECOND = 2
_SKY, _QUAY = 44.0, 160.0
_HULLS: tuple[Colour, ...] = (NAVY, CORAL, TEAL)
_SKIES: tuple[Colour, ...] = ((0.69, 0.83, 0.91), (0.80, 0.84, 0.87), (0.95, 0.82, 0.66))


def caption_of(call: Call) -> str:
    return f"{call.time}, ship {call.ship.upper()} enters lock {call.lock}"


def seconds_of(scene: int) -> tuple[float, float]:
    return float(scene * SCENE_SECONDS), float((scene + 1) * SCENE_SECONDS)


def clip_of(harbour: Harbour) -> Film:
    return Film(
        title=f"{harbour.name}, gate camera",
        width=_WIDTH,
        height=_HEIGHT,
        seconds=CALLS * SCENE_SECONDS,
        frames_per_second=_FRAMES_PER_SECOND,
        draw=lambda seconds: _layers(harbour, seconds),
        cues=[(*seconds_of(scene), caption_of(call)) for scene, call in enumerate(harbour.calls)]
        if harbour.subtitled
        else (),
    )


def _layers(harbour: Harbour, seconds: float) -> Layers:
    scene = int(seconds // SCENE_SECONDS)
    call, share = harbour.calls[scene], seconds / SCENE_SECONDS - scene
    return (
        lambda canvas: _draw_scene(canvas, call, scene, share),
        lambda canvas: _draw_gate(canvas, call),
        lambda canvas: _draw_captions(canvas, harbour, call),
    )


def _draw_scene(canvas: Canvas, call: Call, scene: int, share: float) -> None:
    canvas.rect(Area(0, 0, _WIDTH, _HEIGHT), fill=_SKIES[scene % len(_SKIES)])
    canvas.rect(Area(0, _QUAY, _WIDTH, _HEIGHT - _QUAY), fill=TEAL)
    x = -20 + 210 * share
    hull = [(x, _QUAY - 22), (x + 200, _QUAY - 22), (x + 178, _QUAY + 24), (x + 14, _QUAY + 24)]
    canvas.polygon(hull, _HULLS[scene % len(_HULLS)])
    canvas.rect(Area(x + 26, _QUAY - 58, 54, 36), fill=WHITE)
    canvas.rect(Area(x + 34, _QUAY - 49, 38, 9), fill=INK)
    canvas.text(x + 104, _QUAY + 9, call.ship.upper(), Style(20, Face.BOLD, WHITE), Align.CENTRE)


def _draw_gate(canvas: Canvas, call: Call) -> None:
    """In front of the ship: the wall of the lock, which it goes behind."""
    canvas.rect(Area(_WIDTH - 104, _SKY + 26, 104, _HEIGHT - _SKY), fill=MIST)
    canvas.rect(Area(_WIDTH - 104, _SKY + 26, 8, _HEIGHT - _SKY), fill=SAND)
    canvas.text(_WIDTH - 48, _QUAY - 18, "LOCK", Style(17, Face.BOLD, INK), Align.CENTRE)
    canvas.text(_WIDTH - 48, _QUAY + 30, str(call.lock), Style(44, Face.BOLD, INK), Align.CENTRE)


def _draw_captions(canvas: Canvas, harbour: Harbour, call: Call) -> None:
    canvas.rect(Area(0, 0, _WIDTH, 34), fill=INK)
    canvas.text(16, 23, f"{harbour.name} Harbour, gate camera", Style(16, Face.BOLD, WHITE))
    canvas.rect(Area(0, _HEIGHT - 46, _WIDTH, 46), fill=INK)
    canvas.rect(Area(0, _HEIGHT - 46, 7, 46), fill=SAND)
    canvas.text(20, _HEIGHT - 16, caption_of(call), Style(20, Face.BOLD, WHITE))
