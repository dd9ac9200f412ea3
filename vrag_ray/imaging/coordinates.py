"""Every change of frame, here and nowhere else.

Frames: *page fractions* (``Box``: the upright page, origin top left), *raw pixels* of a rendering of the page,
*model pixels* of the picture that a model was shown, and the numbers a model writes (its *codec*). A ``View`` says
which rectangle of the page a picture shows, at which size and between which margins, always in page fractions: a crop
of a crop is a view like any other, and no chain of frames has to be unwound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from vrag_ray.types import FULL_PAGE, Box, FamilyName, VragError, Word

CROP_MARGIN = 0.01
"""Page fractions added on each side of every crop, in answering, evaluation and training alike."""


class CoordinateError(VragError):
    """Numbers that are no rectangle; the message can be shown to a model."""


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height in pixels."""

    width: int
    height: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise CoordinateError(f"a picture of {self.width} x {self.height} pixels has no content")

    @property
    def pixels(self) -> int:
        return self.width * self.height


Rectangle = tuple[float, float, float, float]
"""x0, y0, x1, y1 in the pixels of some picture, origin top left."""


@dataclass(frozen=True, slots=True)
class View:
    """A picture as it was shown: the rectangle ``region`` of the page, at ``shown`` model pixels.

    ``left`` and ``right`` are the places, in fractions of the picture's width, between which the page lies: what is
    beside them are margins, which show nothing of it.
    """

    region: Box
    shown: Size
    left: float = 0.0
    right: float = 1.0

    def to_page(self, rectangle: Rectangle) -> Box:
        """Model pixels of this picture to page fractions, clamped to what the picture shows of the page.

        Raises ``CoordinateError`` for a rectangle without area there, as for one that lies in a margin.
        """
        width = self.region.x1 - self.region.x0
        height = self.region.y1 - self.region.y0
        x0, y0, x1, y1 = _ordered(rectangle)
        span = self.right - self.left
        left = self.region.x0 + width * _unit((x0 / self.shown.width - self.left) / span)
        right = self.region.x0 + width * _unit((x1 / self.shown.width - self.left) / span)
        upper = self.region.y0 + height * _unit(y0 / self.shown.height)
        lower = self.region.y0 + height * _unit(y1 / self.shown.height)
        left, upper, right, lower = _unit(left), _unit(upper), _unit(right), _unit(lower)
        if not (left < right and upper < lower):
            place = f"the picture of {self.shown.width} x {self.shown.height}"
            if span < 1.0:
                ends = (math.floor(self.left * self.shown.width), math.ceil(self.right * self.shown.width))
                place = f"the page, which goes from x = {ends[0]} to {ends[1]} in {place}"
            raise CoordinateError(f"the box {_plain(rectangle)} has no area in {place}")
        return Box(left, upper, right, lower)

    def from_page(self, box: Box) -> Rectangle:
        """Page fractions to model pixels of this picture, clamped to it."""
        width = self.region.x1 - self.region.x0
        height = self.region.y1 - self.region.y0
        span = self.right - self.left
        return (
            self.shown.width * (self.left + span * _unit((box.x0 - self.region.x0) / width)),
            self.shown.height * _unit((box.y0 - self.region.y0) / height),
            self.shown.width * (self.left + span * _unit((box.x1 - self.region.x0) / width)),
            self.shown.height * _unit((box.y1 - self.region.y0) / height),
        )


def whole_page(shown: Size) -> View:
    return View(FULL_PAGE, shown)


def raw_pixels(box: Box, size: Size) -> tuple[int, int, int, int]:
    """The smallest rectangle of whole raw pixels that covers ``box`` on a rendering of ``size``."""
    x0 = min(size.width - 1, math.floor(box.x0 * size.width))
    y0 = min(size.height - 1, math.floor(box.y0 * size.height))
    x1 = max(x0 + 1, min(size.width, math.ceil(box.x1 * size.width)))
    y1 = max(y0 + 1, min(size.height, math.ceil(box.y1 * size.height)))
    return (x0, y0, x1, y1)


class BoxCodec(Protocol):
    """How a family of models writes a rectangle of the picture it was shown."""

    @property
    def needs_size(self) -> bool:
        """Whether its numbers mean nothing without the size of the picture as it was shown."""
        ...

    def decode(self, numbers: Sequence[float], view: View) -> Box:
        """To page fractions. Corners in any order; outside is clamped; raises ``CoordinateError`` without area."""
        ...

    def encode(self, box: Box, view: View) -> tuple[int, int, int, int]:
        """The smallest rectangle in the model's numbers that covers ``box``."""
        ...


