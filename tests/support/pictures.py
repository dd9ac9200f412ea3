"""Pictures as PNG."""

from __future__ import annotations

import io
import random

from PIL import Image


def grey_png(level: int) -> bytes:
    """28 by 28 pixels of one grey."""
    buffer = io.BytesIO()
    Image.new("L", (28, 28), level).save(buffer, "PNG")
    return buffer.getvalue()


def noise_png(width: int, height: int, seed: int = 0) -> bytes:
    """Noise of that size: the same for the same ``seed``."""
    data = io.BytesIO()
    noise = random.Random(f"{width} {height} {seed}").randbytes(width * height * 3)
    Image.frombytes("RGB", (width, height), noise).save(data, "PNG")
    return data.getvalue()
