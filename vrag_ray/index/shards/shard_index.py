"""All vectors of one shard of one collection version: the texts' own and those of the spaces that are searched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import IndexConfig, IndexKind
from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.ivf_index import IvfIndex
from vrag_ray.index.shards.late_index import LateIndex, Sight
from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.shards.shard_rows import ShardRows, load_space_rows, load_text_rows
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.versions import find_version
from vrag_ray.types import TEXT, VragError
from vrag_ray.types.filters import SearchFilter

SpaceIndex = FlatIndex | IvfIndex | LateIndex
QueryVectors = Sequence[NDArray[np.float32]]
"""For each query its vectors, [n, dim]; n is 1 in a space of single vectors."""


@dataclass(frozen=True, slots=True)
class SpaceSpec:
    """A space to load: ``TEXT``, or one of the collection's. The rest is ``SpaceConfig``'s, of late interaction."""

    name: str
    embedder_id: str
    multi_vector: bool = False
    binary: bool = False
    exhaustive_below: int = 0
    candidates: int = 0


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """What one shard holds of one space: passages, the dimension of a vector, and the bytes a passage in memory."""

    size: int
    dim: int
    bytes_per_passage: float
    space: str = TEXT
    recall: float = 1.0
    """Share of the exact ten nearest that its index finds, as measured when it was built; 1 for an exact one."""


class ShardIndex:
    """The indexes of one shard, by space; thread-safe for searching."""

    def __init__(self, spaces: dict[str, SpaceIndex], phashes: dict[str, dict[str, int]]) -> None:
        """``phashes``: of spaces of single vectors, the perceptual hash of each passage that was drawn."""
        self._spaces, self._phashes = spaces, phashes

    @property
    def statuses(self) -> tuple[ShardStatus, ...]:
        return tuple(
            ShardStatus(
                index.size,
                index.dim,
                index.bytes_per_page if isinstance(index, LateIndex) else index.bytes_per_vector,
                name,
                index.recall if isinstance(index, IvfIndex) else 1.0,
            )
            for name, index in self._spaces.items()
        )

    def search(self, space: str, queries: QueryVectors, k: int, wanted: SearchFilter | None) -> list[list[Scored]]:
        """The ``k`` best passages of each query by (-score, id)."""
        index = self._spaces.get(space)
        if index is None:
            raise VragError(f"this shard has not loaded the vector space {space}")
        if isinstance(index, LateIndex):
            return index.search(queries, k, wanted)
        return index.search(np.concatenate(queries), k, wanted) if queries else []

    def sights(self, space: str, asked: Sequence[tuple[str, int | None]], queries: QueryVectors) -> list[Sight | None]:
        """What a space tells of passages, each with the number of the query that looks at it; None where nothing.

        Heat maps are made here, because they are a thousandth of the vectors that they are made of.
        """
        index, phashes = self._spaces.get(space), self._phashes.get(space, {})
        if isinstance(index, LateIndex):
            return [index.sight(passage_id, None if n is None else queries[n]) for passage_id, n in asked]
        known = ((passage_id in phashes, phashes.get(passage_id)) for passage_id, _ in asked)
        return [Sight(None, phash) if is_known else None for is_known, phash in known]


def load_shard(
    files: CollectionFiles,
    version: int,
    spaces: Sequence[SpaceSpec],
    config: IndexConfig,
    *,
    shard: int = 0,
    shards: int = 1,
) -> ShardIndex:
    """Shard number ``shard`` of ``shards`` of a collection version (0: an empty one), read from its files."""
    collection = Collection(files, find_version(files, version) if version else None)
    loaded: dict[str, SpaceIndex] = {}
    phashes: dict[str, dict[str, int]] = {}
    for spec in spaces:
        if spec.name == TEXT:
            rows, vectors = load_text_rows(collection, spec.embedder_id, shard, shards)
            loaded[TEXT] = _single(rows, vectors, config)
            continue
        record = collection.record.space(spec.name) if collection.record is not None else None
        if record is None or record.embedder_id != spec.embedder_id:
            continue
        found = load_space_rows(collection, spec.name, shard, shards)
        if spec.multi_vector:
            loaded[spec.name] = LateIndex(
                found, binary=spec.binary, exhaustive_below=spec.exhaustive_below, candidates=spec.candidates
            )
        else:
            loaded[spec.name] = _single(found.rows, found.vectors, config)
            drawn = zip(found.rows.ids.to_pylist(), found.phashes, strict=True)
            phashes[spec.name] = {passage_id: phash for passage_id, phash in drawn if phash is not None}
    return ShardIndex(loaded, phashes)


def _single(rows: ShardRows, vectors: NDArray[np.float16], config: IndexConfig) -> FlatIndex | IvfIndex:
    """Single vectors as ``config`` has them searched."""
    if config.kind is not IndexKind.FLAT:
        return IvfIndex(rows, vectors, config.kind, nprobe=config.nprobe, recall_floor=config.recall_floor)
    # Ray leaves CUDA_VISIBLE_DEVICES as it is for actors without a GPU: what FAISS sees is no permission.
    gpu_temp_mb = config.gpu_temp_mb if config.num_gpus > 0 else None
    return FlatIndex(rows, vectors, config.threads or os.cpu_count() or 1, gpu_temp_mb=gpu_temp_mb)
