"""Leaflets, price lists, reports and manuals with questions, for ``benchmarks/extractive.py``.

``leaflet_texts/*.txt`` has sets of documents and the questions on them. ``=== NAME`` begins a document, whose ending
says what it becomes: plain text, Markdown, HTML or PDF. Its lines are headings (``#``), table rows (``|``, the first
is the head), items (``-``, ``1.``) and sentences. After ``=== questions``, ``? QUESTION => PATTERN`` has a regular
expression of the answer; ``! QUESTION`` has none in the documents.
"""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

TEXTS = Path(__file__).with_name("leaflet_texts")
_ITEM = re.compile(r"(-|\*|\d+\.|\([a-z]\))\s+(.*)")
_LEFT, _TOP, _BOTTOM = 60.0, 70.0, 790.0
_FIRST_COLUMN, _COLUMN = 330, 100


@dataclass(frozen=True, slots=True)
class Question:
    """``answer`` is a pattern that a right answer holds; "" where the documents have none."""

    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class LeafletSet:
    name: str
    documents: dict[str, str]
    questions: tuple[Question, ...]

    def write(self, folder: Path) -> None:
        for name, text in self.documents.items():
            path = folder / name
            match path.suffix:
                case ".pdf":
                    _write_pdf(text, path)
                case ".html":
                    path.write_text(_as_html(text), encoding="utf-8")
                case ".md":
                    path.write_text(_as_markdown(text), encoding="utf-8")
                case _:
                    path.write_text(text, encoding="utf-8")


def leaflet_sets() -> list[LeafletSet]:
    return [_read(path) for path in sorted(TEXTS.glob("*.txt"))]


def _read(path: Path) -> LeafletSet:
    sections = re.split(r"^=== (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    documents = dict(zip(sections[::2], sections[1::2], strict=True))
    questions: list[Question] = []
    for line in documents.pop("questions").splitlines():
        text, _, answer = line[2:].partition(" => ")
        questions.append(Question(text, answer))
    return LeafletSet(path.stem, documents, tuple(questions))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _as_markdown(text: str) -> str:
    lines: list[str] = []
    for is_table, group in groupby(text.splitlines(), key=lambda line: line.startswith("|")):
        head, *others = group
        rule = ["|" + "---|" * len(_cells(head))] if is_table else []
        lines += ["", head, *rule, *others, ""] if is_table else [head, *others]
    return "\n".join(lines)


def _as_html(text: str) -> str:
    parts: list[str] = []
    for is_table, group in groupby(text.splitlines(), key=lambda line: line.startswith("|")):
        if is_table:
            rows = [
                "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in _cells(line))
                for tag, line in zip(("th", *["td"] * 1000), group, strict=False)
            ]
            parts.append("<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>")
            continue
        for line in group:
            level = len(line) - len(line.lstrip("#"))
            item = _ITEM.match(line)
            if level:
                parts.append(f"<h{level}>{html.escape(line[level:].strip())}</h{level}>")
            elif item and item[1] in "-*":
                parts.append(f"<ul><li>{html.escape(item[2])}</li></ul>")
            elif line.strip():
                parts.append(f"<p>{html.escape(line)}</p>")
    title = html.escape(text.partition("\n")[0].strip("# "))
    return f'<!doctype html><meta charset="utf-8"><title>{title}</title>' + "\n".join(parts)


def _write_pdf(text: str, path: Path) -> None:
    import pymupdf

    with pymupdf.open() as document:
        page, y = document.new_page(width=595, height=842), _TOP

        def put(x: float, words: str, *, size: float = 10, font: str = "helv", height: float = 13) -> None:
            nonlocal page, y
            if y > _BOTTOM:
                page, y = document.new_page(width=595, height=842), _TOP
            page.insert_text((x, y), words, fontsize=size, fontname=font)
            y += height

        for line in text.splitlines():
            item = _ITEM.match(line)
            if line.startswith("## "):
                put(_LEFT, line[3:], size=13, font="hebo", height=20)
            elif line.startswith("# "):
                put(_LEFT, line[2:], size=18, font="hebo", height=30)
            elif line.startswith("|"):
                name, *others = _cells(line)
                for number, cell in enumerate(others):
                    width = pymupdf.get_text_length(cell, fontsize=10)
                    put(_FIRST_COLUMN + _COLUMN * number - width, cell, height=0)
                put(_LEFT, name, height=15)
            elif item:
                put(_LEFT + 10, "•" if item[1] in "-*" else item[1], height=0)
                for part in textwrap.wrap(item[2], 85):
                    put(_LEFT + 32, part)
            else:
                for part in textwrap.wrap(line, 95) or [""]:
                    put(_LEFT, part)
        document.save(path)
