"""A heat map laid over the picture of its page."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

COLD = (59, 76, 192)
HOT = (196, 30, 36)
"""Ends of a scale that differs in lightness as well as in hue."""
MOST_OPAQUE = 0.72


def with_heat(png: bytes, heat: NDArray[np.float32]) -> bytes:
    """``png`` tinted by ``heat`` [rows, columns], whose cells cover the page evenly: the hotter, the more opaque.

    Heat is shown relative to its own highest value, so the hottest place of any page looks alike.
    """
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        page = image.convert("RGB")
    level = np.clip(heat / max(float(heat.max()), 1e-9), 0.0, 1.0)
    grey = Image.fromarray((level * 255).astype(np.uint8))
    # Nearest: a patch is what the model compared, and its edges are true.
    level = np.asarray(grey.resize(page.size, Image.Resampling.NEAREST), np.float32)[..., None] / 255
    tint = np.array(COLD, np.float32) * (1 - level) + np.array(HOT, np.float32) * level
    opacity = MOST_OPAQUE * level
    mixed = np.asarray(page, np.float32) * (1 - opacity) + tint * opacity
    buffer = io.BytesIO()
    Image.fromarray(mixed.round().astype(np.uint8)).save(buffer, "PNG", compress_level=3)
    return buffer.getvalue()
