"""From windows to results: best window of each page, and reciprocal rank fusion of the two legs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vrag_ray.index.lexical import Scored


@dataclass(frozen=True, slots=True)
class Fused:
    """One page, clip, picture or span: its best window, its score and what each leg gave it."""

    id: str
    score: float
    dense: float | None
    lexical: float | None


def best_windows(windows: Sequence[Scored]) -> list[Scored]:
    """The first window of each group of a list ordered best first, order kept."""
    seen: dict[str, Scored] = {}
    for window in windows:
        seen.setdefault(window.group, window)
    return list(seen.values())


def fuse(dense: Sequence[Scored], lexical: Sequence[Scored], *, k: int) -> list[Fused]:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009): score = sum over legs of 1 / (k + rank).

    Both lists hold one window a group, best first; ranks count from 1. The window kept is the one of the leg that
    ranks the group higher, the lexical one on a tie because its words are what a reader can check.
    """
    dense_at = {window.group: rank for rank, window in enumerate(dense, start=1)}
    lexical_at = {window.group: rank for rank, window in enumerate(lexical, start=1)}
    fused = []
    for group in dense_at.keys() | lexical_at.keys():
        by_dense = dense[dense_at[group] - 1] if group in dense_at else None
        by_lexical = lexical[lexical_at[group] - 1] if group in lexical_at else None
        ranks = [at[group] for at in (lexical_at, dense_at) if group in at]
        dense_leads = group in dense_at and dense_at[group] < lexical_at.get(group, len(lexical) + 1)
        window = by_dense if dense_leads or by_lexical is None else by_lexical
        assert window is not None
        fused.append(
            Fused(
                id=window.id,
                score=sum(1.0 / (k + rank) for rank in ranks),
                dense=by_dense.score if by_dense else None,
                lexical=by_lexical.score if by_lexical else None,
            )
        )
    return sorted(fused, key=lambda item: (-item.score, item.id))
