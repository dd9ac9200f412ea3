"""The table of an evaluation: means by system, and by group within it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vrag_ray.evaluation.folder import Row


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over the questions of one system, or of one ``group`` of them (``division``: ``value``)."""

    system: str
    group: str
    questions: int
    means: dict[str, float]
    median_s: float
    p95_s: float


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


def table(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    """Markdown, a line a summary."""
    yield f"| | questions | {' | '.join(names)} | p50 | p95 |"
    yield "|---" * (len(names) + 4) + "|"
    for one in summaries(rows):
        label = f"{one.system}, {one.group}" if one.group else f"**{one.system}**"
        means = " | ".join(f"{one.means[name]:.3f}" if name in one.means else "-" for name in names)
        yield f"| {label} | {one.questions:,} | {means} | {told_seconds(one.median_s)} | {told_seconds(one.p95_s)} |"


def _summary(system: str, group: str, rows: Sequence[Row]) -> Summary:
    seconds = sorted(row.seconds for row in rows)
    means = {}
    for name in measure_names(rows):
        values = [row.measures[name] for row in rows if name in row.measures]
        means[name] = statistics.fmean(values)
    p95 = seconds[min(len(seconds) - 1, len(seconds) * 95 // 100)]
    return Summary(system, group, len(rows), means, statistics.median(seconds), p95)


def told_seconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
