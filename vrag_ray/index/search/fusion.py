"""From windows to results: best window of each page, and one list out of the pages of several legs. Pure.

Fused score of a page: the mean over the legs, by weight, of the page's score as a share of the leg's best. That is the
convex combination with theoretical minimum of Bruch, Gai and Ingber ("An Analysis of Fusion Functions for Hybrid
Retrieval", ACM TOIS 2023), with 0 as the minimum of every leg. Unlike a fusion of ranks it keeps how far apart results
are, and a page that one leg finds far ahead of all others stays ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vrag_ray.index.shards.scored import Scored


@dataclass(frozen=True, slots=True)
class Leg:
    """The pages of one leg for one query.

    ``pages`` holds one window a page (clip, picture, span), best first; scores are similarities, 0 or less for
    nothing in common. ``complete`` says that the leg scored no other page; where it is False, a page that is not
    listed has at most the last score. ``weight`` is not negative.
    """

    name: str
    pages: Sequence[Scored]
    complete: bool
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Fused:
    """One page, clip, picture or span: its best window, its score and what each leg that lists it gave it."""

    id: str
    score: float
    by_leg: Mapping[str, float]


def best_windows(windows: Sequence[Scored]) -> list[Scored]:
    """The first window of each group of a list ordered best first, order kept."""
    seen: dict[str, Scored] = {}
    for window in windows:
        seen.setdefault(window.group, window)
    return list(seen.values())


def fuse(legs: Sequence[Leg], limit: int | None = None) -> list[Fused]:
    """The first ``limit`` of the pages that a leg lists, by (-score, id); ``score`` is in 0..1, 1 for a page that is
    best in every leg.

    Legs without a page are left out and the others share their weight. The window is that of the leg that
    gives the page most; of equal legs, the earlier.
    """
    legs = [leg for leg in legs if leg.pages]
    total = sum(leg.weight for leg in legs)
    listed = [(leg.name, *_votes(leg, total)) for leg in legs]
    fused = []
    for group in dict.fromkeys(group for _, votes, _ in listed for group in votes):
        score, most, chosen = 0.0, -1.0, ""
        for _, votes, absent in listed:
            if group not in votes:
                score += absent
                continue
            window, vote = votes[group]
            score += vote
            if vote > most:
                most, chosen = vote, window.id
        fused.append((-score, chosen, group))
    return [
        Fused(window, -negated, {name: votes[group][0].score for name, votes, _ in listed if group in votes})
        for negated, window, group in sorted(fused)[:limit]
    ]


def unfused(leg: Leg) -> list[Fused]:
    """The pages of a single leg with its own scores."""
    return [Fused(window.id, window.score, {leg.name: window.score}) for window in leg.pages]


def _votes(leg: Leg, total: float) -> tuple[dict[str, tuple[Scored, float]], float]:
    """The window of each listed page with what the leg adds to the score of that page, and what it adds to pages that
    it does not list."""
    best = leg.pages[0].score
    if best <= 0 or total <= 0:
        return {window.group: (window, 0.0) for window in leg.pages}, 0.0
    votes = {window.group: (window, leg.weight * (max(0.0, window.score) / best) / total) for window in leg.pages}
    return votes, 0.0 if leg.complete else votes[leg.pages[-1].group][1]
