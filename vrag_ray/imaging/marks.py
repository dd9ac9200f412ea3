"""Numbers of the elements of a page, drawn on its picture for a model that sees (set-of-mark prompting, arXiv
2310.11441): in margins beside the page, or at outlines around its elements."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.config import Marks
from vrag_ray.imaging.coordinates import Size, model_size
from vrag_ray.types import Box

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

RIGHT_FROM = 0.55
"""An element whose centre lies to the right of this share of the picture's width has its number in the right margin."""
FONT_PIXELS = 14
"""Of the numbers: their digits are 10 pixels high."""
LINE_PIXELS = 12
"""From one number of a margin to the next, at least, where there is room for all of them."""
BRACKET_PIXELS = 4
"""Of a margin, next to the page: lines as long as the elements are high."""
STROKE_PIXELS = 0.35
"""Around each number, which makes it bolder."""
MARGIN_COLOUR = (238, 241, 245)
COLOURS = ((196, 24, 32), (16, 82, 190), (0, 112, 60), (140, 50, 160), (176, 88, 0))
"""Dark on white, and each unlike the next: neighbours can be distinguished."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The number of an element. ``box`` is in fractions of what the picture shows of the page."""

    number: int
    box: Box


@dataclass(frozen=True, slots=True)
class PictureMarks:
    """What is drawn on a picture: ``marks``, at least one, in ``style``, which is a style for pictures.

    ``aspect`` is the width of what the picture shows of the page over its height.
    """

    style: Marks
    marks: tuple[Mark, ...]
    aspect: float

    def margins(self, patch: int) -> tuple[int, int]:
        """Pixels at the left and at the right that are added to the page: a column of patches on each side that has
        numbers."""
        if self.style is not Marks.MARGIN:
            return (0, 0)
        right = sum(map(_is_right, self.marks))
        return (patch * (right < len(self.marks)), patch * (right > 0))

    def page_pixels(self, patch: int, max_pixels: int) -> int:
        """Most pixels of a page so that with its margins it has at most ``max_pixels``; at least those of a patch."""
        columns = sum(self.margins(patch)) // patch
        # A page of n patches has sqrt(n / aspect) rows, each of which is longer by the columns of the margins.
        half = columns / math.sqrt(self.aspect) / 2
        side = math.sqrt(half * half + max_pixels // patch**2) - half
        return max(1, math.floor(side * side)) * patch**2


@dataclass(frozen=True, slots=True)
class MarkedPicture:
    """A PNG at ``size``, of which ``left`` and ``right`` pixels of the width are margins."""

    png: bytes
    size: Size
    left: int
    right: int


def marked(png: bytes, marks: PictureMarks, patch: int, max_pixels: int) -> MarkedPicture:
    """``png`` at the size at which a model is to see it, with ``marks``.

    A picture that with its margins has more than ``max_pixels`` is made smaller by whole patches. Raises
    ``CoordinateError`` where not even one patch of it fits, ``OSError`` for what is no picture.
    """
    from PIL import Image

    left, right = marks.margins(patch)
    with Image.open(io.BytesIO(png)) as image:
        page = image.convert("RGB")
    size = Size(*page.size)
    room = max_pixels - (left + right) * size.height
    if size.pixels > room:
        size = model_size(size, patch=patch, min_pixels=0, max_pixels=room)
        page = page.resize((size.width, size.height), Image.Resampling.LANCZOS)
    picture = draw_marks(page, marks, left, right)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=3)
    return MarkedPicture(buffer.getvalue(), Size(*picture.size), left, right)


def draw_marks(page: Image, marks: PictureMarks, left: int, right: int) -> Image:
    """``page`` (RGB) with ``marks``, extended by margins of ``left`` and ``right`` pixels; it is not changed itself."""
    from PIL import Image

    if marks.style is Marks.BOXES:
        return _with_boxes(page.copy(), marks.marks)
    picture = Image.new("RGB", (left + page.width + right, page.height), MARGIN_COLOUR)
    picture.paste(page, (left, 0))
    if left:
        _number_margin(picture, [mark for mark in marks.marks if not _is_right(mark)], left, outward=-1, room=left)
    if right:
        _number_margin(picture, list(filter(_is_right, marks.marks)), left + page.width - 1, outward=1, room=right)
    return picture


