"""Figures that others printed about the same benchmarks, to stand beside an evaluation. None of them is re-run here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

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
    told = " ".join(names).casefold()
    return tuple(one for one in (SLIDEVQA, VIDOSEEK, MMLONGBENCH) if one.casefold() in told)


def published_section(benchmarks: Sequence[str]) -> Iterator[str]:
    """Nothing where no benchmark is known."""
    if not benchmarks:
        return
    yield f"<h2>Published figures</h2><p>Accuracy in per cent; {escape(NOTE)}.</p>"
    for benchmark in (*benchmarks, TOGETHER):
        yield _table(benchmark, [one for one in FIGURES if one.benchmark == benchmark])


def _table(benchmark: str, figures: Sequence[Figure]) -> str:
    columns = [*dict.fromkeys(one.column for one in figures)]
    values = {(one.system, one.column): str(one.value) for one in figures}
    sources = {one.system: one.source for one in figures}
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("system", *columns, "printed in"))
    lines = []
    for system, source in sources.items():
        cells = "".join(f"<td>{values.get((system, column), '-')}</td>" for column in columns)
        lines.append(f'<tr><th scope="row">{escape(system)}</th>{cells}<td>{escape(source)}</td></tr>')
    return (
        f'<h3>{escape(benchmark)}</h3><div class="wide" tabindex="0" role="region" '
        f'aria-label="Published figures: {escape(benchmark)}"><table><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )
