"""Pages through MuPDF: text layer, word boxes, outline, and renderings from the vector source.

Of a PDF they are its own; office, web and e-book formats are laid out as pages (see ``laid_out``), or come here as a
PDF that LibreOffice has made of them.

MuPDF gives boxes on the unturned page and renders the turned one; everything that leaves this module is in fractions of
the upright page.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pymupdf

from vrag_ray.corpus.elements import elements
from vrag_ray.corpus.formats.pdf_fields import notes_on
from vrag_ray.corpus.formats.pdf_letters import letters_with_accents, readable_form, text_as_seen
from vrag_ray.corpus.formats.pdf_lines import LAYER_FLAGS, Upright
from vrag_ray.corpus.formats.pdf_objects import (
    LabelRange,
    associated_files,
    embedded_file,
    fonts_without_letters,
    is_dynamic_form,
    label_of,
    listed_files,
    mend_pages,
    name_dingbats,
    noted_files,
    page_labels,
    played_files,
    settle_layers,
)
from vrag_ray.corpus.formats.pdf_readable import has_common_words, is_badly_read, is_plausible
from vrag_ray.corpus.formats.pdf_text import PageRead, read_page
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
from vrag_ray.corpus.ocr import ocr_pixels
from vrag_ray.corpus.passages import BLANK, OCR_CONFIDENCE, PAGE_COUNT, PAGE_LABEL
from vrag_ray.corpus.png import fitting_scale, png_bytes
from vrag_ray.corpus.ruled import Grid, Line, edges_of, grids
from vrag_ray.corpus.sniff import REFLOWED, Format, page_format
from vrag_ray.corpus.tables import text_with_tables
from vrag_ray.corpus.titles import LONGEST_TITLE, headline, is_title
from vrag_ray.types import SECTION, Box, DocumentKind, Locator, Meta, MetaValue, PageText, PassageKind, Word
from vrag_ray.types.documents import NOTES_MARK

# A PDF needs no reader of office files, web pages and books, which take a fifth of the time in which a process starts.
if TYPE_CHECKING:
    from vrag_ray.corpus.formats.laid_out import Part
    from vrag_ray.corpus.formats.office.slides import Slide
    from vrag_ray.corpus.ocr import OcrText, Picture

POINTS_PER_INCH = 72.0
LONGEST_OUTLINE = 10_000
LONGEST_LABEL = 40
SECTION_MARK = " > "
_NOTES_WITH_FILES = frozenset((17, 19, 20, 21, 22))
"""MuPDF's numbers for notes that hold a file, films, rich media, fields, which may play a film, and screens."""
_LETTER_BY_LETTER = re.compile(r"(?:\b\w ){4}\w\b")
MOST_PATHS = 4_000
"""Drawn paths of a page of which ruling lines are looked for."""
HAIR = 0.2
"""Points."""
MOST_PICTURES = 256
LEAST_PICTURE, WHOLE_PAGE = 0.005, 0.9
"""Shares of a page: a smaller picture is a mark, a larger one is the page itself."""
MOST_PAGES_OF_NOTES = 5_000
"""Pages of a document that are looked through for attached files."""
SAMPLED_PAGES = 64
"""Pages that tell whether a document is a scan, evenly spaced."""
A_STAMP = 1_000
"""Bytes of drawing, compressed, of a page that says little beside its picture."""
A_SCAN_PIXELS = 500_000
A_SHADOW = 0.3
"""Heights of a line by which its shadow stands beside it, at most."""
LIGHT = 0xE0
"""Least value of each of the primary colours in those that may not show on white."""
_STATES_NOTHING = frozenset(("anonymous", "unspecified"))
"""What reportlab writes where its caller states nothing."""


OFFICE_PROGRAM = "LibreOffice"
PART_NAMES = defaultdict(lambda: "part", {Format.PPTX: "slide", Format.XLSX: "sheet"})
"""The metadata name under which a page says of which slide or sheet it is."""
_REPAIR = (
    "get the whole file again, or repair it, for example with `qpdf in.pdf out.pdf` or by printing it to a new PDF"
)
UNREADABLE_OTHER = (
    "cannot be opened: it is damaged, empty, or locked by a password or copy protection (DRM); open it in the program "
    "that it was made with, and export it as PDF"
)
_OTHER_LOCK = "unknown encryption handler"
"""In the message of MuPDF for a PDF that is encrypted otherwise than by a password."""
LOCKED_OTHERWISE = (
    "is encrypted for the holders of a certificate or of a licence (DRM): open it in a program that has that, and save "
    "it without encryption"
)
DYNAMIC_FORM = (
    "a form (XFA) whose pages and values are not read, since Adobe Acrobat alone draws them: open it there and print "
    "it to a PDF"
)
UNREADABLE = f"is no readable PDF: it is damaged or cut short; {_REPAIR}"

