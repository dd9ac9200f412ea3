"""What a picture part of a message names: bytes in the message itself, or a place in a document. Never a URL."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from vrag_ray.serving.errors import InvalidError
from vrag_ray.serving.openai.requests import FileContent, ImageContent

MAX_PICTURE_BYTES = 8 << 20
"""Of one picture in a data URL, decoded."""
_DATA = re.compile(r"data:image/[a-z0-9.+-]{1,32};base64,", re.IGNORECASE)
_PLACE = re.compile(
    r"(?:file-)?(?P<doc>[0-9a-f]{8,64})(?:#(?:page=(?P<page>[1-9]\d{0,5})|t=(?P<t>\d{1,7}(?:\.\d{1,3})?)))?"
)


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """A page (from 1) or a moment (seconds) of a document; neither is set for the document as a whole."""

    doc_id: str
    page: int | None = None
    t: float | None = None


@dataclass(frozen=True, slots=True)
class InlinePicture:
    """The file of a picture, as it was sent: nobody has looked into it yet."""

    data: bytes


def referenced(part: ImageContent | FileContent, where: str) -> DocumentPlace | InlinePicture:
    """What ``part`` names. ``where`` is the part's place in the request; raises InvalidError with it as ``param``."""
    if isinstance(part, FileContent):
        text, param = part.file.file_id, f"{where}.file.file_id"
    else:
        text, param = part.image_url.url, f"{where}.image_url.url"
    data = _DATA.match(text)
    if data is not None and isinstance(part, ImageContent):
        return InlinePicture(_decoded(text[data.end() :], param))
    place = _PLACE.fullmatch(text)
    if place is None:
        raise InvalidError(
            f"{param}: URLs are not fetched and {text[:40]!r} is no id: send data:image/…;base64,… or the id of a "
            "document (file-<id>, <id>#page=2, <id>#t=12.5)",
            param=param,
        )
    page, t = place["page"], place["t"]
    return DocumentPlace(place["doc"], int(page) if page else None, float(t) if t else None)


def _decoded(text: str, param: str) -> bytes:
    if len(text) > MAX_PICTURE_BYTES * 4 // 3 + 4:
        raise InvalidError(f"{param}: the picture has more than {MAX_PICTURE_BYTES >> 20} MiB", param=param)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidError(f"{param}: the data is not base64: {error}", param=param) from error
