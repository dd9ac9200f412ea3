"""The contract of what searches the rows of one space in one shard: exact, approximate or by late interaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.shards.shard_rows import ShardRows
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

Floats = NDArray[np.float32]
QueryVectors = Sequence[Floats]
"""For each query its vectors, [n, dim]; n is 1 in a space of single vectors."""


@dataclass(frozen=True, slots=True)
class PageTraits:
    """What a space tells of a page beside its score: the ``heat`` map of a query on it, [rows, columns], None where the
    page's vectors have no place; and the perceptual hash of its picture."""

    heat: Floats | None
    phash: int | None


class SpaceIndex(Protocol):
    """Thread-safe for ``nearest``. ``size`` counts passages, ``dim`` is that of one vector; ``device`` is ``cpu`` or
    ``cuda``; ``recall`` is the share of the exact ten nearest that it finds, as measured when it was built, 1 for an
    exact one."""

    rows: ShardRows
    size: int
    dim: int
    recall: float

    @property
    def device(self) -> str: ...

    @property
    def bytes_per_passage(self) -> float:
        """Memory of vectors, ids and filter columns together."""
        ...

    def nearest(
        self,
        queries: QueryVectors,
        k: int,
        filter: SearchFilter | None = None,
        alive: NDArray[np.bool_] | None = None,
    ) -> list[list[Scored]]:
        """The ``k`` best passages of each query by (-score, id); fewer when fewer match.

        ``alive`` [size] says which passages count; None: all. Raises VragError for queries of another dimension.
        """
        ...

    def page_traits(self, passage_id: str, query: Floats | None) -> PageTraits | None:
        """With the heat map of ``query``, [n, dim]; None where nothing is known of the page."""
        ...


def single_vectors(queries: QueryVectors, dim: int) -> Floats:
    """Queries of one vector each as a matrix, [queries, dim]. Raises VragError for queries of another dimension."""
    wrong = next((query.shape for query in queries if query.shape not in ((dim,), (1, dim))), None)
    if wrong is not None:
        raise VragError(f"a query has shape {wrong}, this shard holds vectors of {dim} dimensions")
    return np.ascontiguousarray(np.vstack(queries), np.float32)
