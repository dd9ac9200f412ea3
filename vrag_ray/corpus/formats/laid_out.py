"""Documents without pages of their own (office, web, e-books) as MuPDF lays them out, part by part.

Office files are made web pages first (see ``office``); each slide and each sheet is a document of its own.
"""

from __future__ import annotations

import io
import math
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import BinaryIO

import pymupdf

from vrag_ray.corpus.formats.epub import readable_book
from vrag_ray.corpus.formats.office.package import usual_package
from vrag_ray.corpus.formats.office.parts import every, related, relations_of, stated_title, tree_of, words_of, xml_of
from vrag_ray.corpus.formats.office.slides import shown_slides, slide_page
from vrag_ray.corpus.formats.office.word import document_page
from vrag_ray.corpus.formats.office.workbook import HEAD, LONG, MOST_CELLS, sheet_page, strings_of, styles_of, unescaped
from vrag_ray.corpus.formats.references import held_pictures, is_held, picture_targets
from vrag_ray.corpus.formats.source import Attachment
from vrag_ray.corpus.formats.svg import plain_drawing
from vrag_ray.corpus.formats.symbol_fonts import with_written_signs
from vrag_ray.corpus.formats.unseen import (
    SHEET,
    STRUCK_CLASS,
    STRUCK_TAGS,
    TAG,
    seen_drawing,
    seen_page,
    struck_notice,
    without_struck,
)
from vrag_ray.corpus.formats.web_colours import with_drawn_colours
from vrag_ray.corpus.formats.web_encoding import markup_in_utf8
from vrag_ray.corpus.formats.web_formulas import with_written_formulas
from vrag_ray.corpus.formats.web_parts import with_drawn_parts
from vrag_ray.corpus.formats.web_styles import with_written_styles
from vrag_ray.corpus.formats.web_tables import with_drawn_tables
from vrag_ray.corpus.formats.web_text import CONTROLS
from vrag_ray.corpus.model import DecodeError
from vrag_ray.corpus.sniff import OFFICE_REMEDIES, REFLOWED, Format

Paper = tuple[int, int]
Opening = Callable[[Paper, bool], Callable[[], pymupdf.Document]]
"""From a paper, and whether lines may break where their author lets none, to what opens the document on it."""
PORTRAIT, LANDSCAPE, WIDE = (595, 842), (842, 595), (1684, 1190)
"""Points: A4 for texts, A4 across for slides, a sheet of A2 for workbooks, whose tables are broad."""
MOST_WIDTH = 7_200
"""Points: no page is made broader for the sake of its words."""
MOST_ATTEMPTS = 3
"""To find a width: text whose own width is a share of the page's grows with it."""
MARGIN = 52
"""Points that a broader page has beside its words: a table that fits on it is then drawn on it too."""
TYPE_SIZE = 11
MOST_SHEETS = 2_000
MOST_EMBEDDED_BYTES = 256 * 2**20
MOST_SHEET_BYTES = 100 * 2**20
"""Of web pages made of the sheets of one workbook."""
_FILE_TYPES = {Format.HTML: "html", Format.FB2: "fb2"}
_FOLDERS_OF_FILES = {
    **dict.fromkeys(
        (Format.DOCX, Format.PPTX, Format.XLSX), re.compile("(?:.*/)?(?:media|embeddings)/", re.IGNORECASE)
    ),
    **dict.fromkeys((Format.ODT, Format.ODP, Format.ODS), re.compile("Pictures/|Media/")),
}
_COMMENTS_OF_SLIDES = re.compile(r"ppt/comments/[^/]*\.xml")
_HIDDEN_FILE = re.compile(r"(?:.*/)?(?:__MACOSX/|\.[^/])")
_STYLE = (
    "pre{white-space:pre-wrap}rt,rp,rtc{display:none}td>dd{margin:0}center,details,legend,summary{display:block}"
    f"{','.join(f'{tag}::before,{tag}::after' for tag in CONTROLS)}{{content:' '}}"
)
"""How a word of Chinese or Japanese is read, which stands above it, would part it. A browser puts room between
controls."""
_TABLES = {Format.FB2: "td,th{padding:1px 12px;border:1px solid #bbb}"}
"""Web pages state how their cells are parted, or ``with_drawn_tables`` does."""
_STRUCK = (*sorted(STRUCK_TAGS), "strikethrough")
"""The last is the name that it has in FB2."""
_UNSTRUCK = (
    f"{','.join((*_STRUCK, f'.{STRUCK_CLASS}'))}{{display:none}}"
    f"td.{STRUCK_CLASS},th.{STRUCK_CLASS}{{display:table-cell;visibility:hidden}}"
)
_BROKEN = "*{overflow-wrap:break-word} td *,th *{overflow-wrap:normal}"
_ON_A_LINE = f"td{{white-space:nowrap}}td.{LONG},td.{HEAD}{{white-space:normal}}"
_LEAST_LONG = f"td.{LONG}{{width:240px}}"
"""On a broader page MuPDF would leave such a cell no more than its longest word takes."""
_UNYIELDING = (
    (re.compile(r"(white-space\s*:\s*)nowrap\b", re.IGNORECASE), r"\1normal"),
    (re.compile(r"(white-space\s*:\s*)pre(?![\w-])", re.IGNORECASE), r"\1pre-wrap"),
    (re.compile(r"(width\s*:\s*)\d{3,}(?:\.\d+)?\s*%", re.IGNORECASE), r"\1auto"),
)
"""What keeps lines of a web page from ending where the page does, and what does not."""
_STRUCK_TAG = re.compile(rf"<(?:{'|'.join(_STRUCK)})[\s>]|class=\"{STRUCK_CLASS}\"".encode(), re.IGNORECASE)
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
        slides, notices = _slides(usual_package(path, format_))
        if notices and not slides:
            raise DecodeError("shows nothing: every slide of it is hidden; show those that are to be read")
        if slides:
            return slides, notices
    if format_ is Format.DOCX:
        page, notices = document_page(usual_package(path, format_))
        # Web pages in it may have struck text.
        part, left_out = _without_struck(page.encode("utf-8", "replace"), Format.HTML)
        return [part], [*notices, *left_out]
    if format_ is Format.XLSX:
        sheets, notices = _sheets(usual_package(path, format_))
        if notices and not sheets:
            raise DecodeError(
                "shows nothing: all its sheets are hidden or have no cells; show those that are to be read"
            )
        if sheets:
            return sheets, notices
    if format_ in (Format.HTML, Format.FB2, Format.SVG):
        return _markup(path, format_)
    book: Path | bytes = path
    notices = []
    if format_ is Format.EPUB:
        book, notices = readable_book(path, PORTRAIT, TYPE_SIZE)
    elif format_ is Format.CBZ:
        book = _comic(path)
    part, left_out = _without_struck(book, format_)
    return [part], [*notices, *left_out]


