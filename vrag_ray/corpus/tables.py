"""The tables of a page: cells with their words, columns, their heads, and the unit that stands over the figures.

Pure geometry on word boxes in reading order, for text layers and OCR alike: a table is rows of short cells between
which strips stay free from the first row to the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from vrag_ray.corpus.reading_order import Region, regions
from vrag_ray.corpus.ruled import Field, Grid
from vrag_ray.types import Box, Word, around, joined, upright
from vrag_ray.types.superscripts import SUPERSCRIPTS

CELL_GAP = 0.9
"""Words further apart than this share of the height of their row stand in different cells."""
MAX_CELL_WORDS = 7
"""A longer cell is prose."""
LONGEST_LABEL = 24
"""Words of the label of a row of figures, at most."""
LONGEST_BETWEEN = 16
"""Words of a line of a single cell in a table, at most."""
MOST_LINES_BETWEEN = 4
"""Lines of a single cell (headings, wrapped labels) between two rows of a table."""
ROWS_APART = 4.0
"""Line heights between two rows of a table, at most."""
LEAST_ROWS, LEAST_ROWS_OF_WORDS = 2, 3
MOST_HEADS = 5
LONGEST_HEAD = 6
"""Words of a cell of the head of a table without figures."""
LONGEST_ITEM = 4.0
"""Words of what stands beside bullets or numbers, in the mean, from which on the rows are a list."""
SPLIT_BY = 0.25
"""Share of rows that have two cells where a cell has its place, from which on that cell covers several columns."""
GOES_ON = 0.4
"""Share of cells that begin with a small letter, from which on columns without figures are running text."""
LONGEST_ENTRY = 3.5
"""Words of a cell of a table without figures, in the mean, at most."""
SAME_COLUMN = 3.0
"""Line heights between two columns that are never both filled, and are one where they stand closer."""
MOST_FIGURES = 2
"""Figures in a cell of several lines, at most."""
LEAST_FILLED = 0.5
"""Share of the cells of a grid of lines that hold words, at least."""
ROWS_COMPARED = 16
"""Lines on each side of a line of a single cell that are looked at for tables of their own."""
LINES_OF_UNIT = 4
"""Lines above a table that may name its unit."""
ALIGNED = 0.03
"""Page widths by which the columns of a table may move where it goes on on the next page."""

_FIGURE = re.compile(rf"^[^\w\s]{{0,3}}\d[\d.,:/]*(?:[%‰°]|[^\w\s]{{0,3}})[{SUPERSCRIPTS}]*$")
_NO_FIGURE = re.compile(r"^(?:[-‐–—]+[%)]*|n/?[am]\.?|nil)$", re.IGNORECASE)  # noqa: RUF001
_YEAR = re.compile(r"^\D{0,2}(?:1[89]|20)\d\d\D{0,2}$")
_OPENS = re.compile(r"^[-(]?(?:[$€£¥₹]|US\$)[-(]?$")
_CLOSES = re.compile(r"^[)%*†‡]+$")
_MARKER = re.compile(r"^(?:[^\w\s]+|\(?\w{1,4}[.)]|\d{1,3})$")
_UNIT = re.compile(
    r"\b(?:thousand|million|billion|trillion|hundred|dollar|euro|pound|percent|per cent|tonne|unit|kilomet|mile)"
    r"|[$€£¥]|%",
    re.IGNORECASE,
)
_IN_BRACKETS = re.compile(r"[(\[]([^()\[\]]{1,80})[)\]]")
_BARE_UNIT = re.compile(
    r"^(?:all figures |amounts |figures |expressed |dollars |euros |US\$ |[$€£] )*in .{3,60}$", re.IGNORECASE
)
_BARS = re.compile(r"([|\\])")
_ESCAPED = re.compile(r"\\([|\\])")


@dataclass(frozen=True, slots=True)
class Cell:
    """``words`` of one place of a table, which begins in ``column``, from 0, and covers ``span`` columns."""

    words: tuple[Word, ...]
    column: int
    span: int = 1

    @property
    def text(self) -> str:
        return joined(self.words)

    @property
    def box(self) -> Box:
        box = around([word.box for word in self.words])
        assert box is not None
        return box


@dataclass(frozen=True, slots=True)
class Table:
    """``rows`` from the first to the last, each with its filled cells; the first ``head_rows`` name the columns.

    ``heads`` has the name of each column, "" where it has none. ``unit`` is the text above the figures of all of
    them, as "in millions". ``edges`` are where each column begins and ends, in page heights along its lines.
    """

    rows: tuple[tuple[Cell, ...], ...]
    heads: tuple[str, ...]
    head_rows: int
    unit: str
    edges: tuple[tuple[float, float], ...]

    @property
    def box(self) -> Box:
        box = around([cell.box for row in self.rows for cell in row])
        assert box is not None
        return box

    @property
    def body(self) -> tuple[tuple[Cell, ...], ...]:
        return self.rows[self.head_rows :]

    def markdown(self) -> str:
        """The rows between bars, under one row of heads where there are any."""
        lines = [list(self.heads), ["---"] * len(self.heads)] if any(self.heads) else []
        for row in self.body:
            texts = [""] * len(self.heads)
            for cell in row:
                texts[cell.column] = f"{texts[cell.column]} {cell.text}".strip()
            lines.append(texts)
        return "\n".join(f"| {' | '.join(_BARS.sub(_escaped, text) for text in line)} |" for line in lines)

    def after(self, earlier: Table) -> Table:
        """This table with the heads and the unit of ``earlier``, which ended the page before, where it goes on with it:
        it has no heads, and its columns stand where those stand."""
        if any(self.heads) or len(self.edges) != len(earlier.edges):
            return self
        apart = max(min(abs(a - c), abs(b - d)) for (a, b), (c, d) in zip(self.edges, earlier.edges, strict=True))
        if apart > ALIGNED:
            return self
        return replace(self, heads=earlier.heads, unit=self.unit or earlier.unit)

    def with_heads_in(self, text: str) -> Table:
        """This table with the heads that it has in ``text``, that of its page: they may stand on the page before."""
        above, rows, _ = text.partition(f"\n{self.markdown()}")
        lines = above.splitlines()[-2:]
        if any(self.heads) or not rows or lines[-1:] != [f"|{' --- |' * len(self.heads)}"]:
            return self
        return replace(self, heads=tuple(_ESCAPED.sub(r"\1", head) for head in lines[0][2:-2].split(" | ")))


def text_with_tables(
    words: Sequence[Word],
    aspect: float,
    grids: Sequence[Grid] = (),
    before: Callable[[], Sequence[Word]] | None = None,
) -> str:
    """The text of a page line by line, with its tables as Markdown.

    ``words`` are in reading order; ``grids`` are those of the page's ruling lines. ``before`` reads the words of the
    page before: it is called where the first table has no heads, and may go on with the last table there.
    """
    parts: list[str] = []
    earlier: Table | None = None
    for rows, table in pieces(words, aspect, grids):
        if table is None:
            parts.append(joined([word for row in rows for word in row], "\n"))
            continue
        if earlier is None and before is not None and not any(table.heads):
            earlier = next(reversed(tables(before(), aspect)), None)
        earlier = table.after(earlier) if earlier is not None else table
        parts.append(earlier.markdown())
    return "\n".join(filter(None, parts))


def tables(words: Sequence[Word], aspect: float, grids: Sequence[Grid] = ()) -> tuple[Table, ...]:
    """The tables of a page from the first to the last. Arguments as in ``text_with_tables``."""
    return tuple(table for _, table in pieces(words, aspect, grids) if table is not None)


def cells(words: Sequence[Word], aspect: float) -> list[list[Word]]:
    """The words of a row, cut at wide gaps and between the figures of a tight table.

    A sign of a currency goes with its figure, a closing bracket with what it closes.
    """
    return [piece.words for piece in _line(words, aspect).pieces]


def is_figure(text: str) -> bool:
    """Whether ``text`` is a number, with the signs that may stand around it."""
    return bool(_FIGURE.match(text))


def _stands_alone(text: str) -> bool:
    return (is_figure(text) or bool(_NO_FIGURE.match(text))) and not text.endswith(",")


def pieces(
    words: Sequence[Word], aspect: float, grids: Sequence[Grid]
) -> Iterator[tuple[list[list[Word]], Table | None]]:
    """A page as stretches of rows in reading order, each text or a table."""
    laid = regions(words, aspect)
    # Regions of what most of the page is written in come first.
    turned = [
        piece
        for region in laid
        if laid[0].turn == 0 and region.turn in (90, 270)
        for row in region.rows
        for piece in _line([words[place] for place in row], aspect).pieces
    ]
    heads: set[int] = set()
    for rows, table in _parts(words, aspect, grids, laid, heads):
        if table is None or not turned:
            yield rows, table
            continue
        headed = _under_turned_heads(table, turned, aspect)
        if headed is not table:
            heads.update(id(word) for cell in headed.rows[0] for word in cell.words)
        yield rows, headed


def _parts(
    words: Sequence[Word], aspect: float, grids: Sequence[Grid], laid: Sequence[Region], left_out: Set[int]
) -> Iterator[tuple[list[list[Word]], Table | None]]:
    """The same, of regions; ``left_out`` are the ids of words of regions to come that are in a table already."""
    ruled = [table for grid in grids if (table := _ruled(words, aspect, grid)) is not None]
    owner = {
        id(word): number for number, table in enumerate(ruled) for row in table.rows for c in row for word in c.words
    }
    placed: set[int] = set()
    for region in laid:
        rows: list[list[Word]] = []
        for places in region.rows:
            row = [words[place] for place in places if id(words[place]) not in left_out]
            for number in dict.fromkeys(owner[id(word)] for word in row if id(word) in owner):
                if number not in placed:
                    yield from _unruled(rows, aspect)
                    rows = []
                    placed.add(number)
                    yield [], ruled[number]
            if outside := [word for word in row if id(word) not in owner]:
                rows.append(outside)
        yield from _unruled(rows, aspect)


def _unruled(rows: list[list[Word]], aspect: float) -> Iterator[tuple[list[list[Word]], Table | None]]:
    lines = [_line(row, aspect) for row in rows]
    start = 0
    for first, last in (part for run in _runs(lines) for part in _parted(lines, *run)):
        table = _table(lines[first : last + 1], lines[max(start, first - LINES_OF_UNIT) : first])
        if table is not None:
            if first > start:
                yield rows[start:first], None
            yield rows[first : last + 1], table
            start = last + 1
    if start < len(rows):
        yield rows[start:], None


# Rows ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Piece:
    """A cell whose column is not known yet; ``u0`` and ``u1`` are its edges along the line."""

    words: list[Word]
    u0: float
    u1: float

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def is_figure(self) -> bool:
        """Whether this is a number with its signs, or with a unit of one word."""
        texts = [word.text for word in self.words]
        if len(texts) == 2 and is_figure(texts[0]) and not _YEAR.match(texts[0]) and texts[1].islower():
            return True
        return all(is_figure(t) or _OPENS.match(t) or _CLOSES.match(t) or _NO_FIGURE.match(t) for t in texts)

    @property
    def stands_alone(self) -> bool:
        """Whether this is a figure of its own, not the day of a date."""
        last = self.words[-1].text
        return self.is_figure and not last.endswith(",") and not last[0].isalpha()

    @property
    def is_year(self) -> bool:
        return len(self.words) == 1 and bool(_YEAR.match(self.words[0].text))

    @property
    def goes_on(self) -> bool:
        return self.words[0].text[:1].islower()

    def take(self, word: Word, u0: float, u1: float) -> None:
        self.words.append(word)
        self.u0, self.u1 = min(self.u0, u0), max(self.u1, u1)


@dataclass(slots=True)
class _Line:
    """A row of a page as cells in reading order; ``v0`` and ``v1`` are its edges across the line."""

    pieces: list[_Piece]
    v0: float
    v1: float

    @property
    def height(self) -> float:
        return self.v1 - self.v0

    @property
    def is_row(self) -> bool:
        """Whether it may be a row of a table: several cells, none of them prose; the label of figures may be long."""
        if len(self.pieces) < 2:
            return False
        label, *others = self.pieces
        longest = LONGEST_LABEL if any(piece.is_figure for piece in others) else MAX_CELL_WORDS
        return len(label.words) <= longest and all(len(piece.words) <= MAX_CELL_WORDS for piece in others)

    @property
    def has_data(self) -> bool:
        """Whether figures other than years stand after its first cell."""
        return any(piece.is_figure and not piece.is_year for piece in self.pieces[1:])

    @property
    def is_between(self) -> bool:
        return len(self.pieces) == 1 and len(self.pieces[0].words) <= LONGEST_BETWEEN


def _line(words: Sequence[Word], aspect: float) -> _Line:
    boxes = [upright(word, aspect) for word in words]
    gap = CELL_GAP * sum(v1 - v0 for _, v0, _, v1 in boxes) / len(boxes)
    pieces: list[_Piece] = []
    for word, (u0, _, u1, _) in zip(words, boxes, strict=True):
        last = pieces[-1] if pieces else None
        # Right-to-left scripts go on to the left.
        apart = max(u0 - last.u1, last.u0 - u1) if last is not None else 0.0
        if last is not None and (apart <= gap or _is_of(last, word, apart, gap)):
            last.take(word, u0, u1)
        else:
            pieces.append(_Piece([word], u0, u1))
    parts = [part for piece in pieces for part in _figures_apart(piece, aspect)]
    return _Line(parts, min(box[1] for box in boxes), max(box[3] for box in boxes))


def _is_of(piece: _Piece, word: Word, apart: float, gap: float) -> bool:
    """Whether ``word`` belongs to what stands far before it: a figure to its currency, a bracket to its figure."""
    if _OPENS.match(piece.words[-1].text):
        return is_figure(word.text) or bool(_NO_FIGURE.match(word.text))
    return bool(_CLOSES.match(word.text)) and piece.is_figure and apart <= 2 * gap


def _figures_apart(piece: _Piece, aspect: float) -> Iterator[_Piece]:
    """``North 12 15 18`` with narrow gaps is a label and three figures, and may end with another label."""
    groups: list[_Piece] = []
    for word in piece.words:
        u0, _, u1, _ = upright(word, aspect)
        last = groups[-1] if groups else None
        if last is not None and (
            (last.stands_alone and _CLOSES.match(word.text))
            or (_OPENS.match(last.text) and _stands_alone(word.text))
            or not (last.stands_alone or _stands_alone(word.text) or _OPENS.match(word.text))
        ):
            last.take(word, u0, u1)
        else:
            groups.append(_Piece([word], u0, u1))
    figures = [number for number, group in enumerate(groups) if group.stands_alone]
    if len(figures) < 2 or figures != list(range(figures[0], figures[-1] + 1)):
        yield piece
        return
    label, ending = groups[: figures[0]], groups[figures[-1] + 1 :]
    least = LEAST_ROWS if not ending else LEAST_ROWS + 1
    if len(figures) < least or any(sum(len(g.words) for g in some) >= MAX_CELL_WORDS for some in (label, ending)):
        yield piece
        return
    for some in (label, *([group] for group in groups[figures[0] : figures[-1] + 1]), ending):
        if some:
            words = [word for group in some for word in group.words]
            yield _Piece(words, min(group.u0 for group in some), max(group.u1 for group in some))


def _runs(lines: Sequence[_Line]) -> Iterator[tuple[int, int]]:
    """The first and the last row of stretches that may be tables."""
    first, last = -1, -1
    for place, line in enumerate(lines):
        if first >= 0 and (
            place - last > MOST_LINES_BETWEEN + 1
            or not (line.is_row or line.is_between)
            or line.v0 - lines[place - 1].v1 > ROWS_APART * min(line.height, lines[place - 1].height)
            or _begins_anew(lines, first, place)
        ):
            yield first, last
            first = -1
        if line.is_row:
            first, last = place if first < 0 else first, place
    if first >= 0:
        yield first, last


def _begins_anew(lines: Sequence[_Line], first: int, place: int) -> bool:
    """Whether a row without figures is the head of another table than the rows from ``first`` on: it stands farther
    below them than they stand apart, and figures follow."""
    line = lines[place]
    if not line.is_row or line.has_data or place + 1 == len(lines) or not lines[place + 1].has_data:
        return False
    above = lines[first:place]
    widest = max((lower.v0 - upper.v1 for upper, lower in pairwise(above)), default=0.0)
    is_apart = line.v0 - above[-1].v1 > widest + line.height
    return is_apart and sum(upper.has_data for upper in above) >= LEAST_ROWS


def _parted(lines: Sequence[_Line], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The run, cut at lines of a single cell before which and after which stand tables of their own: new heads follow,
    or the columns of the rows around are not the same."""
    for place in range(first + 1, last):
        if lines[place].is_row:
            continue
        above = [line for line in lines[max(first, place - ROWS_COMPARED) : place] if line.is_row]
        below = [line for line in lines[place : min(last + 1, place + ROWS_COMPARED)] if line.is_row]
        fewer = min(len(above), len(below))
        if fewer < LEAST_ROWS:
            continue
        anew = sum(line.has_data for line in above) >= LEAST_ROWS and not below[0].has_data and below[1].has_data
        other = fewer >= LEAST_ROWS_OF_WORDS and len(_columns([*above, *below])) != max(
            len(_columns(above)), len(_columns(below))
        )
        if anew or other:
            yield first, max(number for number in range(first, place) if lines[number].is_row)
            first = next(number for number in range(place, last + 1) if lines[number].is_row)
    yield first, last


