"""PDF pages through MuPDF: text layer, word boxes, outline, and renderings from the vector source.

MuPDF gives boxes on the unturned page and renders the turned one; everything that leaves this module is in fractions of
the upright page.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pymupdf

from vrag_ray.corpus.formats.pdf_text import LAYER_FLAGS, PageRead, read_page
from vrag_ray.corpus.formats.source import Opening, damage
from vrag_ray.corpus.model import DecodedUnit, DecodeError, OutlineEntry, Probe, clean, title_from_name
from vrag_ray.corpus.ocr import OCR_PIXELS
from vrag_ray.corpus.png import fitting_scale, png_bytes
from vrag_ray.types import Box, DocumentKind, Locator, Meta, MetaValue, PageText, PassageKind

if TYPE_CHECKING:
    from vrag_ray.corpus.ocr import OcrText, Picture

POINTS_PER_INCH = 72.0
LONGEST_OUTLINE = 10_000
LONGEST_TITLE = 200
_NO_TITLE = re.compile(
    r"untitled|^(microsoft )?(word|powerpoint) ?-|\.(dvi|tex|docx?|pptx?|indd|qxd|pdf)$", re.IGNORECASE
)


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
            return self._unit(unit)

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
        if stated and not _NO_TITLE.search(stated):
            return stated
        return (None if self._opening.cautious else self._largest_line()) or title_from_name(self._opening.name)

    def _metadata(self, field: str) -> str:
        value = (self._document.metadata or {}).get(field)
        return " ".join(clean(value).split())[:LONGEST_TITLE] if isinstance(value, str) else ""

    def _largest_line(self) -> str | None:
        """The first lines of page one that are set in its largest type, if that is larger than the rest."""
        lines = [
            (max(span["size"] for span in line["spans"]), "".join(span["text"] for span in line["spans"]))
            for block in self._page(0).get_text("dict", flags=LAYER_FLAGS)["blocks"]
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
