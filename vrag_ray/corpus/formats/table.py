"""Tables in text files (CSV, TSV, any delimiter): each row as a line that repeats the names of its columns. One file
may hold several tables, blank rows between them."""

from __future__ import annotations

import csv
import re
import sys
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import islice, takewhile, zip_longest
from operator import itemgetter

from vrag_ray.corpus.formats.encodings import decode_text
from vrag_ray.corpus.formats.named_rows import labelled
from vrag_ray.corpus.formats.source import Opening
from vrag_ray.corpus.formats.text import LONE_RETURN, WRITTEN, SpanSource, split_pieces
from vrag_ray.corpus.model import DecodeError, Probe, clean, title_from_name
from vrag_ray.types import DocumentKind
from vrag_ray.types.page_breaks import continued

DELIMITERS = ",;\t|"
PIECE_WORDS = 140
"""Fewer than a window has by default, so that no window ends inside a row."""
LOOKED_AT = 200
"""Rows that decide which delimiter it is and where the header stands."""
REGULAR = 0.6
"""Share of rows that have as many cells as most, below which a text is no table."""
LEAST_BELOW, REGULAR_BELOW = 3, 0.9
"""Rows from the header on, and the share of them that have as many cells as most, from which on a table may stand below
lines that say what it is about, as in statements of banks and files of gauges."""
LEAST_OF_A_NOTE = 3
"""Words that stand alone in a row, and are no name of it."""
MOST_LABELS, LEAST_OF_A_KIND = 40, 2
"""Rows of a list of labels and values, and values that begin with a figure, or have none, in it."""
_ESCAPED_QUOTE = re.compile(r"(?<=[ \w])\\\"(?=\w)")
"""In a cell, as databases write it; others write two quotes."""
_QUOTED = re.compile(r'"[^"]*"')
_STATED_DELIMITER = re.compile(r"\ufeff?\"?sep=.\"?[ \t]*(?=\r?\n)", re.IGNORECASE)
"""The first line of what Excel wrote: no row of the table."""
_DIGIT, _NUMBER_FIRST = re.compile(r"\d"), re.compile(r"[^\w\s]*\d")
_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_DIVIDED = re.compile(r"\S*[-\u2010\u00ad]\s*\n\s*\S*")
_NO_VALUE = re.compile(r"(?:n\.?/?a\.?|nan|none|null|[-\u2013\u2014?.]+)", re.IGNORECASE)
_NUMBER = re.compile(r"[-+(]?[\s$€£¥]*[\d.,'\s]*\d[\d.,'\s]*[%)]?\s*")


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its character span in the text, and its cells."""

    start: int
    end: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a table is written. ``header`` names its columns, ``body`` is the number of the row after it (from 0). In a
    list of labels each row has a name and its value."""

    delimiter: str
    header: tuple[str, ...]
    body: int
    is_list: bool = False


