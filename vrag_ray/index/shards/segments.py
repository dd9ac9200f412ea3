"""The vectors of a space as they grow: what was loaded first, and what has come since. No Ray here.

A segment never changes. A later version of a collection shares the first segment with the earlier one, leaves out the
rows that no longer count there, and has a second one with what was added, so that a refresh costs what changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.late_index import LateIndex, Sight
from vrag_ray.index.shards.scored import Scored, merge
from vrag_ray.types.filters import SearchFilter

QueryVectors = Sequence[NDArray[np.float32]]
"""For each query its vectors, [n, dim]; n is 1 in a space of single vectors."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One index and, where not all of its rows count, which do: ``alive`` [rows].

    ``phashes``: of single vectors, the perceptual hash of each passage that was drawn.
    """

    index: FlatIndex | LateIndex
    phashes: Mapping[str, int] = field(default_factory=dict)
    alive: NDArray[np.bool_] | None = None

    @property
    def size(self) -> int:
        return self.index.size if self.alive is None else int(self.alive.sum())

    @property
    def nbytes(self) -> float:
        each = self.index.bytes_per_page if isinstance(self.index, LateIndex) else self.index.bytes_per_vector
        return each * self.index.size

    def without(self, doc_ids: Iterable[str]) -> Segment:
        """The same index, in which the rows of these documents do not count."""
        known = self.index.rows.documents
        numbers = [known[doc_id] for doc_id in doc_ids if doc_id in known]
        if not numbers:
            return self
        alive = ~np.isin(self.index.rows.doc_of, numbers)
        return replace(self, alive=alive if self.alive is None else alive & self.alive)

    def search(self, queries: QueryVectors, k: int, filter: SearchFilter | None) -> list[list[Scored]]:
        if isinstance(self.index, LateIndex):
            return self.index.search(queries, k, filter, self.alive)
        return self.index.search(np.concatenate(queries), k, filter, self.alive) if queries else []

    def sight(self, passage_id: str, query: NDArray[np.float32] | None) -> Sight | None:
        if isinstance(self.index, LateIndex):
            return self.index.sight(passage_id, query)
        return Sight(None, self.phashes[passage_id]) if passage_id in self.phashes else None


class SegmentedIndex:
    """One or two segments, searched as one; thread-safe."""

    recall = 1.0

    def __init__(self, base: Segment, added: Segment | None = None) -> None:
        self._segments = [segment for segment in (added, base) if segment is not None]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def device(self) -> str:
        """Of its larger segment: ``cpu`` or ``cuda``."""
        return max(self._segments, key=lambda segment: segment.size).index.device

    @property
    def dim(self) -> int:
        return max(self._segments, key=lambda segment: segment.size).index.dim

    @property
    def bytes_per_passage(self) -> float:
        return sum(segment.nbytes for segment in self._segments) / max(1, self.size)

    def search(self, queries: QueryVectors, k: int, filter: SearchFilter | None) -> list[list[Scored]]:
        """The ``k`` best passages of each query by (-score, id)."""
        found = [segment.search(queries, k, filter) for segment in self._segments]
        return found[0] if len(found) == 1 else [merge(parts, k) for parts in zip(*found, strict=True)]

    def sight(self, passage_id: str, query: NDArray[np.float32] | None) -> Sight | None:
        """The state of one passage: that of the newer segment, where both have it."""
        sights = (segment.sight(passage_id, query) for segment in self._segments)
        return next((sight for sight in sights if sight is not None), None)
