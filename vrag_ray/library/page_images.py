"""Pictures exactly as large as a model is to see them: drawn at the dpi that takes, then fitted to the patch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from vrag_ray.agent.chat import Picture, PictureRequest
from vrag_ray.imaging import fitting
from vrag_ray.imaging.coordinates import Size, model_size
from vrag_ray.types import FULL_PAGE, Box, DocumentKind, Locator

NATIVE_DPI = 150.0
"""At this dpi the library draws pictures and video frames pixel for pixel."""
POINTS_PER_INCH = 72.0

Draw = Callable[[Locator, float, Box | None], Awaitable[bytes]]
"""PNG of a place, or of a box of it, at a dpi."""


async def fitted(request: PictureRequest, kind: DocumentKind, page_size: tuple[float, float], draw: Draw) -> Picture:
    """``page_size`` is width and height in points (PDF) or pixels. Raises what ``draw`` raises."""
    base = fitting.REFERENCE_DPI if kind is DocumentKind.PDF else NATIVE_DPI
    dots = base / POINTS_PER_INCH if kind is DocumentKind.PDF else 1.0
    region = request.region or FULL_PAGE
    raw = Size(
        max(1, round(page_size[0] * dots * (region.x1 - region.x0))),
        max(1, round(page_size[1] * dots * (region.y1 - region.y0))),
    )
    size = model_size(raw, patch=request.patch, min_pixels=request.min_pixels, max_pixels=request.max_pixels)
    scale = max(size.width / raw.width, size.height / raw.height)
    png = await draw(place_of(request), base * scale, request.region)
    return Picture(await asyncio.to_thread(fitting.fitted, png, size), size)


def place_of(request: PictureRequest) -> Locator:
    """What is drawn: the page, or the frame of a video, by default the middle one of its clip."""
    start, end = request.locator.t_start, request.locator.t_end
    if start is None or end is None:
        return request.locator
    moment = request.t_frame if request.t_frame is not None else (start + end) / 2
    return Locator(t_start=moment, t_end=moment)
