"""Whole tables as heads and rows, whether their words have places on a page or each row of a text repeats its heads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from vrag_ray.agent.facts import figures
from vrag_ray.corpus.tables import Table, is_figure
from vrag_ray.policies.extractive.layout import FOOT, LOWEST, Row, Span
from vrag_ray.policies.extractive.lexicon import stems
from vrag_ray.types import Word

LEAST_ENTRIES = 2
WORDS_OF_A_PIECE = 140
"""Words of a piece of a table in a text: one with room for another row is the last."""

_KEY = re.compile(r"(?:^|, )([^:,]{1,60}): ")
_TOTAL = frozenset(["total", "subtotal", "sum", "all", "overall", "average", "mean", "altogether"])
"""First words of rows that are made of the rows above them."""
_SIGNS = "-−–("  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class Entry:
    """A row: its cells by column, "" for an empty one, and its words as they can be quoted."""

    cells: tuple[str, ...]
    quote: str
    words: tuple[Word, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """A table with a name for each column. ``place`` is where it begins in the rows of the page where ``is_laid_out``,
    else in its sentences. Rows of totals are in ``entries`` alone."""

    heads: tuple[str, ...]
    entries: tuple[Entry, ...]
    place: int
    is_laid_out: bool

    @cached_property
    def head_stems(self) -> tuple[frozenset[str], ...]:
        return tuple(map(stems, self.heads))

    @cached_property
    def items(self) -> tuple[Entry, ...]:
        """The rows that are not made of others."""
        return tuple(entry for entry in self.entries if not self.is_total(entry))

    @property
    def has_total(self) -> bool:
        return len(self.items) < len(self.entries)

    @staticmethod
    def is_total(entry: Entry) -> bool:
        return re.sub(r"\W.*", "", entry.cells[0].casefold()) in _TOTAL


def values(entries: Sequence[Entry], column: int) -> tuple[list[Decimal], str]:
    """The figures of a column, and the unit behind or before each of them; none where a cell has no figure, several or
    another unit."""
    numbers: list[Decimal] = []
    units: set[str] = set()
    for entry in entries:
        text = entry.cells[column].strip()
        held = list(figures(text))
        if len(held) != 1 or not held[0].text[0].isdigit():
            return [], ""
        numbers.append(-held[0].value if text[0] in _SIGNS else held[0].value)
        units.add(text.replace(held[0].text, "").strip(f" +){_SIGNS}"))
    return (numbers, units.pop()) if len(units) == 1 else ([], "")


def laid_out_sheets(tables: Sequence[Table], rows: Sequence[Row]) -> Iterator[Sheet]:
    """The tables of a page with heads and a name for each row, of which no part can be on another page."""
    place_of = {id(row.cells[0].words[0]): place for place, row in enumerate(rows) if row.cells[0].words}
    for table in tables:
        body = table.body
        is_named = all(row[0].column == 0 and len(row) > 1 and all(c.span == 1 for c in row) for row in body)
        has_figures = any(is_figure(cell.words[-1].text) for row in body for cell in row[1:])
        places = [place_of.get(id(row[0].words[0]), -1) for row in body]
        if not table.head_rows or len(body) < LEAST_ENTRIES or not is_named or not has_figures or -1 in places:
            continue
        end = max(cell.box.y1 for row in body for cell in row)
        if end > LOWEST and not any(row.cells[0].words and end <= row.box.y0 < FOOT for row in rows[places[-1] :]):
            continue
        entries = [
            Entry(
                tuple(next((c.text for c in row if c.column == at), "") for at in range(len(table.heads))),
                rows[place].text,
                tuple(word for cell in row for word in cell.words),
            )
            for row, place in zip(body, places, strict=True)
        ]
        yield Sheet(table.heads, tuple(entries), max(0, places[0] - table.head_rows), is_laid_out=True)


def written_sheets(spans: Sequence[Span]) -> Iterator[Sheet]:
    """The tables of a text whose rows repeat their heads, below a line of all heads, and are all there."""
    for start, line in enumerate(spans):
        keyed = []
        for span in spans[start + 1 :]:
            cells = _keyed(span.text)
            if not cells:
                break
            keyed.append((span, cells))
        heads = next((tuple(cells) for _, cells in keyed if " ".join(cells) == line.text), ())
        if len(keyed) < LEAST_ENTRIES or not heads or any(heads[0] not in cells for _, cells in keyed):
            continue
        has_room = (
            sum(len(span.text.split()) for span in spans) + max(len(span.text.split()) for span, _ in keyed)
            <= WORDS_OF_A_PIECE
        )
        if start + 1 + len(keyed) == len(spans) and not has_room:
            continue
        entries = [Entry(tuple(cells.get(head, "") for head in heads), span.text) for span, cells in keyed]
        yield Sheet(heads, tuple(entries), start, is_laid_out=False)


def _keyed(text: str) -> Mapping[str, str]:
    """The cells of a row as ``crane: Odin, tonnes: 73`` by their heads; none of another line."""
    keys = list(_KEY.finditer(text))
    if len(keys) < LEAST_ENTRIES or keys[0].start() != 0:
        return {}
    ends = [key.start() for key in keys[1:]] + [len(text)]
    return {key[1]: text[key.end() : end] for key, end in zip(keys, ends, strict=True)}
