"""Pages through MuPDF: text layer, word boxes, outline, and renderings from the vector source.

Of a PDF they are its own; office, web and e-book formats are laid out as pages (see ``laid_out``).

MuPDF gives word boxes on the unturned page and renders the turned one; everything that leaves this module is in
fractions of the upright page. Measured: text of 900 pages/s on one core with the flags below (sorting by position
would cost 48 pages/s).
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pymupdf

from vrag_ray.corpus.formats.laid_out import Part, embedded_files, laid_out
from vrag_ray.corpus.formats.source import Attachment, Opening, damage, is_memory_error
from vrag_ray.corpus.model import (
    DecodedUnit,
    DecodeError,
    OutlineEntry,
    Probe,
    TextLine,
    clean,
    letters_in,
    title_from_name,
)
from vrag_ray.corpus.ocr import OCR_PIXELS, lines_of_words
from vrag_ray.corpus.png import fitting_scale, png_bytes
from vrag_ray.corpus.sniff import REFLOWED, Format, page_format
from vrag_ray.types import Box, DocumentKind, Locator, Meta, MetaValue, PageText, PassageKind, Word

if TYPE_CHECKING:
    from vrag_ray.corpus.ocr import OcrText, Picture

POINTS_PER_INCH = 72.0
LONGEST_OUTLINE = 10_000
LONGEST_TITLE = 200
_FILE_NOTE = 17
"""MuPDF's number for a note that holds a file."""
MOST_PAGES_OF_NOTES = 5_000
"""Pages of a document that are looked through for attached files."""
# Ligatures come apart, blanks are normalised, text outside the page is dropped, hyphens at line ends are joined.
WORD_FLAGS = pymupdf.TEXT_CLIP
TEXT_FLAGS = pymupdf.TEXT_CLIP | pymupdf.TEXT_DEHYPHENATE
_NO_TITLE = re.compile(
    r"untitled|^(microsoft )?(word|powerpoint) ?-|^powerpoint presentation$|^slide \d+$|"
    r"\.(dvi|tex|docx?|pptx?|indd|qxd|pdf)$",
    re.IGNORECASE,
)
_UNREADABLE = re.compile("[\ufffd\ue000-\uf8ff]")


PART_NAMES = defaultdict(lambda: "part", {Format.PPTX: "slide", Format.XLSX: "sheet"})
"""The metadata name under which a page says of which slide or sheet it is."""
_REPAIR = (
    "get the whole file again, or repair it, for example with `qpdf in.pdf out.pdf` or by printing it to a new PDF"
)
UNREADABLE_OTHER = (
    "cannot be opened: it is damaged, locked by a password or empty; open it in the program that it was made with, and "
    "export it as PDF"
)
UNREADABLE = f"is no readable PDF: it is damaged or cut short; {_REPAIR}"


def _damaged(index: int) -> str:
    return f"page {index + 1} is damaged, or nested deeper than can be read; {_REPAIR}"