_TypeLine = tuple[float, tuple[float, float], str, tuple[float, float, float, float]]
"""A line of the first page: the size of its type, its direction, its text and its place."""


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
        self._made_of = opening.format if opening.original is not None else None
        """Of what LibreOffice made the file, where it did; known when the document is probed."""
        if opening.format is Format.PDF and self._format is not Format.PDF:
            raise DecodeError(UNREADABLE)
        self._parts: list[Part] = []
        self._believed: set[str] = set()
        """Fonts whose letters OCR has borne out."""
        self._starts: list[int] = []
        self._notices: list[str] = []
        with damage(UNREADABLE if self._format is Format.PDF else UNREADABLE_OTHER):
            if self._format is Format.PDF:
                self._document = _opened(opening.path)
            else:
                from vrag_ray.corpus.formats.laid_out import laid_out

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
        if self._document.is_pdf:
            try:
                mend_pages(self._document)
                settle_layers(self._document)
            except Exception as error:
                # What cannot be mended is reported below, as it stands.
                if is_memory_error(error):
                    raise
        self._pages = self._count_pages()
        self._slides: list[Slide] = []
        """Those of the pages that LibreOffice made, one each."""
        self._has_other_slides = False
        if self._format is Format.PDF and opening.sidecars:
            from vrag_ray.corpus.formats.office.slides import shown_slides

            with damage(UNREADABLE_OTHER):
                slides, hidden = shown_slides(opening.sidecars[0].path)
            self._has_other_slides = bool(slides) and len(slides) != self._pages
            if not self._has_other_slides:
                self._slides, self._notices = slides, [*self._notices, *hidden]

    def probe(self) -> Probe:
        meta: dict[str, MetaValue] = {"repaired": True} if self._document.is_pdf and self._document.is_repaired else {}
        notices = list(self._notices)
        if self._document.is_pdf and is_dynamic_form(self._document):
            notices.append(DYNAMIC_FORM)
        format_ = self._made_of or self._format
        if format_ is not Format.PDF:
            meta["format"] = str(format_)
        if self._format in REFLOWED:
            meta["reflowed"] = True
            notices.append(f"reflowed: its pages are laid out anew, not as a program for {format_} shows them")
        if self._made_of is not None:
            meta["read_by"] = OFFICE_PROGRAM
            if self._format is Format.PDF:
                notices.append(f"its pages are those of {OFFICE_PROGRAM}")
            if self._has_other_slides:
                notices.append(f"its speaker's notes are left out: {OFFICE_PROGRAM} made other slides of it")
        for field in ("author", "subject", "keywords"):
            if (value := self._metadata(field)) and value.strip("()") not in _STATES_NOTHING:
                meta[field] = value
        with damage(UNREADABLE):
            title = self._title()
        scans = 0 if self._opening.cautious or not self._opening.options.ocr else self._scans()
        pictures: tuple[str, ...] = ()
        if self._format is Format.HTML:
            from vrag_ray.corpus.formats.laid_out import shown_pictures

            pictures = shown_pictures(self._opening.path)
        return Probe(
            DocumentKind.PDF,
            self._pages,
            title,
            self._outline(),
            meta,
            notices=tuple(notices),
            scans=scans,
            pictures=pictures,
        )

    def attachments(self) -> Iterator[Attachment]:
        """Embedded files, films, those that notes on the pages hold, and those that belong to the document or to a
        page.

        Of an office file, what its pages do not show; of a web page, the pictures that it holds.
        """
        if self._format is Format.HTML:
            from vrag_ray.corpus.formats.laid_out import WebPage

            yield from WebPage(self._opening.path).attachments()
            return
        if self._made_of is not None or not self._document.is_pdf:
            from vrag_ray.corpus.formats.laid_out import OfficeArchive

            original = self._opening.original or self._opening.path
            yield from OfficeArchive(original, self._made_of or self._format).attachments()
            return
        seen: set[tuple[str, bytes]] = set()
        for number, read in enumerate(self._files()):
            try:
                name, data = read()
            except Exception as error:
                # A damaged attachment costs itself alone.
                if is_memory_error(error):
                    raise
                name, data = "", b""
            name = _file_name(name, number)
            # The files of the document are named by their pages too.
            if (key := (name, hashlib.sha256(data).digest())) not in seen:
                seen.add(key)
                yield Attachment(name, data)

    def _files(self) -> Iterator[Callable[[], tuple[str, bytes]]]:
        """What reads the name and the bytes of each file in the PDF; one that two places name comes twice."""
        document = self._document
        yield from (partial(embedded_file, file) for file in (*listed_files(document), *played_files(document)))
        holders = [document.pdf_catalog()]
        for index in range(min(self._pages, MOST_PAGES_OF_NOTES)):
            try:
                annotations, holder = document.page_annot_xrefs(index), document.page_xref(index)
            except Exception as error:
                # A damaged page costs its own files alone.
                if is_memory_error(error):
                    raise
                continue
            holders.append(holder)
            yield from (
                partial(embedded_file, file)
                for xref, kind, _ in annotations
                if kind in _NOTES_WITH_FILES
                for file in noted_files(document, xref)
            )
        for holder in holders:
            yield from (partial(embedded_file, file) for file in associated_files(document, holder))

    def _scans(self) -> int:
        """How many pages OCR is going to read, estimated from what a sample of them is made of; none is drawn."""
        if self._format is Format.CBZ:
            return self._pages
        if not self._document.is_pdf:
            return 0
        sample = range(0, self._pages, math.ceil(self._pages / SAMPLED_PAGES))
        return round(sum(map(self._is_scan, sample)) * self._pages / len(sample))

    def _is_scan(self, index: int) -> bool:
        """Whether the page has no font but something else, or a large picture and no more drawing than of a stamp."""
        try:
            has_fonts = bool(self._document.get_page_fonts(index))
            pixels = max(
                (width * height for _, _, width, height, *_ in self._document.get_page_images(index)), default=0
            )
            parts = self._document.load_page(index).get_contents()
            drawing = sum(int(self._document.xref_get_key(part, "Length")[1]) for part in parts)
        except Exception as error:
            # Decoding says what is wrong with the page.
            if is_memory_error(error):
                raise
            return False
        if has_fonts:
            return pixels >= A_SCAN_PIXELS and drawing <= A_STAMP
        return drawing > (0 if pixels else A_STAMP)

    def locator(self, unit: int) -> Locator:
        return Locator(page=unit + 1)

    def unit(self, unit: int) -> DecodedUnit:
        with damage(_damaged(unit)):
            decoded = self._unit(unit)
            return replace(decoded, meta={**self._place(unit), **self._blankness(decoded), **decoded.meta})

    def _place(self, unit: int) -> Meta:
        """What the document calls a page, and the section that it is in, where it says so."""
        label, section = self._label(unit), self._sections.get(unit, "")
        named: Meta = {PAGE_LABEL: label, PAGE_COUNT: self._pages} if label else {}
        return {**named, SECTION: section} if section else named

    def _blankness(self, decoded: DecodedUnit) -> Meta:
        blank = not decoded.text.strip() and not self._page(decoded.unit).get_bboxlog()
        return {BLANK: True} if blank else {}

    @cached_property
    def _labels(self) -> Sequence[LabelRange]:
        try:
            return page_labels(self._document) if self._document.is_pdf else ()
        except Exception as error:
            # Broken labels cost the reader a name of the page, never the page.
            if is_memory_error(error):
                raise
            return ()

    def _label(self, unit: int) -> str:
        """What the document calls a page; "" where that is its number, or nothing."""
        label = " ".join(clean(label_of(self._labels, unit)).split())[:LONGEST_LABEL]
        return "" if label == str(unit + 1) else label

    @cached_property
    def _sections(self) -> Mapping[int, str]:
        """By unit the titles of its section: the innermost that begins before it, or the first that begins on it."""
        return sections(self._outline(), self._pages)

    def _unit(self, unit: int) -> DecodedUnit:
        page = self._page(unit)
        if self._document.is_pdf and not self._document.xref_get_keys(page.xref):
            raise DecodeError(_damaged(unit))
        read, meta = self._read(page)
        if read.undecoded and not read.text and len(page.get_bboxlog()) <= read.undecoded:
            raise DecodeError(
                f"page {unit + 1} shows pictures alone that cannot be decoded: they are damaged, or compressed in an "
                f"unknown way; {_REPAIR}"
            )
        text, lines = read.text, read.lines
        words = read.words if read.ocr else ()
        if self._parts:
            name = self._parts[self._part_of(unit)].name
            meta = {**meta, **({PART_NAMES[self._format]: name} if name else {})}
        elif self._slides:
            meta = {**meta, PART_NAMES[Format.PPTX]: f"slide {self._slides[unit].number}"}
        if notes := self._notes(unit):
            # On no page: a place that a reader could look at does not exist.
            text, lines = f"{text}\n{notes}", (*lines, TextLine(letters_in(notes), None))
        place = Locator(page=unit + 1)
        return DecodedUnit(
            unit, PassageKind.PAGE, place, text, lines, words, ocr=read.ocr, notices=read.notices, meta=meta
        )

    def _notes(self, unit: int) -> str:
        """What the author noted to a part, on its first page, and readers on a page of a PDF; "" elsewhere."""
        notes = ""
        if self._slides:
            notes = self._slides[unit].notes
        elif self._parts and unit == self._starts[self._part_of(unit)]:
            notes = self._parts[self._part_of(unit)].notes
        elif self._document.is_pdf:
            notes = "\n".join(notes_on(self._page(unit)))
        return f"{NOTES_MARK}{clean(notes)}" if notes else ""

    def page_text(self, locator: Locator) -> PageText:
        """The words that a person sees, in reading order, and the text of the page with its tables as Markdown. Width
        and height in points."""
        page = self._page_at(locator)
        unit = (locator.page or 1) - 1
        width, height = page.rect.width, page.rect.height
        with damage(_damaged(unit)):
            read, _ = self._read(page)
            before = partial(self._words_of, unit - 1)
            grids, aspect = ruled_grids(page), width / height
            parts = elements(read.words, aspect, grids, pictures_of_page(page))
            # Last: to read the page before closes this one where each sheet is a document of its own.
            text = text_with_tables(read.words, aspect, grids, before) or read.text
        notes = self._notes(unit)
        text = "\n".join(filter(None, (text, notes)))[: self._limits.max_text_chars_per_page]
        name = self._opening.path.name
        return PageText(name, locator, text, read.words, width=width, height=height, notes=notes, elements=parts)

    def _words_of(self, unit: int) -> Sequence[Word]:
        """The words of a page's text layer; none where there is no such page, or it cannot be read."""
        if unit < 0:
            return ()
        try:
            with damage(_damaged(unit)):
                return read_page(self._page(unit), min_chars=0, ocr=None, believed=self._believed).words
        except DecodeError:
            return ()

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
        if not has_area and self._format is Format.CBZ:
            raise DecodeError(f"page {index + 1} is no picture that can be read: get the whole file again")
        if not has_area:
            raise DecodeError(f"page {index + 1} has no area: its size in the file is wrong; {_REPAIR}")
        if self._document.is_pdf:
            # Where the list of fonts is damaged, the letters are those that MuPDF can give.
            with suppress(RuntimeError):
                name_dingbats(page)
        return page

    def _part_of(self, index: int) -> int:
        return bisect_right(self._starts, index) - 1

    def _turned_to(self, part: int) -> pymupdf.Document:
        if part != self._part:
            self._document.close()
            self._document, self._part = self._parts[part].open(), part
        return self._document

    def _read(self, page: pymupdf.Page) -> tuple[PageRead, Meta]:
        options = self._opening.options

        def ocr(box: Box | None) -> OcrText:
            most = ocr_pixels(page.rect.width, page.rect.height)
            return self._opening.read(_draw(page, options.ocr_dpi, box, min(most, self._limits.max_pixels)))

        read = read_page(
            page, min_chars=options.ocr_min_chars, ocr=ocr if options.ocr else None, believed=self._believed
        )
        meta: Meta = {OCR_CONFIDENCE: round(read.confidence, 2)} if read.ocr else {}
        most = self._limits.max_text_chars_per_page
        if len(read.text) <= most:
            return read, meta
        cut = (
            f"only the first {most:,} characters of its {len(read.text):,} are read: raise "
            "corpus.limits.max_text_chars_per_page"
        )
        return replace(read, text=read.text[:most], notices=(*read.notices, cut)), meta

    def _title(self) -> str:
        stated = self._metadata("title")
        if is_title(stated):
            return stated
        # A workbook's largest line is the name of its first sheet.
        no_line = self._opening.cautious or self._format is Format.XLSX
        line = None if no_line else self._first_headline()
        return self._in_words(line) if line else title_from_name(self._opening.name)

    def _in_words(self, title: str) -> str:
        """``title`` of the first page with the blanks of its words, where that is set letter by letter."""
        if _LETTER_BY_LETTER.search(title) is None:
            return title
        letters, words = "".join(title.split()), [word.text for word in self._words_of(0)]
        for first in range(len(words)):
            ends = itertools.accumulate(words[first:])
            last = next((first + n for n, run in enumerate(ends, start=1) if len(run) >= len(letters)), first)
            if "".join(words[first:last]) == letters:
                return " ".join(words[first:last])
        return title

    def _metadata(self, field: str) -> str:
        value = (self._document.metadata or {}).get(field)
        return " ".join(clean(value).split())[:LONGEST_TITLE] if isinstance(value, str) else ""

    def _first_headline(self) -> str | None:
        """The title on page one; None where that is damaged and others follow it."""
        try:
            return self._headline()
        except (DecodeError, RuntimeError) as error:
            if self._pages == 1 or is_memory_error(error):
                raise
            return None

    def _headline(self) -> str | None:
        """The first lines of page one that are set in its largest type, if that is larger than the rest and a title;
        else those in the next larger than the text. What is filled into a form, notes, and turned lines are left out,
        and, if anything else is a title, larger lines behind a label with a colon: a form may be flattened. So are
        lines without ink or in light colours that are not among the words that can be seen on the page.
        """
        # A display list without annotations: the page itself would give the words of filled fields too.
        page = self._page(0)
        layer = pymupdf.TextPage(page.get_displaylist(annots=0).get_textpage(LAYER_FLAGS))
        letters = letters_with_accents(layer)
        drawn = [
            (line, letters.get((block["number"], number)))
            for block in layer.extractDICT()["blocks"]
            for number, line in enumerate(block.get("lines", ()))
        ]
        seen = ""
        if any(_may_be_unseen(span) for line, _ in drawn for span in line["spans"]):
            seen = _letters("".join(word.text for word in self._words_of(0)))
        # Without a word nothing is known, as of a scan.
        for line, _ in drawn if seen else ():
            line["spans"] = [
                span for span in line["spans"] if not _may_be_unseen(span) or _letters(span["text"]) in seen
            ]
        lines = _drawn_once(
            (
                max(span["size"] for span in line["spans"]),
                line["dir"],
                readable_form(text_as_seen(line, accented)),
                line["bbox"],
            )
            for line, accented in drawn
            if line["spans"]
        )
        printed = " ".join(text for _, _, text, _ in lines)
        if not lines or not is_plausible(printed) or is_badly_read(page, printed.split()):
            return None
        if self._document.is_pdf and fonts_without_letters(page) and not has_common_words(printed):
            return None
        count_of: Counter[tuple[float, float]] = Counter()
        for _, direction, text, _ in lines:
            count_of[direction] += letters_in(text)
        usual = count_of.most_common(1)[0][0]
        upright = [(size, text, bbox) for size, direction, text, bbox in lines if direction == usual]
        labels = [(size, bbox) for size, text, bbox in upright if text.rstrip().endswith(":")]
        unlabelled = [
            (size, text)
            for size, text, bbox in upright
            if not any(label_size < size and _is_beside(bbox, label) for label_size, label in labels)
        ]
        return headline(unlabelled) or headline([(size, text) for size, text, _ in upright])

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
        if self._slides:
            names = {page: " ".join(clean(str(title)).split()) for _, title, page in reversed(entries)}
            return tuple(
                OutlineEntry(1, _slide_title(slide.number, names.get(page, ""))[:LONGEST_TITLE], page)
                for page, slide in enumerate(self._slides, 1)
            )
        return tuple(
            OutlineEntry(int(level), " ".join(clean(str(title)).split())[:LONGEST_TITLE], int(page))
            for level, title, page in entries[:LONGEST_OUTLINE]
            if 1 <= page <= self._pages
        )


