"""The vectors of a space as they grow: what was loaded first, and what has come since. No Ray here.

A segment never changes. A later version of a collection shares the first segment with the earlier one, leaves out the
rows that no longer count there, and has a second one with what was added, so that a refresh costs what changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.shards.scored import Scored, merge
from vrag_ray.index.shards.space_index import Floats, PageTraits, QueryVectors, SpaceIndex
from vrag_ray.types.filters import SearchFilter


@dataclass(frozen=True, slots=True)
class Segment:
    """One index and, where not all of its rows count, which do: ``alive`` [rows]."""

    index: SpaceIndex
    alive: NDArray[np.bool_] | None = None

    @property
    def size(self) -> int:
        return self.index.size if self.alive is None else int(self.alive.sum())

    def without(self, doc_ids: Iterable[str]) -> Segment:
        """The same index, in which the rows of these documents do not count."""
        known = self.index.rows.documents
        numbers = [known[doc_id] for doc_id in doc_ids if doc_id in known]
        if not numbers:
            return self
        alive = ~np.isin(self.index.rows.doc_of, numbers)
        return replace(self, alive=alive if self.alive is None else alive & self.alive)


class SegmentedIndex:
    """One or two segments, searched as one; thread-safe."""

    def __init__(self, base: Segment, added: Segment | None = None) -> None:
        self._segments = [segment for segment in (added, base) if segment is not None]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self._segments)

    @property
    def device(self) -> str:
        """Of its larger segment: ``cpu`` or ``cuda``."""
        return self._larger.device

    @property
    def dim(self) -> int:
        return self._larger.dim

    @property
    def _larger(self) -> SpaceIndex:
        return max(self._segments, key=lambda segment: segment.size).index

    @property
    def bytes_per_passage(self) -> float:
        nbytes = sum(segment.index.bytes_per_passage * segment.index.size for segment in self._segments)
        return nbytes / max(1, self.size)

    @property
    def recall(self) -> float:
        """Of its larger segment, as in ``SpaceIndex``."""
        return self._larger.recall

    def nearest(self, queries: QueryVectors, k: int, filter: SearchFilter | None) -> list[list[Scored]]:
        """The ``k`` best passages of each query by (-score, id)."""
        results = [segment.index.nearest(queries, k, filter, segment.alive) for segment in self._segments]
        return results[0] if len(results) == 1 else [merge(parts, k) for parts in zip(*results, strict=True)]

    def page_traits(self, passage_id: str, query: Floats | None) -> PageTraits | None:
        """The state of one passage: that of the newer segment, where both have it."""
        known = (segment.index.page_traits(passage_id, query) for segment in self._segments)
        return next((traits for traits in known if traits is not None), None)
