"""The page: what was evaluated, the tables, the curves, and every question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from html import escape

from vrag_ray.evaluation.folder import EvaluationFolder, Kind, Row
from vrag_ray.evaluation.report.album import Album
from vrag_ray.evaluation.report.charts import success_chart
from vrag_ray.evaluation.report.published import benchmarks_of, published_section
from vrag_ray.evaluation.report.runs import run_section
from vrag_ray.evaluation.report.style import CSS
from vrag_ray.evaluation.summary import Summary, shown, summaries, told_seconds
from vrag_ray.types.redaction import scrub

FOUND_SHOWN = 10
NOT_BETTER = frozenset({"abstained", "steps", "tokens", "pixels"})
"""Measures of which more is not better."""


def report_page(folder: EvaluationFolder) -> str:
    """HTML that loads nothing. Runs and pictures are read from the folder."""
    header, rows = folder.header, folder.rows
    by_system: dict[str, list[Row]] = {system: [] for system in header.systems}
    for row in rows:
        by_system[row.system].append(row)
    found = list(summaries(rows))
    names = list(dict.fromkeys(name for one in found for name in one.means))
    whole, grouped = [one for one in found if not one.group], [one for one in found if one.group]
    missing = (
        ""
        if folder.is_complete
        else f"<p><strong>Incomplete: {len(rows)} of {header.asked} rows are here.</strong></p>"
    )
    has_gold = header.kind is Kind.RETRIEVAL and any(row.gold for row in rows)
    title = f"Evaluation: {header.suite}"
    album = Album(folder.root)
    run = partial(run_section, folder.root, album=album) if header.kind is Kind.ANSWERS else None
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{header.questions:,} questions, asked of {escape(', '.join(header.systems))}.</p>",
        missing,
        "<h2>Results</h2>",
        _table(whole, names, "Means over all questions"),
        f"{success_chart(by_system)}<p>Share of questions with a right result among the first k.</p>"
        if has_gold
        else "",
        *(["<h2>By group</h2>", _table(grouped, names, "Means by group")] if grouped else []),
        *published_section(benchmarks_of(folder)),
        "<h2>What was evaluated</h2>",
        # Paths of the machine are nothing for those who are sent the report.
        _facts({**header.subject, "suite hash": header.suite_hash, **_scrubbed(header.environment)}),
        "<h2>Questions</h2>",
        *_questions(rows, run),
        # Last: only now is it known which are shown.
        album.symbols(),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head><body><main>{''.join(body)}</main></body></html>"
    )


def _table(found: Sequence[Summary], names: Sequence[str], caption: str) -> str:
    """Of systems, or of groups: the best of each column among those of one group is bold."""
    best: dict[tuple[str, str], float] = defaultdict(float)
    if len({one.system for one in found}) > 1:
        for one in found:
            for name, value in one.means.items():
                best[one.group, name] = max(best[one.group, name], value) if name not in NOT_BETTER else 0.0
    lines = []
    for one in found:
        label = f"{one.system}, {one.group}" if one.group else one.system
        cells = [_cell(one, name, best[one.group, name]) for name in names]
        times = f"<td>{told_seconds(one.median_s)}</td><td>{told_seconds(one.p95_s)}</td>"
        lines.append(f'<tr><th scope="row">{escape(label)}</th><td>{one.questions:,}</td>{"".join(cells)}{times}</tr>')
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("system", "questions", *names, "p50", "p95"))
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(one: Summary, name: str, best: float) -> str:
    mark = ' class="best"' if one.means.get(name) == best and best > 0 else ""
    return f"<td{mark}>{shown(one, name)}</td>"


def _scrubbed(facts: Mapping[str, str]) -> dict[str, str]:
    return {name: scrub(value) for name, value in facts.items()}


def _facts(facts: Mapping[str, str]) -> str:
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    return f"<dl>{lines}</dl>"


def _questions(rows: Sequence[Row], run: Callable[[Row], str] | None) -> Iterator[str]:
    """Every question once, with what each system found, and its ``run``; those that went worst first."""
    by_uid: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_uid[row.uid].append(row)

    def worth(uid: str) -> tuple[float, float]:
        """What was right decides, then everything of which more is better."""
        own = by_uid[uid]
        values = [value for row in own for name, value in row.measures.items() if name not in NOT_BETTER]
        return sum(row.measures.get("right", 0.0) for row in own), sum(values) / max(1, len(values))

    for uid in sorted(by_uid, key=worth):
        own = by_uid[uid]
        told = "".join(_found(row) + ("" if run is None else run(row)) for row in own)
        groups = ", ".join(f"{name}: {', '.join(values)}" for name, values in own[0].groups.items())
        marks = " · ".join(f"{_named(row)} {_mark(row)}" for row in own)
        yield (
            f'<details><summary>{escape(own[0].question)} <span class="tag">{escape(marks)}</span></summary>'
            f'<p class="tag">{escape(uid)}{f" ({escape(groups)})" if groups else ""}; right: '
            f"{escape(', '.join(own[0].gold) or 'nothing known')}</p>{told}</details>"
        )


def _named(row: Row) -> str:
    return f"{row.system}, sample {row.sample + 1}" if row.sample else row.system


def _mark(row: Row) -> str:
    """The rank of the first right result, or whether the answer was right."""
    if "right" in row.measures:
        verdict = "right" if row.measures["right"] >= 0.5 else "wrong"
        return f"{verdict} (abstained)" if row.measures.get("abstained") else verdict
    gold = set(row.gold)
    rank = next((rank for rank, item in enumerate(row.found, start=1) if item in gold), None)
    return "not found" if rank is None else f"at {rank}"


def _found(row: Row) -> str:
    gold = set(row.gold)
    answered = ""
    if row.references:
        answered = f"<p>Answer: {escape(row.answer)}</p><p>Right: {escape(' / '.join(row.references))}</p>"
    items = (
        ""
        if answered
        else "".join(
            f'<li class="right">{escape(item)} (right)</li>' if item in gold else f"<li>{escape(item)}</li>"
            for item in row.found[:FOUND_SHOWN]
        )
    )
    more = 0 if answered else len(row.found) - FOUND_SHOWN
    rest = f'<p class="tag">and {more} more</p>' if more > 0 else ""
    notes = "".join(f'<p class="tag">{escape(note)}</p>' for note in row.notes)
    measured = ", ".join(f"{name} {value:.3g}" for name, value in row.measures.items())
    return (
        f"<p><strong>{escape(_named(row))}</strong>: {escape(measured)}; {told_seconds(row.seconds)}</p>"
        f"{answered or f'<ol>{items}</ol>'}{rest}{notes}"
    )
