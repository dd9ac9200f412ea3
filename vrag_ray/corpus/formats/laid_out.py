"""Documents without pages of their own (office, web, e-books) as MuPDF lays them out, part by part.

Office files are made web pages first (see ``office``); each slide and each sheet is a document of its own.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path

import pymupdf

from vrag_ray.corpus.formats.epub import readable_book
from vrag_ray.corpus.formats.office.parts import every, related, relations_of, stated_title, tree_of, words_of, xml_of
from vrag_ray.corpus.formats.office.slides import shown_slides, slide_page
from vrag_ray.corpus.formats.office.word import document_page
from vrag_ray.corpus.formats.office.workbook import MOST_CELLS, sheet_page, strings_of, styles_of
from vrag_ray.corpus.formats.references import held_pictures, is_held, picture_targets
from vrag_ray.corpus.formats.source import Attachment
from vrag_ray.corpus.formats.unseen import STRUCK_TAGS, seen_drawing, seen_page, struck_notice, without_struck
from vrag_ray.corpus.formats.web_colours import with_drawn_colours
from vrag_ray.corpus.formats.web_encoding import markup_in_utf8
from vrag_ray.corpus.formats.web_formulas import with_written_formulas
from vrag_ray.corpus.formats.web_gaps import GAPS, with_gaps
from vrag_ray.corpus.formats.web_tables import with_drawn_tables
from vrag_ray.corpus.model import DecodeError
from vrag_ray.corpus.sniff import OFFICE_REMEDIES, REFLOWED, Format

PORTRAIT, LANDSCAPE, WIDE = (595, 842), (842, 595), (1684, 1190)
"""Points: A4 for texts, A4 across for slides, a sheet of A2 for workbooks, whose tables are broad."""
TYPE_SIZE = 11
MOST_SHEETS = 2_000
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
_STYLE = f"pre{{white-space:pre-wrap}}{GAPS}"
_STRUCK = (*sorted(STRUCK_TAGS), "strikethrough")
"""The last is the name that it has in FB2."""
_UNSTRUCK = f"{','.join(_STRUCK)}{{display:none}}"
_STRUCK_TAG = re.compile(rf"<(?:{'|'.join(_STRUCK)})[\s>]".encode(), re.IGNORECASE)
_PREVIEWS = "TablePreview"
"""Pictures of tables that stand in the file as tables too."""


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
        slides, notices = _slides(path)
        if notices and not slides:
            raise DecodeError("shows nothing: every slide of it is hidden; show those that are to be read")
        if slides:
            return slides, notices
    if format_ is Format.DOCX:
        page, notices = document_page(path)
        markup = with_drawn_tables(page, _inner_width(PORTRAIT))
        # Web pages in it may have struck text.
        part, struck = _without_struck(markup.encode("utf-8", "replace"), Format.HTML)
        return [part], [*notices, *struck]
    if format_ is Format.XLSX:
        sheets, notices = _sheets(path)
        if notices and not sheets:
            raise DecodeError(
                "shows nothing: all its sheets are hidden or have no cells; show those that are to be read"
            )
        if sheets:
            return sheets, notices
    if format_ in (Format.HTML, Format.FB2, Format.SVG):
        data, notice = markup_in_utf8(path.read_bytes())
        if format_ is not Format.FB2:
            seen = seen_page if format_ is Format.HTML else seen_drawing
            markup = seen(with_written_formulas(data.decode("utf-8", "replace")))
            if format_ is Format.HTML:
                markup = with_drawn_tables(with_gaps(with_drawn_colours(markup)), _inner_width(PORTRAIT))
            data = markup.encode("utf-8", "replace")
        part, struck = _without_struck(data, format_)
        return [part], [*([notice] if notice else []), *struck]
    book, left_out = readable_book(path, PORTRAIT, TYPE_SIZE) if format_ is Format.EPUB else (path, [])
    part, struck = _without_struck(book, format_)
    return [part], [*left_out, *struck]


def _without_struck(content: Path | bytes, format_: Format) -> tuple[Part, list[str]]:
    """The document without what is struck out in it, and a notice of how many words that is.

    Where something is, it is laid out twice, since MuPDF alone knows which words its styles show.
    """
    whole = partial(_open, content, format_)
    if isinstance(content, bytes) and format_ is Format.HTML:
        markup = content.decode("utf-8", "replace")
        shown = without_struck(markup)
        if shown == markup:
            return _part(whole), []
        reduced = partial(_open, shown.encode("utf-8", "replace"), format_)
    elif format_ in (Format.EPUB, Format.FB2) and _has_struck_tags(content, format_):
        reduced = partial(_open, content, format_, style=_STYLE + _UNSTRUCK)
    else:
        return _part(whole), []
    count = _count_of_words(whole) - _count_of_words(reduced)
    return _part(reduced), [struck_notice(count)] if count > 0 else []


def _has_struck_tags(content: Path | bytes, format_: Format) -> bool:
    if format_ is not Format.EPUB:
        return isinstance(content, bytes) and _STRUCK_TAG.search(content) is not None
    with zipfile.ZipFile(io.BytesIO(content) if isinstance(content, bytes) else content) as archive:
        return any(
            info.filename.lower().endswith((".xhtml", ".html", ".htm", ".xml"))
            and info.file_size <= MOST_EMBEDDED_BYTES
            and _STRUCK_TAG.search(archive.read(info)) is not None
            for info in archive.infolist()
        )


def _count_of_words(opened: Callable[[], pymupdf.Document]) -> int:
    with opened() as document:
        return sum(len(page.get_text("words")) for page in document)


def shown_pictures(path: Path) -> tuple[str, ...]:
    """What the pictures of a web page are named by, without those that it holds: MuPDF draws none of the others."""
    return tuple(target for target in picture_targets(_markup_at(path), markdown=False) if not is_held(target))


def _markup_at(path: Path) -> str:
    return markup_in_utf8(path.read_bytes())[0].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class WebPage:
    """A web page as what holds pictures: OCR does not read them beside the words of its pages."""

    path: Path

    def attachments(self) -> Iterator[Attachment]:
        return held_pictures(_markup_at(self.path), markdown=False)

    def close(self) -> None:
        """Nothing is held open."""


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


def _open(
    content: Path | bytes, format_: Format, paper: tuple[int, int] = PORTRAIT, style: str = _STYLE
) -> pymupdf.Document:
    size = {"width": paper[0], "height": paper[1], "fontsize": TYPE_SIZE} if format_ in REFLOWED else {}
    if size:
        # For the whole process: lines that would run off the page, and be lost, go on below.
        pymupdf.mupdf.fz_set_user_css(style)
    type_ = _FILE_TYPES.get(format_, format_.value.lower())
    if isinstance(content, Path):
        return pymupdf.open(content, filetype=type_, **size)
    return pymupdf.open(stream=content, filetype=type_, **size)


def _inner_width(paper: tuple[int, int]) -> float:
    """Points that a table may take across: MuPDF leaves margins of about 36 points, and a page may have its own."""
    return paper[0] - 8 * TYPE_SIZE


def _slides(path: Path) -> tuple[list[Part], list[str]]:
    """The slides of a presentation in their order, and notices; none where its parts are not where they belong."""
    shown, notices = shown_slides(path)
    slides: list[Part] = []
    with zipfile.ZipFile(path) as archive:
        title = stated_title(archive)
        for slide in shown:
            page, unseen, struck = slide_page(archive, slide, title)
            if unseen:
                notices.append(f"of slide {slide.number} {unseen} words are left out: they are hidden")
            if struck:
                notices.append(f"of slide {slide.number} {struck} words are left out: they are struck out")
            markup = with_drawn_tables(page, _inner_width(LANDSCAPE))
            opened = partial(_open, markup.encode("utf-8", "replace"), Format.HTML, LANDSCAPE)
            slides.append(_part(opened, f"slide {slide.number}", slide.notes))
    return slides, notices


def _sheets(path: Path) -> tuple[list[Part], list[str]]:
    """The sheets of a workbook in their order, and notices; none where its parts are not where they belong."""
    main, sheets, notices, size = "xl/workbook.xml", list[Part](), list[str](), 0
    with zipfile.ZipFile(path) as archive:
        names = frozenset(archive.namelist())
        if main not in names:
            return [], []
        workbook, relations = tree_of(xml_of(archive, main)), relations_of(archive, main, names)
        shared, styled = ("xl/sharedStrings.xml", "xl/styles.xml")
        strings = strings_of(tree_of(xml_of(archive, shared)) if shared in names else None)
        from_1904 = any(
            element.get("date1904") in ("1", "true")
            for element in workbook.iter()
            if element.tag.endswith("}workbookPr")
        )
        styles = styles_of(tree_of(xml_of(archive, styled)) if styled in names else None, from_1904=from_1904)
        for entry in (element for element in workbook.iter() if element.tag.endswith("}sheet")):
            target = related(entry, relations)
            name = " ".join(entry.get("name", "").split())
            if entry.get("state") in ("hidden", "veryHidden"):
                notices.append(f"the sheet {name} is left out: it is hidden")
                continue
            if target not in names or "/worksheets/" not in target:
                notices.append(f"the sheet {name} is left out: it holds no cells")
                continue
            if size > MOST_SHEET_BYTES or len(sheets) == MOST_SHEETS:
                notices.append(f"the sheet {name} and those behind it are left out: the workbook is too large")
                break
            below = _text_boxes(archive, target, names)
            page, whole, unseen = sheet_page(xml_of(archive, target), name, strings, styles, below)
            if unseen:
                notices.append(f"of the sheet {name} {unseen} cells are left out: they are hidden")
            if not whole:
                notices.append(f"of the sheet {name} only the first {MOST_CELLS} cells are read: save it as CSV")
            data = page.encode("utf-8", "replace")
            size += len(data)
            sheets.append(_part(partial(_open, data, Format.HTML, WIDE), name))
    return sheets, notices


def _text_boxes(archive: zipfile.ZipFile, sheet: str, names: frozenset[str]) -> str:
    """The words in the shapes that lie on a sheet, as HTML. The values of its charts stand in cells."""
    drawings = (part for part in relations_of(archive, sheet, names).values() if "/drawings/drawing" in part)
    texts = (text for part in drawings if part in names for text in every(tree_of(xml_of(archive, part)), "txBody"))
    return "".join(f"<p>{escape(words)}</p>" for text in texts if (words := words_of(text)))
