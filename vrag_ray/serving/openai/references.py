"""What a picture part of a message names: bytes in the message itself, or a place in a document. No URL is fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vrag_ray.serving.openai.requests import FileContent, ImageContent
from vrag_ray.serving.sent_pictures import is_data_url, sent_file
from vrag_ray.types import InvalidError

_PLACE = re.compile(
    r"(?:file-)?(?P<doc>[0-9a-f]{8,64})(?:#(?:page=(?P<page>[1-9]\d{0,5})|t=(?P<t>\d{1,7}(?:\.\d{1,3})?)))?"
)
_ADDRESS = re.compile(
    r"https?://[^/\s]+/v1/documents/(?P<doc>[0-9a-f]{8,64})"
    r"/(?:pages/(?P<page>[1-9]\d{0,5})\.png|frames/(?P<t>\d{1,7}(?:\.\d{1,3})?)\.png|original)(?:[?#]\S*)?"
)
"""The address of a page, a frame or a document, as annotations give it. It is read, and never fetched."""


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
    if isinstance(part, ImageContent) and is_data_url(text):
        return InlinePicture(sent_file(text, param))
    place = _PLACE.fullmatch(text) or _ADDRESS.fullmatch(text)
    if place is None:
        raise InvalidError(
            f"{param}: URLs are not fetched and {text[:40]!r} is no id: send data:image/…;base64,… or the id of a "
            "document (file-<id>, <id>#page=2, <id>#t=12.5)",
            param=param,
        )
    page, t = place["page"], place["t"]
    return DocumentPlace(place["doc"], int(page) if page else None, float(t) if t else None)
