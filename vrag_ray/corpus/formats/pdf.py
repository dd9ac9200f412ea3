"""PDF pages through MuPDF: text layer, word boxes, outline, and renderings from the vector source.

MuPDF gives boxes on the unturned page and renders the turned one; everything that leaves this module is in fractions of
the upright page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pymupdf

from vrag_ray.corpus.formats.pdf_text import LAYER_FLAGS, PageRead, read_page
from vrag_ray.corpus.formats.source import Opening, damage
from vrag_ray.corpus.model import DecodedUnit, DecodeError, OutlineEntry, Probe, clean, letters_in, title_from_name
from vrag_ray.corpus.ocr import OCR_PIXELS
from vrag_ray.corpus.passages import BLANK, PAGE_COUNT, PAGE_LABEL, SECTION
from vrag_ray.corpus.png import fitting_scale, png_bytes
from vrag_ray.corpus.titles import LONGEST_TITLE, headline, is_title
from vrag_ray.types import Box, DocumentKind, Locator, Meta, MetaValue, PageText, PassageKind

if TYPE_CHECKING:
    from vrag_ray.corpus.ocr import OcrText, Picture

POINTS_PER_INCH = 72.0
LONGEST_OUTLINE = 10_000
LONGEST_LABEL = 40
SECTION_MARK = " > "


_REPAIR = (
    "get the whole file again, or repair it, for example with `qpdf in.pdf out.pdf` or by printing it to a new PDF"
)
UNREADABLE = f"is no readable PDF: it is damaged or cut short; {_REPAIR}"


def _damaged(index: int) -> str:
    return f"page {index + 1} is damaged, or nested deeper than can be read; {_REPAIR}"


class PdfSource:
    """An open PDF."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._limits = opening.limits
        pymupdf.TOOLS.mupdf_display_errors(False)
        pymupdf.TOOLS.mupdf_display_warnings(False)
        with damage(UNREADABLE):
            self._document = pymupdf.open(opening.path, filetype="pdf")
            locked = self._document.needs_pass and not self._document.authenticate("")
        if locked:
            raise DecodeError(
                "is encrypted: remove the password, for example with `qpdf --decrypt --password=… in.pdf out.pdf`, and "
                "add it again"
            )
        self._pages = self._count_pages()

    def probe(self) -> Probe:
        meta: dict[str, MetaValue] = {"repaired": True} if self._document.is_repaired else {}
        for field in ("author", "subject", "keywords"):
            if value := self._metadata(field):
                meta[field] = value
        with damage(UNREADABLE):
            title = self._title()
        return Probe(DocumentKind.PDF, self._pages, title, self._outline(), meta)

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
    def _has_labels(self) -> bool:
        try:
            return bool(self._document.get_page_labels())
        except (RuntimeError, ValueError, IndexError, TypeError, KeyError):
            # Broken labels cost the reader a name of the page, never the page.
            return False

    def _label(self, unit: int) -> str:
        """What the document calls a page; "" where that is its number, or nothing."""
        if not self._has_labels:
            return ""
        try:
            label = " ".join(clean(str(self._page(unit).get_label())).split())[:LONGEST_LABEL]
        except (RuntimeError, ValueError, IndexError, TypeError, KeyError):
            return ""
        return "" if label == str(unit + 1) else label

    @cached_property
    def _sections(self) -> Mapping[int, str]:
        """By unit the titles of its section: the innermost that begins before it, or the first that begins on it."""
        return sections(self._outline(), self._pages)

    def _unit(self, unit: int) -> DecodedUnit:
        page = self._page(unit)
        if not self._document.xref_get_keys(page.xref):
            raise DecodeError(_damaged(unit))
        read, meta = self._read(page)
        words = read.words if read.ocr else ()
        locator = Locator(page=unit + 1)
        return DecodedUnit(
            unit, PassageKind.PAGE, locator, read.text, read.lines, words, read.ocr, notices=read.notices, meta=meta
        )

    def page_text(self, locator: Locator) -> PageText:
        """The words that a person sees, in reading order. Width and height in points."""
        page = self._page_at(locator)
        with damage(_damaged(page.number)):
            read, _ = self._read(page)
        name = self._opening.path.name
        return PageText(name, locator, read.text, read.words, width=page.rect.width, height=page.rect.height)

    def render(self, locator: Locator, *, dpi: float, box: Box | None, max_pixels: int) -> bytes:
        """PNG of the page, or of ``box`` of it, drawn anew; ``dpi`` is lowered where ``max_pixels`` demands it."""
        from PIL import Image

        page = self._page_at(locator)
        with damage(_damaged(page.number)):
            return png_bytes(Image.fromarray(_draw(page, dpi, box, max_pixels)))

    def close(self) -> None:
        self._document.close()

    def _count_pages(self) -> int:
        with damage(UNREADABLE):
            pages = int(self._document.page_count)
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
            page: pymupdf.Page = self._document.load_page(index)
            has_area = not (page.rect.is_empty or page.rect.is_infinite)
        if not has_area:
            raise DecodeError(f"page {index + 1} has no area: its size in the file is wrong; {_REPAIR}")
        return page

    def _read(self, page: pymupdf.Page) -> tuple[PageRead, Meta]:
        options = self._opening.options

        def ocr() -> OcrText:
            return self._opening.read(_draw(page, options.ocr_dpi, None, min(OCR_PIXELS, self._limits.max_pixels)))

        read = read_page(page, min_chars=options.ocr_min_chars, ocr=ocr if options.ocr else None)
        if len(read.text) <= self._limits.max_text_chars_per_page:
            return read, {}
        return replace(read, text=read.text[: self._limits.max_text_chars_per_page]), {"text_cut": True}

    def _title(self) -> str:
        stated = self._metadata("title")
        if is_title(stated):
            return stated
        return (None if self._opening.cautious else self._headline()) or title_from_name(self._opening.name)

    def _metadata(self, field: str) -> str:
        value = (self._document.metadata or {}).get(field)
        return " ".join(clean(value).split())[:LONGEST_TITLE] if isinstance(value, str) else ""

    def _headline(self) -> str | None:
        """The first lines of page one that are set in its largest type, if that is larger than the rest and a title;
        else those in the next larger than the text. What is filled into a form, notes, and turned lines are left out.
        """
        # A display list without annotations: the page itself would give the words of filled fields too.
        layer = pymupdf.TextPage(self._page(0).get_displaylist(annots=0).get_textpage(LAYER_FLAGS))
        lines = [
            (max(span["size"] for span in line["spans"]), line["dir"], "".join(span["text"] for span in line["spans"]))
            for block in layer.extractDICT()["blocks"]
            for line in block.get("lines", ())
            if line["spans"]
        ]
        letters: Counter[tuple[float, float]] = Counter()
        for _, direction, text in lines:
            letters[direction] += letters_in(text)
        upright = [(size, text) for size, direction, text in lines if direction == letters.most_common(1)[0][0]]
        return headline(upright)

    def _outline(self) -> tuple[OutlineEntry, ...]:
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


def sections(outline: Sequence[OutlineEntry], pages: int) -> dict[int, str]:
    """By unit the path of titles that stand over its page: ``Results > Tides``.

    A page belongs to the section that goes on there; where sections begin on it, to the first, and to the first of that
    one's own, and so on, as far down as they follow each other.
    """
    beginning: dict[int, list[OutlineEntry]] = {}
    for entry in outline:
        beginning.setdefault(entry.page, []).append(entry)
    found: dict[int, str] = {}
    path: list[OutlineEntry] = []
    for page in range(1, pages + 1 if outline else 1):
        shown, goes_down = path, True
        for number, entry in enumerate(beginning.get(page, ())):
            goes_down = goes_down and (number == 0 or entry.level > path[-1].level)
            path = [*(one for one in path if one.level < entry.level), entry]
            shown = path if goes_down else shown
        if shown:
            found[page - 1] = SECTION_MARK.join(one.title for one in shown)[:LONGEST_TITLE]
    return found


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
