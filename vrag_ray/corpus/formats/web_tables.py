"""Tables of web pages, changed so that MuPDF lays out each row on a line and each head over its column.

What reads the page knows the places of its words alone: a short cell that is wrapped would be two rows there, and the
text of a merged cell would stand in one of its rows, or over one of its columns.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape

from vrag_ray.corpus.formats.unseen import STYLE_VALUE, hides, states_size
from vrag_ray.corpus.tables import MAX_CELL_WORDS, MOST_HEADS, is_figure

TYPE_SIZES = (9, 8, 7, 6)
"""Points: a table has the first in which its short cells fit on the page."""
PADDING = 8
"""Points on each side of a cell: more than words of one cell stand apart."""
WIDE, CAPITAL, LETTER = 1.05, 0.75, 0.6
"""Widths of characters of full width, of capital letters and of others, in bold, as shares of the type size."""
LEAST_PROSE = 15.0
"""Width of a column of running text, at least, as a ratio to the type size."""
LONGEST_WORD, ENDLESS = 300, 180.0
"""Letters of a word above which it is broken, more than most addresses of web pages have, and the width that it has
then, as a ratio to the type size."""
BREAKING = f"width:{ENDLESS * 9:.0f}px;overflow-wrap:break-word"
"""Look of a cell with such a word."""
_TABLE = re.compile(r"<table\b([^>]*)>((?:(?!</?table\b).)*)</table\s*>", re.IGNORECASE | re.DOTALL)
"""A table without another table in it."""
_INNER = re.compile(r"<!--table (\d+)-->")
"""What stands in place of such a table while the table around it is read."""
MOST_NESTED = 12
"""Tables in tables; what is nested more deeply is left as it is."""
_PART = re.compile(
    r"<(tr|td|th)\b((?:[^>\"']|\"[^\"]*\"|'[^']*')*)>((?:(?!</?(?:tr|td|th|thead|tbody|tfoot)\b).)*)(?:</t[dh]\s*>)?",
    re.IGNORECASE | re.DOTALL,
)
_BLOCK = "display:block;width:auto;height:auto"
"""What a part of a table states of its place does not hold where it is none."""
_SPAN = re.compile(r"\s*\b(col|row)span\s*=\s*[\"']?\s*(\d{1,3})\s*[\"']?", re.IGNORECASE)
_LINE_END = re.compile(r"<(?:br|/p|/div|/li)\b[^>]*>", re.IGNORECASE)
_IN_BOLD = re.compile(r"\s*(?:<(?!b\b|strong\b|h\d)[a-z][^>]*>\s*)*<(?:b|strong|h\d)\b", re.IGNORECASE)
"""The beginning of a cell whose first words are its heading."""
_ANY_TAG = re.compile(r"<[^>]*>")
_YEAR = re.compile(r"(?:1[89]|20)\d\d")


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell from ``row`` and ``column`` over ``rows`` and ``columns``, with its markup from ``start`` to ``end`` of
    that of its table, and the words of each of its lines."""

    name: str
    attributes: str
    content: str
    start: int
    end: int
    row: int
    column: int
    rows: int
    columns: int
    lines: tuple[tuple[str, ...], ...]

    @property
    def is_short(self) -> bool:
        return sum(map(len, self.lines)) <= MAX_CELL_WORDS

    @property
    def has_tables(self) -> bool:
        return _INNER.search(self.content) is not None

    @property
    def is_filled(self) -> bool:
        return bool(self.lines) or "<img" in self.content.lower() or self.has_tables

    @property
    def is_block(self) -> bool:
        """Whether it has several lines, or tables."""
        return len(self.lines) > 1 or self.has_tables

    @property
    def is_list(self) -> bool:
        """Whether its lines are labels: short, none going on in small letters, none with a figure beside words."""
        first, *others = self.lines
        runs_on = not self.is_short and first[0][0].isupper() and any(line[0][0].islower() for line in others)
        return not runs_on and not any(
            len(line) > MAX_CELL_WORDS
            or (len(line) > 1 and any(is_figure(word) and not _YEAR.fullmatch(word) for word in line))
            for line in self.lines
        )

    @property
    def has_heading(self) -> bool:
        return _IN_BOLD.match(self.content) is not None

    @property
    def has_endless_word(self) -> bool:
        return any(is_endless(word) for line in self.lines for word in line)

    @property
    def is_name(self) -> bool:
        """Whether it may be a head: it is marked as one, or holds no figures but years."""
        words = [word for line in self.lines for word in line]
        return self.name == "th" or not any(is_figure(word) and not _YEAR.fullmatch(word) for word in words)


