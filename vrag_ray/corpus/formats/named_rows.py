"""Rows of tables in texts as lines that repeat the names of their columns: tables of bars, as in Markdown, and columns
that blanks align under a rule. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_RULE = re.compile(r"^[ \t]*[-=+:|][-=+:| \t]*\r?$", re.MULTILINE)
"""Under the heads of a table."""
LEAST_COLUMNS = 2
_GAP = re.compile(r"[ \t]{2,}")
_BAR = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class TextTable:
    """Where a table stands in its text, where its rows begin, and the names of its columns. ``gap`` parts its cells."""

    start: int
    end: int
    body: int
    header: tuple[str, ...]
    gap: re.Pattern[str] = _BAR


def labelled(cells: Sequence[str], header: Sequence[str]) -> str:
    """``crane: Odin, tonnes: 73``; empty cells are left out, a cell beyond the header is ``column 7``."""
    parts = []
    for number, cell in enumerate(cells):
        if value := " ".join(cell.split()):
            name = header[number] if number < len(header) and header[number] else f"column {number + 1}"
            parts.append(f"{name}: {value}")
    return ", ".join(parts)


def text_tables(text: str) -> list[TextTable]:
    """The tables of ``text``, in order: what stands over and under a rule."""
    tables: list[TextTable] = []
    for rule in _RULE.finditer(text):
        start = text.rfind("\n", 0, max(0, rule.start() - 1)) + 1
        head = text[start : max(start, rule.start() - 1)]
        gap = _BAR if "|" in head else _GAP
        header = _cells(head, gap)
        taken = bool(tables) and start < tables[-1].end
        is_rule = ("-" if gap is _BAR else "--") in rule[0].replace("=", "-")
        if taken or not is_rule or not head.strip() or _RULE.fullmatch(head):
            continue
        if gap is _BAR:
            fits = "|" in rule[0] or len(header) == 1
        else:
            # The three dashes between two parts of YAML are shorter than a line of two columns.
            fits = len(header) >= LEAST_COLUMNS and 2 * len(rule[0].strip()) >= len(head.strip())
        if not fits:
            continue
        end = _end_of_rows(text, rule.end(), gap, len(header))
        if end > rule.end():
            above = text.rfind("\n", 0, max(0, start - 1)) + 1
            first = above if _RULE.fullmatch(text[above : max(above, start - 1)]) else start
            tables.append(TextTable(first, end, rule.end() + 1, header, gap))
    return tables


def _end_of_rows(text: str, start: int, gap: re.Pattern[str], columns: int) -> int:
    """Where the last row ends of those that follow a rule that ends at ``start``, which is where they end if there are
    none, or if one of a table of blanks has other columns."""
    end = start
    while end < len(text):
        stop = text.find("\n", end + 1)
        line = text[end + 1 : stop if stop >= 0 else len(text)]
        if not line.strip() or (_RULE.fullmatch(line) and gap is _GAP) or ("|" not in line and gap is _BAR):
            break
        if gap is _GAP and len(_cells(line, gap)) != columns:
            return start
        end = stop if stop >= 0 else len(text)
    return end


def with_named_rows(text: str, tables: Sequence[TextTable], start: int, end: int) -> str:
    """``text`` from ``start`` to ``end``, the rows of ``tables`` in it with the names of their columns."""
    parts: list[str] = []
    at = start
    for table in tables:
        first, last = max(table.start, start), min(table.end, end)
        if first >= last:
            continue
        parts.append(text[at:first])
        above = text[first : max(first, min(table.body, last))].split("\n") if first < table.body else []
        rows = text[max(first, table.body) : last].split("\n") if last > table.body else []
        lines = [" ".join(_cells(line, table.gap)) for line in above if not _RULE.fullmatch(line)]
        lines += [labelled(_cells(row, table.gap), table.header) for row in rows]
        parts.append("\n".join(filter(None, lines)))
        at = last
    return "".join([*parts, text[at:end]])


def _cells(line: str, gap: re.Pattern[str]) -> tuple[str, ...]:
    """The cells between the gaps of a row; bars at its ends part no cells."""
    bare = line.strip()
    if gap is _BAR:
        bare = bare.removeprefix("|")
        if bare.endswith("|") and not bare.endswith("\\|"):
            bare = bare[:-1]
    return tuple(cell.strip().replace("\\|", "|") for cell in gap.split(bare))
