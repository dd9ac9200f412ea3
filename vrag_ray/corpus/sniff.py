"""What a file is: its first bytes decide, its name only where they cannot."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePath
from typing import BinaryIO

from vrag_ray.corpus.model import DecodeError
from vrag_ray.types import DocumentKind

HEAD_BYTES = 1024


class Format(StrEnum):
    """The formats that are read. Text formats have no signature: the name tells them."""

    PDF = "PDF"
    JPEG = "JPEG"
    PNG = "PNG"
    WEBP = "WebP"
    TIFF = "TIFF"
    GIF = "GIF"
    BMP = "BMP"
    PPM = "PPM"
    JPEG2000 = "JPEG 2000"
    HEIF = "HEIF"
    AVIF = "AVIF"
    VIDEO = "video"
    SOUND = "sound recording"
    TEXT = "text"
    MARKDOWN = "Markdown"
    """A text by its content, and of that format by its name alone, as the next four."""
    ASCIIDOC = "AsciiDoc"
    RST = "reStructuredText"
    TEX = "TeX"
    ORG = "Org"
    NOTEBOOK = "Jupyter notebook"
    """JSON by its content, and of that format by its name alone."""
    JSON = "JSON"
    JSON_LINES = "JSON Lines"
    XML = "XML"
    CALENDAR = "calendar or contacts"
    """By its name alone."""
    SUBTITLES = "subtitles"
    """By its name alone."""
    TABLE = "table"
    MAIL = "e-mail"
    MSG = "Outlook message"
    HTML = "web page"
    DOCX = "DOCX"
    PPTX = "PPTX"
    XLSX = "XLSX"
    DOC = "DOC"
    PPT = "PPT"
    XLS = "XLS"
    ODT = "ODT"
    ODP = "ODP"
    ODS = "ODS"
    RTF = "RTF"
    EPUB = "EPUB"
    XPS = "XPS"
    CBZ = "CBZ"
    MOBI = "MOBI"
    FB2 = "FB2"
    SVG = "SVG"


OFFICE = frozenset(
    (
        Format.DOCX, Format.PPTX, Format.XLSX, Format.DOC, Format.PPT, Format.XLS, Format.ODT, Format.ODP, Format.ODS,
        Format.RTF,
    )
)  # fmt: skip
PICTURES = frozenset(
    (
        Format.JPEG, Format.PNG, Format.WEBP, Format.TIFF, Format.GIF, Format.BMP, Format.PPM, Format.JPEG2000,
        Format.HEIF, Format.AVIF,
    )
)  # fmt: skip
PLAIN_TEXTS = frozenset(
    (
        Format.TEXT, Format.NOTEBOOK, Format.JSON, Format.JSON_LINES, Format.XML, Format.CALENDAR, Format.SUBTITLES,
    )
)  # fmt: skip
TEXTS = PLAIN_TEXTS | {Format.TABLE, Format.MAIL, Format.MSG}
REFLOWED = frozenset(
    (Format.HTML, Format.DOCX, Format.PPTX, Format.XLSX, Format.EPUB, Format.MOBI, Format.FB2)
)  # fmt: skip
"""Formats that have no pages of their own: they are laid out as pages here, not as the program that wrote them does."""

_SUFFIXES_OF: dict[Format, str] = {
    Format.PDF: ".pdf",
    Format.JPEG: ".jpg .jpeg",
    Format.PNG: ".png .apng",
    Format.WEBP: ".webp",
    Format.TIFF: ".tif .tiff",
    Format.GIF: ".gif",
    Format.BMP: ".bmp .dib",
    Format.PPM: ".ppm .pgm .pbm .pnm",
    Format.JPEG2000: ".jp2 .j2k .jpx",
    Format.HEIF: ".heic .heif",
    Format.AVIF: ".avif",
    Format.VIDEO: (".mp4 .m4v .mov .mkv .webm .avi .3gp .3g2 .ts .mts .m2ts .mpg .mpeg .vob .flv .ogv .wmv .asf"),
    Format.SOUND: ".mp3 .wav .m4a .m4b .ogg .oga .opus .flac .aac .wma .mka",
    Format.TEXT: (
        ".txt .md .markdown .mdown .mkd .mdx .qmd .rmd .log .rst .adoc .org .text .yaml .yml .ini .cfg .conf .toml "
        ".properties .tex .bib"
    ),
    Format.NOTEBOOK: ".ipynb",
    Format.JSON: ".json .geojson",
    Format.JSON_LINES: ".jsonl .ndjson",
    Format.XML: ".xml .kml .gpx .rss .atom .opml .xlf .xliff .tmx .plist",
    Format.CALENDAR: ".ics .ical .vcs .vcf .vcard",
    Format.SUBTITLES: ".srt .vtt .sbv .ass .ssa .lrc .smi .ttml .dfxp",
    Format.TABLE: ".csv .tsv .tab .psv",
    Format.MAIL: ".eml .emlx .mbox .mht .mhtml",
    Format.MSG: ".msg",
    Format.HTML: ".html .htm .xhtml",
    Format.DOCX: ".docx .docm",
    Format.PPTX: ".pptx .pptm .ppsx",
    Format.XLSX: ".xlsx .xlsm",
    Format.DOC: ".doc .dot",
    Format.PPT: ".ppt .pps .pot",
    Format.XLS: ".xls .xlt",
    Format.ODT: ".odt .ott",
    Format.ODP: ".odp .otp",
    Format.ODS: ".ods .ots",
    Format.RTF: ".rtf",
    Format.EPUB: ".epub",
    Format.XPS: ".xps .oxps",
    Format.CBZ: ".cbz",
    Format.MOBI: ".mobi",
    Format.FB2: ".fb2",
    Format.SVG: ".svg",
}
SUFFIXES = {suffix: format_ for format_, suffixes in _SUFFIXES_OF.items() for suffix in suffixes.split()}
"""Every suffix that ingest takes from a folder, and what it promises."""

SUPPORTED = (
    "PDF; pictures (JPEG, PNG, WebP, TIFF, GIF, BMP, PPM, JPEG 2000, HEIC, AVIF, SVG); "
    "video (MP4, MOV, MKV, WebM, AVI, …); sound (MP3, WAV, …); "
    "DOCX, PPTX, XLSX, HTML, EPUB, MOBI, FB2, XPS, CBZ; DOC, PPT, XLS, ODT, ODP, ODS, RTF where LibreOffice is "
    "installed; CSV and TSV; e-mail (EML, EMLX, MBOX, MSG), saved web pages (MHTML); calendars and contacts "
    "(ICS, VCF); subtitles (SRT, VTT, …); Jupyter notebooks; .txt, .md, .json, .jsonl, .log, .rst, .yaml, .xml, .ini, "
    ".toml and other plain text"
)
OFFICE_REMEDIES = {
    Format.DOC: "save it as DOCX or PDF in Word",
    Format.PPT: "save it as PPTX or PDF in PowerPoint",
    Format.XLS: "save it as XLSX or CSV in Excel",
    Format.ODT: "save it as DOCX or PDF",
    Format.ODP: "save it as PPTX or PDF",
    Format.ODS: "save it as XLSX or PDF",
    Format.RTF: "save it as DOCX or PDF in Word",
}
"""What to do with formats that are read by LibreOffice only, where it is not there."""
_ARCHIVE = "unpack it, and ingest what is in it"
_ARCHIVES = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07")
"""How files of gzip, bzip2, xz, Zstandard, 7-Zip and RAR begin."""
_MEDIA = frozenset({Format.VIDEO, Format.SOUND})
"""The same containers hold both: neither name is wrong for the other."""
_RTF_AS_DOC = (Format.RTF, Format.DOC)
"""Word opens RTF under its own suffix, and many programs write it there."""
_SIGNATURES = (
    (b"%PDF-", 0, Format.PDF),
    (b"\xff\xd8\xff", 0, Format.JPEG),
    (b"\x89PNG\r\n\x1a\n", 0, Format.PNG),
    (b"GIF87a", 0, Format.GIF),
    (b"GIF89a", 0, Format.GIF),
    (b"II*\x00", 0, Format.TIFF),
    (b"MM\x00*", 0, Format.TIFF),
    (b"II+\x00", 0, Format.TIFF),
    (b"MM\x00+", 0, Format.TIFF),
    (b"WEBP", 8, Format.WEBP),
    (b"\x00\x00\x00\x0cjP  ", 0, Format.JPEG2000),
    (b"\xff\x4f\xff\x51", 0, Format.JPEG2000),
    (b"AVI ", 8, Format.VIDEO),
    (b"\x1aE\xdf\xa3", 0, Format.VIDEO),
    (b"BOOKMOBI", 60, Format.MOBI),
    (b"\x00\x00\x01\xba", 0, Format.VIDEO),
    (b"FLV\x01", 0, Format.VIDEO),
    (b"OggS", 0, Format.VIDEO),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", 0, Format.VIDEO),
    (b"WAVE", 8, Format.SOUND),
    (b"fLaC", 0, Format.SOUND),
    (b"ID3", 0, Format.SOUND),
)
_PDF_BODY = re.compile(rb"%PDF-|\b\d+ \d+ obj\b")
"""Also one that has lost its header, which MuPDF repairs."""
_BITMAP = re.compile(rb"BM.{4}\0\0\0\0", re.DOTALL)
_NETPBM = re.compile(rb"P[1-6]\s+(?:#[^\n]*\n\s*)*\d+\s+(?:#[^\n]*\n\s*)*\d+\s")
_QUICKTIME_ATOMS = frozenset({b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"})
"""How a QuickTime file older than ``ftyp`` may begin."""
_PICTURE_BRANDS = {
    b"avif": Format.AVIF, b"avis": Format.AVIF, b"heic": Format.HEIF, b"heix": Format.HEIF, b"heim": Format.HEIF,
    b"heis": Format.HEIF, b"hevc": Format.HEIF, b"heif": Format.HEIF, b"mif1": Format.HEIF, b"msf1": Format.HEIF,
}  # fmt: skip
_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How the files of older office programs begin, those of newer ones that are locked by a password, and messages."""
_MOST_OF_A_COMPOUND = 256 * 2**20
_COMPOUND_STREAMS = (
    ("EncryptedPackage", None),
    ("__properties_version1.0", Format.MSG),
    ("WordDocument", Format.DOC),
    ("PowerPoint Document", Format.PPT),
    ("Workbook", Format.XLS),
    ("Book", Format.XLS),
)
_TYPES = "[Content_Types].xml"
_CONTAINER, _EPUB_PACKAGE = "META-INF/container.xml", b"application/oebps-package+xml"
"""What readers of e-books go by: some programs zip a book without its ``mimetype``."""
_MOST_TYPES = 4 * 2**20
_OFFICE_OF = {
    b"wordprocessingml": Format.DOCX, b"ms-word": Format.DOCX, b"presentationml": Format.PPTX,
    b"ms-powerpoint": Format.PPTX, b"spreadsheetml": Format.XLSX, b"ms-excel": Format.XLSX,
}  # fmt: skip
_OFFICE_MAIN = re.compile(rb"ContentType\s*=\s*[\"'][^\"']*?(%b)[^\"']*\.main\+xml[\"']" % b"|".join(_OFFICE_OF))
"""The part that states the kind of an office file, wherever its other parts are."""
_HTML = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.DOTALL)
_SVG = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*|<!DOCTYPE[^>\[]*(?:\[.*?\])?>\s*)*<(?:[\w.-]+:)?svg[\s>]",
    re.I | re.DOTALL,
)
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
"""Of UTF-8 and UTF-16."""
_FB2 = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?<FictionBook[\s>]", re.I)
_XML = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml\s+version\b")
_MAIL = re.compile(
    rb"(?:From [^\n]*\n)?(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*)*"
    rb"(?:From|Received|Return-Path|Message-ID|MIME-Version|Delivered-To):",
    re.IGNORECASE,
)
_MARKUP = frozenset((Format.HTML, Format.SVG, Format.FB2))
_OFFICE_HEADS = (b"PK\x03\x04", _COMPOUND, b"{\\rtf")
_SOURCE_SUFFIXES = frozenset({".ts", ".mts"})
"""Of video, and of TypeScript's source texts."""


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
        return sniff_stream(file, name)