class TableSource(SpanSource):
    """An open table. Its pieces are whole rows; a text in which no table is seen is read as plain text."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening, "a table in a text file")
        decoded = decode_text(opening.path.read_bytes())
        text = _STATED_DELIMITER.sub(lambda line: " " * len(line[0]), decoded.text, count=1)
        if _ESCAPED_QUOTE.search(text):
            text = text.replace('\\"', '""')
        self._text, self._notice = _with_line_feeds(text), decoded.notice
        self._dialect = dialect_of(self._text)
        self._tables: list[tuple[int, Dialect]] = []
        """Where each table begins."""
        self._spans = self._pieces() if self._dialect else split_pieces(self._text)
        self._written = _written(self._text) if _DIVIDED.search(self._text) else frozenset()

    def probe(self) -> Probe:
        title = title_from_name(self._opening.name)
        notices = [self._notice] if self._notice else []
        if self._dialect is None:
            notices.append("read as plain text: no table is seen in it")
        return Probe(
            DocumentKind.TEXT,
            len(self._spans),
            title,
            meta={"format": "table"},
            notices=tuple(notices),
        )

    def _shown(self, start: int, end: int) -> str:
        """The rows of the span, each with the names of its columns."""
        part = self._text[start:end]
        if self._dialect is None:
            return clean(part)
        rows = [tuple(map(self._whole, row.cells)) for row in rows_of(part, self._dialect.delimiter)]
        begin, dialect = self._tables[max(0, bisect_right(self._tables, start, key=itemgetter(0)) - 1)]
        first = dialect.body if start == begin else 0
        lines = [" ".join(filter(None, map(str.strip, cells))) for cells in rows[:first]]
        header = tuple(map(self._whole, dialect.header))
        for cells in rows[first:]:
            if dialect.is_list:
                lines.append(labelled(cells[1:], cells))
            else:
                is_note = len(cells) > 2 and not any(cells[1:]) and len(cells[0].split()) >= LEAST_OF_A_NOTE
                lines.append(cells[0] if is_note else labelled(cells, header))
        return clean("\n".join(filter(None, lines)))

    def _whole(self, cell: str) -> str:
        """``cell`` on one line, the words whole that its line ends divide."""
        return reduce(partial(continued, written=self._written), cell.splitlines()) if "\n" in cell else cell

    def _pieces(self) -> list[tuple[int, int]]:
        """Rows together up to ``PIECE_WORDS`` words as they are shown; those above a header go with the first of its
        table."""
        assert self._dialect is not None
        pieces: list[tuple[int, int]] = []
        taken = names = 0
        for number, row, dialect in rows_of_tables(self._text, self._dialect):
            if not number:
                # From the very beginning, by which the rows above the header are known.
                self._tables.append((row.start if pieces else 0, dialect))
                names = sum(len(name.split()) for name in dialect.header)
            above = number < dialect.body
            # Not by WORD, which would take most of the time of opening: a piece may be a little longer.
            words = sum(len(cell.split()) for cell in row.cells) + (0 if above else names)
            if number and (above or taken + words <= PIECE_WORDS):
                pieces[-1] = (pieces[-1][0], row.end)
                taken += words
            else:
                pieces.append((row.start if pieces else 0, row.end))
                taken = words
        return pieces


def _with_line_feeds(text: str) -> str:
    """As many characters, the rows of an old Mac's table with usual line ends. Line feeds in its cells are no rows."""
    if not LONE_RETURN.search(text):
        return text
    ends = _QUOTED.sub("", text)
    return LONE_RETURN.sub("\n", text) if len(LONE_RETURN.findall(ends)) > ends.count("\n") else text


def _written(text: str) -> frozenset[str]:
    """The words of ``text`` that no line end divides, in small letters."""
    return frozenset(map(str.lower, WRITTEN.findall(_DIVIDED.sub(" ", text))))


def rows_of(text: str, delimiter: str) -> Iterator[Row]:
    """The rows of a table that have a cell with content. A quoted cell may hold line ends.

    Raises:
        DecodeError: a quote is opened that never ends.
    """
    csv.field_size_limit(sys.maxsize)
    ends: list[int] = []

    def lines() -> Iterator[str]:
        place, is_within = 0, False
        while place < len(text):
            end = text.find("\n", place) + 1 or len(text)
            ends.append(end)
            line = text[place:end]
            if line.count('"') % 2 and delimiter != ",":
                below = text.count(delimiter, end, text.find("\n", end) + 1 or len(text))
                if not is_within and below and below == line.count(delimiter):
                    # An inch: a cell that goes on holds no whole row, and may hold commas.
                    line = line.replace('"', "\u2033")
                else:
                    is_within = not is_within
            yield line
            place = end

    reader = csv.reader(lines(), delimiter=delimiter)
    start = 0
    try:
        for cells in reader:
            end = ends[-1]
            ends.clear()
            if any(cell.strip() for cell in cells):
                yield Row(start, end, tuple(map(_without_formula, cells)))
            start = end
    except csv.Error as error:
        raise DecodeError(f"has a row that cannot be parsed, from character {start} on: correct it") from error