def _opened(path: Path) -> pymupdf.Document:
    try:
        return pymupdf.open(path, filetype="pdf")
    except Exception as error:
        if _OTHER_LOCK in f"{error} {error.__cause__}":
            raise DecodeError(LOCKED_OTHERWISE) from error
        raise


def ruled_grids(page: pymupdf.Page) -> list[Grid]:
    """The grids that lines and the borders of boxes draw on a page."""
    drawn = sum(kind.endswith("path") for kind, _ in page.get_bboxlog())
    if not drawn or drawn > MOST_PATHS:
        return []
    upright = Upright(page)
    aspect = page.rect.width / page.rect.height
    horizontal: list[Line] = []
    vertical: list[Line] = []
    for path in page.get_cdrawings():
        for item in path["items"]:
            match item:
                case ("l", (x0, y0), (x1, y1)):
                    corners = (x0, y0, x1, y1)
                case ("re", (x0, y0, x1, y1), *_):
                    corners = (x0, y0, x1, y1)
                case _:
                    continue
            # A line has no area of its own.
            x0, x1 = sorted((corners[0], corners[2]))
            y0, y1 = sorted((corners[1], corners[3]))
            box = upright.box(x0 - HAIR, y0 - HAIR, x1 + HAIR, y1 + HAIR)
            if box is None or (item[0] == "l" and min(x1 - x0, y1 - y0) > 2 * HAIR):
                continue
            across, down = edges_of(box.x0 * aspect, box.y0, box.x1 * aspect, box.y1)
            horizontal += across
            vertical += down
    return grids(horizontal, vertical)


