"""A perceptual hash: pictures that look alike have hashes that differ in few bits."""

from __future__ import annotations

import io

import numpy as np

SIDE = 8


def difference_hash(png: bytes) -> int:
    """64 bits of a PNG: whether each of 8 x 8 grey cells is darker than its right neighbour (dHash, Krawetz 2013)."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        small = image.convert("L").resize((SIDE + 1, SIDE), Image.Resampling.BOX)
    cells = np.asarray(small, np.int16)
    darker = cells[:, :-1] < cells[:, 1:]
    return int.from_bytes(np.packbits(darker).tobytes(), "big")
