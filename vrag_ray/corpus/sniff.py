"""What a file is: its first bytes decide, its name only where they cannot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath

from vrag_ray.corpus.model import DecodeError
from vrag_ray.types import DocumentKind

HEAD_BYTES = 1024


class Format(StrEnum):
    """The formats told apart. Text formats have no signature: the name tells them."""

    PDF = "PDF"
    JPEG = "JPEG"
    PNG = "PNG"
    WEBP = "WebP"
    TIFF = "TIFF"
    GIF = "GIF"
    VIDEO = "video"
    SOUND = "sound recording"
    TEXT = "text"


SUFFIXES: dict[str, Format] = {
    ".pdf": Format.PDF,
    ".jpg": Format.JPEG,
    ".jpeg": Format.JPEG,
    ".png": Format.PNG,
    ".webp": Format.WEBP,
    ".tif": Format.TIFF,
    ".tiff": Format.TIFF,
    ".gif": Format.GIF,
    ".mp4": Format.VIDEO,
    ".m4v": Format.VIDEO,
    ".mov": Format.VIDEO,
    ".mkv": Format.VIDEO,
    ".webm": Format.VIDEO,
    ".avi": Format.VIDEO,
    ".3gp": Format.VIDEO,
    ".3g2": Format.VIDEO,
    ".ts": Format.VIDEO,
    ".mts": Format.VIDEO,
    ".m2ts": Format.VIDEO,
    ".mpg": Format.VIDEO,
    ".mpeg": Format.VIDEO,
    ".vob": Format.VIDEO,
    ".flv": Format.VIDEO,
    ".ogv": Format.VIDEO,
    ".wmv": Format.VIDEO,
    ".asf": Format.VIDEO,
    ".mp3": Format.SOUND,
    ".wav": Format.SOUND,
    ".m4a": Format.SOUND,
    ".m4b": Format.SOUND,
    ".ogg": Format.SOUND,
    ".oga": Format.SOUND,
    ".opus": Format.SOUND,
    ".flac": Format.SOUND,
    ".aac": Format.SOUND,
    ".wma": Format.SOUND,
    ".mka": Format.SOUND,
    ".srt": Format.TEXT,
    ".vtt": Format.TEXT,
    ".ass": Format.TEXT,
    ".txt": Format.TEXT,
    ".md": Format.TEXT,
    ".json": Format.TEXT,
    ".jsonl": Format.TEXT,
}
"""Every suffix that ingest takes from a folder, and what it promises."""

SUPPORTED = (
    "PDF, JPEG, PNG, WebP, TIFF, GIF, video (MP4, MOV, MKV, WebM, AVI, …), sound (MP3, WAV, …), "
    ".txt, .md, .json and .jsonl"
)
_KINDS = {
    Format.PDF: DocumentKind.PDF,
    Format.VIDEO: DocumentKind.VIDEO,
    Format.SOUND: DocumentKind.VIDEO,
    Format.TEXT: DocumentKind.TEXT,
}
_MEDIA = frozenset({Format.VIDEO, Format.SOUND})
"""The same containers hold both: neither name is wrong for the other."""
_SIGNATURES = (
    (b"%PDF-", 0, Format.PDF),
    (b"\xff\xd8\xff", 0, Format.JPEG),
    (b"\x89PNG\r\n\x1a\n", 0, Format.PNG),
    (b"GIF87a", 0, Format.GIF),
    (b"GIF89a", 0, Format.GIF),
    (b"II*\x00", 0, Format.TIFF),
    (b"MM\x00*", 0, Format.TIFF),
    (b"WEBP", 8, Format.WEBP),
    (b"AVI ", 8, Format.VIDEO),
    (b"\x1aE\xdf\xa3", 0, Format.VIDEO),
    (b"\x00\x00\x01\xba", 0, Format.VIDEO),
    (b"FLV\x01", 0, Format.VIDEO),
    (b"OggS", 0, Format.VIDEO),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", 0, Format.VIDEO),
    (b"WAVE", 8, Format.SOUND),
    (b"fLaC", 0, Format.SOUND),
    (b"ID3", 0, Format.SOUND),
)
_QUICKTIME_ATOMS = frozenset({b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"})
"""How a QuickTime file older than ``ftyp`` may begin."""
_SOURCE_SUFFIXES = frozenset({".ts", ".mts"})
"""Of video, and of TypeScript's source texts."""
_STILL_PICTURE_BRANDS = frozenset({b"avif", b"avis", b"heic", b"heix", b"heif", b"mif1", b"msf1"})


