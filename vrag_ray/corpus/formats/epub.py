"""E-books (EPUB) as MuPDF reads them rightly: with formulas as text and styles as it knows them, and without chapters
that cannot be read.

MuPDF lays out a page with an error for each chapter that is locked or not in the file.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from html import unescape
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote

import pymupdf

from vrag_ray.corpus.formats.encodings import decode_text
from vrag_ray.corpus.formats.symbol_fonts import with_written_signs
from vrag_ray.corpus.formats.unseen import SHEET, seen_page, without_struck
from vrag_ray.corpus.formats.web_colours import with_drawn_colours
from vrag_ray.corpus.formats.web_encoding import markup_in_utf8
from vrag_ray.corpus.formats.web_formulas import with_written_formulas
from vrag_ray.corpus.formats.web_parts import html_of_xml, with_readings
from vrag_ray.corpus.formats.web_styles import with_written_styles
from vrag_ray.corpus.model import DecodeError

MOST_CHAPTER_BYTES = 64 * 2**20
"""Of a chapter whose markup is changed."""
MOST_BYTES = 128 * 2**20
"""Of a book whose markup is changed, in memory."""
MOST_NESTED = 5
"""Style sheets that import each other."""
_IMPORT = re.compile(r"@import\s+(?:url\(\s*)?[\"']?([^\"'()\s;]+)[\"']?\s*\)?[^;{}]*;", re.IGNORECASE)
_LEFT_TO_MUPDF = re.compile(r"@(?:font-face|page)\b[^{}]*\{[^{}]*\}", re.IGNORECASE)
_DAMAGE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)
_ERROR = re.compile(r'\s*ERROR:\s+cannot\s+find\s+chapter\s+"(.+?)"\s*', re.DOTALL)
_ENCRYPTION, _CONTAINER = "META-INF/encryption.xml", "META-INF/container.xml"
_REFUSED_RIGHTS = "META-INF/rights.xml"
"""What Adobe's copy protection leaves in the file: MuPDF opens no such book."""
_RIGHTS = frozenset((_REFUSED_RIGHTS, "META-INF/sinf.xml", "META-INF/license.lcpl"))
"""That, and what Apple's and Readium's leave."""
_PACKAGE = re.compile(rb"\bfull-path\s*=\s*[\"']([^\"']+)[\"']")
_ITEM = re.compile(rb"<(?:\w+:)?item\b([^>]*)>")
_ID, _HREF = re.compile(rb"\bid\s*=\s*[\"']([^\"']*)[\"']"), re.compile(rb"\bhref\s*=\s*[\"']([^\"']*)[\"']")
_LISTED = re.compile(rb"<(?:\w+:)?itemref\b[^>]*?\bidref\s*=\s*[\"']([^\"']*)[\"'][^>]*>")
_LOCKED_FILE = re.compile(rb"CipherReference\b[^>]*\bURI\s*=\s*[\"']([^\"']*)[\"']")
_LOCKED = "locked by copy protection (DRM)"
_REMEDY = "get an edition without it, or export the text from the program that opens it"
_NAMED = 5


