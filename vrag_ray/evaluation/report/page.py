"""The report: what was evaluated, the tables, the curves, and every question; `report.html.jinja` is its form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from vrag_ray.evaluation.folder import EvaluationFolder, Kind, Row
from vrag_ray.evaluation.report.album import Album
from vrag_ray.evaluation.report.charts import success_chart
from vrag_ray.evaluation.report.published import NOTE, Cell, TableRow, benchmarks_of, published_tables
from vrag_ray.evaluation.report.runs import RunView, run_view
from vrag_ray.evaluation.summary import Summary, seconds_text, shown, summaries
from vrag_ray.types.redaction import scrub

RESULTS_SHOWN = 10
NOT_BETTER = frozenset({"abstained", "steps", "tokens", "pixels"})
"""Measures of which more is not better."""


@dataclass(frozen=True, slots=True)
class RowView:
    """What one system made of a question. ``results`` with whether each is right; ``more`` counts the others."""

    name: str
    measures: str
    seconds: str
    answer: str
    references: str
    results: list[tuple[str, bool]]
    more: int
    notes: tuple[str, ...]
    run: RunView | None


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question with the rows of every system, in the texts of the report."""

    text: str
    uid: str
    marks: str
    groups: str
    gold: str
    rows: list[RowView]


def report_page(folder: EvaluationFolder) -> str:
    """HTML that loads nothing. Runs and pictures are read from the folder."""
    header, rows = folder.header, folder.rows
    by_system: dict[str, list[Row]] = {system: [] for system in header.systems}
    for row in rows:
        by_system[row.system].append(row)
    means = list(summaries(rows))
    names = list(dict.fromkeys(name for summary in means for name in summary.means))
    album = Album(folder.root)
    has_chart = header.kind is Kind.RETRIEVAL and any(row.gold for row in rows)
    environment = Environment(
        loader=PackageLoader("vrag_ray.evaluation.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    questions = _questions(rows, folder if header.kind is Kind.ANSWERS else None, album)
    return environment.get_template("report.html.jinja").render(
        title=f"Evaluation: {header.suite}",
        header=header,
        row_count=len(rows),
        missing_rows=not folder.is_complete,
        result_heads=["system", "questions", *names, "p50", "p95"],
        results=_table([summary for summary in means if not summary.group], names),
        group_results=_table([summary for summary in means if summary.group], names),
        chart=success_chart(by_system) if has_chart else None,
        published=published_tables(benchmarks_of(folder)),
        published_note=NOTE,
        # Paths of the machine are nothing for the readers to whom the report is sent.
        facts={
            **header.subject,
            "suite hash": header.suite_hash,
            **{name: scrub(value) for name, value in header.environment.items()},
        },
        questions=questions,
        album=album.pictures,
    )


def _table(means: Sequence[Summary], names: Sequence[str]) -> list[TableRow]:
    """Of systems, or of groups: the best of each column among those of one group is marked."""
    best: dict[tuple[str, str], float] = defaultdict(float)
    if len({summary.system for summary in means}) > 1:
        for summary in means:
            for name, value in summary.means.items():
                best[summary.group, name] = max(best[summary.group, name], value) if name not in NOT_BETTER else 0.0

    def cell(summary: Summary, name: str) -> Cell:
        highest = best[summary.group, name]
        return Cell(shown(summary, name), highest > 0 and summary.means.get(name) == highest)

    return [
        TableRow(
            f"{summary.system}, {summary.group}" if summary.group else summary.system,
            [
                Cell(f"{summary.questions:,}"),
                *(cell(summary, name) for name in names),
                Cell(seconds_text(summary.median_s)),
                Cell(seconds_text(summary.p95_s)),
            ],
        )
        for summary in means
    ]


def _questions(rows: Sequence[Row], runs: EvaluationFolder | None, album: Album) -> list[QuestionView]:
    """Every question once, with the results of each system, and with its runs in ``runs``; the worst first."""
    by_uid: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_uid[row.uid].append(row)

    def worth(uid: str) -> tuple[float, float]:
        """What was right decides, then everything of which more is better."""
        own = by_uid[uid]
        values = [value for row in own for name, value in row.measures.items() if name not in NOT_BETTER]
        return sum(row.measures.get("right", 0.0) for row in own), sum(values) / max(1, len(values))

    def view(row: Row) -> RowView:
        gold = set(row.gold)
        return RowView(
            _name(row),
            ", ".join(f"{name} {value:.3g}" for name, value in row.measures.items()),
            seconds_text(row.seconds),
            row.answer,
            " / ".join(row.references),
            [(item, item in gold) for item in row.found[:RESULTS_SHOWN]],
            max(0, len(row.found) - RESULTS_SHOWN),
            row.notes,
            run_view(runs.root, row, album) if runs is not None else None,
        )

    return [
        QuestionView(
            own[0].question,
            uid,
            " · ".join(f"{_name(row)} {_mark(row)}" for row in own),
            ", ".join(f"{name}: {', '.join(values)}" for name, values in own[0].groups.items()),
            ", ".join(own[0].gold) or "nothing known",
            [view(row) for row in own],
        )
        for uid in sorted(by_uid, key=worth)
        for own in (by_uid[uid],)
    ]


def _name(row: Row) -> str:
    return f"{row.system}, sample {row.sample + 1}" if row.sample else row.system


def _mark(row: Row) -> str:
    """The rank of the first right result, or whether the answer was right."""
    if "right" in row.measures:
        verdict = "right" if row.measures["right"] >= 0.5 else "wrong"
        return f"{verdict} (abstained)" if row.measures.get("abstained") else verdict
    gold = set(row.gold)
    rank = next((rank for rank, item in enumerate(row.found, start=1) if item in gold), None)
    return "not found" if rank is None else f"at {rank}"