# Columns ---------------------------------------------------------------------------------------------------------


def _table(lines: Sequence[_Line], above: Sequence[_Line]) -> Table | None:
    """None where the rows are no table: a list, running text in columns, too few."""
    full = [line for line in lines if line.is_row]
    figures = sum(any(piece.is_figure for piece in line.pieces[1:]) for line in full)
    if figures < LEAST_ROWS and len(full) < LEAST_ROWS_OF_WORDS:
        return None
    edges = _columns(full)
    if len(edges) < 2 or _is_list(full, edges):
        return None
    if 2 * figures < len(full) and _is_running_text(full):
        return None
    rows = [[_placed(piece, edges) for piece in line.pieces] for line in lines]
    head_rows = _head_rows(lines, rows)
    body = _with_whole_labels(rows[head_rows:])
    heads = _heads(rows[:head_rows], len(edges))
    return Table(
        tuple(map(tuple, [*rows[:head_rows], *body])), heads, head_rows, _unit(above, lines[:head_rows]), edges
    )


def _columns(lines: Sequence[_Line]) -> tuple[tuple[float, float], ...]:
    """Where columns begin and end: cells that meet are of one, but for those that cover what other rows divide."""
    height = sum(line.height for line in lines) / len(lines)
    starts = np.array([piece.u0 for line in lines for piece in line.pieces])
    ends = np.array([piece.u1 for line in lines for piece in line.pieces])
    numbers = np.array([number for number, line in enumerate(lines) for _ in line.pieces])
    most = max(1.0, SPLIT_BY * len(lines))
    # A figure has one column.
    single = [
        piece
        for line in lines
        for piece in line.pieces
        if piece.is_figure or np.sum(np.bincount(numbers[(ends > piece.u0) & (starts < piece.u1)]) > 1) < most
    ]
    columns: list[tuple[float, float]] = []
    for piece in sorted(single, key=lambda piece: piece.u0):
        if columns and piece.u0 < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], piece.u1))
        else:
            columns.append((piece.u0, piece.u1))
    # A head that stands beside its figures, not over them.
    merged = columns[:1]
    for edge in columns[1:]:
        before = merged[-1]
        if edge[0] - before[1] < SAME_COLUMN * height and not any(
            _fills(line, before) and _fills(line, edge) for line in lines
        ):
            merged[-1] = (before[0], edge[1])
        else:
            merged.append(edge)
    return tuple(merged)


def _fills(line: _Line, edge: tuple[float, float]) -> bool:
    return any(piece.u0 < edge[1] and piece.u1 > edge[0] for piece in line.pieces)


def _is_list(lines: Sequence[_Line], edges: Sequence[tuple[float, float]]) -> bool:
    """Whether the rows are bullets or numbers with the text of each."""
    if len(edges) != 2 or not all(_MARKER.match(line.pieces[0].text) for line in lines):
        return False
    counts = [len(piece.words) for line in lines for piece in line.pieces[1:]]
    return all(not piece.is_figure for line in lines for piece in line.pieces[1:]) or sum(counts) > LONGEST_ITEM * len(
        counts
    )


def _is_running_text(lines: Sequence[_Line]) -> bool:
    """Whether cells go on where others end, or are lines of text: a cell that is wrapped is no row."""
    pieces = [piece for line in lines for piece in line.pieces if not piece.is_figure]
    if sum(piece.goes_on for piece in pieces) > GOES_ON * len(pieces):
        return True
    return sum(len(piece.words) for piece in pieces) > LONGEST_ENTRY * len(pieces)


def _placed(piece: _Piece, edges: Sequence[tuple[float, float]]) -> Cell:
    met = [number for number, (u0, u1) in enumerate(edges) if piece.u0 < u1 and piece.u1 > u0]
    if not met:
        middle = (piece.u0 + piece.u1) / 2
        met = [min(range(len(edges)), key=lambda number: abs(sum(edges[number]) / 2 - middle))]
    return Cell(tuple(piece.words), met[0], met[-1] - met[0] + 1)


