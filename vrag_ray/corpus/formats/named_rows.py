"""Rows of tables in texts as lines that repeat the names of their columns: tables of bars, as in Markdown, and columns
that blanks align, under a rule or over figures. Columns of prose that stand side by side, one after the other. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

_RULE = re.compile(r"^[ \t]*[-=+:|][-=+:| \t]*\r?$", re.MULTILINE)
"""Under the heads of a table."""
_BORDER = re.compile(r"[ \t]*\+?(?:[-=]+\+)+[-=]*[ \t]*\r?")
"""Between the rows of a table that programs draw in a text, as reStructuredText and clients of databases do."""
_WIKI_TABLE = "{|"
LEAST_COLUMNS = 2
LEAST_WITHOUT_RULE = 3
"""Lines, and columns: two columns without a rule may be a list of labels and values."""
LEAST_PROSE_WORDS = 3
"""Mean number of words in the lines of a column of prose."""
LEAST_PROSE = 0.7
"""Share of the words of a column of prose that are letters, with marks around them: code has others."""
FULL_LINE = 0.6
"""Share of the longest line of a column of prose that its other lines reach, but for the last."""
_GAP = re.compile(r"[ \t]{2,}")
_GAP_INSIDE = re.compile(r"\S(?: {2,}| *\t\s*)\S")
_ALIGNED_CELL = re.compile(r"\S+(?: \S+)*")
_FIGURE = re.compile(r"[^\w\s]{0,3}\d[\d.,:/]*[^\w\s]{0,3}")
"""As ``is_figure`` of tables on pages, which needs NumPy: no process that reads texts loads it."""
_PROSE_WORD = re.compile(r"[\"'“‘(]*[^\W\d_]+(?:[-'’][^\W\d_]+)*[.,;:!?)\"'”’-]*")  # noqa: RUF001
_YEAR = re.compile(r"(?:1[89]|20)\d\d")
_BAR = re.compile(r"(?<!\\)\|")
_DRAWN: dict[int, int | str] = {**dict.fromkeys(range(0x250C, 0x2570), "+"), **str.maketrans("│┃║─━═", "|||--=")}
"""Lines of tables that programs draw in a terminal."""


@dataclass(frozen=True, slots=True)
class NamedRow:
    """What is shown in place of the characters of a text from ``start`` to ``end``."""

    start: int
    end: int
    text: str


def labelled(cells: Sequence[str], header: Sequence[str]) -> str:
    """``crane: Odin, tonnes: 73``; empty cells are left out, a cell beyond the header is ``column 7``."""
    parts = []
    for number, cell in enumerate(cells):
        if value := " ".join(cell.split()):
            name = header[number] if number < len(header) and header[number] else f"column {number + 1}"
            parts.append(f"{name}: {value}")
    return ", ".join(parts)


def text_tables(text: str) -> list[NamedRow]:
    """The lines of the tables of ``text``, in order: what stands over and under a rule, and columns of figures."""
    tables: list[NamedRow] = []
    text = text.translate(_DRAWN)
    for rule in _RULE.finditer(text):
        start = text.rfind("\n", 0, max(0, rule.start() - 1)) + 1
        head = text[start : max(start, rule.start() - 1)]
        gap = _BAR if "|" in head else _GAP
        header = _cells(head, gap)
        taken = bool(tables) and start < tables[-1].end
        is_rule = ("-" if gap is _BAR else "--") in rule[0].replace("=", "-")
        if taken or not is_rule or not head.strip() or _RULE.fullmatch(head) or head.startswith(_WIKI_TABLE):
            continue
        if gap is _BAR:
            # A row of a wiki's table begins with a bar and a dash alone.
            has_bars = "|" in rule[0] and len(_cells(rule[0], gap)) > 1
            fits = has_bars or len(header) == 1 or _BORDER.fullmatch(rule[0]) is not None
        else:
            # The three dashes between two parts of YAML are shorter than a line of two columns.
            fits = len(header) >= LEAST_COLUMNS and 2 * len(rule[0].strip()) >= len(head.strip())
        if not fits:
            continue
        end = _end_of_rows(text, rule.end(), gap, len(header))
        if end > rule.end():
            above = text.rfind("\n", 0, max(0, start - 1)) + 1
            first = above if _RULE.fullmatch(text[above : max(above, start - 1)]) else start
            tables.append(NamedRow(first, rule.end() + 1, " ".join(header) + "\n"))
            tables.extend(
                NamedRow(at, min(stop + 1, end), "")
                if _BORDER.fullmatch(line)
                else NamedRow(at, stop, labelled(_cells(line, gap), header))
                for at, stop, line in lines_in(text, rule.end() + 1, end)
            )
    aligned: list[NamedRow] = []
    for has_gap, run in groupby(lines_in(text, 0, len(text)), key=lambda line: bool(_GAP_INSIDE.search(line[2]))):
        lines = list(run) if has_gap else []
        if len(lines) >= LEAST_WITHOUT_RULE and not rows_in(tables, lines[0][0], lines[-1][1]):
            aligned.extend(_aligned(lines))
        if lines and not rows_in([*tables, *aligned], lines[0][0], lines[-1][1]):
            aligned.extend(_prose_columns(lines))
    return sorted([*tables, *aligned], key=lambda row: row.start)


def _prose_columns(lines: Sequence[tuple[int, int, str]]) -> Iterator[NamedRow]:
    """``lines`` as two columns that are read one after the other, as ``pdftotext -layout`` writes those of a page; none
    where a blank of two or more does not stand in one place of all lines, or the columns are no wrapped prose."""
    rows = [line.expandtabs() for _, _, line in lines]
    edges = {gap.end() - 1 for gap in _GAP_INSIDE.finditer(rows[0])}
    for edge in sorted(edges):
        if all(row[edge - 2 : edge].isspace() and not row[edge].isspace() for row in rows if len(row) > edge):
            columns = [row[:edge].strip() for row in rows], [row[edge:].strip() for row in rows]
            if all(len(row) > edge for row in rows) and all(map(_is_wrapped_prose, columns)):
                yield NamedRow(lines[0][0], lines[-1][1], "\n\n".join("\n".join(column) for column in columns))
                return


def _is_wrapped_prose(column: Sequence[str]) -> bool:
    """Whether the lines of a column run on: most begin in the middle of a sentence, and all but the last are full."""
    longest = max(map(len, column))
    words = [word for line in column for word in line.split()]
    within = sum(not line[:1].isupper() for line in column[1:])
    return (
        len(column) >= LEAST_WITHOUT_RULE
        and not any(_GAP.search(line) for line in column)
        and len(words) >= LEAST_PROSE_WORDS * len(column)
        and sum(map(bool, map(_PROSE_WORD.fullmatch, words))) >= LEAST_PROSE * len(words)
        and all(len(line) >= FULL_LINE * longest for line in column[:-1])
        and 2 * within >= len(column) - 1
    )


def _aligned(lines: Sequence[tuple[int, int, str]]) -> Iterator[NamedRow]:
    """The rows of a table without a rule: its columns stand apart in each of ``lines``, its first line names them and
    holds no number but years, and there are figures under a name. Of any other lines none."""
    tabs = {line.count("\t") for _, _, line in lines}
    if len(tabs) == 1 and 0 not in tabs:
        rows = [tuple(map(str.strip, line.split("\t"))) for _, _, line in lines]
    else:
        rows = _in_columns([line.expandtabs() for _, _, line in lines])
    if not rows or len(rows[0]) < LEAST_WITHOUT_RULE:
        return
    header, *body = rows
    named = all(header[1:]) and not any(
        "|" in word or (_FIGURE.fullmatch(word) and not _YEAR.fullmatch(word))
        for name in header
        for word in name.split()
    )
    is_like_rest = any(name and name == row[place] for place, name in enumerate(header) for row in body)
    has_figures = any(
        all(_FIGURE.fullmatch(cell.split()[0]) for cell in column if cell) and 2 * sum(map(bool, column)) > len(body)
        for column in list(zip(*body, strict=True))[1:]
    )
    if named and has_figures and not is_like_rest and all(r[0] for r in body):
        (start, end, _), *others = lines
        yield NamedRow(start, end, " ".join(filter(None, header)))
        yield from (NamedRow(at, to, labelled(row, header)) for (at, to, _), row in zip(others, body, strict=True))


def _in_columns(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """The cells of ``lines`` in the columns that blanks part in all of them; none where a column would have two of a
    line."""
    cells = [[(*cell.span(), cell[0]) for cell in _ALIGNED_CELL.finditer(line)] for line in lines]
    columns: list[tuple[int, int]] = []
    for start, end, _ in sorted(cell for row in cells for cell in row):
        if columns and start <= columns[-1][1]:
            columns[-1] = (columns[-1][0], max(end, columns[-1][1]))
        else:
            columns.append((start, end))
    rows = [[[text for start, _, text in row if first <= start < last] for first, last in columns] for row in cells]
    if any(len(cell) > 1 for row in rows for cell in row):
        return []
    return [tuple("".join(cell) for cell in row) for row in rows]


def lines_in(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Where each line of ``text`` from ``start`` to ``end`` begins and ends, and the line."""
    while start < end:
        stop = text.find("\n", start, end)
        stop = stop if stop >= 0 else end
        yield start, stop, text[start:stop]
        start = stop + 1


