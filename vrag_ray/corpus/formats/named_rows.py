"""Rows of tables in texts as lines that repeat the names of their columns: tables of bars, as in Markdown, and columns
that blanks align under a rule. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TABLE = re.compile(
    r"^(?P<head>[^\n]*\|[^\n]*)\n(?P<rule>[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t\r]*)"
    r"(?P<body>(?:\n[^\n]*\|[^\n]*)+)",
    re.MULTILINE,
)
_ALIGNED = re.compile(
    r"^(?:[ \t]*[-=+][-=+ \t]{4,}\n)?(?P<head>[ \t]*\S[^\n|]*?[ \t]{2,}\S[^\n|]*)\n(?P<rule>[ \t]*[-=+][-=+ \t]{4,})"
    r"(?P<body>(?:\n[ \t]*[^\s|=][^\n|]*?[ \t]{2,}\S[^\n|]*)+)",
    re.MULTILINE,
)
_RULE = re.compile(r"[-=+:| \t\r]*")
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
    """The tables of ``text``, in order."""
    tables = [
        TextTable(found.start(), found.end(), found.start("body") + 1, _cells(found["head"], _BAR))
        for found in _TABLE.finditer(text)
        if "|" in found["rule"] or len(_cells(found["head"], _BAR)) == 1
    ]
    for found in _ALIGNED.finditer(text):
        header = _cells(found["head"], _GAP)
        rows = [_cells(row, _GAP) for row in found["body"].strip("\n").split("\n")]
        if all(len(row) == len(header) for row in rows):
            tables.append(TextTable(found.start(), found.end(), found.start("body") + 1, header, _GAP))
    return sorted(tables, key=lambda table: table.start)


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