def _markup(path: Path, format_: Format) -> tuple[list[Part], list[str]]:
    """A web page, a book in FB2 or a drawing as browsers show it."""
    data, notice = markup_in_utf8(path.read_bytes())
    notices = [notice] if notice else []
    if format_ is not Format.FB2:
        markup = with_written_formulas(data.decode("utf-8", "replace"))
        if format_ is Format.HTML:
            markup, left_out = with_written_styles(with_drawn_parts(markup))
            markup = with_drawn_colours(seen_page(with_written_signs(markup)))
            notices += left_out
        else:
            markup, hidden = plain_drawing(with_written_signs(markup))
            markup = seen_drawing(markup)
            notices += [f"{hidden} words that are hidden in it are left out"] if hidden else []
        data = markup.encode("utf-8", "replace")
    part, left_out = _without_struck(data, format_)
    return [part], [*notices, *left_out]


def _comic(path: Path) -> Path | bytes:
    """The comic at ``path``, or a copy without the hidden files that Macs zip beside the pictures."""
    with zipfile.ZipFile(path) as archive:
        shown = [info for info in archive.infolist() if not _HIDDEN_FILE.match(info.filename)]
        is_large = sum(info.file_size for info in shown) > MOST_EMBEDDED_BYTES
        if is_large or len(shown) == len(archive.infolist()):
            return path
        copy = io.BytesIO()
        with zipfile.ZipFile(copy, "w", zipfile.ZIP_STORED) as out:
            for info in shown:
                out.writestr(info.filename, archive.read(info))
        return copy.getvalue()