def pictures_of_page(page: pymupdf.Page) -> list[Box]:
    """The boxes of the pictures on a page, but for marks and for what is the whole page, as a scan is."""
    upright = Upright(page)
    boxes: dict[tuple[float, float, float, float], Box] = {}
    for image in page.get_image_info()[:MOST_PICTURES]:
        box = upright.box(*image["bbox"])
        if box is not None and LEAST_PICTURE <= box.area <= WHOLE_PAGE:
            boxes[box.as_tuple()] = box
    return list(boxes.values())


def _is_beside(bbox: tuple[float, float, float, float], label: tuple[float, float, float, float]) -> bool:
    """Whether a line stands to the right of ``label``, level with it."""
    return label[2] <= bbox[0] and bbox[1] < (label[1] + label[3]) / 2 < bbox[3]


def _may_be_unseen(span: Mapping[str, object]) -> bool:
    """Whether letters have no ink, as those that lie over a scan, or are nearly white."""
    colour, alpha, text = span["color"], span["alpha"], span["text"]
    assert isinstance(colour, int)
    assert isinstance(text, str)
    if not text.strip():
        return False
    return alpha == 0 or min(colour >> 16 & 0xFF, colour >> 8 & 0xFF, colour & 0xFF) >= LIGHT


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _drawn_once(lines: Iterable[_TypeLine]) -> list[_TypeLine]:
    """``lines`` without those that repeat another in nearly its place, as a shadow does."""
    places: dict[str, list[tuple[float, float, float, float]]] = {}
    once: list[_TypeLine] = []
    for line in lines:
        _, _, text, bbox = line
        slack = A_SHADOW * min(bbox[2] - bbox[0], bbox[3] - bbox[1])
        drawn = places.setdefault(text, [])
        if not any(all(abs(a - b) < slack for a, b in zip(bbox, place, strict=True)) for place in drawn):
            drawn.append(bbox)
            once.append(line)
    return once


