"""PDF pages through MuPDF: text layer, word boxes, outline, and renderings from the vector source.

MuPDF gives word boxes on the unturned page and renders the turned one; everything that leaves this module is in
fractions of the upright page. Measured: text of 900 pages/s on one core with the flags below (sorting by position
would cost 48 pages/s).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pymupdf

from vrag_ray.corpus.model import (
    DecodedUnit,
    DecodeError,
    OutlineEntry,
    Probe,
    clean,
    title_from_name,
)
from vrag_ray.corpus.ocr import OCR_PIXELS
from vrag_ray.corpus.pixels import fitting_scale, png_bytes
from vrag_ray.corpus.source import Opening
from vrag_ray.types import Box, DocumentKind, Locator, Meta, MetaValue, PageText, PassageKind, Word

if TYPE_CHECKING:
    from vrag_ray.corpus.ocr import OcrText, Picture

POINTS_PER_INCH = 72.0
LONGEST_OUTLINE = 10_000
LONGEST_TITLE = 200
# Ligatures come apart, blanks are normalised, text outside the page is dropped, hyphens at line ends are joined.
WORD_FLAGS = pymupdf.TEXT_CLIP
TEXT_FLAGS = pymupdf.TEXT_CLIP | pymupdf.TEXT_DEHYPHENATE
_NO_TITLE = re.compile(
    r"untitled|^(microsoft )?(word|powerpoint) ?-|\.(dvi|tex|docx?|pptx?|indd|qxd|pdf)$", re.IGNORECASE
)
_UNREADABLE = re.compile("[\ufffd\ue000-\uf8ff]")


class PdfSource:
    """An open PDF."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._limits = opening.limits
        pymupdf.TOOLS.mupdf_display_errors(False)
        pymupdf.TOOLS.mupdf_display_warnings(False)
        try:
            self._document = pymupdf.open(opening.path, filetype="pdf")
        except (RuntimeError, ValueError) as error:
            # MuPDF's own words only say that it could not open the file.
            raise DecodeError("is no readable PDF: it is damaged or cut short") from error
        if self._document.needs_pass and not self._document.authenticate(""):
            raise DecodeError("is encrypted: remove the password and add it again")
        self._pages = self._count_pages()

    def probe(self) -> Probe:
        meta: dict[str, MetaValue] = {"repaired": True} if self._document.is_repaired else {}
        for field in ("author", "subject", "keywords"):
            if value := self._metadata(field):
                meta[field] = value
        return Probe(DocumentKind.PDF, self._pages, self._title(), self._outline(), meta)

    def locator(self, unit: int) -> Locator:
        return Locator(page=unit + 1)

    def unit(self, unit: int) -> DecodedUnit:
        page = self._page(unit)
        text = self._text(page)
        meta: Meta = {}
        if len(text) > self._limits.max_text_chars_per_page:
            text = text[: self._limits.max_text_chars_per_page]
            meta = {"text_cut": True}
        if not text and not self._document.xref_get_keys(page.xref):
            raise DecodeError(f"page {unit + 1} is damaged: nothing of it is left")
        scanned = self._scanned(page, text)
        if scanned is not None:
            return DecodedUnit(unit, PassageKind.PAGE, Locator(page=unit + 1), scanned.text, scanned.words, ocr=True)
        return DecodedUnit(unit, PassageKind.PAGE, Locator(page=unit + 1), text, meta=meta)

    def page_text(self, locator: Locator) -> PageText:
        """Text and words of the text layer, or of OCR where the page has none. Width and height in points."""
        page = self._page_at(locator)
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

        return png_bytes(Image.fromarray(_draw(self._page_at(locator), dpi, box, max_pixels)))

    def close(self) -> None:
        self._document.close()

    def _count_pages(self) -> int:
        try:
            pages = int(self._document.page_count)
        except (RuntimeError, ValueError) as error:
            raise DecodeError(f"is no readable PDF: {error}") from error
        if pages == 0:
            raise DecodeError("has no readable page: it is damaged or cut short")
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
        try:
            page: pymupdf.Page = self._document.load_page(index)
        except (RuntimeError, ValueError) as error:
            raise DecodeError(f"page {index + 1} is damaged: {error}") from error
        if page.rect.is_empty or page.rect.is_infinite:
            raise DecodeError(f"page {index + 1} has no area")
        return page

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
        return (None if self._opening.cautious else self._largest_line()) or title_from_name(self._opening.name)

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


def _words(page: pymupdf.Page) -> tuple[Word, ...]:
    """The words of the text layer in the order of its text, boxes in fractions of the upright page."""
    upright, width, height = page.rotation_matrix, page.rect.width, page.rect.height
    words = []
    for x0, y0, x1, y1, text, *_ in page.get_text("words", flags=WORD_FLAGS):
        rect = pymupdf.Rect(x0, y0, x1, y1) * upright
        left, right = (min(max(x / width, 0.0), 1.0) for x in (rect.x0, rect.x1))
        top, bottom = (min(max(y / height, 0.0), 1.0) for y in (rect.y0, rect.y1))
        if left < right and top < bottom and (word := clean(text).strip()):
            words.append(Word(word, Box(left, top, right, bottom)))
    return tuple(words)


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
