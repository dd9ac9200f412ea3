"""Documents and their passages: what a collection is made of."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vrag_ray.types.elements import Element
from vrag_ray.types.errors import VragError
from vrag_ray.types.geometry import Box, Word

MetaValue = str | int | float | bool
Meta = Mapping[str, MetaValue]
_CODE = re.compile(r"[-+]?0[0-9]|.*[^-+.0-9eE]")


def number_or_text(text: str) -> int | float | str:
    """``text`` as the number that it writes, or as it is: a code such as ``007``, digits that no number holds, NaN."""
    written = text.strip()
    try:
        number = float(written)
        if _CODE.match(written) or not math.isfinite(number):
            return text
        whole = int(written) if written.lstrip("+-").isdigit() else None
    except ValueError:
        return text
    return number if whole is None else whole if whole == number else text


class PassageKind(StrEnum):
    """What a passage is a piece of."""

    PAGE = "page"
    IMAGE = "image"
    CLIP = "clip"
    TEXT = "text"


class DocumentKind(StrEnum):
    """What a document is."""

    PDF = "pdf"
    IMAGE = "image"
    VIDEO = "video"
    TEXT = "text"


class DocumentStatus(StrEnum):
    """How ingest ended for a document. A document without a row is unfinished."""

    READY = "ready"
    PARTIAL = "partial"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Locator:
    """Where in a document a passage is: a page (1-based), a time range (seconds) or a character span.

    A page of a PDF has ``page``; so has a picture, ``page=1`` unless its file holds several; a clip has
    ``t_start`` and ``t_end``; a piece of a text file has ``span_start`` and ``span_end`` (character offsets into the
    decoded text, of an e-mail into its head and body). ``label`` is what the document itself calls the page
    (``viii``), of ``pages``, where that is not its number; a page is the same page with and without it.
    """

    page: int | None = None
    t_start: float | None = None
    t_end: float | None = None
    span_start: int | None = None
    span_end: int | None = None
    label: str = field(default="", compare=False)
    pages: int = field(default=0, compare=False)

    @property
    def key(self) -> str:
        """A short stable name, unique within the document: ``p12``, ``t60.000-120.000`` or ``s0-900``."""
        if self.page is not None:
            return f"p{self.page}"
        if self.t_start is not None and self.t_end is not None:
            return f"t{self.t_start:.3f}-{self.t_end:.3f}"
        if self.span_start is not None and self.span_end is not None:
            return f"s{self.span_start}-{self.span_end}"
        raise VragError("a locator needs a page, a time range or a span")

    def __str__(self) -> str:
        if self.page is not None:
            return named_page(self.page, self.label, self.pages)
        if self.t_start is not None and self.t_end is not None:
            return f"{self.t_start:.1f}-{self.t_end:.1f} s"
        return f"characters {self.span_start}-{self.span_end}"


def named_page(page: int, label: str = "", pages: int = 0) -> str:
    """``page 10``, or ``page viii (10 of 254)`` where the document calls it so."""
    if not label:
        return f"page {page}"
    return f"page {label} ({page} of {pages})" if pages else f"page {label} ({page})"


def document_id(data: bytes) -> str:
    """The SHA-256 of a document's bytes in hex: its name in every collection."""
    return hashlib.sha256(data).hexdigest()


PREFIX_OF_PASSAGES = 24
"""Hex digits of a document's id in the ids of its passages."""


def passage_id(doc_id: str, locator: Locator, window: int) -> str:
    """``<first 24 hex of doc_id>:<locator key>:w<window>``, the same on every run for the same bytes."""
    return f"{doc_id[:PREFIX_OF_PASSAGES]}:{locator.key}:w{window}"


