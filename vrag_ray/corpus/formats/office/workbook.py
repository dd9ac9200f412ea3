"""The sheets of an XLSX workbook as web pages with a table each, which MuPDF lays out.

MuPDF's own reader leaves out the texts that stand in the cells themselves and shows dates as numbers of days.
"""

from __future__ import annotations

import io
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from xml.etree import ElementTree

from vrag_ray.corpus.formats.office.number_formats import BUILT_IN, NumberFormat, number_format, plain
from vrag_ray.corpus.formats.office.parts import every, page_markup
from vrag_ray.corpus.formats.web_tables import BREAKING, is_endless
from vrag_ray.corpus.tables import MAX_CELL_WORDS, is_figure

MOST_CELLS = 60_000
"""Of one sheet: a table of more is not laid out within the limits of a decode."""
LEAST_LONG = 44
"""Letters on a line of a text that takes several."""
LONG, HEAD = "long", "head"
"""Classes of the cells whose text may take several lines."""
LONGEST_HEAD, LONGEST_LINE = 20, 120
"""Letters of several words that stand on one line in the first row and in the others: more than the name of an item of
a balance sheet has."""
BROADEST, LETTER, PADDING = 6_000, 5.5, 26
"""Points of a table, of a letter and around each cell: further columns follow on pages of their own, behind the first
column again."""
ROOM = 1_500
"""Points that a table has on the least page."""
MOST_EXACT = 1e15
"""Of numbers with all their digits."""
_GROUNDS = (b"<tablePart", b"<conditionalFormatting", b"<picture")
"""Of a sheet that may have grounds which the styles of its cells do not tell."""
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\b[^>]*\bref=[\"']([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})[\"']")
_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_ESCAPED = re.compile(r"(?:_x[0-9A-Fa-f]{4}_)+")
_REFERENCE = re.compile(r"([A-Z]+)\d+")


@dataclass(frozen=True, slots=True)
class Styles:
    """How a number in a cell is shown, by the number of the cell's style."""

    formats: Mapping[int, NumberFormat]
    epoch: datetime
    unseen: frozenset[int] = frozenset()
    """Of cells that show nothing, whatever is in them."""
    white: frozenset[int] = frozenset()
    """Of cells with white text on no ground of their own, or on white."""


def styles_of(styles: ElementTree.Element | None, *, from_1904: bool) -> Styles:
    """The styles of a workbook; without its file of styles every number is just that."""
    epoch = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 30)
    shown: dict[int, NumberFormat] = {}
    unseen: set[int] = set()
    white: set[int] = set()
    if styles is not None:
        fonts, fills = ([*next(every(styles, tag), ())] for tag in ("fonts", "fills"))
        codes = BUILT_IN | {
            int(written_format.get("numFmtId", "0")): written_format.get("formatCode", "")
            for written_format in every(styles, "numFmt")
        }
        formats = next(every(styles, "cellXfs"), ())
        for number, cell_format in enumerate(formats):
            if code := codes.get(int(cell_format.get("numFmtId", "0")), ""):
                shown[number] = number_format(code)
                if shown[number].shows_nothing:
                    unseen.add(number)
            font, fill = _at(fonts, cell_format.get("fontId", "0")), _at(fills, cell_format.get("fillId", "0"))
            if font is not None and _is_white(next(every(font, "color"), None)) and _is_bare(fill):
                white.add(number)
    return Styles(shown, epoch, frozenset(unseen), frozenset(white))


def _at(elements: Sequence[ElementTree.Element], number: str) -> ElementTree.Element | None:
    return elements[int(number)] if number.isdigit() and int(number) < len(elements) else None


def _is_white(colour: ElementTree.Element | None) -> bool:
    if colour is None or float(colour.get("tint", "0") or "0"):
        return False
    in_rgb = colour.get("rgb", "").upper().endswith("FFFFFF")
    return in_rgb or colour.get("theme") == "0" or colour.get("indexed") in ("1", "9")


def _is_bare(fill: ElementTree.Element | None) -> bool:
    """Whether a cell has no ground, or a white one."""
    pattern = next(every(fill, "patternFill"), None) if fill is not None else None
    if pattern is None:
        return fill is None or next(every(fill, "gradientFill"), None) is None
    return pattern.get("patternType", "none") == "none" or _is_white(next(every(pattern, "fgColor"), None))


def strings_of(shared: ElementTree.Element | None) -> list[str]:
    """The texts that cells refer to by number, without the reading aids above Japanese ones."""
    return [] if shared is None else [_text(item) for item in every(shared, "si")]


@dataclass(frozen=True, slots=True)
class SheetPage:
    """A web page with the sheet's name and its table, without empty rows and columns."""

    markup: str
    is_whole: bool
    unseen: int
    """Cells that are left out since they are hidden."""
    unknown: int
    """Cells that are left out since the file holds no values of their formulas."""
    lost: int = 0
    """Cells that are left out since the file does not hold the texts that they refer to."""


