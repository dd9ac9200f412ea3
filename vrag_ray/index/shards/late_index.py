"""Late interaction in memory: many vectors a page, compared by MaxSim. No Ray here.

The score of a page is the mean over the query's vectors of their best inner product with a vector of the page (Khattab
and Zaharia, "ColBERT", SIGIR 2020; there the sum, which orders alike). A page's own vectors are all that can win: there
is no padding, so that a query vector that fits nowhere counts with its negative best.

A scan finds the pages that can be among the best, on the CPU in single precision or on a GPU in half precision; those
are scored again one by one on the CPU, each by the same operation whatever stands beside it, and ordered by (-score,
id). So a sharded search equals an unsharded one, and a GPU's results equal the CPU's.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.heat import heat_map
from vrag_ray.index.shards.max_sim import SCORE_ERROR, MaxSimScan
from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.shards.shard_rows import SpaceRows
from vrag_ray.index.shards.space_index import Floats, PageTraits
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

SCAN_BYTES = 64 << 20
"""Of page vectors that are widened to single precision at a time."""
SCAN_ERROR = 1e-4
"""More than a scan's score can differ from the page's own: both are means of inner products of unit vectors."""


class LateIndex:
    """MaxSim over the pages of one shard; thread-safe. A ``SpaceIndex``."""

    recall = 1.0

    def __init__(
        self,
        space: SpaceRows,
        *,
        binary: bool = False,
        exhaustive_below: int,
        candidates: int,
        device: str | None = None,
    ) -> None:
        """``binary`` keeps one bit a dimension, the sign; queries stay as they are. With more than
        ``exhaustive_below`` pages only the ``candidates`` are scored whose mean vector is nearest to the query's.

        ``device`` is the torch device that scans; None: NumPy does. Raises VragError where the vectors do not fit it.
        """
        self.rows, self.grids, self.phashes = space.rows, space.grids, space.phashes
        self.size, self.dim = len(space.rows.ids), int(space.vectors.shape[1])
        self._bounds = space.bounds
        self._vectors: NDArray[np.float16] | NDArray[np.uint8] = space.vectors
        if binary:
            self._vectors = np.packbits(space.vectors > 0, axis=1)
        self._binary = binary
        self._candidates = candidates
        self._first = FlatIndex(_means(space)) if self.size > exhaustive_below else None
        ids: list[str] = space.rows.ids.to_pylist()
        self._number_of = {passage_id: number for number, passage_id in enumerate(ids)}
        self._device_scan = (
            MaxSimScan(self._vectors, self._bounds, self.dim, binary=binary, device=device)
            if device is not None and self.size
            else None
        )

    @property
    def device(self) -> str:
        """``cpu`` or ``cuda``."""
        return "cpu" if self._device_scan is None else self._device_scan.device

    @property
    def bytes_per_passage(self) -> float:
        """Memory of vectors, ids and filter columns together, a page."""
        return (self.rows.nbytes + self._vectors.nbytes) / max(1, self.size)

    def nearest(
        self,
        queries: Sequence[Floats],
        k: int,
        filter: SearchFilter | None = None,
        alive: NDArray[np.bool_] | None = None,
    ) -> list[list[Scored]]:
        """The ``k`` best pages of each query, [vectors, dim] float32 each, by (-score, id); fewer when fewer match.

        ``alive`` [pages] says which pages count; None: all.
        """
        if self.size == 0 or k <= 0:
            return [[] for _ in queries]
        wrong = next((query for query in queries if query.ndim != 2 or query.shape[1] != self.dim), None)
        if wrong is not None:
            raise VragError(f"a query has shape {wrong.shape}, this shard holds vectors of {self.dim} dimensions")
        mask = self.rows.mask(filter, alive)
        allowed = np.arange(self.size) if mask is None else np.flatnonzero(mask)
        if mask is not None and len(allowed) <= max(k, self._candidates):
            # So few need neither a scan of all pages nor a choice of candidates.
            return [self._among(query, allowed, k) for query in queries]
        if self._first is not None:
            nearest = self._nearest(self._first, queries, k, filter, alive)
            return [self._among(query, numbers, k) for query, numbers in zip(queries, nearest, strict=True)]
        scores = self._scan(queries) if self._device_scan is None else self._device_scan.scores(queries)
        return [self._best(query, allowed, row[allowed], k) for query, row in zip(queries, scores, strict=True)]

    def page_traits(self, passage_id: str, query: Floats | None) -> PageTraits | None:
        """With the heat map of ``query``, [vectors, dim]; None where this shard does not have the page."""
        number = self._number_of.get(passage_id)
        if number is None:
            return None
        rows, columns = (int(side) for side in self.grids[number])
        heat = heat_map(query, self._page(number), (rows, columns)) if rows and query is not None else None
        return PageTraits(heat, self.phashes[number].as_py())

    def _nearest(
        self,
        first: FlatIndex,
        queries: Sequence[Floats],
        k: int,
        filter: SearchFilter | None,
        alive: NDArray[np.bool_] | None,
    ) -> list[NDArray[np.int64]]:
        """For each query the row numbers of the pages whose mean vectors are nearest to its own mean."""
        means = [query.mean(axis=0, keepdims=True) for query in queries]
        results = first.nearest(means, max(k, self._candidates), filter, alive)
        return [np.array(sorted(self._number_of[window.id] for window in windows), np.int64) for windows in results]

    def _among(self, query: Floats, numbers: NDArray[np.int64], k: int) -> list[Scored]:
        """The ``k`` best of some pages."""
        if self._device_scan is None or len(numbers) <= k:
            return self._exact(query, numbers, k)
        return self._best(query, numbers, self._device_scan.scores([query], numbers)[0], k)

    def _best(self, query: Floats, numbers: NDArray[np.int64], scores: Floats, k: int) -> list[Scored]:
        """The ``k`` best of the scanned, scored again each for itself."""
        if len(numbers) > k:
            worst = np.partition(scores, len(scores) - k)[len(scores) - k]
            # A page can be better by the error than it looks, and the worst of the best as much worse.
            slack = SCAN_ERROR if self._device_scan is None else 2 * SCORE_ERROR
            numbers = numbers[scores >= worst - slack]
        return self._exact(query, numbers, k)

    def _exact(self, query: Floats, numbers: NDArray[np.int64], k: int) -> list[Scored]:
        scores = np.array([self._score(query, number) for number in numbers.tolist()], np.float32)
        return self._ordered(numbers, scores, k)

    def _ordered(self, numbers: NDArray[np.int64], scores: Floats, k: int) -> list[Scored]:
        # Rows are ordered by id, so a stable sort leaves equals in the order of their ids.
        order = np.argsort(-scores, kind="stable")[:k]
        return [Scored(self.rows.ids[int(numbers[n])].as_py(), float(scores[n])) for n in order]

    def _scan(self, queries: Sequence[Floats]) -> Floats:
        """Scores [queries, pages], all queries in one pass over the vectors."""
        together = np.concatenate(queries)
        query_bounds = np.concatenate([[0], np.cumsum([len(query) for query in queries])])[:-1]
        lengths = np.array([len(query) for query in queries], np.float32)[:, None]
        scores = np.empty((len(queries), self.size), np.float32)
        for start, stop in self._parts():
            first, last = self._bounds[start], self._bounds[stop]
            products = together @ self._floats(first, last).T
            best = np.maximum.reduceat(products, self._bounds[start:stop] - first, axis=1)
            scores[:, start:stop] = np.add.reduceat(best, query_bounds, axis=0) / lengths
        return scores

    def _parts(self) -> list[tuple[int, int]]:
        """Ranges of pages that together have about ``SCAN_BYTES`` of vectors, at least one page each."""
        most = max(1, SCAN_BYTES // (4 * self.dim))
        cuts = [0]
        while cuts[-1] < self.size:
            stop = int(np.searchsorted(self._bounds, self._bounds[cuts[-1]] + most, side="right")) - 1
            cuts.append(min(self.size, max(stop, cuts[-1] + 1)))
        return list(pairwise(cuts))

    def _score(self, query: Floats, number: int) -> float:
        return float((query @ self._page(number).T).max(axis=1).mean())

    def _page(self, number: int) -> Floats:
        return self._floats(self._bounds[number], self._bounds[number + 1])

    def _floats(self, first: int, last: int) -> Floats:
        rows = self._vectors[first:last]
        if not self._binary:
            return np.asarray(rows, np.float32)
        signs = np.unpackbits(rows.astype(np.uint8), axis=1, count=self.dim).astype(np.float32)
        # Of length 1 as the vectors that they stand for.
        unit: Floats = (signs * 2 - 1) / np.float32(np.sqrt(self.dim))
        return unit


def _means(space: SpaceRows) -> SpaceRows:
    """The pages with one vector each, their mean, of length 1."""
    means = np.stack(
        [space.vectors[first:last].astype(np.float32).mean(axis=0) for first, last in pairwise(space.bounds)]
    )
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return SpaceRows.of(space.rows, (means / np.where(lengths == 0, 1, lengths)).astype(np.float16))
