"""Figures that others printed about the same benchmarks, to stand beside an evaluation. None of them is re-run here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vrag_ray.evaluation.folder import EvaluationFolder, Kind

NOTE = "printed, not re-run: other corpora, judges and settings"
SLIDEVQA, VIDOSEEK, MMLONGBENCH = "SlideVQA", "ViDoSeek", "MMLongBench"
ALL = "all"
"""The column of a whole benchmark."""
TOGETHER = "The three together"


@dataclass(frozen=True, slots=True)
class Figure:
    """Accuracy in per cent, by a model that judges right or wrong. ``column`` is a part of the benchmark."""

    benchmark: str
    column: str
    system: str
    value: float
    source: str


_PARTS = (
    *((SLIDEVQA, part) for part in ("single", "multi")),
    *((VIDOSEEK, part) for part in ("extraction", "logic")),
    *((MMLONGBENCH, part) for part in ("text", "table", "chart", "figure", "layout")),
    (TOGETHER, ALL),
)
_WHOLES = ((SLIDEVQA, ALL), (VIDOSEEK, ALL), (MMLONGBENCH, ALL))
_VRAG, _VIMRAG, _VISOR = "arXiv 2505.22019, Table 1", "VimRAG's paper, Table 2", "arXiv 2604.09508"


def _of(system: str, source: str, places: Iterable[tuple[str, str]], values: Iterable[float]) -> tuple[Figure, ...]:
    return tuple(
        Figure(benchmark, column, system, value, source)
        for (benchmark, column), value in zip(places, values, strict=True)
    )


_OF_VIMRAG = ((SLIDEVQA, ALL), (MMLONGBENCH, ALL))
FIGURES: tuple[Figure, ...] = (
    *_of("VRAG-RL 7B", _VRAG, _PARTS, (69.3, 43.1, 60.6, 74.8, 26.1, 26.3, 24.8, 25.9, 21.2, 57.1)),
    *_of("Search-R1-VL 7B", _VRAG, _PARTS, (48.3, 42.3, 40.5, 50.3, 19.9, 13.4, 12.9, 11.4, 10.2, 37.4)),
    *_of("Vanilla RAG (visual) 7B", _VRAG, _PARTS, (29.1, 17.4, 26.4, 41.3, 13.1, 14.7, 15.9, 4.3, 7.6, 24.2)),
    *_of("VimRAG, Qwen3-VL-8B-Instruct", _VIMRAG, _OF_VIMRAG, (62.4, 33.4)),
    *_of("ReAct, Qwen3-VL-8B-Instruct", _VIMRAG, _OF_VIMRAG, (50.0, 15.4)),
    *_of("Mem1, Qwen3-VL-8B-Instruct", _VIMRAG, _OF_VIMRAG, (55.7, 32.6)),
    *_of("VISOR 7B", _VISOR, _WHOLES, (78.82, 72.38, 27.86)),
)


def benchmarks_of(folder: EvaluationFolder) -> tuple[str, ...]:
    """Those that the suite's name or the sources of its questions name; of searches none: they have no accuracy."""
    if folder.header.kind is not Kind.ANSWERS:
        return ()
    names = {folder.header.suite, *(name for row in folder.rows for name in row.groups.get("source", ()))}
    text = " ".join(names).casefold()
    return tuple(benchmark for benchmark in (SLIDEVQA, VIDOSEEK, MMLONGBENCH) if benchmark.casefold() in text)


@dataclass(frozen=True, slots=True)
class Cell:
    """Of a table of the report. ``best``: of its column, among the rows of one group."""

    text: str
    best: bool = False


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a table of the report, after its head."""

    head: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """The figures of one benchmark, a row a system."""

    name: str
    heads: list[str]
    rows: list[TableRow]


def published_tables(benchmarks: Sequence[str]) -> list[PublishedTable]:
    """None where no benchmark is known."""
    return [_table(benchmark) for benchmark in (*benchmarks, TOGETHER)] if benchmarks else []


def _table(benchmark: str) -> PublishedTable:
    figures = [figure for figure in FIGURES if figure.benchmark == benchmark]
    columns = [*dict.fromkeys(figure.column for figure in figures)]
    values = {(figure.system, figure.column): str(figure.value) for figure in figures}
    sources = {figure.system: figure.source for figure in figures}
    rows = [
        TableRow(system, [Cell(text) for text in (*(values.get((system, name), "-") for name in columns), source)])
        for system, source in sources.items()
    ]
    return PublishedTable(benchmark, ["system", *columns, "printed in"], rows)
