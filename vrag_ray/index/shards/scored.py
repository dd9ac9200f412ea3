"""One window and its score, and how lists of them are ordered and merged."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True, slots=True)
class Scored:
    """One window and its score in one leg; higher is better. Order everywhere: by ``-score``, then ``id``."""

    id: str
    score: float

    @property
    def sort_key(self) -> tuple[float, str]:
        return (-self.score, self.id)

    @property
    def group(self) -> str:
        """The page, clip, picture or span that the window belongs to: the id without its window."""
        return self.id.rsplit(":", 1)[0]


def merge_distinct(parts: Iterable[Sequence[Scored]], k: int) -> list[Scored]:
    """As ``merge``, of lists that may share windows: each of them once, with its best score."""
    distinct: dict[str, Scored] = {}
    for item in heapq.merge(*parts, key=lambda scored: scored.sort_key):
        if len(distinct) >= k:
            break
        distinct.setdefault(item.id, item)
    return list(distinct.values())


def merge(parts: Iterable[Sequence[Scored]], k: int) -> list[Scored]:
    """The ``k`` best of several lists, each ordered by (-score, id), in the same order."""
    return list(islice(heapq.merge(*parts, key=lambda scored: scored.sort_key), k))