def with_drawn_tables(html: str, width: float) -> str:
    """``html`` with its tables of short cells laid out row by row in ``width``, in points, and what tables that lay out
    a page set side by side one below the other.

    Other tables that hold tables, and those that are mostly running text, are left as they are; so are those whose type
    has no size, since a size would show it.
    """
    # Of the page itself such a remark says nothing.
    html = _INNER.sub("", html)
    inner: list[str] = []

    def set_apart(match: re.Match[str]) -> str:
        is_left = _INNER.search(match[2]) or _has_no_size(match[1])
        inner.append(_stacked(match) or (match[0] if is_left else _drawn(match, width)))
        return f"<!--table {len(inner) - 1}-->"

    for _ in range(MOST_NESTED):
        html, count = _TABLE.subn(set_apart, html)
        if not count:
            break
    while _INNER.search(html):
        html = _INNER.sub(lambda match: inner[int(match[1])], html)
    return html


def _stacked(table: re.Match[str]) -> str:
    """A table that lays out a page: the cells one below the other of each row that sets texts or tables side by side;
    its other rows are a table each. "" for a table of values: whose first row has values, or heads."""
    cells, row_ends = _cells(table[2])
    rows = [[cell for cell in cells if cell.row == row and cell.is_filled] for row in range(len(row_ends))]
    first, *others = [row for row in rows if len(row) > 1] or [[]]
    if not _sets_side_by_side(first) or any(cell.name == "th" for cell in cells):
        return ""
    if all(cell.is_short and not cell.has_tables for cell in first) and not all(map(_sets_side_by_side, others)):
        # Heads of several lines over values.
        return ""
    # Their grounds, and what hides them, stay.
    of_rows = [part[2] for part in _PART.finditer(table[2]) if part[1].lower() == "tr"]
    parts: list[str] = []
    for row, of_row in zip(rows, of_rows if len(of_rows) == len(rows) else [""] * len(rows), strict=True):
        if len(row) < 2 or _sets_side_by_side(row):
            blocks = (_block(cell.attributes, cell.content, ";margin:6pt 0") for cell in row)
            parts.append(_block(of_row, "".join(blocks)))
        else:
            line = "".join(f"<{cell.name}{cell.attributes}>{cell.content}</{cell.name}>" for cell in row)
            parts.append(f"<table><tr{of_row}>{line}</tr></table>")
    return _block(table[1], "".join(parts))


def _block(attributes: str, content: str, look: str = "") -> str:
    """A part of a table as a block, which is hidden where the part is."""
    style = STYLE_VALUE.search(attributes)
    is_hidden = style is not None and hides(style[1] or style[2] or "")
    return "" if is_hidden else f"<div{_styled(attributes, _BLOCK + look)}>{content}</div>"


def _sets_side_by_side(row: Sequence[_Cell]) -> bool:
    """Whether several cells of a row are texts of their own lines: not where the first is a list of labels, and the
    others of as many values."""
    if sum(cell.is_block for cell in row) < 2:
        return False
    label, *others = row
    if len({len(cell.lines) for cell in row}) > 1 or any(cell.has_tables for cell in row) or not label.is_list:
        return True
    if not all(cell.has_heading for cell in row):
        return False
    return not all(any(map(is_figure, line)) for cell in others for line in cell.lines[1:])


