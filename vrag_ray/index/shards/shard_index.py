"""All vectors of one shard of one collection version, by the spaces that are searched."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vrag_ray.config import IndexConfig, IndexKind
from vrag_ray.embedding.runtime import chosen_device, require
from vrag_ray.index.shards.changes import Taken, change_since, fragments_of
from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.ivf_index import IvfIndex
from vrag_ray.index.shards.late_index import LateIndex
from vrag_ray.index.shards.row_loader import WHOLE, Extent, RowSelection, load_space_rows
from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.shards.segments import Segment, SegmentedIndex
from vrag_ray.index.shards.shard_rows import SpaceRows
from vrag_ray.index.shards.space_index import PageTraits, QueryVectors
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.rows import CorruptionError
from vrag_ray.index.storage.versions import find_version
from vrag_ray.types import TEXT, VragError
from vrag_ray.types.filters import SearchFilter

MOST_CHANGED = 0.25
"""Of the rows that were loaded at once: where more have come or gone since, all are read again."""


@dataclass(frozen=True, slots=True)
class SpaceSpec:
    """A space of the collection to load. The rest is ``SpaceConfig``'s, of late interaction."""

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
    device: str = "cpu"
    """What scans it: ``cpu`` or ``cuda``."""
    notice: str = ""
    """Why it is not on the GPU that the shard has; "" where there is nothing to say."""


@dataclass(frozen=True, slots=True)
class LoadedSpace:
    """One space as it is searched. ``base`` and ``taken`` are what a later version can go on from, if it can."""

    spec: SpaceSpec
    index: SegmentedIndex
    base: Segment | None = None
    taken: Taken | None = None
    notice: str = ""
    """As in ``ShardStatus``."""


class ShardIndex:
    """The indexes of one shard, by space; thread-safe for searching."""

    def __init__(self, spaces: Mapping[str, LoadedSpace]) -> None:
        self._spaces = spaces

    def loaded(self, spec: SpaceSpec) -> LoadedSpace | None:
        """What is loaded of a space, if it was loaded as ``spec`` says."""
        space = self._spaces.get(spec.name)
        return space if space is not None and space.spec == spec else None

    @property
    def statuses(self) -> tuple[ShardStatus, ...]:
        return tuple(
            ShardStatus(
                space.index.size,
                space.index.dim,
                space.index.bytes_per_passage,
                name,
                space.index.recall,
                space.index.device,
                space.notice,
            )
            for name, space in self._spaces.items()
        )

    def nearest(self, space: str, queries: QueryVectors, k: int, filter: SearchFilter | None) -> list[list[Scored]]:
        """The ``k`` best passages of each query by (-score, id)."""
        if space not in self._spaces:
            raise VragError(f"this shard has not loaded the vector space {space}")
        return self._spaces[space].index.nearest(queries, k, filter)

    def page_traits(
        self, space: str, pairs: Sequence[tuple[str, int | None]], queries: QueryVectors
    ) -> list[PageTraits | None]:
        """What a space tells of passages, each with the number of its query (see ``PageQuery``); None where nothing.

        Heat maps are made here, because they are a thousandth of the vectors that they are made of.
        """
        if space not in self._spaces:
            return [None] * len(pairs)
        index = self._spaces[space].index
        return [index.page_traits(passage_id, None if n is None else queries[n]) for passage_id, n in pairs]


def load_shard(
    files: CollectionFiles,
    version: int,
    spaces: Sequence[SpaceSpec],
    config: IndexConfig,
    *,
    shard: int = 0,
    shards: int = 1,
    earlier: ShardIndex | None = None,
) -> ShardIndex:
    """Shard number ``shard`` of ``shards`` of a collection version (0: an empty one), read from its files.

    Of ``earlier``, the same shard of another version, is taken what still holds, so that only what changed is read.
    """
    collection = Collection(files, find_version(files, version) if version else None)
    part = _Part(collection, config, shard, shards)
    loaded: dict[str, LoadedSpace] = {}
    for spec in spaces:
        record = collection.find_space(spec.name)
        if collection.record is not None and (record is None or record.embedder_id != spec.embedder_id):
            continue
        known = earlier.loaded(spec) if earlier is not None else None
        loaded[spec.name] = (known and part.grown(known)) or part.whole(spec)
    return ShardIndex(loaded)


