"""Rows of tables in texts as lines that repeat the names of their columns, and the tables of bars of Markdown. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TABLE = re.compile(
    r"^(?P<head>[^\n]*\|[^\n]*)\n(?P<rule>[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t\r]*)"
    r"(?P<body>(?:\n[^\n]*\|[^\n]*)+)",
    re.MULTILINE,
)
_BAR = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class BarTable:
    """Where a table stands in its text, where its rows begin, and the names of its columns."""

    start: int
    end: int
    body: int
    header: tuple[str, ...]


def labelled(cells: Sequence[str], header: Sequence[str]) -> str:
    """``crane: Odin, tonnes: 73``; empty cells are left out, a cell beyond the header is ``column 7``."""
    parts = []
    for number, cell in enumerate(cells):
        if value := " ".join(cell.split()):
            name = header[number] if number < len(header) and header[number] else f"column {number + 1}"
            parts.append(f"{name}: {value}")
    return ", ".join(parts)


def bar_tables(text: str) -> list[BarTable]:
    """The tables of ``text``, in order."""
    return [
        BarTable(found.start(), found.end(), found.start("body") + 1, _cells(found["head"]))
        for found in _TABLE.finditer(text)
        if "|" in found["rule"] or len(_cells(found["head"])) == 1
    ]


def with_named_rows(text: str, tables: Sequence[BarTable], start: int, end: int) -> str:
    """``text`` from ``start`` to ``end``, the rows of ``tables`` in it with the names of their columns."""
    parts: list[str] = []
    at = start
    for table in tables:
        first, last = max(table.start, start), min(table.end, end)
        if first >= last:
            continue
        parts.append(text[at:first])
        above = text[first : max(first, min(table.body, last))].split("\n")[:1] if first < table.body else []
        rows = text[max(first, table.body) : last].split("\n") if last > table.body else []
        lines = [" ".join(_cells(line)) for line in above]
        lines += [labelled(_cells(row), table.header) for row in rows]
        parts.append("\n".join(filter(None, lines)))
        at = last
    return "".join([*parts, text[at:end]])


def _cells(line: str) -> tuple[str, ...]:
    """The cells between the bars of a row; those at its ends are no borders of cells."""
    bare = line.strip()
    bare = bare.removeprefix("|")
    if bare.endswith("|") and not bare.endswith("\\|"):
        bare = bare[:-1]
    return tuple(cell.strip().replace("\\|", "|") for cell in _BAR.split(bare))
