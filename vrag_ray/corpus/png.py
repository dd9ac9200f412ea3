"""How many pixels a picture will have, known before it is made, and PNG bytes of one that has been made."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING

from vrag_ray.corpus.model import DecodeError
from vrag_ray.types import FULL_PAGE, Box

if TYPE_CHECKING:
    from PIL import Image

NATIVE_DPI = 150.0
"""The dpi at which a picture or video frame is rendered pixel for pixel. A higher one gives no more than that."""


def fitting_scale(width: float, height: float, scale: float, max_pixels: int) -> float:
    """The largest scale, at most ``scale``, at which ``width`` x ``height`` has no more than ``max_pixels`` pixels.

    Sides are rounded up to whole pixels and are at least one.

    Raises:
        DecodeError: the size or the scale is not positive and finite, or no scale fits.
    """
    if not all(math.isfinite(value) and value > 0 for value in (width, height, scale)):
        raise DecodeError(f"cannot be drawn at {width:g} x {height:g} and scale {scale:g}")
    if max_pixels < 1:
        raise DecodeError(f"cannot be drawn in {max_pixels} pixels")
    while _pixels(width, height, scale) > max_pixels:
        scale *= min(0.99, math.sqrt(max_pixels / _pixels(width, height, scale)))
        if width * scale < 1 and height * scale < 1:
            raise DecodeError(f"cannot be drawn in {max_pixels} pixels")
    return scale


def _pixels(width: float, height: float, scale: float) -> int:
    # The rasteriser rounds outwards at both edges, hence one pixel more a side.
    return (math.ceil(width * scale) + 1) * (math.ceil(height * scale) + 1)


def png_bytes(image: Image.Image) -> bytes:
    """PNG without metadata, compressed lightly: encoding is most of the time of a rendering."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()


def crop_png(image: Image.Image, *, dpi: float, box: Box | None, max_pixels: int) -> bytes:
    """PNG of a picture or of ``box`` of it, scaled by ``dpi / 150`` but never above the picture's own pixels."""
    area = box or FULL_PAGE
    x0, x1 = area.x0 * image.width, area.x1 * image.width
    y0, y1 = area.y0 * image.height, area.y1 * image.height
    scale = fitting_scale(x1 - x0, y1 - y0, min(1.0, dpi / NATIVE_DPI), max_pixels)
    size = (max(1, round((x1 - x0) * scale)), max(1, round((y1 - y0) * scale)))
    return png_bytes(resized(image, size, (x0, y0, x1, y1)))


def resized(image: Image.Image, size: tuple[int, int], area: tuple[float, float, float, float]) -> Image.Image:
    """``area`` (pixels) of ``image`` at ``size``; the image itself where nothing changes."""
    from PIL import Image

    if size == image.size and area == (0.0, 0.0, float(image.width), float(image.height)):
        return image
    return image.resize(size, Image.Resampling.LANCZOS, box=area, reducing_gap=2.0)