def sheet_page(xml: bytes, name: str, strings: Sequence[str], styles: Styles, below: str = "") -> SheetPage:
    """The sheet as HTML; ``below`` is HTML that stands under the table."""
    rows: dict[int, dict[int, str]] = {}
    cells, whole, unseen, unknown, lost, number = 0, True, 0, 0, 0, 0
    hidden = _hidden_columns(xml)
    blank = styles.unseen if any(mark in xml for mark in _GROUNDS) else styles.unseen | styles.white
    for row in _rows(xml):
        number = int(row.get("r", "0")) or number + 1
        held = [(column, cell) for column, cell in _cells(row)]
        values = {column: text for column, cell in held if (text := _shown(cell, strings, styles).strip())}
        out_of_sight = {column for column, cell in held if int(cell.get("s", "0")) in blank}
        in_sight = {
            column: text
            for column, text in values.items()
            if column not in out_of_sight and not any(a <= column <= b for a, b in hidden)
        }
        if row.get("hidden") in ("1", "true") or (row.get("ht") and not float(row.get("ht", "1"))):
            in_sight = {}
        else:
            unknown += sum(column not in values and _has_no_value(cell) for column, cell in held)
            lost += sum(column not in values and _has_lost_text(cell, strings) for column, cell in held)
        unseen += len(values) - len(in_sight)
        values = in_sight
        cells += len(values)
        if cells > MOST_CELLS:
            whole = False
            break
        if values:
            rows[number] = values
    spans = _repeat_merged(rows, _merged(xml))
    columns = sorted({column for row in rows.values() for column in row})
    # A heading would make an empty sheet a page that says something.
    title = f"<h3>{escape(name)}</h3>" if rows or below else ""
    # Where two tables stand on a page, columns of one would be taken for those of the other.
    tables = f"<hr/>{title}".join(_table(rows, columns, spans) for columns in _blocks(rows, columns))
    return SheetPage(page_markup(f"{title}{tables if rows else ''}{below}"), whole, unseen, unknown, lost)


def _has_no_value(cell: ElementTree.Element) -> bool:
    """Whether the value of a cell's formula is not in the file. A text may be empty."""
    return cell.get("t", "n") == "n" and next(every(cell, "f"), None) is not None


def _has_lost_text(cell: ElementTree.Element, strings: Sequence[str]) -> bool:
    value = next((element.text or "" for element in every(cell, "v")), "") if cell.get("t") == "s" else ""
    return bool(value) and not _is_held(value, strings)


def _merged(xml: bytes) -> list[tuple[int, int, int, int]]:
    """The first row and column, and the last, of each merged cell, from the last rows to the first."""
    cells: list[tuple[int, int, int, int]] = []
    for first_column, first_row, last_column, last_row in _MERGED.findall(xml):
        place = (int(first_row), _column(first_column.decode()), int(last_row), _column(last_column.decode()))
        cells.append(place)
    return sorted(cells, reverse=True)


def _repeat_merged(
    rows: dict[int, dict[int, str]], merged: Sequence[tuple[int, int, int, int]]
) -> dict[tuple[int, int], int]:
    """Puts a head that is merged over columns over each of them, and what is merged over rows into each.

    By row and column, the last columns of the other cells that are merged over columns.
    """
    numbers = sorted(rows)
    spans: dict[tuple[int, int], int] = {}
    heads: set[int] = set()
    """Rows of heads over heads, and of those below."""
    for row, column, last_row, last_column in merged:
        text = rows.get(row, {}).get(column, "")
        at = bisect_right(numbers, last_row)
        if not text or column == last_column:
            continue
        below = rows[numbers[at]] if at < len(numbers) else {}
        under = [other for other in below if column <= other <= last_column]
        is_title = len(rows[row]) == 1 and column <= min(below, default=column)
        if len(under) > 1 and not is_title and all(map(_is_name, (text, *(below[other] for other in under)))):
            rows[row].update((other, text) for other in (column, *under))
            heads.update((row, numbers[at]))
        else:
            spans[row, column] = last_column
    for row, column, last_row, _ in merged:
        text = rows.get(row, {}).get(column, "")
        if text and row < last_row and len(text.split()) <= MAX_CELL_WORDS:
            covered = numbers[bisect_right(numbers, row) : bisect_right(numbers, last_row)]
            for number in covered:
                if number not in heads:
                    rows[number].setdefault(column, text)
    return spans


def _is_name(text: str) -> bool:
    """Whether a text may be a head: it holds no figures but years."""
    return not any(is_figure(word) and not _YEAR.fullmatch(word) for word in text.split())


def _blocks(rows: Mapping[int, Mapping[int, str]], columns: Sequence[int]) -> Iterator[Sequence[int]]:
    """The columns of each table that the sheet is cut into."""
    letters = dict.fromkeys(columns, 0)
    most = LONGEST_HEAD
    for row in (row for row in rows.values() if len(row) > 1):
        for column, text in row.items():
            letters[column] = max(letters[column], len(text) if len(text) <= most else min(most, LEAST_LONG))
        most = LONGEST_LINE
    block: list[int] = []
    across = 0.0
    for column in columns:
        width = letters[column] * LETTER + PADDING
        if block and across + width > BROADEST:
            yield block
            block = [columns[0]]
            across = letters[columns[0]] * LETTER + PADDING
        block.append(column)
        across += width
    yield block


