"""E-books (EPUB) with chapters that are locked, damaged or not in the file: MuPDF lays out a page with an error for
each.

They are taken out of the list of chapters, so that no such page is made.
"""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote

import pymupdf

from vrag_ray.corpus.formats.office.parts import every, tree_of, xml_of
from vrag_ray.corpus.model import DecodeError

_ERROR = re.compile(r'\s*ERROR:\s+cannot\s+find\s+chapter\s+"(.+?)"\s*', re.DOTALL)
_ENCRYPTION, _CONTAINER = "META-INF/encryption.xml", "META-INF/container.xml"
_RIGHTS = ("META-INF/rights.xml", "META-INF/sinf.xml", "META-INF/license.lcpl")
"""What the copy protections of Adobe, Apple and Readium leave in the file."""
_LISTED = re.compile(rb"<(?:\w+:)?itemref\b[^>]*?\bidref\s*=\s*[\"']([^\"']*)[\"'][^>]*>")
_LOCKED = "locked by copy protection (DRM)"
_REMEDY = "get an edition without it, or export the text from the program that opens it"
_NAMED = 5


def readable_book(path: Path, size: tuple[int, int], type_size: float) -> tuple[Path | bytes, list[str]]:
    """The book at ``path``, or a copy without the chapters that cannot be read, and a notice of these.

    ``size`` (points) and ``type_size`` are those in which it is going to be laid out. Raises DecodeError where no
    chapter can be read, and whatever MuPDF raises for what is no book.
    """
    with zipfile.ZipFile(path) as archive:
        names = frozenset(archive.namelist())
        if names.intersection(_RIGHTS[:1]):
            # MuPDF opens no such book.
            raise DecodeError(f"is {_LOCKED}: {_REMEDY}")
        encrypted = _encrypted(archive) if _ENCRYPTION in names else frozenset()
        with pymupdf.open(path, filetype="epub", width=size[0], height=size[1], fontsize=type_size) as book:
            missing = _missing(book)
            if not missing:
                return path, []
            is_locked = bool(names.intersection(_RIGHTS)) or any(name in encrypted for name in missing)
            if len(missing) == book.chapter_count:
                reason = (
                    f"are {_LOCKED}: {_REMEDY}" if is_locked else "are missing or damaged: get the whole file again"
                )
                raise DecodeError(f"holds no readable chapters: they {reason}")
        reason = _LOCKED if is_locked else "missing or damaged"
        shown = ", ".join(missing[:_NAMED]) + (", …" if len(missing) > _NAMED else "")
        return _without(archive, frozenset(missing)), [f"chapters left out: {shown} ({reason})"]


def _missing(book: pymupdf.Document) -> list[str]:
    """The files of the chapters of which MuPDF makes an error."""
    found: list[str] = []
    for chapter in range(book.chapter_count):
        if book.chapter_page_count(chapter) == 1 and (error := _ERROR.fullmatch(book[chapter, 0].get_text())):
            # A long name goes over several lines.
            found.append(error[1].replace("\n", " "))
    return found


def _encrypted(archive: zipfile.ZipFile) -> frozenset[str]:
    references = every(tree_of(xml_of(archive, _ENCRYPTION)), "CipherReference")
    return frozenset(unquote(reference.get("URI", "")) for reference in references)


def _without(archive: zipfile.ZipFile, missing: frozenset[str]) -> bytes:
    """A copy of the book that does not list the chapters of these files."""
    package = next((root.get("full-path", "") for root in every(tree_of(xml_of(archive, _CONTAINER)), "rootfile")), "")
    items = every(tree_of(xml_of(archive, package)), "item")
    ids = {item.get("id", ""): normpath(join(dirname(package), unquote(item.get("href", "")))) for item in items}

    def kept(listed: re.Match[bytes]) -> bytes:
        return b"" if ids.get(listed[1].decode("utf-8", "replace")) in missing else listed[0]

    copy = io.BytesIO()
    with zipfile.ZipFile(copy, "w") as target:
        for info in archive.infolist():
            data = archive.read(info)
            target.writestr(info, _LISTED.sub(kept, data) if info.filename == package else data)
    return copy.getvalue()