@dataclass(frozen=True, slots=True)
class Sniffed:
    kind: DocumentKind
    format: Format


def sniff(path: Path, name: str) -> Sniffed:
    """The kind and format of the bytes at ``path``, whose original file name is ``name``.

    Raises:
        DecodeError: empty, of no supported format, or of another supported format than the name says.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise DecodeError("is empty: get it again, or leave it out")
    suffix = PurePath(name).suffix.lower()
    claimed = SUFFIXES.get(suffix)
    found = _by_content(head, claimed)
    if found is None and claimed is Format.VIDEO and suffix in _SOURCE_SUFFIXES and b"\x00" not in head:
        claimed = Format.TEXT
    if found is not None and claimed is not None and found is not claimed and not {found, claimed} <= _MEDIA:
        raise DecodeError(f"is a {found} although it is named {suffix}: rename it")
    is_page = _is_web_page(head)
    if found is None and (claimed not in (None, Format.PDF, Format.TEXT) or (claimed is Format.PDF and is_page)):
        # A video is never taken at its name: FFmpeg would follow a playlist under it to other files.
        seems = "it is a web page" if is_page else "it is something else, or its beginning is lost"
        raise DecodeError(f"is named {suffix} but holds no {claimed}: {seems}; get it again, or name it by what it is")
    format_ = found or claimed
    if format_ is None:
        if suffix or b"\x00" in head:
            raise DecodeError(
                f"is of no supported kind: export it as PDF, or rename it to .txt if it is plain text; supported are "
                f"{SUPPORTED}"
            )
        format_ = Format.TEXT
    return Sniffed(_KINDS.get(format_, DocumentKind.IMAGE), format_)


def _is_web_page(head: bytes) -> bool:
    """As servers send in place of a file: a page that asks for a login, or says that there is no such file."""
    return head.lstrip().lower().startswith((b"<!doctype html", b"<html"))


def fitting_name(name: str, head: bytes, *, is_text: bool) -> str:
    """``name`` for a content that begins with ``head``, with a suffix that ``sniff`` believes.

    For contents that come without a file of their own: what names them there need not be a file name, and who is told
    that a picture has the wrong suffix could not rename it. ``is_text`` says that no look at the content is needed.
    """
    claimed = SUFFIXES.get(PurePath(name).suffix.lower())
    try:
        found = Format.TEXT if is_text else _by_content(head, claimed) or claimed or Format.TEXT
    except DecodeError:
        # ``sniff`` will say so, of the document.
        return name
    if found is claimed:
        return name
    suffix = next(suffix for suffix, format_ in SUFFIXES.items() if format_ is found)
    return (PurePath(name).stem if claimed else name) + suffix


def _by_content(head: bytes, claimed: Format | None) -> Format | None:
    if head.startswith(b"PAR1"):
        raise DecodeError(
            "is a Parquet file: its rows become documents where `vrag ingest` is given the file, its folder or its "
            "URI, not by an upload or a manifest"
        )
    for signature, offset, format_ in _SIGNATURES:
        if head.startswith(signature, offset):
            return format_
    if head[4:8] == b"ftyp":
        if head[8:12] in _STILL_PICTURE_BRANDS:
            raise DecodeError("is a HEIF or AVIF picture, which is not supported: save it as JPEG or PNG")
        return Format.VIDEO
    if claimed in _MEDIA and head[4:8] in _QUICKTIME_ATOMS:
        return Format.VIDEO
    if _is_transport_stream(head):
        return Format.VIDEO
    if claimed is Format.SOUND and head[0] == 0xFF and head[1:2] >= b"\xe0":
        # The frames of MP3 and AAC begin so, and much else may.
        return Format.SOUND
    # Junk before the header is common in the wild; only a name that says PDF makes it one.
    return Format.PDF if claimed is Format.PDF and b"%PDF-" in head else None


def _is_transport_stream(head: bytes) -> bool:
    """MPEG-TS: packets of 188 bytes that begin with 0x47, behind a time of four bytes in those of cameras."""
    return any(
        len(head) > at + 2 * size and {head[at + k * size] for k in range(3)} == {0x47}
        for at, size in ((0, 188), (4, 192))
    )