def _head_rows(lines: Sequence[_Line], rows: Sequence[Sequence[Cell]]) -> int:
    """How many of the first rows name the columns: they hold no figures but years, and one of them at most a label."""
    if _are_fields(rows):
        return 0
    labels = years = 0
    for number, (line, row) in enumerate(zip(lines, rows, strict=True)):
        named = [piece for piece, cell in zip(line.pieces, row, strict=True) if cell.column > 0 or cell.span > 1]
        labelled = len(named) < len(line.pieces)
        data = any(piece.is_figure and not piece.is_year for piece in named)
        periods = bool(named) and all(piece.is_year for piece in named)
        if not named or data or number >= MOST_HEADS or (labelled and labels and (years or not periods)):
            return number
        labels, years = labels + labelled, years + periods
    # A table of words alone: its first row, where all of its cells are short; two columns are names and what they name.
    return int(len(lines[0].pieces) > 2 and all(len(piece.words) <= LONGEST_HEAD for piece in lines[0].pieces))


def _are_fields(rows: Sequence[Sequence[Cell]]) -> bool:
    """Whether the first rows are fields of a form, each a label with a colon and what is written behind it: a head that
    ends in one, as ``Year ended June 30:``, stands over rows that do not, or before years."""
    named = [row[0].column == 0 and row[0].text.endswith((":", "：")) for row in rows[:2]]  # noqa: RUF001
    others = [cell.text for cell in rows[0][1:]]
    return named == [True, True] and not all(map(_YEAR.fullmatch, others))