def sniff_bytes(data: bytes, name: str) -> Sniffed:
    """The same for bytes in memory."""
    return sniff_stream(io.BytesIO(data), name)


def sniff_stream(file: BinaryIO, name: str) -> Sniffed:
    """The same for an open file."""
    head = file.read(HEAD_BYTES)
    if not head:
        raise DecodeError("is empty: get it again, or leave it out")
    suffix = PurePath(name).suffix.lower()
    claimed = SUFFIXES.get(suffix)
    by_content = _by_content(file, head, claimed, suffix)
    if by_content is None and claimed is Format.VIDEO and suffix in _SOURCE_SUFFIXES and b"\x00" not in head:
        claimed = Format.TEXT
    if (
        by_content is not None
        and claimed is not None
        and by_content is not claimed
        and not {by_content, claimed} <= _MEDIA
        and (by_content, claimed) != _RTF_AS_DOC
    ):
        raise DecodeError(f"is a {by_content} although it is named {suffix}: rename it")
    is_page = _HTML.match(head) is not None
    if by_content is None and (claimed not in (None, Format.PDF, *_BY_NAME) or (claimed is Format.PDF and is_page)):
        # A video is never taken at its name: FFmpeg would follow a playlist under it to other files.
        seems = "it is a web page" if is_page else "it is something else, or its beginning is lost"
        raise DecodeError(f"is named {suffix} but holds no {claimed}: {seems}; get it again, or name it by what it is")
    return Sniffed(kind_of(format_ := by_content or claimed or _unnamed(head, suffix)), format_)


