"""The vector spaces of a collection: a Lance table each, so that one is added, rebuilt or dropped on its own.

A space belongs to one embedder. Its table has one row for each passage that the embedder took, by passage id, with all
its vectors (one, or many for late interaction) as fp16 bytes. A passage that could not be embedded has a row with its
error and no vectors, and is not tried again. Which spaces a version of the collection has, and at which version of
their tables, is in the version record; a dropped table stays for the older versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from vrag_ray.index.storage.column_checksums import SPACE_HEAD, space_checksums

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = "spaces"
SPACE_COLUMNS = (*SPACE_HEAD, "vectors")


@dataclass(frozen=True, slots=True)
class SpaceRecord:
    """One space of one version. ``config`` is the ``SpaceConfig`` it was made with, and ``traits`` what its embedder
    states of itself, both as JSON values.

    ``table`` is the folder below the collection, ``version`` Lance's. ``passages`` counts the rows that have vectors,
    ``failed`` those that could not be embedded, ``vectors`` all vectors.
    """

    name: str
    table: str
    version: int
    embedder_id: str
    dim: int
    multi_vector: bool
    passages: int = 0
    failed: int = 0
    vectors: int = 0
    config: dict[str, object] = field(default_factory=dict)
    traits: dict[str, object] = field(default_factory=dict)

    @property
    def bytes_per_passage(self) -> float:
        """On disk and, unless it is binarised, in memory."""
        return self.vectors * self.dim * 2 / max(1, self.passages)


def space_schema() -> pa.Schema:
    import pyarrow as pa

    types: dict[str, pa.DataType] = {
        "count": pa.int32(), "grid_rows": pa.int32(), "grid_columns": pa.int32(), "phash": pa.uint64(),
        "vectors": pa.large_binary(),
    }  # fmt: skip
    fields = [(name, types.get(name, pa.string())) for name in SPACE_COLUMNS]
    return pa.schema([*fields, ("checksum", pa.uint64())])


def space_table(columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """The rows of a space's table with their sums, of its ``SPACE_COLUMNS``.

    ``vectors`` are the fp16 bytes of ``count`` vectors each, none where ``error`` says why. ``grid_rows`` and
    ``grid_columns`` are null where the vectors have no place on the page, ``phash`` where no picture was drawn.
    """
    import pyarrow as pa

    schema = space_schema()
    unsummed = pa.schema([schema.field(name) for name in SPACE_COLUMNS])
    table = pa.table({name: columns[name] for name in SPACE_COLUMNS}, schema=unsummed).combine_chunks()
    sums = [space_checksums(batch) for batch in table.to_batches()]
    return table.append_column(schema.field("checksum"), pa.chunked_array(sums, pa.uint64()))


def unsound_ids(batch: pa.RecordBatch) -> list[str]:
    """The passages whose rows are not what was written, of a batch with all columns."""
    wrong = np.flatnonzero(space_checksums(batch) != batch.column("checksum").to_numpy())
    return [batch.column("id")[int(n)].as_py() for n in wrong]
