"""The pipe between the parent and the decoding child: framed JSON with a binary attachment, checked on arrival.

The child may be taken over by what it decodes, so nothing is unpickled and every length is bounded before it is read.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, TypeAdapter, ValidationError

from vrag_ray.config import DecodeLimits
from vrag_ray.corpus.model import DecodedUnit, DecodeError, DecodeOptions, Probe, Sidecar, WorkItem
from vrag_ray.corpus.sniff import Format
from vrag_ray.types import Box, DocumentKind, Locator, PageText, VragError
from vrag_ray.types.file_names import path_of

HEAD = struct.Struct(">II")
LONGEST_MESSAGE = 64 * 2**20
"""Bytes of JSON in one frame. A text unit is cut long before this."""

AbsolutePath = Annotated[
    Path, PlainValidator(lambda path: path_of(str(path)).absolute()), PlainSerializer(Path.as_uri, return_type=str)
]
"""The child works in another directory than its parent. A path travels as a URI, since it may be no UTF-8."""


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Start(_Message):
    """The first message to a child, and only the first."""

    limits: DecodeLimits


class ProbeRequest(_Message):
    """``cautious`` leaves page content alone: the second try after a child was killed by looking for a title."""

    op: Literal["probe"] = "probe"
    path: AbsolutePath
    name: str
    options: DecodeOptions
    cautious: bool
    sidecars: tuple[Sidecar, ...] = ()
    pages: AbsolutePath | None = None
    """What LibreOffice made of the file at ``path``: that is opened, and named and attached is what is in the file."""


class FormatRequest(_Message):
    """What the bytes are, without opening them."""

    op: Literal["format"] = "format"
    path: AbsolutePath
    name: str


class DecodeRequest(_Message):
    op: Literal["decode"] = "decode"
    path: AbsolutePath
    item: WorkItem
    options: DecodeOptions


class PageTextRequest(_Message):
    """``format`` is what the document's metadata says of it: "" for one without. ``notes`` has those of its slides."""

    op: Literal["page_text"] = "page_text"
    format: str = ""
    notes: AbsolutePath | None = None
    path: AbsolutePath
    kind: DocumentKind
    locator: Locator
    options: DecodeOptions


class RenderRequest(_Message):
    op: Literal["render"] = "render"
    path: AbsolutePath
    kind: DocumentKind
    locator: Locator
    options: DecodeOptions
    dpi: float
    box: Box | None
    max_pixels: int


class FramesRequest(_Message):
    op: Literal["frames"] = "frames"
    path: AbsolutePath
    locator: Locator
    options: DecodeOptions
    max_pixels: int


class AttachmentsRequest(_Message):
    op: Literal["attachments"] = "attachments"
    path: AbsolutePath
    name: str
    options: DecodeOptions


Request = Annotated[
    ProbeRequest | FormatRequest | DecodeRequest | PageTextRequest | RenderRequest | FramesRequest | AttachmentsRequest,
    Field(discriminator="op"),
]


class ProbeReply(_Message):
    reply: Literal["probe"] = "probe"
    probe: Probe


class FormatReply(_Message):
    reply: Literal["format"] = "format"
    format: Format


class UnitReply(_Message):
    """``detail`` is the message of a library where the unit has an error, for a log."""

    reply: Literal["unit"] = "unit"
    unit: DecodedUnit
    detail: str = ""


class OcrNotice(_Message):
    """The child begins to read a picture, or half a minute of speech: it is granted ``ocr_seconds`` more."""

    reply: Literal["ocr"] = "ocr"


class ReadingReply(_Message):
    """The attachment is what OCR read, a ``Reading`` in bytes, for the cache: the child itself writes no file."""

    reply: Literal["reading"] = "reading"
    key: str = Field(pattern=r"^[0-9a-f]{64}$")


class PageTextReply(_Message):
    reply: Literal["page_text"] = "page_text"
    page_text: PageText


class PictureReply(_Message):
    """The attachment is a PNG; ``t`` is the time of a video frame."""

    reply: Literal["picture"] = "picture"
    t: float | None = None


class AttachmentReply(_Message):
    """The attachment of the frame is the content of a file that is attached to the document."""

    reply: Literal["attachment"] = "attachment"
    name: str


class DoneReply(_Message):
    reply: Literal["done"] = "done"


class ErrorReply(_Message):
    """``message`` lacks the file name, which only the parent knows; ``detail`` is a library's message, for a log.

    ``memory`` means that the child ends itself.
    """

    reply: Literal["error"] = "error"
    message: str
    detail: str = ""
    memory: bool = False


ChildReply = Annotated[
    ProbeReply
    | FormatReply
    | UnitReply
    | OcrNotice
    | ReadingReply
    | PageTextReply
    | PictureReply
    | AttachmentReply
    | DoneReply
    | ErrorReply,
    Field(discriminator="reply"),
]

_REQUESTS: TypeAdapter[Request] = TypeAdapter(Request)
_REPLIES: TypeAdapter[ChildReply] = TypeAdapter(ChildReply)


def pack(message: BaseModel, attachment: bytes = b"") -> bytes:
    """One frame: two lengths, the JSON, the attachment."""
    header = message.model_dump_json().encode()
    return HEAD.pack(len(header), len(attachment)) + header + attachment


def read_start(stream: BinaryIO) -> Start | None:
    """The first message of the parent, which is trusted; None where it has already closed the pipe."""
    header = _read_header(stream)
    return None if header is None else Start.model_validate_json(header)


def read_request(stream: BinaryIO) -> Request | None:
    """The next request of the parent, which is trusted; None once it has closed the pipe."""
    header = _read_header(stream)
    return None if header is None else _REQUESTS.validate_json(header)


def _read_header(stream: BinaryIO) -> bytes | None:
    head = stream.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    length, _ = HEAD.unpack(head)
    return stream.read(length)


class ReplyBuffer:
    """Bytes from the child in, checked replies out. Longer frames than allowed are refused before they are stored."""

    def __init__(self, longest_attachment: int) -> None:
        self._longest_attachment = longest_attachment
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def take(self) -> tuple[ChildReply, bytes] | None:
        """The next whole reply and its attachment, or None until more bytes come.

        Raises:
            DecodeError: the bytes are no reply, or one longer than allowed.
        """
        if len(self._bytes) < HEAD.size:
            return None
        header, attachment = HEAD.unpack_from(self._bytes)
        if header > LONGEST_MESSAGE or attachment > self._longest_attachment:
            raise DecodeError(f"its reply of {header} + {attachment} bytes is longer than allowed")
        end = HEAD.size + header + attachment
        if len(self._bytes) < end:
            return None
        text = bytes(self._bytes[HEAD.size : HEAD.size + header])
        body = bytes(self._bytes[HEAD.size + header : end])
        del self._bytes[:end]
        try:
            return _REPLIES.validate_json(text), body
        except (ValidationError, VragError) as error:
            raise DecodeError(f"its reply is malformed: {error}") from error
