"""From windows to results: best window of each page, and one list out of what several legs found. Pure.

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
    """What one way of searching found for one query.

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


def fuse(legs: Sequence[Leg]) -> list[Fused]:
    """Every page that a leg lists, by (-score, id); ``score`` is in 0..1, 1 for a page that is best in every leg.

    Legs without a page are left out and the others share their weight. The window kept is the one of the leg that
    gives the page most; of equal legs, the earlier.
    """
    legs = [leg for leg in legs if leg.pages]
    total = sum(leg.weight for leg in legs)
    shares = [_shares(leg) for leg in legs]
    listed = [{window.group: window for window in leg.pages} for leg in legs]
    fused = []
    for group in dict.fromkeys(group for windows in listed for group in windows):
        given = [
            leg.weight * share.get(group, absent) / total if total else 0.0
            for leg, (share, absent) in zip(legs, shares, strict=True)
        ]
        most = max((n for n, windows in enumerate(listed) if group in windows), key=lambda n: (given[n], -n))
        by_leg = {leg.name: at[group].score for leg, at in zip(legs, listed, strict=True) if group in at}
        fused.append(Fused(listed[most][group].id, sum(given), by_leg))
    return sorted(fused, key=lambda item: (-item.score, item.id))


def unfused(leg: Leg) -> list[Fused]:
    """The pages of a single leg with its own scores."""
    return [Fused(window.id, window.score, {leg.name: window.score}) for window in leg.pages]


def _shares(leg: Leg) -> tuple[dict[str, float], float]:
    """Each listed page's score as a share of the best, and the share of pages that are not listed."""
    best = leg.pages[0].score
    shares = {window.group: max(0.0, window.score) / best if best > 0 else 0.0 for window in leg.pages}
    return shares, 0.0 if leg.complete else shares[leg.pages[-1].group]
