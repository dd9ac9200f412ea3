"""Documents without pages of their own (office, web, e-books) as MuPDF lays them out, part by part.

MuPDF runs the slides of a presentation together, without their numbers. Here each is a document of its own, made of the
same archive with its list of slides cut down to this one; and so is each sheet of a workbook, see ``workbook``.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pymupdf

from vrag_ray.corpus.formats.encodings import decode_text, is_unlikely
from vrag_ray.corpus.formats.references import is_held, picture_targets
from vrag_ray.corpus.formats.source import Attachment
from vrag_ray.corpus.formats.unseen import seen_document, seen_drawing, seen_page, seen_slide
from vrag_ray.corpus.formats.web_colours import with_drawn_colours
from vrag_ray.corpus.formats.workbook import MOST_CELLS, sheet_page, strings_of, styles_of
from vrag_ray.corpus.model import DecodeError
from vrag_ray.corpus.sniff import HEAD_BYTES, OFFICE_REMEDIES, REFLOWED, Format

PORTRAIT, LANDSCAPE, WIDE = (595, 842), (842, 595), (1684, 1190)
"""Points: A4 for texts, A4 across for slides, a sheet of A2 for workbooks, whose tables are broad."""
TYPE_SIZE = 11
MOST_PARTS = 2_000
MOST_PART_BYTES = 64 * 2**20
"""Of XML that is read here, unpacked."""
MOST_EMBEDDED_BYTES = 256 * 2**20
MOST_SHEET_BYTES = 100 * 2**20
"""Of web pages made of the sheets of one workbook."""
_FILE_TYPES = {Format.HTML: "html", Format.FB2: "fb2"}
_FOLDERS_OF_FILES = {
    Format.DOCX: ("word/media/", "word/embeddings/"),
    Format.PPTX: ("ppt/media/", "ppt/embeddings/"),
    Format.XLSX: ("xl/media/", "xl/embeddings/"),
    **dict.fromkeys((Format.ODT, Format.ODP, Format.ODS), ("Pictures/", "Media/")),
}
_STYLE = "pre{white-space:pre-wrap}"
_PREVIEWS = "TablePreview"
"""Pictures of tables that stand in the file as tables too."""
_RECORDINGS = (".mp4", ".m4v", ".mov", ".avi", ".wmv", ".mpg", ".mpeg", ".mp3", ".m4a", ".wav", ".wma")
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_STRICT_RELATION = "{http://purl.oclc.org/ooxml/officeDocument/relationships}id"
_HIDDEN_SLIDE = re.compile(rb"<p:sld\b[^>]*\bshow=\"(?:0|false)\"")
_ENCODING = re.compile(rb"(?:<meta[^>]*charset|<\?xml[^>]*encoding)\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
_CHARSET = re.compile(rb"((?:<meta[^>]*charset|<\?xml[^>]*encoding)\s*=\s*[\"']?)[\w-]+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """A slide, a sheet or a whole document: how MuPDF opens it, its pages, its name, and the notes of a slide.

    Not open: hundreds of slides with their pictures would not fit into the memory of the child.
    """

    open: Callable[[], pymupdf.Document]
    pages: int
    name: str = ""
    notes: str = ""


def laid_out(path: Path, format_: Format) -> tuple[list[Part], list[str]]:
    """The parts of the document at ``path``, and notices of what was guessed or left out of it.

    Raises whatever MuPDF raises for what it cannot read, and DecodeError for what LibreOffice alone reads.
    """
    if remedy := OFFICE_REMEDIES.get(format_):
        raise DecodeError(
            f"is a {format_} file, which is read where LibreOffice is installed and corpus.office is not off: install "
            f"it, or {remedy}"
        )
    if format_ is Format.PPTX:
        hidden: list[str] = []
        if slides := list(_slides(path, hidden)):
            left_out = [f"only its first {MOST_PARTS} slides are read"] if len(slides) > MOST_PARTS else []
            return slides[:MOST_PARTS], [*hidden, *left_out]
    if format_ is Format.DOCX:
        document, notices = seen_document(path)
        return [_part(partial(_open, document, format_))], notices
    if format_ is Format.XLSX:
        sheets, notices = _sheets(path)
        if sheets:
            return sheets, notices
    if format_ in (Format.HTML, Format.FB2, Format.SVG):
        data, notice = _in_utf8(path.read_bytes())
        if format_ is not Format.FB2:
            seen = seen_page if format_ is Format.HTML else seen_drawing
            markup = seen(data.decode("utf-8", "replace"))
            data = (with_drawn_colours(markup) if format_ is Format.HTML else markup).encode("utf-8", "replace")
        return [_part(partial(_open, data, format_))], [notice] if notice else []
    return [_part(partial(_open, path, format_))], []


def shown_pictures(path: Path) -> tuple[str, ...]:
    """What the pictures of a web page are named by, without those that it holds: MuPDF draws none of the others."""
    data, _ = _in_utf8(path.read_bytes())
    return tuple(
        target for target in picture_targets(data.decode("utf-8", "replace"), markdown=False) if not is_held(target)
    )


@dataclass(frozen=True, slots=True)
class OfficeArchive:
    """The pictures and files in an office file: MuPDF draws none of them, and LibreOffice shows files as a symbol."""

    path: Path
    format: Format

    def attachments(self) -> Iterator[Attachment]:
        folders = _FOLDERS_OF_FILES.get(self.format)
        if folders is None:
            return
        with zipfile.ZipFile(self.path) as archive:
            for info in archive.infolist():
                is_copy = posixpath.basename(info.filename).startswith(_PREVIEWS)
                if info.filename.startswith(folders) and not info.is_dir() and not is_copy:
                    is_large = info.file_size > MOST_EMBEDDED_BYTES
                    yield Attachment(posixpath.basename(info.filename), b"" if is_large else archive.read(info))

    def close(self) -> None:
        """Nothing is held open."""


def _part(opened: Callable[[], pymupdf.Document], name: str = "", notes: str = "") -> Part:
    with opened() as document:
        return Part(opened, int(document.page_count), name, notes)


def _open(content: Path | bytes, format_: Format, paper: tuple[int, int] = PORTRAIT) -> pymupdf.Document:
    size = {"width": paper[0], "height": paper[1], "fontsize": TYPE_SIZE} if format_ in REFLOWED else {}
    if size:
        # For the whole process: lines that would run off the page, and be lost, go on below.
        pymupdf.mupdf.fz_set_user_css(_STYLE)
    type_ = _FILE_TYPES.get(format_, format_.value.lower())
    if isinstance(content, Path):
        return pymupdf.open(content, filetype=type_, **size)
    return pymupdf.open(stream=content, filetype=type_, **size)


def _in_utf8(data: bytes) -> tuple[bytes, str]:
    """Markup in UTF-8, with nothing in it that says otherwise, since MuPDF knows few encodings; and a notice.

    Where the bytes are not UTF-8, the encoding that the markup states is believed if they fit it, or else detected.
    """
    text, notice = "", ""
    stated = _ENCODING.search(data[:HEAD_BYTES])
    name = stated[1].decode("ascii").lower() if stated else ""
    # What calls itself Latin-1 is written in its extension by Windows, and every byte is a character of either.
    name = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": ""}.get(name, name)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = data.decode(name) if name and not name.startswith("utf") and not is_unlikely(data, name) else ""
        except (UnicodeDecodeError, LookupError):
            text = ""
    if not text or "\0" in text:
        decoded = decode_text(data)
        text, notice = decoded.text, decoded.notice
    return _CHARSET.sub(rb"\1utf-8", text.encode("utf-8", "replace")), notice


def _sheets(path: Path) -> tuple[list[Part], list[str]]:
    """The sheets of a workbook in their order, and notices; none where its parts are not where they belong."""
    main, sheets, notices, size = "xl/workbook.xml", list[Part](), list[str](), 0
    with zipfile.ZipFile(path) as archive:
        names = frozenset(archive.namelist())
        if main not in names:
            return [], []
        workbook, relations = _tree(_xml(archive, main)), _relations(archive, main, names)
        shared, styled = ("xl/sharedStrings.xml", "xl/styles.xml")
        strings = strings_of(_tree(_xml(archive, shared)) if shared in names else None)
        from_1904 = any(
            one.get("date1904") in ("1", "true") for one in workbook.iter() if one.tag.endswith("}workbookPr")
        )
        styles = styles_of(_tree(_xml(archive, styled)) if styled in names else None, from_1904=from_1904)
        for entry in (element for element in workbook.iter() if element.tag.endswith("}sheet")):
            target = relations.get(entry.get(_RELATION) or entry.get(_STRICT_RELATION) or "", "")
            name = " ".join(entry.get("name", "").split())
            if entry.get("state") in ("hidden", "veryHidden"):
                notices.append(f"the sheet {name} is left out: it is hidden")
                continue
            if target not in names or "/worksheets/" not in target:
                notices.append(f"the sheet {name} is left out: it holds no cells")
                continue
            if size > MOST_SHEET_BYTES or len(sheets) == MOST_PARTS:
                notices.append(f"the sheet {name} and those behind it are left out: the workbook is too large")
                break
            page, whole, unseen = sheet_page(_xml(archive, target), name, strings, styles)
            if unseen:
                notices.append(f"of the sheet {name} {unseen} cells are left out: they are hidden")
            if not whole:
                notices.append(f"of the sheet {name} only the first {MOST_CELLS} cells are read: save it as CSV")
            data = page.encode("utf-8", "replace")
            size += len(data)
            sheets.append(_part(partial(_open, data, Format.HTML, WIDE), name))
    return sheets, notices


def _slides(path: Path, notices: list[str]) -> Iterator[Part]:
    """The slides of a presentation in their order; none where its parts are not where they belong.

    What is hidden is left out, with a note of it among ``notices``.
    """
    main, tag = "ppt/presentation.xml", b"sldId"
    with zipfile.ZipFile(path) as archive:
        names = frozenset(archive.namelist())
        if main not in names:
            return
        xml = _xml(archive, main)
        relations = _relations(archive, main, names)
        targets = _slide_files(_tree(xml), relations)
        # Cut out as it is written: MuPDF goes by the prefixes, which a parser would write anew.
        element = rb"<(?:\w+:)?%b\b[^>]*?(?:/>|>.*?</(?:\w+:)?%b>)" % (tag, tag)
        written = list(re.finditer(element, xml, re.DOTALL))
        if len(written) != len(targets):
            return
        for number, target in enumerate(targets[: MOST_PARTS + 1], 1):
            if target not in names:
                continue
            slide = _xml(archive, target)
            if _is_hidden_slide(slide):
                notices.append(f"slide {number} is left out: it is hidden")
                continue
            slide, unseen = seen_slide(slide)
            if unseen:
                notices.append(f"of slide {number} {unseen} words are left out: they are hidden")
            cut = xml[: written[0].start()] + written[number - 1][0] + xml[written[-1].end() :]
            changed = {main: cut, **({target: slide} if unseen else {})}
            opened = partial(_open_cut, path, changed, frozenset(targets) - {target})
            yield _part(opened, f"slide {number}", _notes(archive, target, names))


@dataclass(frozen=True, slots=True)
class Slide:
    """A slide that is shown: its number among all, from 1, and the speaker's notes of it, "" without."""

    number: int
    notes: str