def late_device(config: IndexConfig) -> str | None:
    """The torch device that scans late interaction; None: NumPy does.

    Raises VragError where a GPU is configured and this process has none.
    """
    if config.num_gpus == 0 or (config.num_gpus is None and importlib.util.find_spec("torch") is None):
        return None
    require("torch", "late interaction on a GPU (index.num_gpus)")
    device = chosen_device("auto" if config.num_gpus is None else "cuda")
    return None if device == "cpu" else device


class _Part:
    """One shard of one version, as it is loaded."""

    def __init__(self, collection: Collection, config: IndexConfig, shard: int, shards: int) -> None:
        self._collection, self._config = collection, config
        self._shard, self._shards = shard, shards
        # Where it is configured, all vectors are on the GPU; a free one is used for late interaction alone. Ray leaves
        # CUDA_VISIBLE_DEVICES as it is for actors without a GPU: what FAISS sees is no permission.
        self._gpu_temp_mb = config.gpu_temp_mb if config.num_gpus else None
        self._notice = ""
        self._sums = collection.document_sums()

    def whole(self, spec: SpaceSpec) -> LoadedSpace:
        # Counting the documents reads their rows, whose checksums are verified by that.
        if self._collection.document_count != len(self._sums):
            raise CorruptionError(f"{self._collection.root} has two rows of one document: run `vrag verify`")
        selection = RowSelection(self._sums, self._shard, self._shards)
        base = self._segment(spec, selection, WHOLE)
        if isinstance(base.index, IvfIndex):
            return LoadedSpace(spec, SegmentedIndex(base))
        taken = None
        # Single vectors of which some do not count any more would be searched from a copy in main memory.
        if self._collection.record is not None and (spec.multi_vector or self._gpu_temp_mb is None):
            table = self._collection.space_table(spec.name)
            taken = Taken(table.uri, fragments_of(table), self._sums, frozenset(selection.left_out))
        return LoadedSpace(spec, SegmentedIndex(base), base, taken, notice=self._notice if spec.multi_vector else "")

    def grown(self, known: LoadedSpace) -> LoadedSpace | None:
        """``known`` with what has changed since its base was loaded; None where all must be read again."""
        base, taken = known.base, known.taken
        if base is None or taken is None or self._collection.record is None:
            return None
        if self._collection.find_space(known.spec.name) is None:
            return None
        table = self._collection.space_table(known.spec.name)
        change = change_since(taken, fragments_of(table), self._sums) if table.uri == taken.table else None
        if change is None:
            return None
        self._collection.check_documents(change.fresh)
        remaining = base.without(change.dropped)
        added = self._segment(known.spec, RowSelection(self._sums, self._shard, self._shards), change.extents)
        both = added.index.rows.documents.keys() & (base.index.rows.documents.keys() - change.dropped)
        if (both and change.has_deletions) or added.size + base.size - remaining.size > base.size * MOST_CHANGED:
            return None
        grown = SegmentedIndex(remaining, added if added.size else None)
        return LoadedSpace(known.spec, grown, base, taken, notice=known.notice)

    def _segment(self, spec: SpaceSpec, selection: RowSelection, extents: Sequence[Extent]) -> Segment:
        space = load_space_rows(self._collection, spec.name, selection, extents)
        if spec.multi_vector:
            return Segment(self._late(spec, space))
        config = self._config
        if config.kind is IndexKind.FLAT:
            return Segment(FlatIndex(space, config.threads or os.cpu_count() or 1, gpu_temp_mb=self._gpu_temp_mb))
        return Segment(
            IvfIndex(
                space,
                config.kind,
                nprobe=config.nprobe,
                recall_floor=config.recall_floor,
                gpu_temp_mb=self._gpu_temp_mb,
            )
        )

    def _late(self, spec: SpaceSpec, space: SpaceRows) -> LateIndex:
        def index_on(device: str | None) -> LateIndex:
            return LateIndex(
                space,
                binary=spec.binary,
                exhaustive_below=spec.exhaustive_below,
                candidates=spec.candidates,
                device=device,
            )

        device = late_device(self._config)
        try:
            return index_on(device)
        except VragError as error:
            if device is None or self._config.num_gpus:
                raise
            # No setting demands the GPU, so the vectors need not fit it.
            self._notice = f"{spec.name} is searched on the CPU: {error}"
            return index_on(None)