_BY_NAME = PLAIN_TEXTS | {Format.TABLE, Format.MAIL, Format.HTML}
"""Formats whose content need not show what it is."""


def kind_of(format_: Format) -> DocumentKind:
    """``DocumentKind.PDF`` is every format that MuPDF draws page by page."""
    if format_ in PICTURES:
        return DocumentKind.IMAGE
    if format_ in TEXTS:
        return DocumentKind.TEXT
    return DocumentKind.VIDEO if format_ in _MEDIA else DocumentKind.PDF


def may_be_office(path: Path) -> bool:
    """Whether the file begins as those of office programs do, among others."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES).startswith(_OFFICE_HEADS)


def page_format(path: Path) -> Format:
    """The format of a document of pages, from its content alone: what is of no other is a web page."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        if _PDF_BODY.search(head):
            return Format.PDF
        by_content = _by_content(file, head, None, ".cbz")
        return Format.HTML if by_content is None or kind_of(by_content) is not DocumentKind.PDF else by_content


def _unnamed(head: bytes, suffix: str) -> Format:
    """A file whose name says nothing is a text where its beginning holds no control characters."""
    if suffix == ".zip" or head.startswith(_ARCHIVES) or head[257:262] == b"ustar":
        raise DecodeError(f"is an archive or a compressed file, which is not read: {_ARCHIVE}")
    if b"\x00" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        raise DecodeError(f"is of no supported kind: export it as PDF, or leave it out; supported are {SUPPORTED}")
    if _MAIL.match(head):
        return Format.MAIL
    return Format.XML if _XML.match(head) else Format.TEXT