def _with_whole_labels(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """``rows`` with the lines of wrapped labels joined: what goes on begins with a small letter, and the values stand
    beside the first line, the last, or between the two."""
    whole: list[list[Cell]] = []
    for row in map(list, rows):
        goes_on = bool(row) and row[0].column == 0 and _goes_on(row[0].words)
        before = whole[-1] if whole else []
        labelled = bool(before) and before[0].column == 0
        if goes_on and labelled and (len(before) == 1 or len(row) == 1):
            whole[-1] = [replace(before[0], words=before[0].words + row[0].words), *before[1:], *row[1:]]
        elif goes_on and not labelled and len(row) == 1 and len(whole) > 1 and [c.column for c in whole[-2]] == [0]:
            values = whole.pop()
            label = whole[-1][0]
            whole[-1] = [replace(label, words=label.words + row[0].words), *values]
        else:
            whole.append(row)
    return whole


def _goes_on(words: Sequence[Word]) -> bool:
    """Whether words begin in the middle of a sentence: a small letter alone before a capital or a figure is a mark."""
    first, *others = words
    is_mark = len(first.text) == 1 and bool(others) and not others[0].text[:1].islower()
    return first.text[:1].islower() and not is_mark


# Turned heads ----------------------------------------------------------------------------------------------------


def _under_turned_heads(table: Table, turned: Sequence[_Piece], aspect: float) -> Table:
    """``table`` with the turned lines right above most of its columns of values, and at least two, as its heads.

    In a table of words alone no row is a head then: the first one was guessed to be.
    """
    height = max(word.box.y1 - word.box.y0 for cell in table.rows[0] for word in cell.words)
    left, right = table.edges[0][0] / aspect - height, table.edges[-1][1] / aspect + height
    above = [
        (box, piece.words)
        for piece in turned
        if (box := around([word.box for word in piece.words])) is not None
        and box.y1 < table.box.y0 + height / 2
        and left < (box.x0 + box.x1) / 2 < right
    ]
    near = [box for box, _ in above if box.y1 > table.box.y0 - ROWS_APART * height]
    over: dict[int, list[Word]] = {}
    for box, words in above:
        if any(box.y1 > other.y0 for other in near):
            cell = _placed(_Piece(words, box.x0 * aspect, box.x1 * aspect), table.edges)
            over.setdefault(cell.column, []).extend(words)
    named = len(over.keys() - {0})
    if named < 2 or 2 * named < len(table.edges) - 1:
        return table
    of_words = not any(is_figure(cell.text) for row in table.body for cell in row[1:])
    head = tuple(Cell(tuple(words), column) for column, words in sorted(over.items()))
    rows = (head, *table.rows)
    head_rows = 1 if of_words else 1 + table.head_rows
    return replace(table, rows=rows, heads=_heads(rows[:head_rows], len(table.edges)), head_rows=head_rows)


# Ruling lines ----------------------------------------------------------------------------------------------------


def _ruled(words: Sequence[Word], aspect: float, grid: Grid) -> Table | None:
    """The table in a grid of ruling lines, where cells hold several lines of text: those of single lines are found by
    their words alone, which also tells a sign from the figure that it stands beside. None where most cells are empty.
    """
    inside: dict[Field, list[Word]] = {}
    for word in words:
        u0, v0, u1, v1 = upright(word, aspect)
        field = grid.field_at((u0 + u1) / 2, (v0 + v1) / 2) if word.turn == 0 else None
        if field is not None:
            inside.setdefault(field, []).append(word)
    if len(inside) < LEAST_FILLED * len(set(grid.fields.values())):
        return None
    used = sorted({column for field in inside for column in range(field.column, field.column + field.columns)})
    starts = sorted({field.row for field in inside})
    if len({field.column for field in inside}) < 2 or len(starts) < 2 or not any(map(_is_wrapped, inside.values())):
        return None
    if any(map(_holds_rows, inside.values())):
        return None
    at = {column: number for number, column in enumerate(used)}
    rows = [
        [
            Cell(
                tuple(inside[field]),
                at[field.column],
                sum(field.column <= c < field.column + field.columns for c in used),
            )
            for field in sorted(inside, key=lambda field: field.column)
            if field.row == start
        ]
        for start in starts
    ]
    lines = [
        _Line([_Piece(list(cell.words), 0.0, 0.0) for cell in row], grid.ys[start], grid.ys[start + 1])
        for row, start in zip(rows, starts, strict=True)
    ]
    of_words = not any(piece.is_figure and not piece.is_year for line in lines for piece in line.pieces)
    # Where no row has figures, they cannot tell heads from rows.
    named = int(not _are_fields(rows) and all(len(cell.words) <= LONGEST_HEAD for cell in rows[0]))
    head_rows = named if of_words else _head_rows(lines, rows)
    edges = tuple((grid.xs[column], grid.xs[column + 1]) for column in used)
    return Table(tuple(map(tuple, rows)), _heads(rows[:head_rows], len(used)), head_rows, "", edges)


def _is_wrapped(words: Sequence[Word]) -> bool:
    """Whether the words of a cell stand on several lines."""
    return joined(words, "\n").count("\n") > 0


def _holds_rows(words: Sequence[Word]) -> bool:
    """Whether what lines enclose is several rows of figures, not a cell."""
    figures = sum(is_figure(word.text) for word in words)
    return figures > MOST_FIGURES and 2 * figures > len(words) and _is_wrapped(words)


def _heads(rows: Sequence[Sequence[Cell]], columns: int) -> tuple[str, ...]:
    return tuple(
        " ".join(cell.text for row in rows for cell in row if cell.column <= at < cell.column + cell.span)
        for at in range(columns)
    )


def _unit(above: Sequence[_Line], heads: Sequence[_Line]) -> str:
    """The nearest text above the figures of all columns: in brackets, or as a line of its own."""
    # Behind the name of a column, "Price (euro)" says nothing of the others.
    own = {piece.text for line in heads for piece in line.pieces[1:] if not _IN_BRACKETS.match(piece.text)}
    for line in [*reversed(above), *heads]:
        text = " ".join(piece.text for piece in line.pieces)
        shared = " ".join(piece.text for piece in line.pieces if piece.text not in own or " (in " in piece.text)
        for match in _IN_BRACKETS.finditer(shared):
            if _UNIT.search(match[1]):
                return match[1]
        if _BARE_UNIT.match(text) and _UNIT.search(text):
            return text
    return ""


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[1]}"