def _slide_title(number: int, name: str) -> str:
    """A slide's number, with its title where it has one of its own."""
    return f"slide {number}" if name.casefold() in ("", f"slide {number}") else f"slide {number}: {name}"


def _file_name(name: str, number: int) -> str:
    """The name of an attachment without folders."""
    return " ".join(clean(name).replace("\\", "/").rpartition("/")[2].split()) or f"attachment {number + 1}"


def sections(outline: Sequence[OutlineEntry], pages: int) -> dict[int, str]:
    """By unit the path of titles that stand over its page: ``Results > Tides``.

    A page belongs to the section that goes on there; where sections begin on it, to the first, and to the first of its
    own, and so on, as far down as they follow each other.
    """
    beginning: dict[int, list[OutlineEntry]] = {}
    for entry in outline:
        beginning.setdefault(entry.page, []).append(entry)
    titles: dict[int, str] = {}
    path: list[OutlineEntry] = []
    for page in range(1, pages + 1 if outline else 1):
        shown, goes_down = path, True
        for number, entry in enumerate(beginning.get(page, ())):
            goes_down = goes_down and (number == 0 or entry.level > path[-1].level)
            path = [*(heading for heading in path if heading.level < entry.level), entry]
            shown = path if goes_down else shown
        if shown:
            titles[page - 1] = SECTION_MARK.join(entry.title for entry in shown)[:LONGEST_TITLE]
    return titles


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
