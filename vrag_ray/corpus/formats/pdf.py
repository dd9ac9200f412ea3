"""PDF pages through MuPDF: text layer, word boxes, outline, and renderings from the vector source.

MuPDF gives word boxes on the unturned page and renders the turned one; everything that leaves this module is in
fractions of the upright page. Measured: text of 900 pages/s on one core with the flags below (sorting by position
would cost 48 pages/s).
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pymupdf

from vrag_ray.corpus.formats.source import Opening, damage
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
from vrag_ray.corpus.passages import BLANK, PAGE_COUNT, PAGE_LABEL, SECTION
from vrag_ray.corpus.png import fitting_scale, png_bytes
from vrag_ray.corpus.titles import LONGEST_TITLE, headline, is_title
from vrag_ray.types import Box, DocumentKind, Locator, Meta, MetaValue, PageText, PassageKind, Word

if TYPE_CHECKING:
    from vrag_ray.corpus.ocr import OcrText, Picture

POINTS_PER_INCH = 72.0
LONGEST_OUTLINE = 10_000
LONGEST_LABEL = 40
SECTION_MARK = " > "
# Ligatures come apart, blanks are normalised, text outside the page is dropped, hyphens at line ends are joined.
WORD_FLAGS = pymupdf.TEXT_CLIP
TEXT_FLAGS = pymupdf.TEXT_CLIP | pymupdf.TEXT_DEHYPHENATE
_UNREADABLE = re.compile("[\ufffd\ue000-\uf8ff]")


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
        layer = page.get_textpage(flags=TEXT_FLAGS)
        text = clean(str(layer.extractText()))
        meta: Meta = {}
        if len(text) > self._limits.max_text_chars_per_page:
            text = text[: self._limits.max_text_chars_per_page]
            meta = {"text_cut": True}
        if not text and not self._document.xref_get_keys(page.xref):
            raise DecodeError(_damaged(unit))
        scanned = self._scanned(page, text)
        if scanned is not None:
            lines, words = lines_of_words(scanned.words), scanned.words
            return DecodedUnit(unit, PassageKind.PAGE, Locator(page=unit + 1), scanned.text, lines, words, ocr=True)
        return DecodedUnit(unit, PassageKind.PAGE, Locator(page=unit + 1), text, _lines(page, layer), meta=meta)

    def page_text(self, locator: Locator) -> PageText:
        """Text and words of the text layer, or of OCR where the page has none. Width and height in points."""
        page = self._page_at(locator)
        with damage(_damaged(page.number)):
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
        layer = pymupdf.TextPage(self._page(0).get_displaylist(annots=0).get_textpage(WORD_FLAGS))
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
