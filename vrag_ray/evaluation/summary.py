"""The table of an evaluation: means by system, and by group within it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vrag_ray.evaluation.folder import Row
from vrag_ray.evaluation.measures.answer_measures import MMLONGBENCH
from vrag_ray.questions import mmlongbench

MMLONGBENCH_F1 = "MMLB F1"


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over the questions of one system, or of one ``group`` of them (``division``: ``value``).

    ``spread`` is, where questions were asked several times, the standard deviation of the means of the samples.
    """

    system: str
    group: str
    questions: int
    means: dict[str, float]
    median_s: float
    p95_s: float
    spread: dict[str, float] = field(default_factory=dict)


def summaries(rows: Sequence[Row]) -> Iterator[Summary]:
    """Each system as a whole first, then its groups. A measure that some questions do not have is the mean of those
    that do (a citation is judged only where there is gold)."""
    by_system: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_system[row.system].append(row)
    for system, own in by_system.items():
        yield _summary(system, "", own)
    for system, own in by_system.items():
        groups: dict[str, list[Row]] = defaultdict(list)
        for row in own:
            for division, values in row.groups.items():
                for value in values:
                    groups[f"{division}: {value}"].append(row)
        for group, members in sorted(groups.items()):
            yield _summary(system, group, members)


def measure_names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.measures))


def shown(summary: Summary, name: str) -> str:
    """A mean, with its spread where there is one."""
    if name not in summary.means:
        return "-"
    return f"{summary.means[name]:.3f}" + (f" ± {summary.spread[name]:.3f}" if name in summary.spread else "")


def table(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """Markdown, a line a summary."""
    yield f"| | questions | {' | '.join(names)} | p50 | p95 |"
    yield "|---" * (len(names) + 4) + "|"
    for summary in summaries(rows):
        label = f"{summary.system}, {summary.group}" if summary.group else f"**{summary.system}**"
        means = " | ".join(shown(summary, name) for name in names)
        seconds = f"{seconds_text(summary.median_s)} | {seconds_text(summary.p95_s)}"
        yield f"| {label} | {summary.questions:,} | {means} | {seconds} |"


def _summary(system: str, group: str, rows: Sequence[Row]) -> Summary:
    seconds = sorted(row.seconds for row in rows)
    by_sample: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        by_sample[row.sample].append(row)
    of_samples = [_means(own) for own in by_sample.values()]
    spread: dict[str, float] = {}
    if len(of_samples) > 1:
        for name in of_samples[0]:
            values = [means[name] for means in of_samples if name in means]
            spread |= {name: statistics.stdev(values)} if len(values) > 1 else {}
    p95 = seconds[min(len(seconds) - 1, len(seconds) * 95 // 100)]
    questions = len({row.uid for row in rows})
    return Summary(system, group, questions, _means(rows), statistics.median(seconds), p95, spread)


def _means(rows: Sequence[Row]) -> dict[str, float]:
    means = {
        name: statistics.fmean([row.measures[name] for row in rows if name in row.measures])
        for name in measure_names(rows)
    }
    ruled = [row for row in rows if MMLONGBENCH in row.measures]
    if ruled:
        means[MMLONGBENCH_F1] = mmlongbench.f1_of(
            [row.measures[MMLONGBENCH] for row in ruled],
            [row.groups.get("answerable") != ("no",) for row in ruled],
            [row.measures["abstained"] >= 0.5 for row in ruled],
        )
    return means


def seconds_text(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