@dataclass(frozen=True, slots=True)
class Cue:
    """What is spoken, or written as a caption, from a second to a second of a video's clock; its text is on one line.

    ``box`` is where in the picture it is written, in fractions of it; None for speech, and for captions.
    """

    start: float
    end: float
    text: str
    box: Box | None = None

    def __str__(self) -> str:
        return f"[{self.start:.1f}-{self.end:.1f}] {self.text}"


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrievable window of a document; one row of ``passages.lance``.

    ``window`` counts the windows of one locator from 0. ``box`` is around the lines that hold the window's text, None
    where its place is not known or there is none (plain text, clips). ``words`` is filled only where OCR made them:
    words of a PDF's text layer are read from the blob again when they are needed. ``cues`` are the timed words of a
    clip, and ``shots`` the stretches of it in which one picture stays, in seconds, all of them in its first window."""

    id: str
    doc_id: str
    kind: PassageKind
    locator: Locator
    window: int
    text: str
    box: Box | None = None
    words: tuple[Word, ...] = ()
    cues: tuple[Cue, ...] = ()
    shots: tuple[tuple[float, float], ...] = ()
    meta: Meta = field(default_factory=dict)


SECTION = "section"
"""The metadata name of the titles of a document's outline under which a page stands, outermost first."""
PAGES = "pages_blob"
"""The metadata name under which an office file says which blob LibreOffice made of it, and a web page in which blob it
has the style sheets beside it. Ingest alone sets it."""
NOTES = "notes_blob"
"""The same for the blob with the speaker's notes of slides."""
_BLOB = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Document:
    """One row of ``documents.lance``. Its presence is ingest's commit mark for the document."""

    doc_id: str
    uris: tuple[str, ...]
    title: str
    kind: DocumentKind
    status: DocumentStatus
    units: int
    """Pages of a PDF, 1 for an image, clips of a video, pieces of a text."""
    size_bytes: int
    added_at: str
    """ISO 8601, UTC."""
    error: str = ""
    meta: Meta = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    """What of it was left out or guessed, in words; a notice is no error."""
    read_again: bool = False
    """Whether units are still to come, or to be read again: the next ingest decodes those that the collection lacks."""

    @property
    def uri(self) -> str:
        return self.uris[0]

    @property
    def pages_blob(self) -> str:
        """The name of the blob that its pages are read and drawn from: the original, or what was made of it."""
        return self._blob(PAGES) or self.doc_id

    @property
    def notes_blob(self) -> str:
        """The name of the blob with the notes of its slides; "" where these are in that of the pages, or none are."""
        return self._blob(NOTES)

    def _blob(self, name: str) -> str:
        made = self.meta.get(name)
        return made if isinstance(made, str) and _BLOB.fullmatch(made) else ""


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of one page, picture or frame of a document: what a citation points at."""

    doc_id: str
    locator: Locator
    box: Box


NOTES_MARK = "Notes: "
"""Before what is noted to a page, in its text."""


@dataclass(frozen=True, slots=True)
class PageText:
    """The words of one page, picture or clip, as the reader of the original document finds them.

    ``words`` are in reading order; ``text`` holds them line by line, tables as Markdown. ``width`` and ``height`` are
    the page's size in points (PDF) or pixels (image, video); 0 for plain text, which has no geometry and therefore no
    words. ``notes`` are what is noted to a slide, or on a page of a PDF, behind ``NOTES_MARK``: they end ``text``, and
    are nowhere on the page. ``elements`` are those of a page that has words or pictures, and of a clip that has words
    with times, or shots. Agents are given most cells of tables in ``cells`` in place of elements: as (x0, y0, x1, y1)
    in fractions of the page, which cost little to send. Pages are compared without both, for the words decide them.
    ``continuation`` are the words with which the next page goes on with the last paragraph (``types.page_breaks``); ""
    where that ends here."""

    doc_id: str
    locator: Locator
    text: str
    words: tuple[Word, ...]
    width: float
    height: float
    notes: str = ""
    elements: tuple[Element, ...] = field(default=(), compare=False)
    cells: tuple[tuple[float, float, float, float], ...] = field(default=(), compare=False)
    continuation: str = ""

    @property
    def aspect(self) -> float:
        """Width over height; 1 where the page has no size."""
        return self.width / self.height if self.width > 0 and self.height > 0 else 1.0