def _end_of_rows(text: str, start: int, gap: re.Pattern[str], columns: int) -> int:
    """Where the last row ends of those that follow a rule that ends at ``start``, which is where they end if there are
    none, or if one of a table of blanks has other columns."""
    end = start
    while end < len(text):
        stop = text.find("\n", end + 1)
        line = text[end + 1 : stop if stop >= 0 else len(text)]
        is_border = _BORDER.fullmatch(line) is not None
        if not line.strip() or (_RULE.fullmatch(line) and gap is _GAP) or not ("|" in line or is_border or gap is _GAP):
            break
        if gap is _GAP and len(_cells(line, gap)) != columns:
            return start
        end = stop if stop >= 0 else len(text)
    return end


def with_named_rows(text: str, rows: Sequence[NamedRow], start: int, end: int) -> str:
    """``text`` from ``start`` to ``end``, what is shown in place of the ``rows`` that begin or end in it."""
    parts: list[str] = []
    at = start
    for row in rows_in(rows, start, end):
        parts += [text[at : max(at, row.start)], row.text]
        at = min(row.end, end)
    return "".join([*parts, text[at:end]])


def rows_in(rows: Sequence[NamedRow], start: int, end: int) -> Sequence[NamedRow]:
    """Those of ``rows``, which are in order, that have characters from ``start`` to ``end``."""
    first = bisect_right(rows, start, key=lambda row: row.end)
    return rows[first : bisect_left(rows, end, key=lambda row: row.start)]


def row_pieces(rows: Sequence[NamedRow], words: int) -> list[tuple[int, int]]:
    """Spans of whole rows that show at most ``words`` words, or a single row."""
    pieces: list[tuple[int, int]] = []
    taken = 0
    for row in rows:
        count = len(row.text.split())
        if pieces and taken + count <= words:
            pieces[-1] = (pieces[-1][0], row.end)
            taken += count
        else:
            pieces.append((row.start, row.end))
            taken = count
    return pieces


def _cells(line: str, gap: re.Pattern[str]) -> tuple[str, ...]:
    """The cells between the gaps of a row; bars at its ends part no cells."""
    bare = line.strip()
    if gap is _BAR:
        bare = bare.removeprefix("|")
        if bare.endswith("|") and not bare.endswith("\\|"):
            bare = bare[:-1]
    return tuple(cell.strip().replace("\\|", "|") for cell in gap.split(bare))
