"""Pictures as large as the context of a model takes them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_BYTES = 750_000
"""Of a picture: a third more in base64 stays below the 1 MB that clients take."""
JPEG_QUALITY = 85
SMALLER = 0.8
"""Factor of both sides from one try to the next."""


class PictureFormat(StrEnum):
    """How a picture is written."""

    AUTO = "auto"
    PNG = "png"
    JPEG = "jpeg"


@dataclass(frozen=True, slots=True)
class FittedPicture:
    """``data`` is a file of ``format`` (png or jpeg); ``reduced_from`` says the size before, where that was another."""

    data: bytes
    format: PictureFormat
    width: int
    height: int
    reduced_from: str = ""


def fitted_picture(png: bytes, *, max_side: int, format: PictureFormat) -> FittedPicture:
    """``png`` with its longer side at most ``max_side`` pixels; with ``auto`` below ``MOST_BYTES`` too.

    Blocking: it takes up to a second. A picture that fits already stays the file that it is.
    """
    from PIL import Image

    with Image.open(io.BytesIO(png), formats=["PNG"]) as opened:
        whole = opened.convert("RGB")
    scale = min(1.0, max_side / max(whole.size))
    if scale == 1.0 and format is not PictureFormat.JPEG and (format is PictureFormat.PNG or len(png) <= MOST_BYTES):
        return FittedPicture(png, PictureFormat.PNG, *whole.size)
    while True:
        width, height = (max(1, round(side * scale)) for side in whole.size)
        shown = whole if scale == 1.0 else whole.resize((width, height), Image.Resampling.LANCZOS)
        kinds = (PictureFormat.PNG, PictureFormat.JPEG) if format is PictureFormat.AUTO else (format,)
        data, kind = min(((_written(shown, each), each) for each in kinds), key=lambda file: len(file[0]))
        if format is not PictureFormat.AUTO or len(data) <= MOST_BYTES:
            reduced = f", reduced from {whole.width} x {whole.height}" if scale < 1.0 else ""
            return FittedPicture(data, kind, width, height, reduced)
        scale *= SMALLER


def _written(picture: Image, format: PictureFormat) -> bytes:
    file = io.BytesIO()
    # Of no effect on PNG.
    picture.save(file, format.value, quality=JPEG_QUALITY)
    return file.getvalue()
