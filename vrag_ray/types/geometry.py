"""Boxes, in one frame of reference for the whole package, and words that stand in them.

Every ``Box`` is in fractions of the upright page, picture or video frame: origin at the top left, x to the right, y
down. So one box fits any resolution of the same page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vrag_ray.types.errors import VragError


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-aligned rectangle in page fractions (see the module docstring)."""

    x0: float
    y0: float
    x1: float
    y1: float

    def __post_init__(self) -> None:
        if not (0.0 <= self.x0 < self.x1 <= 1.0 and 0.0 <= self.y0 < self.y1 <= 1.0):
            raise VragError(
                f"box ({self.x0}, {self.y0}, {self.x1}, {self.y1}) is not inside 0..1 with x0 < x1 and y0 < y1"
            )

    def as_tuple(self) -> tuple[float, float, float, float]:
        return (self.x0, self.y0, self.x1, self.y1)

    def union(self, other: Box) -> Box:
        return Box(min(self.x0, other.x0), min(self.y0, other.y0), max(self.x1, other.x1), max(self.y1, other.y1))

    def padded(self, dx: float, dy: float) -> Box:
        """Grown by ``dx`` and ``dy`` (page fractions) on each side and clamped to the page."""
        return Box(max(0.0, self.x0 - dx), max(0.0, self.y0 - dy), min(1.0, self.x1 + dx), min(1.0, self.y1 + dy))

    def rounded(self) -> Box:
        """The smallest box of five decimals around this one: a hundredth of a pixel on a 1,000-pixel page."""
        down = (math.floor(edge * _DECIMALS) / _DECIMALS for edge in (self.x0, self.y0))
        up = (math.ceil(edge * _DECIMALS) / _DECIMALS for edge in (self.x1, self.y1))
        return Box(*down, *up)


def around(boxes: Sequence[Box]) -> Box | None:
    """The smallest box that holds all of ``boxes``; None where there are none."""
    if not boxes:
        return None
    x0s, y0s, x1s, y1s = zip(*map(Box.as_tuple, boxes), strict=True)
    return Box(min(x0s), min(y0s), max(x1s), max(y1s))


_DECIMALS = 100_000
FULL_PAGE = Box(0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Word:
    """One word and where it stands."""

    text: str
    box: Box

    def __reduce__(self) -> tuple[Callable[..., Word], tuple[str, float, float, float, float]]:
        """Pickled by its five values. A page has hundreds of words, and a state as dataclasses write it takes as long
        to read as an answer to find."""
        box = self.box
        return _word, (self.text, box.x0, box.y0, box.x1, box.y1)


def _word(text: str, x0: float, y0: float, x1: float, y1: float) -> Word:
    return Word(text, Box(x0, y0, x1, y1))