def shown_slides(path: Path) -> tuple[list[Slide], list[str]]:
    """The slides of the presentation at ``path`` but for the hidden ones, and a notice of each of those."""
    main = "ppt/presentation.xml"
    slides: list[Slide] = []
    notices: list[str] = []
    with zipfile.ZipFile(path) as archive:
        names = frozenset(archive.namelist())
        if main not in names:
            return slides, notices
        targets = _slide_files(_tree(_xml(archive, main)), _relations(archive, main, names))[:MOST_PARTS]
        for number, target in enumerate(targets, 1):
            if target in names and _is_hidden_slide(_xml(archive, target)):
                notices.append(f"slide {number} is left out: it is hidden")
            else:
                slides.append(Slide(number, _notes(archive, target, names) if target in names else ""))
    return slides, notices


def _is_hidden_slide(slide: bytes) -> bool:
    return _HIDDEN_SLIDE.search(slide[: HEAD_BYTES * 4]) is not None


def _slide_files(presentation: ElementTree.Element, relations: dict[str, str]) -> list[str]:
    """The file of each slide, in their order; "" where it is not told."""
    entries = (entry for entry in presentation.iter() if entry.tag.endswith("}sldId"))
    return [relations.get(entry.get(_RELATION) or entry.get(_STRICT_RELATION) or "", "") for entry in entries]


