"""Fusions to compare over recorded legs: what is shipped, what it replaced, and what else was tried."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from benchmarks.recorded_legs import Question
from vrag_ray.embedding.base import LEAST_READABLE
from vrag_ray.index.search.fusion import Leg
from vrag_ray.index.search.legs import lexical_weight, rank
from vrag_ray.types import HYBRID, LEXICAL, TEXT

Fusion = Callable[[Question], list[str]]
"""A question's window ids, best first."""
Shares = Callable[[Leg], dict[str, float]]
"""The pages of a leg on a common scale."""


def lexical(question: Question) -> list[str]:
    return [window for window, _ in question.lexical.pages]


def dense(question: Question) -> list[str]:
    return [window for window, _ in question.dense.pages]


def shipped(question: Question) -> list[str]:
    """`vrag_ray.index.search.legs.rank`, as the retriever calls it."""
    best = question.lexical.pages[0][1] if question.lexical.pages else 0.0
    words = question.lexical.leg(LEXICAL, lexical_weight(best, question.ceiling))
    meaning = question.dense.leg(TEXT) if question.readable >= LEAST_READABLE else None
    return [item.id for item in rank(HYBRID, [] if meaning is None else [meaning], words)]


def by_rank(k: int) -> Fusion:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)."""

    def fuse(question: Question) -> list[str]:
        total: dict[str, float] = defaultdict(float)
        window: dict[str, str] = {}
        for leg in (question.lexical.leg(LEXICAL), question.dense.leg(TEXT)):
            for n, page in enumerate(leg.pages, start=1):
                total[page.group] += 1 / (k + n)
                window.setdefault(page.group, page.id)
        return _best_first(total, window)

    return fuse


def convex(shares: Shares, weight: float) -> Fusion:
    """A convex combination (Bruch, Gai and Ingber, TOIS 2023) with one lexical weight for all queries."""
    return lambda question: _summed(question, shares, weight)


def by_coverage(shares: Shares, most: float) -> Fusion:
    """The same with the query's coverage as the lexical weight, at most ``most``."""

    def fuse(question: Question) -> list[str]:
        best = question.lexical.pages[0][1] if question.lexical.pages else 0.0
        return _summed(question, shares, min(most, best / question.ceiling) if question.ceiling else 0.0)

    return fuse


def of_best(leg: Leg) -> dict[str, float]:
    """Theoretical minimum 0."""
    return {page.group: page.score / leg.pages[0].score for page in leg.pages}


def min_max(leg: Leg) -> dict[str, float]:
    """Smallest listed score 0, but BM25's own 0 where the lexical list is whole."""
    high = leg.pages[0].score
    low = 0.0 if leg.complete and leg.name == LEXICAL else leg.pages[-1].score
    return {page.group: (page.score - low) / (high - low) if high > low else 1.0 for page in leg.pages}


def standard(leg: Leg) -> dict[str, float]:
    """Mean 0, standard deviation 1."""
    scores = [page.score for page in leg.pages]
    mean, deviation = statistics.fmean(scores), statistics.pstdev(scores) or 1.0
    return {page.group: (page.score - mean) / deviation for page in leg.pages}


def _summed(question: Question, shares: Shares, weight: float) -> list[str]:
    """Pages that a list was cut before count as its last; a lexical list that is whole gives them 0."""
    total: dict[str, float] = defaultdict(float)
    window: dict[str, str] = {}
    legs = [(question.lexical.leg(LEXICAL), weight), (question.dense.leg(TEXT), 1 - weight)]
    legs = [(leg, part) for leg, part in legs if leg.pages]
    given: Sequence[tuple[dict[str, float], Leg, float]] = [(shares(leg), leg, part) for leg, part in legs]
    for leg, _ in legs:
        for page in leg.pages:
            window.setdefault(page.group, page.id)
    for scores, leg, part in given:
        absent = 0.0 if leg.complete and leg.name == LEXICAL else min(scores.values())
        for group in window:
            total[group] += part * scores.get(group, absent)
    return _best_first(total, window)


def _best_first(total: Mapping[str, float], window: Mapping[str, str]) -> list[str]:
    return [window[group] for group in sorted(total, key=lambda group: (-total[group], window[group]))]


BASELINES: dict[str, Fusion] = {"lexical": lexical, "dense": dense, "RRF k=10 (before)": by_rank(10)}
TRIED: dict[str, Fusion] = {
    "RRF k=60": by_rank(60),
    **{f"share of best, lexical {w}": convex(of_best, w) for w in (0.3, 0.5, 0.7)},
    **{f"min-max, lexical {w}": convex(min_max, w) for w in (0.3, 0.5, 0.7)},
    **{f"standard score, lexical {w}": convex(standard, w) for w in (0.3, 0.5, 0.7)},
    **{f"min-max, coverage up to {w}": by_coverage(min_max, w) for w in (0.7, 0.8, 0.9, 1.0)},
    **{f"share of best, coverage up to {w}": by_coverage(of_best, w) for w in (0.7, 0.8, 0.9, 1.0)},
}
