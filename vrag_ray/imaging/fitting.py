"""PNG pictures at exactly the pixels a model is to see."""

from __future__ import annotations

import io
import struct

from vrag_ray.imaging.coordinates import Size, model_size
from vrag_ray.types import FULL_PAGE, Box

REFERENCE_DPI = 200.0
"""At this dpi a page counts its own pixels: what is smaller than requested is enlarged, as in the original."""


def size_of(png: bytes) -> Size:
    """Width and height from the header of a PNG."""
    return Size(*struct.unpack(">II", png[16:24]))


def resized(png: bytes, patch: int, min_pixels: int, max_pixels: int) -> tuple[bytes, Size]:
    """A whole picture at the size at which a model is to see it (``model_size``), and that size."""
    size = model_size(size_of(png), patch=patch, min_pixels=min_pixels, max_pixels=max_pixels)
    return fitted(png, size), size


def fitted(png: bytes, size: Size, part: Box = FULL_PAGE) -> bytes:
    """``part`` of a picture at ``size``; the picture itself where nothing changes."""
    from PIL import Image

    if part == FULL_PAGE and size_of(png) == size:
        return png
    with Image.open(io.BytesIO(png)) as image:
        width, height = image.size
        area = (part.x0 * width, part.y0 * height, part.x1 * width, part.y1 * height)
        exact = image.convert("RGB").resize((size.width, size.height), Image.Resampling.LANCZOS, box=area)
    buffer = io.BytesIO()
    exact.save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()