def fitting_name(name: str, head: bytes, *, is_text: bool) -> str:
    """``name`` for a content that begins with ``head``, with a suffix that ``sniff`` believes.

    For contents that come without a file of their own: what names them there need not be a file name, and a reader of
    the notice that a picture has the wrong suffix could not rename it. With ``is_text`` the content need not be
    inspected.
    """
    suffix = PurePath(name).suffix.lower()
    claimed = SUFFIXES.get(suffix)
    try:
        # Of a zip archive the head alone does not say what it is, and a name that claims one is believed.
        shown = None if is_text or head.startswith(b"PK") else _by_content(io.BytesIO(head), head, claimed, suffix)
        named = claimed if claimed in PLAIN_TEXTS or not is_text else None
        fitting = shown or named or Format.TEXT
    except DecodeError:
        # ``sniff`` will say so, of the document.
        return name
    if fitting is claimed:
        return name
    return (PurePath(name).stem if claimed else name) + _SUFFIXES_OF[fitting].split()[0]


def _by_content(  # noqa: PLR0911, PLR0912
    file: BinaryIO, head: bytes, claimed: Format | None, suffix: str
) -> Format | None:
    if head.startswith(b"PAR1"):
        raise DecodeError(
            "is a Parquet file: its rows become documents where `vrag ingest` is given the file, its folder or its "
            "URI, not by an upload or a manifest"
        )
    for signature, offset, format_ in _SIGNATURES:
        if head.startswith(signature, offset):
            return format_
    if head[4:8] == b"ftyp":
        return _PICTURE_BRANDS.get(head[8:12], Format.VIDEO)
    if claimed in _MEDIA and head[4:8] in _QUICKTIME_ATOMS:
        return Format.VIDEO
    if _is_transport_stream(head):
        return Format.VIDEO
    if claimed is Format.SOUND and head[0] == 0xFF and head[1:2] >= b"\xe0":
        # The frames of MP3 and AAC begin so, and much else may.
        return Format.SOUND
    if head.startswith(b"PK\x03\x04"):
        return _of_archive(file, suffix)
    if head.startswith(_COMPOUND):
        return _of_compound(file)
    if head.startswith(b"{\\rtf"):
        return Format.RTF
    if _BITMAP.match(head):
        return Format.BMP
    if _NETPBM.match(head):
        return Format.PPM
    if claimed in (None, *_MARKUP):
        # A text that shows markup, or XML under its own name, stays a text.
        head = head.lstrip(b"".join(_MARKS)).replace(b"\0", b"") if head.startswith(_MARKS) else head
        for pattern, format_ in ((_SVG, Format.SVG), (_FB2, Format.FB2), (_HTML, Format.HTML)):
            if pattern.match(head):
                return format_
    # Junk before the header is common in the wild; only a name that says PDF makes it one.
    return Format.PDF if claimed is Format.PDF and b"%PDF-" in head else None