def _without_formula(cell: str) -> str:
    """The text of ``="00123"``, as programs write what Excel would take for a number."""
    return cell[2:-1] if cell.startswith('="') and cell.endswith('"') else cell


def rows_of_tables(text: str, first: Dialect) -> Iterator[tuple[int, Row, Dialect]]:
    """Each row of ``text`` with its number in its table, from 0, and how that is written. ``first`` is the first table:
    another begins below a blank row where a header stands, perhaps below a line that says what it is about."""
    rows = rows_of(text, first.delimiter)
    ahead = deque(islice(rows, LOOKED_AT))
    is_titled = 1 < first.body <= len(ahead) and _is_lone(ahead[first.body - 2])
    dialect, number, end = first, 0, 0
    while ahead:
        row = ahead[0]
        if number > dialect.body and row.start > end:
            own = _dialect_below(ahead, first.delimiter, is_titled=is_titled)
            dialect, number = (dialect, number) if own is None else (own, 0)
        yield number, row, dialect
        number, end = number + 1, row.end
        ahead.popleft()
        ahead.extend(islice(rows, 1))


def _dialect_below(rows: Sequence[Row], delimiter: str, *, is_titled: bool) -> Dialect | None:
    """The header with which ``rows`` below a blank row begin; None where they go on with the table above.

    A header names columns of figures; where there are none, a line above it says what the table is about, as
    ``is_titled`` says of the table before.
    """
    titles = len(list(takewhile(_is_lone, rows)))
    # Blank rows may stand below the title too, and end the table.
    ends = [0, *(row.end for row in rows)]
    ends[titles] = rows[titles].start if titles < len(rows) else 0
    pairs = list(zip(rows, ends, strict=False))
    block = [*rows][:titles] + [row for row, _ in takewhile(lambda pair: pair[0].start == pair[1], pairs[titles:])]
    header, below = block[titles : titles + 1], block[titles + 1 :]
    if not header or not below:
        return None
    names = tuple(" ".join(clean(cell).split()) for cell in header[0].cells)
    width = max((number for row in below for number, cell in enumerate(row.cells, 1) if cell.strip()), default=0)
    columns = list(zip_longest(*(row.cells for row in below), fillvalue=""))[: len(names)]
    has_figures = any(
        name and not _NO_VALUE.fullmatch(name) and any(column) and all(map(_is_figure, filter(None, column)))
        for name, column in zip(names, columns, strict=False)
    )
    if (
        all(names[:width])
        and 1 < width <= len(names)
        and not any(map(_is_figure, names))
        and (has_figures or (titles and is_titled))
        and not _is_like_rest(block, titles)
    ):
        return Dialect(delimiter, names, titles + 1)
    return None


def _is_lone(row: Row) -> bool:
    return sum(map(bool, map(str.strip, row.cells))) == 1


def dialect_of(text: str) -> Dialect | None:
    """The delimiter that gives most rows the same number of cells, above one; None where none does.

    The header is the first row with most of its cells filled, if it holds no number but years and does not look like
    the rows below; otherwise the columns have no names.
    """
    best: tuple[float, int, str, list[Row]] | None = None
    for delimiter in DELIMITERS:
        try:
            rows = [row for row, _ in zip(rows_of(text, delimiter), range(LOOKED_AT), strict=False)]
        except DecodeError:
            continue
        width, regular = _regularity([len(row.cells) for row in rows])
        if width > 1 and regular >= REGULAR and (best is None or (regular, width) > best[:2]):
            best = (regular, width, delimiter, rows)
    if best is None:
        return None
    _, width, delimiter, rows = best
    if width == 2 and _are_labels(rows):
        return Dialect(delimiter, (), 0, is_list=True)
    for number, row in enumerate(rows[: len(rows) - 1]):
        names = tuple("\n".join(" ".join(line.split()) for line in clean(cell).splitlines()) for cell in row.cells)
        if len(names) >= width and _may_name(names, rows[number + 1].cells, width):
            if len(names) > width and any(map(_is_figure, names)) and _names_all(rows[number + 1].cells, width):
                # What a program says of the file.
                continue
            names = _with_groups(names, rows[number - 1].cells) if number else names
            if any(map(_is_figure, names)) or _NUMBER.fullmatch(names[0]) or _is_like_rest(rows, number):
                return Dialect(delimiter, (), number)
            return Dialect(delimiter, names, number + 1)
    return Dialect(delimiter, (), 0)


