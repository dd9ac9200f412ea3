"""Office Open XML files whose parts have other names, places or encodings than office programs give them.

A file may hold its parts anywhere: what a part is, the relations tell, and names are compared without case. Everything
else here and mammoth look for parts where office programs put them, so that other files are read from a copy in which
they stand there.
"""

from __future__ import annotations

import io
import itertools
import posixpath
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

from vrag_ray.corpus.formats.office.parts import MOST_PART_BYTES, tree_of, xml_of
from vrag_ray.corpus.model import DecodeError
from vrag_ray.corpus.sniff import Format

MOST_COPIED_BYTES = 256 * 2**20
"""Of a file that is copied, unpacked; a larger one is read as it is."""
_MAIN = {Format.DOCX: "word/document#.xml", Format.PPTX: "ppt/presentation.xml", Format.XLSX: "xl/workbook.xml"}
_PLACES = {
    Format.DOCX: {
        **{kind: f"word/{kind}.xml" for kind in ("styles", "numbering", "comments", "footnotes", "endnotes")},
        "header": "word/header#.xml",
        "footer": "word/footer#.xml",
    },
    Format.PPTX: {kind: f"ppt/{kind}s/{kind}#.xml" for kind in ("slide", "notesSlide", "slideLayout", "slideMaster")},
    Format.XLSX: {
        "styles": "xl/styles.xml",
        "sharedStrings": "xl/sharedStrings.xml",
        "worksheet": "xl/worksheets/sheet#.xml",
        "drawing": "xl/drawings/drawing#.xml",
        "comments": "xl/comments#.xml",
        "threadedComment": "xl/threadedComments/threadedComment#.xml",
    },
}
"""Where parts are looked for, by the kind of the relation; # is a number."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)
_RELATIONS_FILE = re.compile(r"(.*?)_rels/([^/]*)\.rels", re.IGNORECASE)
_DECLARED = re.compile(r"(<\?xml[^>]*encoding\s*=\s*[\"'])[\w-]+", re.IGNORECASE)


def usual_package(path: Path, format_: Format) -> Path | io.BytesIO:
    """The file at ``path``, or a copy with its parts in their usual places and in UTF-8 where they are elsewhere.

    What is damaged stays as it is: its reader reports it.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > MOST_COPIED_BYTES:
                return path
            return _Package(archive, format_).usual() or path
    except _DAMAGE:
        return path


class _Package:
    """The parts of an open file and where they belong."""

    def __init__(self, archive: zipfile.ZipFile, format_: Format) -> None:
        self._archive, self._format = archive, format_
        self._names = frozenset(archive.namelist())
        self._folded = {_folded(name): name for name in self._names}
        self._moved: dict[str, str] = {}
        """The usual names of the parts that relations refer to, by their own."""
        self._changed = {name: text for name in self._names if (text := _text_in_utf8(archive, name))}
        self._is_unusual = bool(self._changed) or any("\\" in name for name in self._names)

    def usual(self) -> io.BytesIO | None:
        """A copy with every part in its usual place; None where all of them are."""
        files = {name: match for name in self._names if (match := _RELATIONS_FILE.fullmatch(_slashed(name)))}
        owners = {name: self._part(match[1] + match[2]) for name, match in files.items()}
        main = ""
        # The relations of the whole file come first: they state which part is the main one.
        for name in sorted(files, key=lambda name: (files[name][2] != "", name)):
            try:
                root = tree_of(self._changed.get(name) or xml_of(self._archive, name))
            except (DecodeError, ElementTree.ParseError):
                continue
            for relation in root:
                kind = relation.get("Type", "").rpartition("/")[2]
                stated = posixpath.normpath(posixpath.join("/", files[name][1], relation.get("Target", "")))[1:]
                target = self._part(stated)
                if relation.get("TargetMode") == "External" or not target:
                    continue
                place = ""
                if not files[name][2] and kind == "officeDocument":
                    main, place = target, _MAIN[self._format]
                elif owners[name] == main or self._format is not Format.DOCX:
                    # The building blocks of a DOCX are a document of their own.
                    place = _PLACES[self._format].get(kind, "")
                if target not in self._moved:
                    self._moved[target] = self._usual_name(target, place)
                self._is_unusual = self._is_unusual or target != stated or self._moved[target] != target
                relation.set("Target", f"/{self._moved[target]}")
            self._changed[name] = ElementTree.tostring(root)
        return self._copy(files, owners) if self._is_unusual and main else None

    def _part(self, stated: str) -> str:
        """The name that a part has in the archive, "" for one that is not in it."""
        return stated if stated in self._names else self._folded.get(_folded(unquote(stated)), "")

    def _usual_name(self, name: str, place: str) -> str:
        before, number_sign, after = place.partition("#")
        written, name = name, _slashed(name)
        between = "" if not number_sign else r"\d*" if self._format is Format.DOCX else ".*"
        if not place or re.fullmatch(f"{re.escape(before)}{between}{re.escape(after)}", name):
            return name
        taken = {*self._moved.values(), *self._names} - {written}
        if not number_sign:
            return name if place in taken else place
        return next(usual for n in itertools.count(1) if (usual := f"{before}{n}{after}") not in taken)

    def _copy(self, files: Mapping[str, re.Match[str]], owners: Mapping[str, str]) -> io.BytesIO:
        """The archive with its parts moved, and with their files of relations beside them."""
        copy = io.BytesIO()
        with zipfile.ZipFile(copy, "w", zipfile.ZIP_STORED) as out:
            for name in dict.fromkeys(self._archive.namelist()):
                usual = self._moved.get(name, _slashed(name))
                if owner := owners.get(name):
                    folder, base = posixpath.split(self._moved.get(owner, _slashed(owner)))
                    usual = posixpath.join(folder, "_rels", f"{base}.rels")
                elif name in files and not files[name][2]:
                    usual = "_rels/.rels"
                out.writestr(usual, self._changed.get(name) or self._archive.read(name))
        return copy


def _slashed(name: str) -> str:
    """The name of a part by a program that writes paths as Windows does."""
    return name.replace("\\", "/").lstrip("/")


def _folded(name: str) -> str:
    return _slashed(name).lower()


def _text_in_utf8(archive: zipfile.ZipFile, name: str) -> bytes:
    """A part that is XML in UTF-16 in UTF-8, b"" for any other."""
    info = archive.getinfo(name)
    if not name.lower().endswith((".xml", ".rels")) or info.file_size > MOST_PART_BYTES:
        return b""
    with archive.open(info) as part:
        head = part.read(4)
        if b"\0" not in head:
            return b""
        data = head + part.read()
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-16-be" if head[0] == 0 else "utf-16-le"
    try:
        return _DECLARED.sub(r"\1UTF-8", data.decode(encoding), count=1).encode()
    except UnicodeError:
        return b""