def _of_archive(file: BinaryIO, suffix: str) -> Format:
    """What a zip archive holds, by the names in it."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            mimetype = archive.read("mimetype")[:100].decode("ascii", "replace") if "mimetype" in names else ""
            # Types may be in UTF-16.
            container = archive.read(_CONTAINER)[:_MOST_TYPES] if _CONTAINER in names else b""
            types = archive.read(_TYPES)[:_MOST_TYPES].replace(b"\0", b"") if _TYPES in names else b""
    except (zipfile.BadZipFile, zipfile.LargeZipFile, OSError, ValueError, RuntimeError, NotImplementedError) as error:
        raise DecodeError("is a damaged or cut short archive: get the whole file again") from error
    if mimetype.startswith("application/epub") or _EPUB_PACKAGE in container:
        return Format.EPUB
    for start, format_ in (("text", Format.ODT), ("presentation", Format.ODP), ("spreadsheet", Format.ODS)):
        if mimetype.startswith(f"application/vnd.oasis.opendocument.{start}"):
            return format_
    if "xl/workbook.bin" in names:
        raise DecodeError("is a binary workbook (XLSB), which is not read: save it as XLSX")
    for folder, format_ in (("word/", Format.DOCX), ("ppt/", Format.PPTX), ("xl/", Format.XLSX)):
        if any(entry.startswith(folder) for entry in names):
            return format_
    if stated := _OFFICE_MAIN.search(types):
        return _OFFICE_OF[stated[1]]
    if any(entry.endswith((".fdseq", ".fdoc", ".fpage")) for entry in names):
        return Format.XPS
    if suffix == ".cbz":
        return Format.CBZ
    raise DecodeError(f"is a zip archive: {_ARCHIVE}")


def _of_compound(file: BinaryIO) -> Format:
    """What a compound file of Microsoft's holds, by the names in its outermost folder: any may lie further inside."""
    from olefile import OleFileIO

    file.seek(0)
    try:
        with OleFileIO(file.read(_MOST_OF_A_COMPOUND)) as compound:
            names = {path[0] for path in compound.listdir(streams=True, storages=False) if len(path) == 1}
    except Exception as error:
        # It raises anything on damaged bytes.
        raise DecodeError("is a damaged or cut short office file: get the whole file again") from error
    for name, format_ in _COMPOUND_STREAMS:
        if name in names:
            if format_ is None:
                raise DecodeError(
                    "is locked by a password: remove it in the program that it was made with, and save it"
                )
            return format_
    raise DecodeError(f"is an office file of an unknown kind: export it as PDF; supported are {SUPPORTED}")


def _is_transport_stream(head: bytes) -> bool:
    """MPEG-TS: packets of 188 bytes that begin with 0x47, behind a time of four bytes in those of cameras."""
    return any(
        len(head) > at + 2 * size and {head[at + k * size] for k in range(3)} == {0x47}
        for at, size in ((0, 188), (4, 192))
    )
