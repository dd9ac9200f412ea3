"""Rows, cells and sentences of a page, from the boxes of its words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from vrag_ray.corpus.reading_order import regions
from vrag_ray.corpus.tables import CELL_GAP, LONGEST_LABEL, MAX_CELL_WORDS, Table, cells, is_figure
from vrag_ray.policies.extractive.lexicon import stems
from vrag_ray.types import Box, PageText, Word, around, joined, upright

MAX_SENTENCE_WORDS = 60
MAX_HEADING_WORDS = 10

_SENTENCE_ENDS = tuple(".!?。！？")  # noqa: RUF001 - full-width marks end sentences too
_CLOSING = "\"”')]"
_NO_HEADING_ENDS = tuple(".!?,;:")
_ABBREVIATION = re.compile(r"^(?:[A-Za-z]|\d+|e\.g|i\.e|cf|fig|no|vs|etc|approx|dr|mr|mrs|prof)\.$", re.IGNORECASE)
_TEXT_SENTENCE = re.compile(r"(?<=[.!?。！？])[\"”')\]]*\s+(?=[\"“'(\[]?[A-Z0-9])")  # noqa: RUF001
_NAMED_ROW = re.compile(r"[^:.!?]{1,60}: [^:]*[^:\s], [^:,.!?]{1,60}: ")
"""``crane: Odin, tonnes: 73``"""
_ITEM = re.compile(r"[-*+•–▪●>|]\s|\d{1,3}[.)]\s|(?:[A-Z0-9][^\s:]*)(?: [^\s:]+){0,3}: \S")  # noqa: RUF001
"""The first line of an item of a list, or of what stands behind a label."""


@dataclass(frozen=True)
class Span:
    """A stretch of words: a sentence, a line or a cell. ``words`` is empty where the text has no geometry.

    ``along`` is where a cell begins and ends along the direction in which it is read, in page widths.
    """

    text: str
    words: tuple[Word, ...] = ()
    along: tuple[float, float] = (0.0, 0.0)

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
            and not any(is_figure(word) for word in words[1:])
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

    @cached_property
    def is_prose(self) -> bool:
        """Whether a cell is longer than those of a table. The name of a row of figures may be long."""
        label, *others = self.cells
        named = any(is_figure(cell.words[-1].text) for cell in others)
        longest = LONGEST_LABEL if named else MAX_CELL_WORDS
        return len(label.words) > longest or any(len(cell.words) > MAX_CELL_WORDS for cell in others)


def box_of(words: Sequence[Word]) -> Box:
    """The smallest box around ``words``, of which there is at least one."""
    box = around([word.box for word in words])
    assert box is not None
    return box


def rows(page: PageText) -> list[Row]:
    """Visual rows in reading order, cut into cells at wide gaps and between the figures of a tight table.

    A row lies in one column, along the direction in which its words are read.
    """
    aspect = page.aspect
    found = [[page.words[place] for place in row] for region in regions(page.words, aspect) for row in region.rows]
    return [Row(tuple(_cell(words, aspect) for words in cells(row, aspect))) for row in found]


def sentences(page: PageText, tables: Sequence[Table] = ()) -> list[Span]:
    """Sentences and lines in reading order; a wide gap, a change of column, block or letter size ends one.

    None goes from one row of the page's ``tables`` to the next.
    """
    if not page.words:
        return text_sentences(page.text)
    aspect = page.aspect
    body = (row for table in tables for row in table.body)
    row_of = {id(word): number for number, row in enumerate(body) for cell in row for word in cell.words}
    found: list[Span] = []
    for region in regions(page.words, aspect):
        words = [page.words[place] for row in region.rows for place in row]
        current: list[Word] = []
        for word, following in zip(words, [*words[1:], None], strict=True):
            current.append(word)
            ends = word.text.rstrip(_CLOSING).endswith(_SENTENCE_ENDS) and not _ABBREVIATION.match(word.text)
            if (
                following is None
                or ends
                or len(current) >= MAX_SENTENCE_WORDS
                or row_of.get(id(word)) != row_of.get(id(following))
                or _breaks(word, following, aspect)
            ):
                found.append(_span(current))
                current = []
    return found


def text_sentences(text: str) -> list[Span]:
    """The same for plain text: sentence ends, blank lines, headings, items of lists and rows of tables cut; other line
    breaks do not."""
    blocks: list[list[str]] = [[]]
    for line in map(str.strip, text.splitlines()):
        is_whole = line.startswith("#") or _NAMED_ROW.match(line) is not None
        if not line or is_whole or _ITEM.match(line):
            blocks.append([])
        blocks[-1].append(line)
        if is_whole:
            blocks.append([])
    found: list[Span] = []
    for piece in (piece for block in blocks for piece in _TEXT_SENTENCE.split(" ".join(block))):
        words = piece.split()
        found.extend(
            Span(" ".join(words[start : start + MAX_SENTENCE_WORDS]))
            for start in range(0, len(words), MAX_SENTENCE_WORDS)
        )
    return found


def _breaks(word: Word, following: Word, aspect: float) -> bool:
    u0, top, u1, bottom = upright(word, aspect)
    next_u0, next_top, next_u1, next_bottom = upright(following, aspect)
    height, other = bottom - top, next_bottom - next_top
    if next_top < bottom - height / 2 and next_bottom > top + height / 2:
        return max(next_u0 - u1, u0 - next_u1) > 2 * CELL_GAP * height
    if next_bottom <= top or next_top - bottom > 0.8 * height:
        return True
    return max(height, other) > 1.3 * min(height, other) or following.text[:1] in "•–▪●*"  # noqa: RUF001


def _cell(words: Sequence[Word], aspect: float) -> Span:
    edges = [upright(word, aspect) for word in words]
    along = min(u0 for u0, _, _, _ in edges) / aspect, max(u1 for _, _, u1, _ in edges) / aspect
    return Span(joined(words), tuple(words), along)


def _span(words: Sequence[Word]) -> Span:
    return Span(joined(words), tuple(words))