def is_endless(text: str) -> bool:
    """Whether a word of ``text`` is too long for any column."""
    return len(text) > LONGEST_WORD and any(len(word) > LONGEST_WORD for word in text.split())


def _drawn(table: re.Match[str], width: float) -> str:
    cells, row_ends = _cells(table[2])
    filled = [cell for cell in cells if cell.lines]
    in_row = Counter(cell.row for cell in filled)
    if sum(count > 1 for count in in_row.values()) < 2 or 2 * sum(cell.is_short for cell in filled) < len(filled):
        return table[0]
    heads = _head_rows(cells)
    style, widths = _measured(filled, heads, width)
    pieces: list[tuple[int, int, int, str]] = []
    """Start and end of what is replaced in the markup, the column, and the new markup."""
    for cell in cells:
        parts = [cell]
        if cell.row < heads and cell.columns > 1 and in_row[cell.row] > 1:
            parts = [replace(cell, column=cell.column + at, columns=1) for at in range(cell.columns)]
        elif cell.row >= heads and cell.rows > 1 and cell.lines and cell.is_short:
            parts = [replace(cell, rows=1)]
            for row in range(cell.row + 1, min(cell.row + cell.rows, len(row_ends))):
                behind = (other.start for other in cells if other.row == row and other.column > cell.column)
                at = next(behind, row_ends[row])
                pieces.append((at, at, cell.column, _markup(parts[0], style, widths)))
        pieces.append((cell.start, cell.end, cell.column, "".join(_markup(part, style, widths) for part in parts)))
    changed, end = "", 0
    for start, stop, _, markup in sorted(pieces):
        changed += table[2][end:start] + markup
        end = stop
    look = _styled(table[1], "border-collapse:collapse")
    return f"<table{look}>{changed}{table[2][end:]}</table>"


def _cells(markup: str) -> tuple[list[_Cell], list[int]]:
    """The cells of a table in their order, but for hidden ones, and where each of its rows ends in the markup."""
    cells: list[_Cell] = []
    row_ends: list[int] = []
    taken: set[tuple[int, int]] = set()
    column = 0
    for part in _PART.finditer(markup):
        name, attributes, content = part[1].lower(), part[2], part[3]
        if name == "tr" or not row_ends:
            row_ends.append(part.start(3))
            column = 0
        style = STYLE_VALUE.search(attributes)
        if name == "tr" or (style is not None and hides(style[1] or style[2] or "")):
            continue
        spans = {span[1].lower(): max(1, int(span[2])) for span in _SPAN.finditer(attributes)}
        rows, columns, row = spans.get("row", 1), spans.get("col", 1), len(row_ends) - 1
        while (row, column) in taken:
            column += 1
        taken.update((row + down, column + across) for down in range(rows) for across in range(columns))
        texts = (unescape(_ANY_TAG.sub("", line)).split() for line in _LINE_END.split(content))
        lines = tuple(tuple(words) for words in texts if words)
        attributes = _SPAN.sub("", attributes)
        cells.append(_Cell(name, attributes, content, part.start(), part.end(), row, column, rows, columns, lines))
        row_ends[-1] = part.end()
        column += columns
    return cells, row_ends


def _head_rows(cells: Sequence[_Cell]) -> int:
    """How many of the first rows are heads over heads, and those under them; 0 where no head covers several columns."""
    at = {(cell.row, cell.column + across): cell for cell in cells if cell.lines for across in range(cell.columns)}
    rows = [[cell for cell in cells if cell.lines and cell.row == row] for row in range(MOST_HEADS)]
    heads = 0
    for number, row in enumerate(rows):
        marked = all(cell.name == "th" for cell in row)
        over = False
        for cell in row:
            places = ((number + cell.rows, column) for column in range(cell.column, cell.column + cell.columns))
            below = {other.column: other for place in places if (other := at.get(place)) is not None}
            if cell.columns == 1 and cell.rows == 1 and below and not marked:
                # A row of values under a name that is merged over two of them.
                over = False
                break
            over = over or (cell.columns > 1 and len(below) > 1 and all(other.is_name for other in below.values()))
        if over and all(cell.is_name for cell in row):
            heads = number + 2
        elif len(row) > 1:
            break
    return heads


