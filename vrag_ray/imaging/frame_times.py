"""At which times a stretch of video is looked at. Pure, shared by decoding and by the agent."""

from __future__ import annotations


def sample_times(start: float, stop: float, fps: float, max_frames: int) -> tuple[float, ...]:
    """Seconds: ``fps`` a second, at most ``max_frames``, evenly, off both ends."""
    n = round((stop - start) * fps)
    count = max(1, min(n, max_frames))
    step = (stop - start) / count
    return tuple(start + (i + 0.5) * step for i in range(count))


def late_moment(start: float, stop: float) -> float:
    """When to look at a picture that stays from ``start`` to ``stop``: shortly before it goes, when all that builds up
    has come and nothing has gone."""
    return max((start + stop) / 2, stop - 0.5)
