"""The vector spaces of a collection as its one writer changes them. Reached as ``CollectionWriter.spaces``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from vrag_ray.index.storage.file_checksums import Sealer, space_tables
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.rows import CorruptionError, quoted
from vrag_ray.index.storage.spaces import (
    FOLDER,
    SpaceRecord,
    space_schema,
    unsound_ids,
)
from vrag_ray.types import NotFoundError, VragError

if TYPE_CHECKING:
    import lance
    import pyarrow as pa


class Faults(Protocol):
    """Turns what a disk refuses into a StorageError that says what is committed."""

    def __call__(self, doing: str, needed_bytes: Callable[[], int] | None = None) -> AbstractContextManager[None]: ...


@dataclass
class _Open:
    record: SpaceRecord
    table: lance.LanceDataset


class SpaceWriter:
    """Adds, fills and drops spaces. Nothing is seen by readers before the collection's next version is published."""

    def __init__(
        self, files: CollectionFiles, sealer: Sealer, faults: Faults, published: Sequence[SpaceRecord]
    ) -> None:
        import lance

        self._files, self._sealer, self._faults = files, sealer, faults
        # At their newest, which a killed run may have left later than the published version.
        options = files.lance_options
        self._open = {
            space.name: _Open(space, lance.dataset(files.uri(space.table), storage_options=options))
            for space in published
        }
        self._check_unsealed()

    @property
    def records(self) -> tuple[SpaceRecord, ...]:
        """What a version record is to say now: each space at its newest table version, rows counted."""
        return tuple(self._recorded(space) for space in self._open.values())

    @property
    def versions(self) -> dict[str, tuple[str, int]]:
        """The table of each space, and its newest version."""
        return {name: (space.record.table, int(space.table.version)) for name, space in self._open.items()}

    def get(self, name: str) -> SpaceRecord | None:
        space = self._open.get(name)
        return None if space is None else space.record

    def create(
        self,
        name: str,
        *,
        embedder_id: str,
        dim: int,
        multi_vector: bool,
        config: Mapping[str, object],
        traits: Mapping[str, object] | None = None,
    ) -> SpaceRecord:
        """An empty space. One of the same name is replaced; its table stays for the versions that have it."""
        import lance

        table = f"{FOLDER}/{name}-{len(space_tables(self._files)) + 1}.lance"
        with self._faults(f"making the vector space {name}"):
            dataset = lance.write_dataset(
                space_schema().empty_table(),
                self._files.uri(table),
                schema=space_schema(),
                storage_options=self._files.lance_options,
            )
            self._sealer.seal(table)
        record = SpaceRecord(
            name=name,
            table=table,
            version=int(dataset.version),
            embedder_id=embedder_id,
            dim=dim,
            multi_vector=multi_vector,
            config=dict(config),
            traits=dict(traits or {}),
        )
        self._open[name] = _Open(record, dataset)
        return record

    def drop(self, name: str) -> None:
        """Raises NotFoundError where there is none."""
        self._opened(name)
        del self._open[name]

    def add(self, name: str, rows: pa.Table) -> None:
        """Append the rows of a ``space_table``. The caller has made sure, by ``known_ids``, that none of the passages
        is there yet. Raises VragError for vectors of another dimension."""
        import pyarrow.compute as pc

        space = self._opened(name)
        sizes = pc.multiply(rows["count"], 2 * space.record.dim)
        wrong = rows.filter(pc.not_equal(pc.binary_length(rows["vectors"]), sizes))
        if wrong.num_rows:
            size, count = pc.binary_length(wrong["vectors"])[0].as_py(), wrong["count"][0].as_py()
            raise VragError(
                f"the vectors of {wrong['id'][0]} have {size // 2 // max(1, count)} dimensions, the space {name} has "
                f"{space.record.dim}"
            )
        with self._faults(f"writing {rows.num_rows} vectors", needed_bytes=lambda: rows.nbytes):
            space.table.insert(rows, mode="append")
            self._sealer.seal(space.record.table)

    def known_ids(self, name: str) -> pa.ChunkedArray:
        """Passages that have a row, with vectors or with the reason why not."""
        return self._opened(name).table.to_table(columns=["id"])["id"]

    def forget_failed(self, name: str) -> None:
        """Remove the rows of what could not be embedded, so that it is tried again."""
        space, where = self._opened(name), "error != ''"
        if space.table.count_rows(where):
            with self._faults(f"removing failed rows of {name}"):
                space.table.delete(where)
                self._sealer.seal(space.record.table)

    def forget_documents(self, doc_ids: Iterable[str]) -> None:
        """Remove the documents' rows from every space."""
        self._forget(f"doc_id IN ({quoted(doc_ids)})")

    def forget_passages(self, ids: Iterable[str]) -> None:
        """Remove the passages' rows from every space."""
        self._forget(f"id IN ({quoted(ids)})")

    def _forget(self, where: str) -> None:
        for space in self._open.values():
            if space.table.count_rows(where):
                with self._faults("removing a document's vectors"):
                    space.table.delete(where)
                    self._sealer.seal(space.record.table)

    def seal(self) -> None:
        for space in self._open.values():
            self._sealer.seal(space.record.table)

    def _opened(self, name: str) -> _Open:
        if name not in self._open:
            known = ", ".join(self._open) or "none"
            raise NotFoundError(f"the collection has no vector space {name} (there are: {known})")
        return self._open[name]

    def _recorded(self, space: _Open) -> SpaceRecord:
        counts = space.table.to_table(columns=["count"])["count"].to_numpy()
        return replace(
            space.record,
            version=int(space.table.version),
            passages=int((counts > 0).sum()),
            failed=int((counts == 0).sum()),
            vectors=int(counts.sum()),
        )

    def _check_unsealed(self) -> None:
        """Rows that a killed writer committed but did not seal must prove sound before they are sealed."""
        for space in self._open.values():
            unsealed = self._sealer.unsealed(space.record.table)
            if any("/data/" in name for name in unsealed):
                damaged = (passage_id for batch in space.table.to_batches() for passage_id in unsound_ids(batch))
                if (passage_id := next(damaged, None)) is not None:
                    raise CorruptionError(
                        f"the vectors of {passage_id} are damaged on disk: run `vrag verify`, then "
                        f"`vrag embed --space {space.record.name} --rebuild`"
                    )
            self._sealer.seal(space.record.table)