def _open_cut(path: Path, changed: Mapping[str, bytes], others: frozenset[str]) -> pymupdf.Document:
    """The archive with its ``changed`` files, without ``others`` and what belongs to them alone."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as out:
        for name in sorted(_reached(archive, frozenset(archive.namelist()), others)):
            if name in changed:
                out.writestr(name, changed[name])
            elif not name.lower().endswith(_RECORDINGS):
                out.writestr(name, archive.read(name))
    return _open(buffer.getvalue(), Format.PPTX, LANDSCAPE)


def _reached(archive: zipfile.ZipFile, names: frozenset[str], others: frozenset[str]) -> set[str]:
    """Every file that relations lead to from the root of the archive, not through ``others``."""
    reached = {"[Content_Types].xml", "_rels/.rels"} & names
    waiting = [""]
    while waiting:
        source = waiting.pop()
        for target in _relations(archive, source, names).values():
            if target in names and target not in others and target not in reached:
                reached.add(target)
                waiting.append(target)
                if (relations := _relations_file(target)) in names:
                    reached.add(relations)
    return reached


def _relations_file(name: str) -> str:
    folder, file = posixpath.split(name)
    return posixpath.join(folder, "_rels", f"{file}.rels")


def _relations(archive: zipfile.ZipFile, name: str, names: frozenset[str]) -> dict[str, str]:
    """The files that one of an archive refers to, by the id of the relation."""
    file = _relations_file(name)
    if file not in names:
        return {}
    folder = posixpath.dirname(name)
    return {
        relation.get("Id", ""): posixpath.normpath(posixpath.join("/", folder, relation.get("Target", "")))[1:]
        for relation in _tree(_xml(archive, file))
        if relation.get("TargetMode") != "External"
    }


def _notes(archive: zipfile.ZipFile, slide: str, names: frozenset[str]) -> str:
    """The speaker's notes of a slide, a line a paragraph; its own number, which stands in them too, is left out."""
    for target in _relations(archive, slide, names).values():
        if "/notesSlides/" in f"/{target}" and target in names:
            root = _tree(_xml(archive, target))
            paragraphs = (element for element in root.iter() if element.tag.endswith("}p"))
            lines = (
                "".join(run.text or "" for run in paragraph.iter() if run.tag.endswith("}t"))
                for paragraph in paragraphs
            )
            return "\n".join(line for line in lines if line.strip() and not line.strip().isdigit())
    return ""


def _tree(xml: bytes) -> ElementTree.Element:
    return ElementTree.fromstring(xml)  # noqa: S314 - ``_xml`` takes none with a definition; this process is limited.


def _xml(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > MOST_PART_BYTES:
        raise DecodeError(f"holds {name} of more than {MOST_PART_BYTES >> 20} MB: export it as PDF")
    data = archive.read(name)
    if b"<!DOCTYPE" in data[:1000] or b"<!ENTITY" in data or b"\0" in data[:4]:
        # No office program writes one, and an entity can grow without end.
        raise DecodeError(f"holds a definition of its own in {name}: save it anew with an office program")
    return data