def _without_struck(content: Path | bytes, format_: Format) -> tuple[Part, list[str]]:
    """The document without what is struck out in it, and notices of how many words that is, and of words that are cut.

    Where something is, it is laid out twice, since MuPDF alone knows which words its styles show.
    """

    def at(paper: Paper, is_broken: bool, style: str = _STYLE) -> Callable[[], pymupdf.Document]:
        return partial(_open, content, format_, paper, style + _TABLES.get(format_, "") + _BROKEN * is_broken)

    whole: Opening = at
    reduced: Opening = partial(at, style=_STYLE + _UNSTRUCK)
    if isinstance(content, bytes) and format_ is Format.HTML:
        markup = content.decode("utf-8", "replace")
        shown = without_struck(markup)
        whole, reduced = partial(_opened, markup), partial(_opened, shown)
        if shown == markup:
            return _part(whole, PORTRAIT)
    elif format_ not in (Format.EPUB, Format.FB2) or not _has_struck_tags(content, format_):
        return _part(whole, PORTRAIT)
    count = _count_of_words(whole(PORTRAIT, False)) - _count_of_words(reduced(PORTRAIT, False))
    part, cut = _part(reduced, PORTRAIT)
    return part, [*([struck_notice(count)] if count > 0 else []), *cut]


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
        return sum(len(page.get_text("words", clip=pymupdf.INFINITE_RECT())) for page in document)


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
                if folders.match(info.filename) and not info.is_dir() and not is_copy:
                    is_large = info.file_size > MOST_EMBEDDED_BYTES
                    yield Attachment(posixpath.basename(info.filename), b"" if is_large else archive.read(info))

    def close(self) -> None:
        """Nothing is held open."""


def _part(opening: Opening, paper: Paper, name: str = "", notes: str = "") -> tuple[Part, list[str]]:
    """The part on pages as broad as the words on them, ``paper`` at least, and a notice of words that are cut.

    MuPDF lets what is too broad run off the page.
    """
    chosen, is_broken = paper, False
    for attempt in range(2 * MOST_ATTEMPTS):
        opened = opening(chosen, is_broken)
        with opened() as document:
            pages = int(document.page_count)
            edges = _edges_beyond(document, chosen[0]) if document.is_reflowable else []
        if not edges:
            break
        if not is_broken and (edges[-1] > MOST_WIDTH - MARGIN or attempt == MOST_ATTEMPTS - 1):
            chosen, is_broken = paper, True
            continue
        edge = max((edge for edge in edges if edge <= MOST_WIDTH - MARGIN), default=0.0)
        if edge <= chosen[0]:
            break
        chosen = (math.ceil(edge) + MARGIN, paper[1])
    where = f" of {name}" if name else ""
    cut = f"{len(edges)} words{where} are cut at the right edge of a page: they stand too far out for any"
    return Part(opened, pages, name, notes), [cut] if edges else []


def _edges_beyond(document: pymupdf.Document, width: float) -> list[float]:
    """The right ends, in order, of all text that does not end on the pages, which are ``width`` points broad."""
    edges: list[float] = []
    for index in range(document.page_count):
        page = document.load_page(index)
        drawn = pymupdf.mupdf.FzRect(pymupdf.mupdf.FzRect.Fixed_EMPTY)
        device = pymupdf.mupdf.fz_new_bbox_device(drawn)
        pymupdf.mupdf.fz_run_page(page.this, device, pymupdf.mupdf.FzMatrix(), pymupdf.mupdf.FzCookie())
        pymupdf.mupdf.fz_close_device(device)
        # Which is quick, but counts frames and pictures.
        if drawn.x1 > width + 1:
            words = page.get_text("words", clip=pymupdf.INFINITE_RECT())
            edges += [x1 for _, _, x1, *_ in words if x1 > width]
    return sorted(edges)


def _opened(markup: str, paper: Paper, is_broken: bool) -> Callable[[], pymupdf.Document]:
    """What opens a web page whose tables are drawn for the ``paper``."""
    if is_broken:
        for holders in (TAG, SHEET):
            markup = holders.sub(_yielding, markup)
    drawn = with_drawn_tables(markup, _inner_width(paper))
    style = _STYLE + _BROKEN * is_broken
    return partial(_open, drawn.encode("utf-8", "replace"), Format.HTML, paper, style)


def _opened_sheet(markup: bytes, paper: Paper, is_broken: bool) -> Callable[[], pymupdf.Document]:
    """What opens a sheet, whose rows have a line each where its pages can be broad enough."""
    on_a_line = _ON_A_LINE + _LEAST_LONG * (paper[0] > WIDE[0])
    return partial(_open, markup, Format.HTML, paper, _STYLE + ("" if is_broken else on_a_line))


def _yielding(match: re.Match[str]) -> str:
    """A tag or a style sheet that lets lines end where the page does."""
    text = match[0]
    for unyielding, yielding in _UNYIELDING:
        text = unyielding.sub(yielding, text)
    return text


