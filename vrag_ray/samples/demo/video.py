"""The captioned video: drawn frames with the captions burnt in, and the same captions as a subtitle track."""

from __future__ import annotations

from vrag_ray.drawing.video import Film, Layers, filmed
from vrag_ray.samples.demo import facts
from vrag_ray.samples.demo.scenes import HEIGHT, WIDTH, draw_caption, draw_scene

FRAMES_PER_SECOND = 4


def write_video() -> bytes:
    """An MP4 of ``facts.VIDEO_SECONDS`` seconds."""
    title = "Blade inspection of turbine T4"
    return filmed(Film(title, WIDTH, HEIGHT, facts.VIDEO_SECONDS, FRAMES_PER_SECOND, _layers, facts.VIDEO_CUES))


def _layers(seconds: float) -> Layers:
    length = facts.VIDEO_SECONDS / len(facts.VIDEO_CUES)
    scene = int(seconds // length)
    return (
        lambda canvas: draw_scene(canvas, scene, seconds / length - scene, seconds),
        lambda canvas: draw_caption(canvas, facts.VIDEO_CUES[scene][2]),
    )