def readable_book(path: Path, size: tuple[int, int], type_size: float) -> tuple[Path | bytes, list[str]]:
    """The book at ``path`` or, where something in it must be changed, a copy; and a notice of what is left out.

    ``size`` (points) and ``type_size`` are those in which it is going to be laid out. Raises DecodeError where no
    chapter can be read, and whatever MuPDF raises for what is no book.
    """
    with zipfile.ZipFile(path) as archive:
        names = frozenset(archive.namelist())
        if _REFUSED_RIGHTS in names:
            raise DecodeError(f"is {_LOCKED}: {_REMEDY}")
        package = _package(archive) if _CONTAINER in names else ""
        content = archive.read(package) if package in names else b""
        files = _files(content, package)
        changed, notices = _rewritten(archive, list(files.values()))
        if _ENCRYPTION in names or not names.issuperset(files.values()):
            with pymupdf.open(path, filetype="epub", width=size[0], height=size[1], fontsize=type_size) as book:
                missing, chapters = _missing(book), int(book.chapter_count)
            if missing:
                locked = _locked(archive) if _ENCRYPTION in names else frozenset()
                is_locked = not (_RIGHTS.isdisjoint(names) and locked.isdisjoint(missing))
                reason = _LOCKED if is_locked else "missing or damaged"
                if len(missing) == chapters:
                    remedy = _REMEDY if is_locked else "get the whole file again"
                    raise DecodeError(f"holds no chapter that can be read, since they are {reason}: {remedy}")
                shown = ", ".join(missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
                notices.append(f"chapters left out: {shown} ({reason})")
                gone = {id_ for id_, file in files.items() if file in missing}
                changed[package] = _LISTED.sub(lambda item: b"" if _text(item[1]) in gone else item[0], content)
        try:
            return _copy(archive, changed) if changed else path, notices
        except _DAMAGE:
            # A picture of it, perhaps: MuPDF reads the rest.
            return path, notices


def _package(archive: zipfile.ZipFile) -> str:
    """The file that lists the chapters, "" without."""
    match = _PACKAGE.search(archive.read(_CONTAINER))
    return _text(match[1]) if match is not None else ""


def _files(package: bytes, name: str) -> dict[str, str]:
    """The files of the chapters by the ids under which the package of that ``name`` lists them."""
    listed = {_text(item[1]) for item in _LISTED.finditer(package)}
    stated = ((_ID.search(item[1]), _HREF.search(item[1])) for item in _ITEM.finditer(package))
    hrefs = {_text(id_[1]): _text(href[1]) for id_, href in stated if id_ is not None and href is not None}
    return {id_: normpath(join(dirname(name), unquote(href))) for id_, href in hrefs.items() if id_ in listed}


def _text(value: bytes) -> str:
    return unescape(value.decode("utf-8", "replace"))


def _missing(book: pymupdf.Document) -> list[str]:
    """The files of the chapters of which MuPDF makes an error."""
    missing: list[str] = []
    for chapter in range(book.chapter_count):
        if book.chapter_page_count(chapter) == 1 and (error := _ERROR.fullmatch(book[chapter, 0].get_text())):
            # A long name goes over several lines.
            missing.append(error[1].replace("\n", " "))
    return missing


def _locked(archive: zipfile.ZipFile) -> frozenset[str]:
    return frozenset(unquote(_text(file[1])) for file in _LOCKED_FILE.finditer(archive.read(_ENCRYPTION)))


def _rewritten(archive: zipfile.ZipFile, chapters: Sequence[str]) -> tuple[dict[str, bytes], list[str]]:
    """The chapters and style sheets, by name, as a program for books shows them: with formulas as text and the rules of
    the sheets in their elements; and notices. What is damaged is as it was."""
    infos = {info.filename: info for info in archive.infolist() if info.file_size <= MOST_CHAPTER_BYTES}
    if sum(info.file_size for info in infos.values()) > MOST_BYTES:
        return {}, []
    sheets: dict[str, str] = {}
    for name in infos:
        if name.lower().endswith(".css"):
            with suppress(*_DAMAGE, DecodeError):
                sheets[name] = decode_text(archive.read(name)).text
    changed = {name: "".join(_LEFT_TO_MUPDF.findall(sheet)).encode() for name, sheet in sheets.items()}
    notices: list[str] = []
    for name in dict.fromkeys(chapters):
        if name not in infos or name.lower().endswith(".svg"):
            continue
        try:
            page = markup_in_utf8(archive.read(name))[0].decode("utf-8", "replace")
        except DecodeError:
            continue
        fonts = "".join(rule for sheet in SHEET.finditer(page) for rule in _LEFT_TO_MUPDF.findall(sheet[2]))
        page, left_out = with_written_styles(
            with_readings(html_of_xml(with_written_formulas(page))),
            partial(_sheet_at, sheets, dirname(name)),
            len(chapters),
        )
        page = page.replace("</head>", f"<style>{fonts}</style></head>", 1) if fonts else page
        page = without_struck(seen_page(with_written_signs(page)), marks_only=True)
        changed[name] = with_drawn_colours(page).encode("utf-8", "replace")
        notices += left_out
    return changed, list(dict.fromkeys(notices))


def _sheet_at(sheets: Mapping[str, str], folder: str, address: str) -> str:
    """The sheet that a file in the ``folder`` names, with those that it imports, each once; "" for one that is not
    there."""
    left = dict(sheets)

    def taken(folder: str, address: str, depth: int) -> str:
        name = normpath(join(folder, unquote(address)))
        sheet = left.pop(name, "") if depth <= MOST_NESTED else ""
        return _IMPORT.sub(lambda match: taken(dirname(name), match[1], depth + 1), sheet)

    return taken(folder, address, 1)


def _copy(archive: zipfile.ZipFile, changed: Mapping[str, bytes]) -> bytes:
    copy = io.BytesIO()
    with zipfile.ZipFile(copy, "w") as target:
        for info in archive.infolist():
            target.writestr(info, changed[info.filename] if info.filename in changed else archive.read(info))
    return copy.getvalue()
