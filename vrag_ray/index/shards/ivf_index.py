"""Approximate search in one shard: an inverted file whose recall is measured against exact search when it is built.

For collections whose exact scan takes too long. Results are not those of a flat index, so the measured recall@10 is
part of the shard's state, and an index below the configured floor is refused rather than served.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import IndexKind
from vrag_ray.index.shards.faiss_library import load_faiss
from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.gpu_index import MOST_RESULTS, GpuIvf
from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.shards.shard_rows import SpaceRows
from vrag_ray.index.shards.space_index import Floats, PageTraits, QueryVectors, single_vectors
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    import faiss

SAMPLES = 200
"""Queries of the measurement: vectors of the shard itself, each moved by noise of a third of its length."""
NOISE = 1 / 3
RECALL_AT = 10
LEAST_ROWS_OF_PQ = 256
"""A sub-quantiser of one byte has a centroid for each value of it; FAISS trains no more centroids than vectors."""
_SEED = 20


class IvfIndex:
    """As ``FlatIndex``, approximately; thread-safe for searching. A ``SpaceIndex``.

    With ``gpu_temp_mb`` (temporary memory there) it is on a GPU once it is built. Filters and ``k`` above 2,048 need a
    copy in main memory, which is made from the card when it is first needed.
    """

    def __init__(
        self,
        space: SpaceRows,
        kind: IndexKind,
        *,
        nprobe: int,
        recall_floor: float,
        gpu_temp_mb: int | None = None,
    ) -> None:
        """``nprobe`` of about the square root of n lists are scanned. Raises VragError where recall@10 is below
        ``recall_floor``, where ``ivf_pq`` gets fewer than 256 vectors, and where FAISS has no GPU code for such an
        index."""
        faiss = load_faiss()
        self.rows, vectors = space.rows, space.vectors
        self._phashes = space.drawn()
        self.size, self.dim = len(self.rows.ids), int(vectors.shape[1])
        self.recall = 1.0
        self._nprobe = nprobe
        if self.size == 0:
            return
        if kind is IndexKind.IVF_PQ and self.size < LEAST_ROWS_OF_PQ:
            raise VragError(
                f"index.kind {kind} needs at least {LEAST_ROWS_OF_PQ} vectors in a shard, and a shard here has "
                f"{self.size}: set index.kind to flat or ivf_sq, or lower index.shards"
            )
        floats = vectors.astype(np.float32)
        lists = max(1, round(float(np.sqrt(self.size))))
        code = "SQfp16" if kind is IndexKind.IVF_SQ else f"PQ{_parts(self.dim)}"
        index = faiss.index_factory(self.dim, f"IVF{lists},{code}", faiss.METRIC_INNER_PRODUCT)
        # A small shard has fewer vectors a list than FAISS would like: the measured recall judges, not a warning.
        index.cp.min_points_per_centroid = 1
        if kind is IndexKind.IVF_PQ:
            index.pq.cp.min_points_per_centroid = 1
            # Ten seconds of training for a filter that is not used here.
            index.do_polysemous_training = False
        index.train(floats)
        index.add(floats)
        self._copying = threading.Lock()
        self._gpu = GpuIvf(index, nprobe, gpu_temp_mb) if gpu_temp_mb is not None else None
        self._copy = index if self._gpu is None else None
        self.bytes_per_passage = index.code_size + 8 + self.rows.nbytes / self.size
        self.recall = self._measured(space)
        if self.recall < recall_floor:
            raise VragError(
                f"index.kind {kind} finds {self.recall:.3f} of the ten nearest of this collection, below "
                f"index.recall_floor {recall_floor:g}: raise index.nprobe (now {nprobe} of {lists} lists), or use flat"
            )

    bytes_per_passage: float = 0.0

    @property
    def device(self) -> str:
        """``cpu`` or ``cuda``."""
        return "cuda" if self.size and self._gpu is not None else "cpu"

    def nearest(
        self,
        queries: QueryVectors,
        k: int,
        filter: SearchFilter | None = None,
        alive: NDArray[np.bool_] | None = None,
    ) -> list[list[Scored]]:
        if self.size == 0 or k <= 0 or not len(queries):
            return [[] for _ in queries]
        vectors = single_vectors(queries, self.dim)
        scores, numbers = self._scan(vectors, min(k, self.size), self.rows.mask(filter, alive))
        return [
            sorted(
                (
                    Scored(self.rows.ids[number].as_py(), score)
                    for score, number in zip(*row, strict=True)
                    if number >= 0
                ),
                key=lambda scored: scored.sort_key,
            )
            for row in zip(scores.tolist(), numbers.tolist(), strict=True)
        ]

    def page_traits(self, passage_id: str, query: Floats | None) -> PageTraits | None:  # noqa: ARG002
        """A single vector has no places: the perceptual hash alone is known."""
        return PageTraits(None, self._phashes[passage_id]) if passage_id in self._phashes else None

    def _scan(
        self, queries: Floats, k: int, mask: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        import faiss

        if self._gpu is not None and mask is None and k <= MOST_RESULTS:
            return self._gpu.nearest(queries, k)
        selector = None if mask is None else faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
        params = faiss.SearchParametersIVF(nprobe=self._nprobe, sel=selector)
        return self._cpu.search(queries, k, params=params)  # type: ignore[no-any-return]

    @property
    def _cpu(self) -> faiss.IndexIVF:
        with self._copying:
            if self._copy is None:
                assert self._gpu is not None
                self._copy = self._gpu.on_cpu()
            return self._copy

    def _measured(self, space: SpaceRows) -> float:
        """Share of the exact ten nearest that is found, over ``SAMPLES`` queries like the shard's own vectors."""
        vectors = space.vectors
        chance = np.random.default_rng(_SEED)
        chosen = vectors[chance.choice(self.size, min(SAMPLES, self.size), replace=False)].astype(np.float32)
        moved = chosen + chance.standard_normal(chosen.shape).astype(np.float32) * NOISE / np.sqrt(self.dim)
        k = min(RECALL_AT, self.size)
        queries = list(moved)
        exact, approximate = FlatIndex(space).nearest(queries, k), self.nearest(queries, k)
        hits = sum(
            len({o.id for o in exact_hits} & {o.id for o in other})
            for exact_hits, other in zip(exact, approximate, strict=True)
        )
        return hits / (k * len(moved))


def _parts(dim: int) -> int:
    """Sub-quantisers of one byte each: about one for four dimensions, a divisor of ``dim``."""
    return max(parts for parts in range(1, max(1, dim // 4) + 1) if dim % parts == 0)
