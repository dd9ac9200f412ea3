"""Rows, cells and sentences of a page, from the boxes of its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from vrag_ray.policies.extractive.lexicon import stems
from vrag_ray.types import Box, PageText, Word, around

CELL_GAP = 0.9
"""Words further apart than this share of the row's height stand in different cells."""
MAX_SENTENCE_WORDS = 60
LEVEL_WORDS = 12
"""How many of a row's words decide whether another one is level with them."""
MAX_CELL_WORDS = 7
"""A longer cell is prose."""
MAX_HEADING_WORDS = 10

_NUMERIC = re.compile(r"^[^\w\s]{0,2}\d[\d.,:/]*(?:[%‰°]|[^\w\s]{0,2})$")
_SENTENCE_ENDS = tuple(".!?。！？")  # noqa: RUF001 - full-width marks end sentences too
_CLOSING = "\"”')]"
_NO_HEADING_ENDS = tuple(".!?,;:")
_ABBREVIATION = re.compile(r"^(?:[A-Za-z]|\d+|e\.g|i\.e|cf|fig|no|vs|etc|approx|dr|mr|mrs|prof)\.$", re.IGNORECASE)
_TEXT_SENTENCE = re.compile(r"(?<=[.!?。！？])[\"”')\]]*\s+(?=[\"“'(\[]?[A-Z0-9])|\n\s*\n")  # noqa: RUF001


@dataclass(frozen=True)
class Span:
    """A stretch of words: a sentence, a line or a cell. ``words`` is empty where the text has no geometry."""

    text: str
    words: tuple[Word, ...] = ()

    @cached_property
    def stems(self) -> frozenset[str]:
        return stems(self.text)

    @cached_property
    def box(self) -> Box | None:
        return around([word.box for word in self.words])

    @cached_property
    def is_heading(self) -> bool:
        words = self.text.split()
        return (
            0 < len(words) <= MAX_HEADING_WORDS
            and not words[-1].endswith(_NO_HEADING_ENDS)
            and not words[0][0].islower()
            and not any(is_numeric(word) for word in words[1:])
        )

    @cached_property
    def area(self) -> Box:
        """The box of a span that has words, as every cell has."""
        return box_of(self.words)


@dataclass(frozen=True)
class Row:
    """What stands on one height of the page, from left to right."""

    cells: tuple[Span, ...]

    @cached_property
    def text(self) -> str:
        return " ".join(cell.text for cell in self.cells)

    @cached_property
    def box(self) -> Box:
        return box_of([word for cell in self.cells for word in cell.words])

    @cached_property
    def stems(self) -> frozenset[str]:
        return stems(self.text)

    @property
    def is_prose(self) -> bool:
        return any(len(cell.words) > MAX_CELL_WORDS for cell in self.cells)


def box_of(words: Sequence[Word]) -> Box:
    """The smallest box around ``words``, of which there is at least one."""
    box = around([word.box for word in words])
    assert box is not None
    return box


def is_numeric(text: str) -> bool:
    return bool(_NUMERIC.match(text))


def rows(page: PageText) -> list[Row]:
    """Visual rows from top to bottom, cut into cells at wide gaps and between the figures of a tight table."""
    clusters: list[_Cluster] = []
    for word in sorted(page.words, key=lambda word: word.box.y0 + word.box.y1):
        if not (clusters and clusters[-1].takes(word)):
            clusters.append(_Cluster())
        clusters[-1].add(word)
    aspect = page.width / page.height if page.width > 0 and page.height > 0 else 1.0
    return [Row(tuple(_cells(sorted(each.words, key=lambda word: word.box.x0), aspect))) for each in clusters]


def sentences(page: PageText) -> list[Span]:
    """Sentences and lines in reading order; a wide gap or a change of block or letter size ends one."""
    if not page.words:
        return text_sentences(page.text)
    found: list[Span] = []
    current: list[Word] = []
    for word, following in zip(page.words, [*page.words[1:], None], strict=True):
        current.append(word)
        ends = word.text.rstrip(_CLOSING).endswith(_SENTENCE_ENDS) and not _ABBREVIATION.match(word.text)
        if following is None or ends or len(current) >= MAX_SENTENCE_WORDS or _breaks(word, following, page):
            found.append(_span(current))
            current = []
    return found


def text_sentences(text: str) -> list[Span]:
    """The same for plain text: blank lines and sentence ends cut, single line breaks do not."""
    pieces = (" ".join(piece.split()) for piece in _TEXT_SENTENCE.split(text))
    found: list[Span] = []
    for piece in pieces:
        words = piece.split()
        found.extend(
            Span(" ".join(words[start : start + MAX_SENTENCE_WORDS]))
            for start in range(0, len(words), MAX_SENTENCE_WORDS)
        )
    return found


class _Cluster:
    """Words of one height, in the order in which they were added."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self._middles: list[float] = []
        self._heights: list[float] = []

    def add(self, word: Word) -> None:
        self.words.append(word)
        self._middles.append(word.box.y0 + word.box.y1)
        self._heights.append(word.box.y1 - word.box.y0)

    def takes(self, word: Word) -> bool:
        """Whether ``word`` is level with the last words of this row, of which there is at least one."""
        middles, heights = self._middles[-LEVEL_WORDS:], self._heights[-LEVEL_WORDS:]
        middle, height = sum(middles) / 2 / len(middles), sum(heights) / len(heights)
        return abs((word.box.y0 + word.box.y1) / 2 - middle) < 0.5 * min(height, word.box.y1 - word.box.y0)


def _cells(words: Sequence[Word], aspect: float) -> Iterable[Span]:
    height = sum(word.box.y1 - word.box.y0 for word in words) / len(words)
    cell: list[Word] = []
    for word in words:
        if cell and (word.box.x0 - cell[-1].box.x1) * aspect > CELL_GAP * height:
            yield from _figures_apart(cell)
            cell = []
        cell.append(word)
    yield from _figures_apart(cell)


def _figures_apart(cell: Sequence[Word]) -> Iterable[Span]:
    """``North 12 15 18`` with narrow gaps is a label and three figures."""
    figures = 0
    while figures < len(cell) and is_numeric(cell[len(cell) - 1 - figures].text):
        figures += 1
    label = list(cell[: len(cell) - figures])
    if figures < 2 or len(label) > MAX_CELL_WORDS - 1:
        yield _span(cell)
        return
    if label:
        yield _span(label)
    for word in cell[len(label) :]:
        yield _span([word])


def _breaks(word: Word, following: Word, page: PageText) -> bool:
    height, other = word.box.y1 - word.box.y0, following.box.y1 - following.box.y0
    same_line = following.box.y0 < word.box.y1 - height / 2 and following.box.y1 > word.box.y0 + height / 2
    if same_line:
        aspect = page.width / page.height if page.width > 0 and page.height > 0 else 1.0
        return abs(following.box.x0 - word.box.x1) * aspect > 2 * CELL_GAP * height
    if following.box.y1 <= word.box.y0 or following.box.y0 - word.box.y1 > 0.8 * height:
        return True
    return max(height, other) > 1.3 * min(height, other) or following.text[:1] in "•–▪●*"  # noqa: RUF001


def _span(words: Sequence[Word]) -> Span:
    return Span(" ".join([word.text for word in words]), tuple(words))
