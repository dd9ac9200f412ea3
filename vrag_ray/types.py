"""The nouns that every part of vrag_ray shares: frozen values, no IO, no Ray.

Coordinate frame of every ``Box`` in this package: fractions of the upright page, picture or video frame,
origin at the top left, x to the right, y down, so that one box fits any resolution of the same page.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

MetaValue = str | int | float | bool
Meta = Mapping[str, MetaValue]


class VragError(Exception):
    """A fault the caller can act on: the message names the input and the remedy."""


class NotFoundError(VragError):
    """An id, a page or a time that names nothing; the message says which."""


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


class SearchMode(StrEnum):
    """Which legs of the retriever answer a query."""

    HYBRID = "hybrid"
    DENSE = "dense"
    LEXICAL = "lexical"


class FamilyName(StrEnum):
    """Families of vision-language models that differ in how they cut pictures up and write boxes."""

    QWEN2_5_VL = "qwen2_5_vl"
    QWEN3_VL = "qwen3_vl"


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-aligned rectangle in page fractions (see the module docstring)."""

    x0: float
    y0: float
    x1: float
    y1: float

    def __post_init__(self) -> None:
        if not (0.0 <= self.x0 < self.x1 <= 1.0 and 0.0 <= self.y0 < self.y1 <= 1.0):
            raise VragError(
                f"box ({self.x0}, {self.y0}, {self.x1}, {self.y1}) is not inside 0..1 with x0 < x1 and y0 < y1"
            )

    def as_tuple(self) -> tuple[float, float, float, float]:
        return (self.x0, self.y0, self.x1, self.y1)

    def union(self, other: Box) -> Box:
        return Box(min(self.x0, other.x0), min(self.y0, other.y0), max(self.x1, other.x1), max(self.y1, other.y1))

    def padded(self, dx: float, dy: float) -> Box:
        """Grown by ``dx`` and ``dy`` (page fractions) on each side and clamped to the page."""
        return Box(max(0.0, self.x0 - dx), max(0.0, self.y0 - dy), min(1.0, self.x1 + dx), min(1.0, self.y1 + dy))

    def rounded(self) -> Box:
        """The smallest box of five decimals around this one: a hundredth of a pixel on a 1,000-pixel page."""
        down = (math.floor(edge * _DECIMALS) / _DECIMALS for edge in (self.x0, self.y0))
        up = (math.ceil(edge * _DECIMALS) / _DECIMALS for edge in (self.x1, self.y1))
        return Box(*down, *up)


def around(boxes: Sequence[Box]) -> Box | None:
    """The smallest box that holds all of ``boxes``; None where there are none."""
    if not boxes:
        return None
    x0s, y0s, x1s, y1s = zip(*map(Box.as_tuple, boxes), strict=True)
    return Box(min(x0s), min(y0s), max(x1s), max(y1s))


_DECIMALS = 100_000
FULL_PAGE = Box(0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Word:
    """One word and where it stands."""

    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class Locator:
    """Where in a document a passage is: a page (1-based), a time range (seconds) or a character span.

    A page of a PDF has ``page``; a whole image has ``page=1``; a clip has ``t_start`` and ``t_end``;
    a piece of a text file has ``span_start`` and ``span_end`` (character offsets into the decoded text).
    """

    page: int | None = None
    t_start: float | None = None
    t_end: float | None = None
    span_start: int | None = None
    span_end: int | None = None

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
            return f"page {self.page}"
        if self.t_start is not None and self.t_end is not None:
            return f"{self.t_start:.1f}-{self.t_end:.1f} s"
        return f"characters {self.span_start}-{self.span_end}"


def document_id(data: bytes) -> str:
    """The SHA-256 of a document's bytes in hex: its name in every collection."""
    return hashlib.sha256(data).hexdigest()


def passage_id(doc_id: str, locator: Locator, window: int) -> str:
    """``<first 24 hex of doc_id>:<locator key>:w<window>``, the same on every run for the same bytes."""
    return f"{doc_id[:24]}:{locator.key}:w{window}"


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrievable window of a document; one row of ``passages.lance``, at most one vector.

    ``window`` counts the windows of one locator from 0. ``box`` is around the lines that hold the window's text,
    None where its place is not known or there is none (plain text, clips). ``words`` is filled only where OCR made
    them: words of a PDF's text layer are read from the blob again when they are needed.
    """

    id: str
    doc_id: str
    kind: PassageKind
    locator: Locator
    window: int
    text: str
    box: Box | None = None
    words: tuple[Word, ...] = ()
    meta: Meta = field(default_factory=dict)


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
    embedder_id: str
    added_at: str
    """ISO 8601, UTC."""
    error: str = ""
    meta: Meta = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return self.uris[0]


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: a passage with its document's title and uri, best first by ``score``.

    ``score`` is the cosine in ``dense`` mode and BM25 in ``lexical`` mode. In ``hybrid`` mode it is in 0..1: the mean
    of the legs' scores as shares of each leg's best for this query, by the legs' weights, so it does not compare
    across queries. ``dense_score`` (cosine) and ``lexical_score`` (BM25) are None where the leg did not list the page.
    """

    passage: Passage
    title: str
    uri: str
    score: float
    dense_score: float | None = None
    lexical_score: float | None = None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Results per query, and how complete they are. ``notices`` says in words what was degraded.

    A notice about one query of several quotes it.
    """

    results: tuple[tuple[Hit, ...], ...]
    shards_ok: int
    shards_total: int
    mode: SearchMode
    collection_version: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of one page, picture or frame of a document: what a citation points at."""

    doc_id: str
    locator: Locator
    box: Box


@dataclass(frozen=True, slots=True)
class PageText:
    """The words of one page, picture or clip, as the reader of the original document finds them.

    ``width`` and ``height`` are the page's size in points (PDF) or pixels (image, video); 0 for plain text,
    which has no geometry and therefore no words.
    """

    doc_id: str
    locator: Locator
    text: str
    words: tuple[Word, ...]
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Completion:
    """What a policy said. ``token_ids`` and ``logprobs`` are empty where the policy has no tokens.

    ``reasoning`` holds thoughts that a server reports apart from the text. ``weights`` is the version of the weights
    that spoke, "" where there are none to speak of. ``finish`` is ``stop`` or ``length``.
    """

    text: str
    reasoning: str = ""
    finish: str = "stop"
    weights: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
