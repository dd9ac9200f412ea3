"""The value at the crossing of a row and a column: tables by their headers, charts by the labels beneath their marks.

A value is aligned with a word that stands in its row, above it in its column, or directly beneath it. In a table
``North 12 15 18`` under ``Region 2021 2022 2023``, the words *North* and *2022* meet at 15 and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from vrag_ray.corpus.tables import MAX_CELL_WORDS
from vrag_ray.policies.extractive.layout import LEADERS, Row, Span, box_of
from vrag_ray.policies.extractive.lexicon import Term, stems
from vrag_ray.types import Box
from vrag_ray.types.months import MONTH
from vrag_ray.types.superscripts import SUPERSCRIPTS

COLUMN_SLACK = 0.04
"""Page widths by which a header may miss its values."""
MAX_ROWS_APART = 45
AXIS_LABEL = 0.9
"""Presence of a word beneath its value, as under a bar, against 1 for a row label and a column header."""


THROUGH_PROSE = 0.5
"""Presence of a header with a paragraph between it and the value: most likely of another table."""
BETWEEN_PERIODS = 0.5
"""Presence of a year of the question in a header with a year that it lacks, as ``2015 vs. 2014``: a change, which the
question is not for."""
_CHANGES = stems("change growth increase decrease difference rise fall drop decline gain")

_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_PERIOD = re.compile(
    rf"(?:[^\W\d]+\.? |\d{{1,2}},? )*((?:1[89]|20)\d\d)(?: ?[A-Za-z*]| ?\(\d\)|[{SUPERSCRIPTS}]{{1,2}})?"
)
"""``2022``, ``FY 2022`` or ``December 31, 2022``, perhaps with the mark of a footnote."""
_NO_VALUE = re.compile(
    rf"\d{{1,3}}[.)]|(?-i:[A-Z]{{1,2}})\d{{1,4}}|\(?000['’]?s?\)?|{MONTH}\.? \d{{1,2}},?",  # noqa: RUF001
    re.IGNORECASE,
)
"""``3.`` before a row of a list, a code as ``E1``, ``(000s)`` at the head of a column, the day of a date whose year
stands below it."""
_BESIDE_PERIODS = re.compile(r".*[^\W\d]\.? \d{1,2},?|\(\d\)")
"""``Years ended December 31,``, and the mark of a footnote."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value, the words of the question aligned with it (stem to presence), and what shows that.

    ``quote`` is the value's row; ``box`` covers the row and the labels. For ties, both from 0 to 1: ``named`` is the
    mean share of the words of the labels of its row and its column that the question has; ``nearness`` falls with
    the distance to its head. ``is_beside`` is whether no other words stand between the value and a label before it, as
    they do between the label of one table and the figures of the table to its right.
    """

    value: str
    quote: str
    box: Box
    aligned: Mapping[str, float]
    named: float
    nearness: float
    is_beside: bool
    row: int
    """The value's place in the rows of the page."""


@dataclass(frozen=True, slots=True)
class _Place:
    row: int
    cell: Span


def crossings(page: Sequence[Row], terms: Sequence[Term]) -> list[Crossing]:
    """Every numeric cell on which at least two words of the question meet, one along its row, one along its column."""
    labels: dict[str, list[_Place]] = {}
    for place in _short_cells(page):
        for term in terms:
            if term.presence_in(place.cell.label_stems):
                labels.setdefault(term.stem, []).append(place)
    label_cells = {id(place.cell) for places in labels.values() for place in places}
    years = frozenset(term.stem for term in terms if _YEAR.fullmatch(term.stem))
    is_for_a_change = any(term.stem in _CHANGES for term in terms)
    heads = {index for index, row in enumerate(page) if _names_periods(row)}
    met: list[Crossing] = []
    for value in _short_cells(page):
        is_figure = bool(value.cell.words) and any(map(str.isdigit, value.cell.text))
        is_figure = (
            is_figure and _NO_VALUE.fullmatch(value.cell.text) is None and LEADERS.search(value.cell.text) is None
        )
        if value.row in heads or id(value.cell) in label_cells or not is_figure:
            continue
        along_row: dict[str, _Place] = {}
        along_column: dict[str, tuple[float, _Place]] = {}
        for stem, places in labels.items():
            for place in places:
                # "14 h" names nothing in its row.
                if place.row == value.row and not place.cell.is_measured:
                    along_row.setdefault(stem, place)
                elif place.row != value.row:
                    share = _column_share(page, place, value)
                    if stem in years and not is_for_a_change and not years.issuperset(_YEAR.findall(place.cell.text)):
                        share *= BETWEEN_PERIODS
                    if share > along_column.get(stem, (0.0, place))[0]:
                        along_column[stem] = (share, place)
        crossing = _crossing(page, value, along_row, along_column)
        if crossing is not None:
            met.append(crossing)
    return met