@dataclass(frozen=True, slots=True)
class AbsoluteCodec:
    """Qwen2.5-VL: absolute pixels of the resized picture."""

    needs_size: bool = True

    def decode(self, numbers: Sequence[float], view: View) -> Box:
        return view.to_page(_rectangle(numbers))

    def encode(self, box: Box, view: View) -> tuple[int, int, int, int]:
        return _outward(view.from_page(box))


@dataclass(frozen=True, slots=True)
class PerMilleCodec:
    """Qwen3-VL: 0 to 1000 along each side of the picture, whatever its size."""

    needs_size: bool = False

    def decode(self, numbers: Sequence[float], view: View) -> Box:
        return replace(view, shown=Size(1000, 1000)).to_page(_rectangle(numbers))

    def encode(self, box: Box, view: View) -> tuple[int, int, int, int]:
        return _outward(replace(view, shown=Size(1000, 1000)).from_page(box))


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """``patch`` is the side in pixels of the square that becomes one visual token, merging included."""

    name: FamilyName
    patch: int
    codec: BoxCodec

    def tokens(self, pixels: int) -> int:
        """Visual tokens of a picture whose sides are whole patches."""
        return pixels // (self.patch * self.patch)


FAMILIES = {
    FamilyName.QWEN2_5_VL: ModelFamily(FamilyName.QWEN2_5_VL, 28, AbsoluteCodec()),
    FamilyName.QWEN3_VL: ModelFamily(FamilyName.QWEN3_VL, 32, PerMilleCodec()),
}


def with_margin(box: Box) -> Box:
    """The one padding rule: ``CROP_MARGIN`` on every side, clamped to the page."""
    return box.padded(CROP_MARGIN, CROP_MARGIN)


def snapped_to_words(box: Box, words: Iterable[Word]) -> Box:
    """``box`` grown so that no word whose centre it holds is cut."""
    snapped = box
    for word in words:
        if holds_centre(box, word.box):
            snapped = snapped.union(word.box)
    return snapped


def holds_centre(outer: Box, inner: Box) -> bool:
    x, y = (inner.x0 + inner.x1) / 2, (inner.y0 + inner.y1) / 2
    return outer.x0 <= x <= outer.x1 and outer.y0 <= y <= outer.y1


def model_size(raw: Size, *, patch: int, min_pixels: int, max_pixels: int) -> Size:
    """The size at which a picture goes to a model: sides are multiples of ``patch``, never more than ``max_pixels``.

    The aspect ratio stays as it is as well as whole patches allow. A picture below ``min_pixels`` is enlarged as far as
    ``max_pixels`` permits. Raises ``CoordinateError`` where not even one patch fits.
    """
    if patch < 1 or max_pixels < patch * patch or min_pixels > max_pixels:
        raise CoordinateError(f"no picture fits: patch {patch}, {min_pixels} to {max_pixels} pixels")
    width, height = float(raw.width), float(raw.height)
    if raw.pixels > max_pixels:
        shrink = math.sqrt(max_pixels / raw.pixels)
        columns, rows = math.floor(width * shrink / patch), math.floor(height * shrink / patch)
    elif raw.pixels < min_pixels:
        grow = math.sqrt(min_pixels / raw.pixels)
        columns, rows = math.ceil(width * grow / patch), math.ceil(height * grow / patch)
    else:
        columns, rows = round(width / patch), round(height / patch)
    columns, rows = max(1, columns), max(1, rows)
    most = max_pixels // (patch * patch)
    if columns * rows > most:
        # Rounding up, or a side held at one patch, went over: shorten the longer side.
        if columns >= rows:
            rows = min(rows, most)
            columns = most // rows
        else:
            columns = min(columns, most)
            rows = most // columns
    return Size(columns * patch, rows * patch)


def _rectangle(numbers: Sequence[float]) -> Rectangle:
    if len(numbers) != 4 or not all(math.isfinite(number) for number in numbers):
        raise CoordinateError(f"a box is four numbers [x0, y0, x1, y1], not {_plain(numbers)}")
    return (numbers[0], numbers[1], numbers[2], numbers[3])


def _ordered(rectangle: Rectangle) -> Rectangle:
    x0, y0, x1, y1 = rectangle
    return (min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))


def _outward(rectangle: Rectangle) -> tuple[int, int, int, int]:
    # The small allowance keeps 12.000000001, a product of fractions, from becoming 13.
    x0, y0, x1, y1 = rectangle
    left, upper = math.floor(x0 + 1e-6), math.floor(y0 + 1e-6)
    return (left, upper, max(left + 1, math.ceil(x1 - 1e-6)), max(upper + 1, math.ceil(y1 - 1e-6)))


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))


def _plain(numbers: Sequence[float]) -> str:
    return "[" + ", ".join(f"{number:g}" for number in numbers[:8]) + "]"