def _measured(cells: Sequence[_Cell], heads: int, width: float) -> tuple[str, Mapping[int, float]]:
    """The look of the cells of a table, and the widths of its columns in points; none where MuPDF decides.

    Running text takes what the short cells leave. Where all does not fit, heads are wrapped, but for that of the first
    column, beside which stands no value.
    """
    first = min(cell.row for cell in cells)
    whole: dict[int, float] = {}
    wrapped: dict[int, float] = {}
    """How broad each column is, as ratios to the type size."""
    prose: set[int] = set()
    """Columns of running text."""
    for cell in cells:
        if cell.columns > 1 and cell.row >= heads:
            continue
        lines = [" ".join(line) for line in cell.lines]
        words = [word for line in cell.lines for word in line]
        is_head = cell.row < max(heads, first + 1) and cell.column > 0
        for column in range(cell.column, cell.column + cell.columns):
            least = max(map(_ems, words if is_head or not cell.is_short else lines))
            if cell.has_endless_word:
                least = min(least, ENDLESS)
            wrapped[column] = max(wrapped.get(column, 0.0), least)
            in_line = max(map(_ems, lines)) if cell.is_short and not cell.has_endless_word else least
            whole[column] = max(whole.get(column, 0.0), in_line)
            if not cell.is_short and not is_head:
                prose.add(column)
    for ems in (whole, wrapped):
        ems.update((column, max(ems[column], LEAST_PROSE)) for column in prose)

    def rest(ems: Mapping[int, float], size: float) -> float:
        return width - sum(em * size + 2 * PADDING + 2 for em in ems.values())

    choices = [(whole, TYPE_SIZES[0]), *((wrapped, size) for size in TYPE_SIZES)]
    # A word is broken only where its column has a width.
    otherwise = (wrapped if any(cell.has_endless_word for cell in cells) else {}, TYPE_SIZES[0])
    ems, size = next((choice for choice in choices if rest(*choice) >= 0), otherwise)
    share = max(0.0, rest(ems, size)) / max(1, len(prose))
    widths = {column: em * size + 1 + share * (column in prose) for column, em in ems.items()}
    look = f"border:1px solid #bbb;vertical-align:top;font-size:{size}pt"
    return look, widths


def _ems(text: str) -> float:
    """About the width of ``text``, as a ratio to the type size."""
    return sum(
        WIDE if unicodedata.east_asian_width(letter) in "WF" else CAPITAL if letter.isupper() else LETTER
        for letter in text
    )


def _markup(cell: _Cell, style: str, widths: Mapping[int, float]) -> str:
    spans = "".join(
        f' {name}="{count}"' for name, count in (("rowspan", cell.rows), ("colspan", cell.columns)) if count > 1
    )
    width = widths.get(cell.column) if cell.columns == 1 and cell.lines else None
    look = f"{style};white-space:normal;width:{width:.0f}px" if width is not None else style
    look += ";overflow-wrap:break-word" * cell.has_endless_word
    look += f";padding:1px {PADDING if cell.lines else 0}px"
    if _has_no_size(cell.attributes):
        look += ";font-size:0px"
    return f"<{cell.name}{_styled(cell.attributes, look)}{spans}>{cell.content}</{cell.name}>"


def _has_no_size(attributes: str) -> bool:
    style = STYLE_VALUE.search(attributes)
    return style is not None and states_size(style[1] or style[2] or "") is False


def _styled(attributes: str, look: str) -> str:
    """``attributes`` of an element with the declarations of ``look`` behind those of their own."""
    style = STYLE_VALUE.search(attributes)
    stated = (style[1] or style[2] or "") if style is not None else ""
    quote = "'" if '"' in stated else '"'
    return f"{STYLE_VALUE.sub('', attributes)} style={quote}{stated.rstrip('; ')}{';' * bool(stated)}{look}{quote}"
