"""Boxes on pictures of pages. Pure: PNG bytes in, PNG bytes out. Boxes are in page fractions, origin top left."""

from __future__ import annotations

import io

from vrag_ray.types import Box

OUTLINE = (214, 40, 40)
CONTEXT = 0.03
"""What a zoomed crop shows around its box on each side, in page fractions."""


def outlined(png: bytes, box: Box) -> bytes:
    """The picture with a line around ``box``; the line runs outside of it, so that it hides nothing."""
    from PIL import Image, ImageDraw

    image = Image.open(io.BytesIO(png)).convert("RGB")
    width, height = image.size
    line = max(2, round(max(width, height) / 400))
    edges = (
        max(0, int(box.x0 * width) - line),
        max(0, int(box.y0 * height) - line),
        min(width - 1, int(box.x1 * width) + line),
        min(height - 1, int(box.y1 * height) + line),
    )
    ImageDraw.Draw(image).rectangle(edges, outline=OUTLINE, width=line)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def with_context(box: Box) -> Box:
    """A little more than ``box``, so that a crop shows what stands beside it."""
    return box.padded(CONTEXT, CONTEXT)


def zoom_dpi(box: Box, usual: float, most: float) -> float:
    """The resolution at which a crop of ``box`` is as wide as the whole page at ``usual`` dpi, ``most`` at most."""
    return min(most, usual / max(box.x1 - box.x0, 0.01))
