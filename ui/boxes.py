"""Boxes on pictures of pages. Pure: PNG bytes in, PNG bytes out. Boxes are in page fractions, origin top left."""

from __future__ import annotations

import io

from vrag_ray.types import Box

OUTLINE = (214, 40, 40)
ELEMENT_OUTLINE = (58, 110, 190)
CONTEXT = 0.03
"""What a zoomed crop shows around its box on each side, in page fractions."""


def outlined(png: bytes, box: Box, element: Box | None = None, value: Box | None = None) -> bytes:
    """The picture with a line around ``box``, and thin ones around the ``element`` of the page in which that stands and
    around the ``value`` in it.

    The lines run outside of them, so that they hide nothing of them.
    """
    from PIL import Image, ImageDraw

    image = Image.open(io.BytesIO(png)).convert("RGB")
    width, height = image.size
    line = max(2, round(max(width, height) / 400))
    draw = ImageDraw.Draw(image)
    for shown, colour, wide, apart in (
        (element, ELEMENT_OUTLINE, max(1, line // 2), 2 * line),
        (box, OUTLINE, line, line),
        (value, OUTLINE, max(1, line // 2), max(1, line // 2)),
    ):
        if shown is None:
            continue
        edges = (
            max(0, int(shown.x0 * width) - apart),
            max(0, int(shown.y0 * height) - apart),
            min(width - 1, int(shown.x1 * width) + apart),
            min(height - 1, int(shown.y1 * height) + apart),
        )
        draw.rectangle(edges, outline=colour, width=wide)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def with_context(box: Box) -> Box:
    """A little more than ``box``, so that a crop shows what stands beside it."""
    return box.padded(CONTEXT, CONTEXT)


def inside(box: Box, part: Box) -> Box:
    """``box`` in fractions of ``part``, which holds it."""
    wide, high = part.x1 - part.x0, part.y1 - part.y0
    return Box(
        (box.x0 - part.x0) / wide, (box.y0 - part.y0) / high, (box.x1 - part.x0) / wide, (box.y1 - part.y0) / high
    )


def zoom_dpi(box: Box, usual: float, most: float) -> float:
    """The resolution at which a crop of ``box`` is as wide as the whole page at ``usual`` dpi, ``most`` at most."""
    return min(most, usual / max(box.x1 - box.x0, 0.01))
