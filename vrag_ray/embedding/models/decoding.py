"""Contents with their pictures decoded, from PNG bytes to what processors take."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vrag_ray.embedding.base import Content, EmbedError, Modality

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PICTURE_PIXELS = 50_000_000
"""No page is drawn larger; beyond it a picture is refused before it takes the memory."""


@dataclass(frozen=True, slots=True)
class DecodedContent:
    """A ``Content`` whose picture and frames are RGB pictures."""

    text: str = ""
    picture: Image | None = None
    frames: tuple[Image, ...] = ()
    frame_times: tuple[float, ...] = ()

    @property
    def modality(self) -> Modality:
        return Modality.of(self.picture, self.frames)


def decoded_content(content: Content) -> DecodedContent:
    """Raises EmbedError as ``decoded``, and where frames and times do not fit each other. Needs no lock, and most of
    its time is spent without Python's."""
    picture = decoded(content.picture) if content.picture is not None else None
    frames = _decoded_frames(content.frames, content.frame_times)
    return DecodedContent(content.text, picture, frames, content.frame_times)


def decoded(png: bytes) -> Image:
    """An RGB picture. Raises EmbedError where the bytes are no PNG, broken, or too large.

    Contents hold PNG files that the decoding sandbox wrote; nothing else is decoded here.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
            width, height = image.size
            if width * height > MAX_PICTURE_PIXELS:
                raise EmbedError(
                    f"the picture has {width} x {height} pixels; at most {MAX_PICTURE_PIXELS} are embedded"
                )
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise EmbedError(f"the picture is not a whole PNG: {error}") from error


def _decoded_frames(frames: Sequence[bytes], times: Sequence[float]) -> tuple[Image, ...]:
    """The frames of a clip, all of one size, a time each."""
    if len(frames) != len(times):
        raise EmbedError(f"the clip has {len(frames)} frames, but {len(times)} times: give one a frame")
    images = tuple(map(decoded, frames))
    if len({image.size for image in images}) > 1:
        raise EmbedError("the frames of the clip differ in size: draw them all at one size")
    return images