def spread(places: Sequence[float], distance: float, end: float) -> list[float]:
    """``places``, which grow, moved as little as possible (in squares) so that each is ``distance`` from the next and
    half of it from 0 and ``end``. Where not all have room for that, they are evenly as close as they have to be.
    """
    distance = min(distance, end / max(1, len(places)))
    # Without the distances it is a sequence that must not fall: means of neighbours that would (pool adjacent).
    pools: list[tuple[float, int]] = []
    for index, place in enumerate(places):
        mean, count = place - index * distance, 1
        while pools and pools[-1][0] > mean:
            before, members = pools.pop()
            mean, count = (before * members + mean * count) / (members + count), members + count
        pools.append((mean, count))
    level = [mean for mean, count in pools for _ in range(count)]
    least, most = distance / 2, end - distance / 2 - (len(places) - 1) * distance
    return [max(least, min(most, mean)) + index * distance for index, mean in enumerate(level)]


def _is_right(mark: Mark) -> bool:
    return (mark.box.x0 + mark.box.x1) / 2 > RIGHT_FROM


def _number_margin(picture: Image, marks: Sequence[Mark], edge: int, *, outward: int, room: int) -> None:
    """``marks`` in the margin of ``room`` pixels beside the column of pixels ``edge``, where the page begins or ends;
    ``outward`` is -1 for the left one, 1 for the right one."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(picture)
    ordered = sorted(marks, key=lambda mark: (mark.box.y0, mark.box.x0))
    font = _font([mark.number for mark in marks], room - BRACKET_PIXELS - 2)
    height = picture.height
    spans = [(math.floor(mark.box.y0 * height), min(height - 1, math.ceil(mark.box.y1 * height))) for mark in ordered]
    # At the first line of what is higher than a line or two, in the middle of what is not.
    heights = [upper + min((lower - upper) / 2, LINE_PIXELS * 0.75) for upper, lower in spans]
    spine = edge + outward * (BRACKET_PIXELS - 1)
    for place, (mark, (upper, lower), middle, y) in enumerate(
        zip(ordered, spans, heights, spread(heights, LINE_PIXELS, height), strict=True)
    ):
        colour = COLOURS[place % len(COLOURS)]
        ends = [(edge + outward, upper), (spine, upper), (spine, lower), (edge + outward, lower)]
        draw.line(ends, fill=colour)
        text = edge + outward * (BRACKET_PIXELS + 2)
        draw.line([(spine, middle), (text - outward, y)], fill=colour)
        anchor = "lm" if outward > 0 else "rm"
        draw.text((text, y), str(mark.number), colour, font, anchor, stroke_width=STROKE_PIXELS, stroke_fill=colour)


def _with_boxes(picture: Image, marks: Sequence[Mark]) -> Image:
    """Outlines first, then the numbers over them, each where it hides the least of the elements."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(picture)
    scale = np.array([picture.width, picture.height, picture.width, picture.height])
    boxes = np.array([mark.box.as_tuple() for mark in marks]) * scale
    outlines = np.clip(np.round(boxes + np.array([-2, -2, 2, 2])), 0, scale - 1).astype(int)
    for place, outline in enumerate(outlines.tolist()):
        draw.rectangle(tuple(outline), outline=COLOURS[place % len(COLOURS)])
    font = _font([mark.number for mark in marks], picture.width)
    taken = outlines.astype(float)
    for place, mark in enumerate(marks):
        x0, y0, x1, _ = outlines[place].tolist()
        ink = font.getbbox(str(mark.number), anchor="lt")
        wide, high = math.ceil(ink[2]) + 2, math.ceil(ink[3]) + 2
        corners = np.array([(x0 - wide, y0), (x0, y0 - high), (x1 + 1, y0), (x0 + 1, y0 + 1)], float)
        extent = np.array([wide, high])
        corners = np.clip(corners, 0, scale[:2] - extent)
        tags = np.hstack([corners, corners + extent])
        shared = np.minimum(tags[:, None, 2:], taken[None, :, 2:]) - np.maximum(tags[:, None, :2], taken[None, :, :2])
        hidden = np.clip(shared, 0, None).prod(axis=2).sum(axis=1)
        tag = tags[int(np.argmin(hidden))]
        # A number that lies over another is worse than one that lies over words.
        taken = np.vstack([taken, tag, tag])
        left, upper, right, lower = tag.tolist()
        colour = COLOURS[place % len(COLOURS)]
        draw.rectangle((left, upper, right - 1, lower - 1), fill=(255, 255, 255))
        draw.text(
            (left + 1, upper + 1), str(mark.number), colour, font, "lt", stroke_width=STROKE_PIXELS, stroke_fill=colour
        )
    return picture


def _font(numbers: Sequence[int], room: int) -> FreeTypeFont | ImageFont:
    """In which the widest of ``numbers`` takes at most ``room`` pixels."""
    from PIL import ImageFont

    widest = str(max(numbers))
    font = ImageFont.load_default(FONT_PIXELS)
    wide = font.getbbox("0" * len(widest))[2]
    return font if wide <= room else ImageFont.load_default(max(6, FONT_PIXELS * room / wide))