def _crossing(
    page: Sequence[Row],
    value: _Place,
    along_row: Mapping[str, _Place],
    along_column: Mapping[str, tuple[float, _Place]],
) -> Crossing | None:
    columns = {stem: pair for stem, pair in along_column.items() if stem not in along_row}
    beneath = any(place.row > value.row for _, place in columns.values())
    # A bar has its name beneath it and nothing in its row; everything else needs both a row and a column.
    if not columns or not (along_row or beneath):
        return None
    aligned = dict.fromkeys(along_row, 1.0) | {stem: share for stem, (share, _) in columns.items()}
    row = page[value.row]
    shown = [place.cell for place in (*along_row.values(), *(place for _, place in columns.values()))]
    if along_row:
        shown.extend(row.cells)
    apart, label = min(((abs(place.row - value.row), place.cell) for _, place in columns.values()), key=_first)
    quote = row.text if along_row else f"{value.cell.text} {label.text}"
    return Crossing(
        value.cell.text,
        quote,
        box_of([word for cell in (*shown, value.cell) for word in cell.words]),
        aligned,
        (_named(along_row) + _named({stem: place for stem, (_, place) in columns.items()})) / 2,
        1.0 - apart / (MAX_ROWS_APART + 1),
        _is_beside(row, value.cell, [place.cell for place in along_row.values()]),
        value.row,
    )


def _is_beside(row: Row, value: Span, labels: Sequence[Span]) -> bool:
    """Whether the words before ``value`` in its row, nearest first, are one of ``labels``."""
    place = next(number for number, cell in enumerate(row.cells) if cell is value)
    nearest = next((cell for cell in reversed(row.cells[:place]) if any(map(str.isalpha, cell.text))), None)
    return any(cell is nearest for cell in labels)


def _names_periods(row: Row) -> bool:
    """Whether the figures of a row are the years at the heads of its columns, one after or before the other."""
    numbered = [cell.text for cell in row.cells if any(map(str.isdigit, cell.text))]
    years = [int(match[1]) for text in numbered if (match := _PERIOD.fullmatch(text))]
    others = [text for text in numbered if not _PERIOD.fullmatch(text)]
    steps = {later - earlier for earlier, later in pairwise(years)}
    return steps in ({1}, {-1}) and all(map(_BESIDE_PERIODS.fullmatch, others))


def _named(labels: Mapping[str, _Place]) -> float:
    """ "Total assets" before "Total other current assets", where both words are looked for."""
    cells = {id(place.cell): place.cell for place in labels.values()}
    return len(labels) / max(1, len(labels), sum(len(cell.stems) for cell in cells.values()))


def _column_share(page: Sequence[Row], label: _Place, value: _Place) -> float:
    """How firmly ``label`` heads or underlies the column of ``value``: 0 for not at all."""
    apart = abs(label.row - value.row)
    # A row of one cell is a title or a caption and heads no column of its own.
    if (
        len(page[label.row].cells) < 2
        or apart > MAX_ROWS_APART
        or _nearest(page[label.row], value.cell) is not label.cell
    ):
        return 0.0
    if label.row > value.row:
        # Heads of the page before have no words on this one.
        return AXIS_LABEL if label.cell.words and _stack(page, label) == [value.cell] else 0.0
    return THROUGH_PROSE if any(row.is_prose for row in page[label.row + 1 : value.row]) else 1.0


def _stack(page: Sequence[Row], label: _Place) -> list[Span]:
    """The figures right above an axis label, up to the next prose or words. Several mean several series: no answer."""
    figures: list[Span] = []
    for row in reversed(page[max(0, label.row - MAX_ROWS_APART) : label.row]):
        above = [cell for cell in row.cells if _overlap(cell, label.cell) > 0]
        if row.is_prose or not all(any(map(str.isdigit, cell.text)) for cell in above):
            break
        figures.extend(above)
    return figures


def _nearest(row: Row, value: Span) -> Span | None:
    """The cell of ``row`` in whose column ``value`` stands: most overlap, else the smallest gap within the slack."""
    best = max(row.cells, key=lambda cell: (_overlap(cell, value), -_offset(cell, value)))
    return best if _overlap(best, value) > -COLUMN_SLACK else None


def _overlap(first: Span, other: Span) -> float:
    """Shared width in page widths; negative is the gap between them."""
    return min(first.along[1], other.along[1]) - max(first.along[0], other.along[0])


def _offset(first: Span, other: Span) -> float:
    return abs(sum(first.along) - sum(other.along)) / 2


def _first(pair: tuple[int, Span]) -> int:
    return pair[0]


def _short_cells(page: Sequence[Row]) -> Iterator[_Place]:
    for index, row in enumerate(page):
        for cell in row.cells:
            if not row.is_prose or len(cell.words) <= MAX_CELL_WORDS:
                yield _Place(index, cell)