def _open(content: Path | bytes, format_: Format, paper: Paper = PORTRAIT, style: str = _STYLE) -> pymupdf.Document:
    size = {"width": paper[0], "height": paper[1], "fontsize": TYPE_SIZE} if format_ in REFLOWED else {}
    if size:
        # For the whole process: lines that would run off the page, and be lost, go on below.
        pymupdf.mupdf.fz_set_user_css(style)
    type_ = _FILE_TYPES.get(format_, format_.value.lower())
    if isinstance(content, Path):
        return pymupdf.open(content, filetype=type_, **size)
    return pymupdf.open(stream=content, filetype=type_, **size)


def _inner_width(paper: Paper) -> float:
    """Points that a table may take across: MuPDF leaves margins of about 36 points, and a page may have its own."""
    return paper[0] - 8 * TYPE_SIZE


def _slides(file: Path | BinaryIO) -> tuple[list[Part], list[str]]:
    """The slides of a presentation in their order, and notices; none where its parts are not where they belong."""
    shown, notices = shown_slides(file)
    slides: list[Part] = []
    with zipfile.ZipFile(file) as archive:
        title = stated_title(archive)
        parts = (xml_of(archive, name) for name in archive.namelist() if _COMMENTS_OF_SLIDES.match(name))
        if count := sum(1 for part in parts for _ in every(tree_of(part), "cm")):
            notices.append(f"{count} comments in it are left out")
        for slide in shown:
            page, unseen, struck = slide_page(archive, slide, title)
            if unseen:
                notices.append(f"of slide {slide.number} {unseen} words are left out: they are hidden")
            if struck:
                notices.append(f"of slide {slide.number} {struck} words are left out: they are struck out")
            part, cut = _part(partial(_opened, page), LANDSCAPE, f"slide {slide.number}", slide.notes)
            slides.append(part)
            notices += cut
    return slides, notices


def _sheets(file: Path | BinaryIO) -> tuple[list[Part], list[str]]:
    """The sheets of a workbook in their order, and notices; none where its parts are not where they belong."""
    main, sheets, notices, size = "xl/workbook.xml", list[Part](), list[str](), 0
    with zipfile.ZipFile(file) as archive:
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
            page = sheet_page(xml_of(archive, target), name, strings, styles, below)
            if page.unseen:
                notices.append(f"of the sheet {name} {page.unseen} cells are left out: they are hidden")
            if page.lost:
                notices.append(
                    f"of the sheet {name} {page.lost} cells are left out: the file does not hold their texts; get the "
                    "whole file again"
                )
            if page.unknown:
                notices.append(
                    f"of the sheet {name} {page.unknown} cells are left out: the file holds no values of their "
                    "formulas; open it in an office program and save it"
                )
            if not page.is_whole:
                notices.append(f"of the sheet {name} only the first {MOST_CELLS} cells are read: save it as CSV")
            size += len(page.markup)
            opening = partial(_opened_sheet, page.markup.encode("utf-8", "replace"))
            part, cut = _part(opening, WIDE, name, _comments(archive, target, names))
            sheets.append(part)
            notices += cut
    return sheets, notices


def _text_boxes(archive: zipfile.ZipFile, sheet: str, names: frozenset[str]) -> str:
    """The words in the shapes that lie on a sheet, as HTML. The values of its charts stand in cells."""
    drawings = (part for part in relations_of(archive, sheet, names).values() if "/drawings/drawing" in part)
    texts = (text for part in drawings if part in names for text in every(tree_of(xml_of(archive, part)), "txBody"))
    return "".join(f"<p>{escape(words)}</p>" for text in texts if (words := words_of(text)))


def _comments(archive: zipfile.ZipFile, sheet: str, names: frozenset[str]) -> str:
    """What readers noted to cells of a sheet, a line each with the place of the cell."""
    parts = sorted(part for part in relations_of(archive, sheet, names).values() if part in names)
    lines: dict[str, list[str]] = {}
    # A discussion stands in the older part too, in one text below a notice for older programs.
    for kind, tag in (("threadedComments/", "threadedComment"), ("comments", "comment")):
        comments: dict[str, list[str]] = {}
        for part in parts:
            if posixpath.relpath(part, "xl").startswith(kind):
                for comment in every(tree_of(xml_of(archive, part)), tag):
                    text = " ".join(
                        unescaped("".join(inner.text or "" for inner in every(comment, "t", "text"))).split()
                    )
                    if text:
                        comments.setdefault(comment.get("ref", ""), []).append(text)
        lines = comments | lines
    return "\n".join(f"{place}: {' / '.join(texts)}" for place, texts in lines.items())