def _are_labels(rows: Sequence[Row]) -> bool:
    """Whether a short table has a label and a value in each row, since its values are of several kinds."""
    pairs = [row.cells for row in rows if len(row.cells) == 2]
    labels = {label for label, _ in pairs if label.strip() and not _DIGIT.search(label)}
    values = [value for _, value in pairs if value.strip() and not _NO_VALUE.fullmatch(value.strip())]
    figures = sum(_NUMBER_FIRST.match(value) is not None for value in values)
    words = sum(_DIGIT.search(value) is None for value in values)
    return len(labels) == len(rows) <= MOST_LABELS and min(figures, words) >= LEAST_OF_A_KIND


def _regularity(widths: Sequence[int]) -> tuple[int, float]:
    """How many cells most rows have, and the share of such rows. A table below other lines ranks behind all others."""
    if not widths:
        return 0, 0.0
    counts = Counter(widths)
    width, count = counts.most_common(1)[0]
    if (share := count / len(widths)) >= REGULAR:
        return width, share
    del counts[1]
    if not counts:
        return width, 0.0
    width = max(counts, key=lambda width: (counts[width], width))
    below = widths[widths.index(width) :]
    is_table = len(below) >= LEAST_BELOW and counts[width] >= REGULAR_BELOW * len(below)
    return width, REGULAR if is_table else 0.0


def _may_name(names: Sequence[str], below: Sequence[str], width: int) -> bool:
    """Whether most columns have names: all but one where it is not the row ``below`` that names them all."""
    filled = sum(map(bool, names))
    return filled >= width * 0.7 or (filled == width - 1 > 1 and not _names_all(below, width))


def _names_all(cells: Sequence[str], width: int) -> bool:
    return len(cells) >= width and all(cell.strip() and not _is_figure(cell) for cell in cells)


def _with_groups(names: tuple[str, ...], above: Sequence[str]) -> tuple[str, ...]:
    """``names`` that stand several times, each behind the name of its group in the row ``above``, whose cells but the
    first of each group are empty. Names that are not different then are left as they are."""
    repeated = {name for name, count in Counter(names).items() if name and count > 1}
    groups: list[str] = []
    for cell in above:
        groups.append(" ".join(clean(cell).split()) or (groups[-1] if groups else ""))
    if not repeated or len(above) != len(names) or all(map(str.strip, above)):
        return names
    grouped = tuple(
        f"{group} {name}" if group and name in repeated else name for group, name in zip(groups, names, strict=True)
    )
    return grouped if len(set(grouped)) == len(grouped) else names


def _is_figure(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None and not _YEAR.fullmatch(cell)


def _is_like_rest(rows: Sequence[Row], number: int) -> bool:
    """Whether a row is data: half of its cells stand in their columns again below. A repeated header is none."""
    first, below = rows[number].cells, [row.cells for row in rows[number + 1 :] if row.cells != rows[number].cells]
    again = [cell for i, cell in enumerate(first) if cell.strip() and any(row[i : i + 1] == (cell,) for row in below)]
    return 2 * len(again) >= sum(map(bool, map(str.strip, first)))