def _table(rows: Mapping[int, Mapping[int, str]], columns: Sequence[int], spans: Mapping[tuple[int, int], int]) -> str:
    """The ``columns`` of the rows as HTML. A line that stands alone, as a title does, goes on across the others."""
    lines: list[str] = []
    longest = {
        column: max(len(row.get(column, "")) for row in rows.values() if len(row) > 1 or len(columns) == 1)
        for column in columns
    }
    # On a page that is broad enough, heads have a line each too.
    has_head = sum(min(letters, LONGEST_LINE) * LETTER + PADDING for letters in longest.values()) <= ROOM
    for number, row in rows.items():
        if len(row) == 1 and columns[0] in row:
            title = row[columns[0]]
            look = f' class="{HEAD}"' if len(title) > LONGEST_LINE else ""
            lines.append(f'<td{look} colspan="{len(columns)}">{escape(title)}</td>')
            continue
        line, end = "", 0
        for column in columns:
            if column > end:
                end = spans.get((number, column), column)
                width = sum(column <= other <= end for other in columns) if end > column else 1
                line += _cell(row.get(column, ""), is_head=not has_head, columns=width)
        if any(column in row for column in columns):
            has_head = True
            lines.append(line)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(text: str, *, is_head: bool, columns: int) -> str:
    look = f' colspan="{columns}"' if columns > 1 else ""
    if is_endless(text):
        look += f' style="{BREAKING};white-space:normal"'
    elif len(text) > (LONGEST_HEAD if is_head else LONGEST_LINE) and " " in text:
        look += f' class="{HEAD if is_head else LONG}"'
    return f"<td{look}>{escape(text)}</td>"


def _hidden_columns(xml: bytes) -> list[tuple[int, int]]:
    """The first and last column, from 1, of each run of hidden ones."""
    head = ElementTree.iterparse(io.BytesIO(xml))  # noqa: S314 - from ``laid_out``, checked there.
    hidden: list[tuple[int, int]] = []
    for _, element in head:
        tag = element.tag.rpartition("}")[2]
        if tag == "col" and (element.get("hidden") in ("1", "true") or element.get("width") in ("0", "0.0")):
            hidden.append((int(element.get("min", "0")), int(element.get("max", "0"))))
        if tag in ("cols", "row"):
            break
    return hidden


def _rows(xml: bytes) -> Iterator[ElementTree.Element]:
    for _, element in ElementTree.iterparse(io.BytesIO(xml)):  # noqa: S314 - from ``laid_out``, checked there.
        if element.tag.rpartition("}")[2] == "row":
            yield element
            element.clear()


def _cells(row: ElementTree.Element) -> Iterator[tuple[int, ElementTree.Element]]:
    """The cells of a row with their columns, from 1. A cell without a reference stands behind the one before."""
    column = 0
    for cell in every(row, "c"):
        reference = _REFERENCE.fullmatch(cell.get("r", ""))
        column = _column(reference[1]) if reference is not None else column + 1
        yield column, cell


def _column(letters: str) -> int:
    """The number of a column, from 1."""
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - 64
    return column


def _shown(cell: ElementTree.Element, strings: Sequence[str], styles: Styles) -> str:
    """A cell as an office program shows it, but for colours and rounding."""
    kind, style = cell.get("t", "n"), int(cell.get("s", "0"))
    if kind == "inlineStr":
        return _text(cell)
    value = next((element.text or "" for element in every(cell, "v")), "")
    if kind == "str":
        return unescaped(value)
    if kind == "s":
        return strings[int(value)] if _is_held(value, strings) else ""
    if kind == "b":
        return "TRUE" if value == "1" else "FALSE"
    return _number(value, style, styles) if kind == "n" and value else value


def _is_held(value: str, strings: Sequence[str]) -> bool:
    return value.isdecimal() and int(value) < len(strings)


def _number(value: str, style: int, styles: Styles) -> str:
    try:
        number = float(value)
        if not math.isfinite(number) or abs(number) >= MOST_EXACT:
            return value
        return styles.formats[style].shown(number, styles.epoch) if style in styles.formats else plain(number)
    except (ValueError, OverflowError):
        return value


def _text(element: ElementTree.Element) -> str:
    aids = {id(text) for aid in every(element, "rPh") for text in every(aid, "t")}
    return unescaped("".join(text.text or "" for text in every(element, "t") if id(text) not in aids))


def unescaped(text: str) -> str:
    """``text`` with the characters that Excel writes as ``_x000D_``: those that XML lacks, and what looks like that."""
    return _ESCAPED.sub(_character, text) if "_x" in text else text


def _character(escaped: re.Match[str]) -> str:
    # Characters beyond the first plane are written as their halves.
    units = b"".join(bytes.fromhex(unit) for unit in re.findall(r"_x(....)_", escaped[0]))
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", " ", units.decode("utf-16-be", "replace"))
