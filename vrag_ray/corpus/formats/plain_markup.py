"""Comments in texts of AsciiDoc, reStructuredText, TeX and Org, which their readers do not see, and the tables that the
first two write as lists of cells. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from vrag_ray.corpus.formats.named_rows import NamedRow, labelled, lines_in, rows_in, text_tables
from vrag_ray.corpus.formats.references import MARKDOWN_SUFFIXES
from vrag_ray.corpus.sniff import Format

MARKUP_OF_SUFFIX = {
    ".adoc": Format.ASCIIDOC,
    ".asciidoc": Format.ASCIIDOC,
    ".asc": Format.ASCIIDOC,
    ".rst": Format.RST,
    ".tex": Format.TEX,
    ".org": Format.ORG,
}
_NO_COMMENT = r"[\w:.+-]+(?: [\w:.+-]+)?::|\[[^\]\n]+\]|__|_[^\n]+:|\|[^|\n]+\| "
"""Directives, notes, targets and substitutions of reStructuredText."""
_FLAGS = re.MULTILINE | re.IGNORECASE
_PATTERNS = {
    Format.ASCIIDOC: r"^(?P<block>/{4,99}|-{4,99}|\.{4,99}|\+{4,99})[ \t]*$|(?P<line>^//(?!/).*$)",
    Format.RST: rf"(?P<block>)(?!)|(?P<line>^([ \t]*)\.\.(?:[ \t]+(?!{_NO_COMMENT})\S.*|[ \t]*\n\3[ \t]+\S.*)"
    r"(?:\n(?:[ \t]*\n)*\3[ \t]+\S.*)*)",
    Format.TEX: r"\\(?:begin\{|(?=iffalse\b))(?P<block>comment|iffalse|verbatim|lstlisting|minted|alltt)\b"
    r"|\\(?:url|href|path|nolinkurl)\{[^}\n]*\}|\\(?:verb|lstinline)\*?([^\w\s*{])[^\n]*?\2|(?P<line>%.*)|\\.",
    Format.ORG: r"^[ \t]*#\+begin_(?P<block>comment|src|example|export)\b|(?P<line>^[ \t]*#(?: .*)?$)",
}
"""Where comments, and what is shown as it is written, begin."""
_BEGINS = {format_: re.compile(pattern, _FLAGS) for format_, pattern in _PATTERNS.items()}
_ENDS = {
    Format.ASCIIDOC: r"^{}[ \t]*$",
    Format.TEX: r"\\end\{{{}\*?\}}",
    Format.ORG: r"^[ \t]*#\+end_{}\b.*",
}
_IF, _END_OF_IF = "iffalse", r"\\fi\b"
_COMMENTS = frozenset(("comment", _IF))
_ADOC_TABLE = re.compile(
    r"(?:^\[([^\]\n]*)\][ \t]*\n(?:\.[^\s.].*\n)?)?^\|={3,}[ \t]*\n([^\0]*?\n)\|={3,}[ \t]*$", re.MULTILINE
)
_ADOC_COLUMNS = re.compile(r"\bcols=(?:\"([^\"]*)\"|([^,\s]+))")
_ADOC_TIMES = re.compile(r"\s*(\d{1,2})\*")
_ADOC_CELL = re.compile(r"(?<!\\)((?:^|(?<=\s))[\d.]*[+*]?[<^>.]{0,4}[a-z]?)?\|", re.MULTILINE)
_RST_TABLE = re.compile(
    r"^([ \t]*)\.\. (list|csv)-table::(.*)\n((?:\1[ \t]+:[\w-]+:.*\n)*)((?:[ \t]*\n|\1[ \t]+\S.*(?:\n|\Z))*)",
    re.MULTILINE,
)
_RST_HEADER = re.compile(r":header:(.*)")
_RST_CELL = re.compile(r"([ \t]*)(\*[ \t]+)?-(?:[ \t]+(.*)|[ \t]*$)")


def comment_spans(text: str, format_: Format) -> Iterator[tuple[int, int]]:
    """Where a text of one of these formats has comments; none in what it shows as it is written."""
    pattern = _BEGINS.get(format_)
    at, endless = 0, set[str]()
    """Blocks without an end, for which a pattern would look anew from each begin."""
    while pattern is not None and (begin := pattern.search(text, at)) is not None:
        at, block = begin.end(), begin["block"]
        if begin["line"]:
            yield begin.span()
        elif block and block not in endless:
            stated = _END_OF_IF if block == _IF else _ENDS[format_].format(re.escape(block))
            end = re.compile(stated, _FLAGS).search(text, at)
            if end is None:
                endless.add(block)
                continue
            at = end.end()
            if block.lower() in _COMMENTS or block[0] == "/":
                yield begin.start(), at


def markup_tables(text: str, format_: Format) -> list[NamedRow]:
    """The lines of the tables of ``text``, in order; of AsciiDoc and reStructuredText those with heads."""
    rows: list[NamedRow] = []
    if format_ is Format.ASCIIDOC:
        rows = [row for table in _ADOC_TABLE.finditer(text) for row in _adoc_rows(text, table)]
    elif format_ is Format.RST:
        rows = [row for table in _RST_TABLE.finditer(text) for row in _rst_rows(text, table)]
    drawn = (row for row in text_tables(text) if not rows_in(rows, row.start, row.end))
    return sorted([*drawn, *rows], key=lambda row: row.start)


def named_format(format_: Format, name: str) -> Format:
    """The format of a plain text, by the name of its file."""
    suffix = PurePath(name).suffix.lower()
    by_name = Format.MARKDOWN if suffix in MARKDOWN_SUFFIXES else MARKUP_OF_SUFFIX.get(suffix, format_)
    return by_name if format_ is Format.TEXT else format_


def _adoc_rows(text: str, table: re.Match[str]) -> Iterator[NamedRow]:
    options, (begin, end) = table[1] or "", table.span(2)
    marks = list(_ADOC_CELL.finditer(text, begin, end))
    first_line, _, rest = table[2].lstrip("\n").partition("\n")
    stated = _ADOC_COLUMNS.search(options)
    columns = [_ADOC_TIMES.match(part) for part in (stated[1] or stated[2]).split(",")] if stated is not None else []
    width = sum(int(times[1]) if times is not None else 1 for times in columns) or len(_ADOC_CELL.findall(first_line))
    has_head = "header" in options or rest.startswith("\n")
    if not has_head or not width or len(marks) % width or any("+" in mark[0] or "*" in mark[0] for mark in marks):
        return
    ends = [*(mark.start() for mark in marks[1:]), end]
    cells = [text[mark.end() : stop].replace("\\|", "|") for mark, stop in zip(marks, ends, strict=True)]
    yield from _named(
        [cells[at : at + width] for at in range(0, len(cells), width)],
        [table.start(), *(mark.start() for mark in marks[width::width]), table.end()],
    )


def _rst_rows(text: str, table: re.Match[str]) -> Iterator[NamedRow]:
    rows: list[list[str]] = []
    starts = [table.start()]
    header = _RST_HEADER.search(table[4])
    if table[2] == "csv" and header is not None:
        rows.append(next(csv.reader([header[1]], skipinitialspace=True)))
    elif not re.search(r":header-rows:[ \t]*1\b", table[4]):
        return
    column = -1
    for start, _, line in lines_in(text, *table.span(5)):
        cell = _RST_CELL.match(line) if table[2] == "list" else None
        place = cell.end(1) + len(cell[2] or "") if cell is not None else -1
        if not line.strip():
            continue
        if table[2] == "csv":
            starts += [start] if rows else []
            rows.append(next(csv.reader([line.strip()], skipinitialspace=True)))
        elif cell is not None and cell[2]:
            starts += [start] if rows else []
            rows.append([cell[3] or ""])
            column = place
        elif cell is not None and place == column:
            rows[-1].append(cell[3] or "")
        elif rows:
            rows[-1][-1] += f" {line.strip()}"
    yield from _named(rows, [*starts, table.end()], table[3].strip())


def _named(rows: Sequence[Sequence[str]], places: Sequence[int], title: str = "") -> Iterator[NamedRow]:
    """``rows``, of which the first are the heads, at the ``places`` where each begins and the last ends."""
    header = [" ".join(name.split()) for name in rows[0]] if len(rows) > 1 else []
    for number, (cells, start, end) in enumerate(zip(rows, places, places[1:], strict=False) if header else ()):
        head = "\n".join(filter(None, (title, " ".join(header))))
        yield NamedRow(start, end, f"{labelled(cells, header) if number else head}\n")