class PdfSource:
    """An open PDF, or a document of another format that MuPDF draws page by page."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._limits = opening.limits
        pymupdf.TOOLS.mupdf_display_errors(False)
        pymupdf.TOOLS.mupdf_display_warnings(False)
        # From the content alone: who draws a page knows no file name.
        self._format = page_format(opening.path)
        if opening.format is Format.PDF and self._format is not Format.PDF:
            raise DecodeError(UNREADABLE)
        self._parts: list[Part] = []
        self._starts: list[int] = []
        self._notices: list[str] = []
        with damage(UNREADABLE if self._format is Format.PDF else UNREADABLE_OTHER):
            if self._format is Format.PDF:
                self._document = pymupdf.open(opening.path, filetype="pdf")
            else:
                self._parts, self._notices = laid_out(opening.path, self._format)
                self._starts = list(itertools.accumulate((part.pages for part in self._parts), initial=0))
                self._document = self._parts[0].open()
            self._part = 0
            locked = self._document.needs_pass and not self._document.authenticate("")
        if locked:
            raise DecodeError(
                "is encrypted: remove the password, for example with `qpdf --decrypt --password=… in.pdf out.pdf`, and "
                "add it again"
            )
        self._pages = self._count_pages()

    def probe(self) -> Probe:
        meta: dict[str, MetaValue] = {"repaired": True} if self._document.is_pdf and self._document.is_repaired else {}
        notices = list(self._notices)
        if self._format is not Format.PDF:
            meta["format"] = str(self._format)
        if self._format in REFLOWED:
            meta["reflowed"] = True
            notices.append(f"reflowed: its pages are laid out anew, not as a program for {self._format} shows them")
        for field in ("author", "subject", "keywords"):
            if value := self._metadata(field):
                meta[field] = value
        with damage(UNREADABLE):
            title = self._title()
        return Probe(DocumentKind.PDF, self._pages, title, self._outline(), meta, notices=tuple(notices))

    def attachments(self) -> Iterator[Attachment]:
        """Embedded files, then those that notes on the pages hold; of an office file, what its pages do not show."""
        if not self._document.is_pdf:
            yield from embedded_files(self._opening.path, self._format)
            return
        for number in range(self._document.embfile_count()):
            try:
                info = self._document.embfile_info(number)
                name, data = info.get("ufilename") or info.get("filename") or "", self._document.embfile_get(number)
            except Exception as error:
                # A damaged attachment costs itself alone.
                if is_memory_error(error):
                    raise
                name, data = "", b""
            yield Attachment(_file_name(name, number), data)
        count = self._document.embfile_count()
        for index in range(min(self._pages, MOST_PAGES_OF_NOTES)):
            for xref, kind, _ in self._document.page_annot_xrefs(index):
                if kind != _FILE_NOTE:
                    continue
                try:
                    # A note is only as long there as the page is held.
                    page = self._page(index)
                    note = page.load_annot(xref)
                    name, data = note.file_info.get("filename") or "", note.get_file()
                except Exception as error:
                    if is_memory_error(error):
                        raise
                    name, data = "", b""
                yield Attachment(_file_name(name, count), data)
                count += 1

    def locator(self, unit: int) -> Locator:
        return Locator(page=unit + 1)

    def unit(self, unit: int) -> DecodedUnit:
        with damage(_damaged(unit)):
            return self._unit(unit)

    def _unit(self, unit: int) -> DecodedUnit:
        page = self._page(unit)
        layer = page.get_textpage(flags=TEXT_FLAGS)
        text = clean(str(layer.extractText()))
        meta: Meta = {}
        if len(text) > self._limits.max_text_chars_per_page:
            text = text[: self._limits.max_text_chars_per_page]
            meta = {"text_cut": True}
        if not text and self._document.is_pdf and not self._document.xref_get_keys(page.xref):
            raise DecodeError(_damaged(unit))
        scanned = self._scanned(page, text)
        if scanned is not None:
            lines, words = lines_of_words(scanned.words), scanned.words
            return DecodedUnit(unit, PassageKind.PAGE, Locator(page=unit + 1), scanned.text, lines, words, ocr=True)
        lines = _lines(page, layer)
        if self._parts:
            part = self._parts[self._part_of(unit)]
            meta = {**meta, **({PART_NAMES[self._format]: part.name} if part.name else {})}
            if part.notes and unit == self._starts[self._part_of(unit)]:
                # On no page: a place that a reader could look at does not exist.
                notes = f"Notes: {clean(part.notes)}"
                text, lines = f"{text}\n{notes}", (*lines, TextLine(letters_in(notes), None))
        return DecodedUnit(unit, PassageKind.PAGE, Locator(page=unit + 1), text, lines, meta=meta)

    def page_text(self, locator: Locator) -> PageText:
        """Text and words of the text layer, or of OCR where the page has none. Width and height in points."""
        page = self._page_at(locator)
        with damage(_damaged((locator.page or 1) - 1)):
            text = self._text(page)
            scanned = self._scanned(page, text)
            words = _words(page) if scanned is None else scanned.words
        return PageText(
            self._opening.path.name,
            locator,
            text[: self._limits.max_text_chars_per_page] if scanned is None else scanned.text,
            words,
            width=page.rect.width,
            height=page.rect.height,
        )

    def render(self, locator: Locator, *, dpi: float, box: Box | None, max_pixels: int) -> bytes:
        """PNG of the page, or of ``box`` of it, drawn anew; ``dpi`` is lowered where ``max_pixels`` demands it."""
        from PIL import Image

        page = self._page_at(locator)
        with damage(_damaged((locator.page or 1) - 1)):
            return png_bytes(Image.fromarray(_draw(page, dpi, box, max_pixels)))

    def close(self) -> None:
        self._document.close()

    def _count_pages(self) -> int:
        with damage(UNREADABLE):
            pages = self._starts[-1] if self._parts else int(self._document.page_count)
        if pages == 0:
            raise DecodeError(f"has no readable page: it is damaged or cut short; {_REPAIR}")
        if pages > self._limits.max_pages:
            raise DecodeError(
                f"has {pages} pages, more than the limit of {self._limits.max_pages}: "
                "split it or raise corpus.limits.max_pages"
            )
        return pages

    def _page_at(self, locator: Locator) -> pymupdf.Page:
        if locator.page is None or not 1 <= locator.page <= self._pages:
            raise DecodeError(f"has {self._pages} pages and no {locator}")
        return self._page(locator.page - 1)

    def _page(self, index: int) -> pymupdf.Page:
        with damage(_damaged(index)):
            if self._parts:
                page: pymupdf.Page = self._turned_to(self._part_of(index)).load_page(
                    index - self._starts[self._part_of(index)]
                )
            else:
                page = self._document.load_page(index)
            has_area = not (page.rect.is_empty or page.rect.is_infinite)
        if not has_area:
            raise DecodeError(f"page {index + 1} has no area: its size in the file is wrong; {_REPAIR}")
        return page

    def _part_of(self, index: int) -> int:
        return bisect_right(self._starts, index) - 1

    def _turned_to(self, part: int) -> pymupdf.Document:
        if part != self._part:
            self._document.close()
            self._document, self._part = self._parts[part].open(), part
        return self._document

    def _text(self, page: pymupdf.Page) -> str:
        return clean(str(page.get_text("text", flags=TEXT_FLAGS)))

    def _scanned(self, page: pymupdf.Page, text: str) -> OcrText | None:
        """What OCR reads where the text layer says too little; None where that serves or the page is blank."""
        options = self._opening.options
        if not options.ocr or len(_UNREADABLE.sub("", text).strip()) >= options.ocr_min_chars:
            return None
        if not page.get_bboxlog():
            return None
        seen = self._opening.read(_draw(page, options.ocr_dpi, None, min(OCR_PIXELS, self._limits.max_pixels)))
        return seen if len(seen.text) > len(text.strip()) or _UNREADABLE.search(text) else None

    def _title(self) -> str:
        stated = self._metadata("title")
        if stated and not _NO_TITLE.search(stated):
            return stated
        # A workbook's largest line is the name of its first sheet.
        no_line = self._opening.cautious or self._format is Format.XLSX
        return (None if no_line else self._largest_line()) or title_from_name(self._opening.name)

    def _metadata(self, field: str) -> str:
        value = (self._document.metadata or {}).get(field)
        return " ".join(clean(value).split())[:LONGEST_TITLE] if isinstance(value, str) else ""

    def _largest_line(self) -> str | None:
        """The first lines of page one that are set in its largest type, if that is larger than the rest."""
        lines = [
            (max(span["size"] for span in line["spans"]), "".join(span["text"] for span in line["spans"]))
            for block in self._page(0).get_text("dict", flags=WORD_FLAGS)["blocks"]
            for line in block["lines"]
        ]
        if not lines:
            return None
        largest = max(size for size, _ in lines)
        is_large = [size > 0.95 * largest for size, _ in lines]
        first = is_large.index(True)
        length = next((n for n, large in enumerate(is_large[first:]) if not large), len(lines) - first)
        headline = [text for _, text in lines[first : first + length]]
        title = " ".join(clean(" ".join(headline)).split())
        return title if len(headline) < len(lines) and 3 <= len(title) <= LONGEST_TITLE else None

    def _outline(self) -> tuple[OutlineEntry, ...]:
        if len(self._parts) > 1:
            return tuple(
                OutlineEntry(1, " ".join(clean(part.name).split())[:LONGEST_TITLE], start + 1)
                for part, start in zip(self._parts, self._starts, strict=False)
            )
        try:
            entries = self._document.get_toc(simple=True)
        except (RuntimeError, ValueError, IndexError, TypeError):
            # A broken outline costs the reader a table of contents, never the pages.
            return ()
        return tuple(
            OutlineEntry(int(level), " ".join(clean(str(title)).split())[:LONGEST_TITLE], int(page))
            for level, title, page in entries[:LONGEST_OUTLINE]
            if 1 <= page <= self._pages
        )


def _file_name(name: str, number: int) -> str:
    """The name of an attachment without folders."""
    return " ".join(clean(name).replace("\\", "/").rpartition("/")[2].split()) or f"attachment {number + 1}"


class _Upright:
    """Rectangles of a page as MuPDF gives them, unturned, to fractions of the upright page.

    The page's matrix is read once: asking MuPDF for it at every rectangle took three quarters of decoding.
    """

    def __init__(self, page: pymupdf.Page) -> None:
        turn = page.rotation_matrix
        self._turn = (turn.a, turn.b, turn.c, turn.d, turn.e, turn.f)
        self._width, self._height = page.rect.width, page.rect.height

    def box(self, x0: float, y0: float, x1: float, y1: float) -> Box | None:
        """None where nothing of the rectangle is on the page."""
        a, b, c, d, e, f = self._turn
        xs = (a * x0 + c * y0 + e) / self._width, (a * x1 + c * y1 + e) / self._width
        ys = (b * x0 + d * y0 + f) / self._height, (b * x1 + d * y1 + f) / self._height
        left, right = max(min(xs), 0.0), min(max(xs), 1.0)
        top, bottom = max(min(ys), 0.0), min(max(ys), 1.0)
        return Box(left, top, right, bottom) if left < right and top < bottom else None


def _words(page: pymupdf.Page) -> tuple[Word, ...]:
    """The words of the text layer in the order of its text, boxes in fractions of the upright page."""
    upright = _Upright(page)
    words = []
    for x0, y0, x1, y1, text, *_ in page.get_text("words", flags=WORD_FLAGS):
        box = upright.box(x0, y0, x1, y1)
        if box is not None and (word := clean(text).strip()):
            words.append(Word(word, box))
    return tuple(words)


def _lines(page: pymupdf.Page, layer: pymupdf.TextPage) -> tuple[TextLine, ...]:
    """The lines of the text layer in the order of its text."""
    upright = _Upright(page)
    lines = []
    for _, group in itertools.groupby(layer.extractWORDS(), key=itemgetter(5, 6)):
        words = list(group)
        left, top, right, bottom = words[0][:4]
        for x0, y0, x1, y1, *_ in words[1:]:
            left, top = (x0 if x0 < left else left), (y0 if y0 < top else top)
            right, bottom = (x1 if x1 > right else right), (y1 if y1 > bottom else bottom)
        lines.append(TextLine(letters_in("".join(word[4] for word in words)), upright.box(left, top, right, bottom)))
    return tuple(lines)


def _draw(page: pymupdf.Page, dpi: float, box: Box | None, max_pixels: int) -> Picture:
    """Pixels of the page or of ``box`` of it. Their number is settled before MuPDF allocates any."""
    full = page.rect
    clip = full
    if box is not None:
        clip = pymupdf.Rect(box.x0 * full.width, box.y0 * full.height, box.x1 * full.width, box.y1 * full.height)
    scale = fitting_scale(clip.width, clip.height, dpi / POINTS_PER_INCH, max_pixels)
    pixmap = page.get_pixmap(matrix=pymupdf.Matrix(scale, scale), clip=clip, colorspace=pymupdf.csRGB, alpha=False)
    if pixmap.width < 1 or pixmap.height < 1:
        raise DecodeError(f"cannot be drawn: {clip.width:g} x {clip.height:g} points have no pixel at {dpi:g} dpi")
    return np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.width, 3)
