"""Rank measures of one query, by the definitions of trec_eval (and so of ir-measures, whose names they have)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

Grades = Mapping[str, int]
"""Relevance of the items that were judged; from 1 on they are relevant."""
RANK_MEASURES = ("nDCG@5", "nDCG@10", "R@5", "R@10", "R@100", "RR", "Success@1", "Success@5", "Success@10")
"""Discounted gain with the grade as gain (Järvelin and Kekäläinen 2002), recall, the reciprocal of the first relevant
rank, and whether there is a relevant one among the first k (what others call hit@k)."""


def rank_measures(ranked: Sequence[str], grades: Grades, names: Sequence[str] = RANK_MEASURES) -> dict[str, float]:
    """Each measure of ``ranked``, the items of the results, best first, each once. All are 0 where nothing relevant is
    known."""
    gains = [max(0, grades.get(item, 0)) for item in ranked]
    relevant = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    return {name: _measure(name, gains, relevant) for name in names}


def in_order(scores: Mapping[str, float]) -> list[str]:
    """Items by falling score; of equal ones the greater id first, as trec_eval has it."""
    return [item for item, _ in sorted(scores.items(), key=lambda pair: (pair[1], pair[0]), reverse=True)]


def _measure(name: str, grades: Sequence[int], relevant: Sequence[int]) -> float:
    kind, _, cut = name.partition("@")
    first = grades[: int(cut)] if cut else grades
    match kind:
        case "nDCG":
            best = _gain(relevant[: int(cut)] if cut else relevant)
            return _gain(first) / best if best else 0.0
        case "R":
            return sum(grade > 0 for grade in first) / len(relevant) if relevant else 0.0
        case "Success":
            return float(any(first))
        case "RR":
            return next((1 / rank for rank, grade in enumerate(first, start=1) if grade > 0), 0.0)
        case _:
            raise ValueError(f"{name} is no rank measure that is known here")


def _gain(grades: Sequence[int]) -> float:
    return math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))
