"""Pictures at the size that an embedder wants."""

from __future__ import annotations

from vrag_ray.embedding.base import PictureSpec
from vrag_ray.imaging import fitting
from vrag_ray.imaging.coordinates import Size, model_size


def fitted_to(png: bytes, spec: PictureSpec) -> bytes:
    """A PNG of RGB resized to what ``spec`` asks for; the picture itself where it is so already."""
    if spec.side is not None:
        return fitting.fitted(png, Size(spec.side, spec.side))
    size = model_size(fitting.size_of(png), patch=spec.patch, min_pixels=spec.min_pixels, max_pixels=spec.max_pixels)
    return fitting.fitted(png, size)


def frame_spec(spec: PictureSpec) -> PictureSpec:
    """How a frame of a clip is to be drawn."""
    pixels = spec.frame_pixels or spec.max_pixels
    return PictureSpec(spec.patch, min(spec.min_pixels, pixels), pixels, spec.side)
