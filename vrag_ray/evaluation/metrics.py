"""Rank metrics over lists of "is this result right?"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankMetrics:
    """``hit_at[k]``: share of queries with a right result among the first k. ``mrr``: mean of 1 / first right rank."""

    queries: int
    hit_at: dict[int, float]
    mrr: float


def rank_metrics(relevance: Sequence[Sequence[bool]], cutoffs: Sequence[int] = (1, 5, 10)) -> RankMetrics:
    """``relevance[q][i]``: whether the result at 0-based rank i of query q is right. No query gives zeros."""
    first = [next((rank for rank, right in enumerate(row, start=1) if right), None) for row in relevance]
    count = max(1, len(first))
    return RankMetrics(
        queries=len(first),
        hit_at={k: sum(rank is not None and rank <= k for rank in first) / count for k in cutoffs},
        mrr=sum(1.0 / rank for rank in first if rank is not None) / count,
    )
