"""The one way to change a collection.

Order of every change: blobs, then passages, then document rows, then the version record that readers start from.
A process killed in between leaves nothing that a reader sees, and everything the next writer needs to go on.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from vrag_ray.corpus.passages import UNIT_ERROR, UNIT_NOTICES, Holds, holds_of
from vrag_ray.index.object_store.claim import ClaimedError, LostClaimError, WriterClaim
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.document_list import read_documents
from vrag_ray.index.storage.document_rows import DocumentRows
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.index.storage.file_checksums import Sealer
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.rows import (
    CorruptionError,
    StoredPassage,
    document_schema,
    documents_table,
    meta_from_json,
    passage_is_sound,
    passage_schema,
    passages_table,
    quoted,
)
from vrag_ray.index.storage.space_writer import SpaceWriter
from vrag_ray.index.storage.spaces import space_table
from vrag_ray.index.storage.texts_before_spaces import COLUMNS, as_space_rows, other_copies, text_space_of, where_of
from vrag_ray.index.storage.versions import VersionRecord, find_version, latest_number, write_version
from vrag_ray.types import TEXT, Document, NotFoundError, PassageKind, VragError

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

_FTS_COLUMN = "terms"
_TEXTS_AT_ONCE = 2_048
"""Rows that are read together where conditions need their texts, which Lance holds several batches of."""
_ROWS_AT_ONCE = 65_536
"""Rows that are looked up together among those that are there: each look-up first hashes all of those."""
_SMALL_FILES_BYTES = 50_000
"""Twice the files beside the manifest of a small commit: 16 kB were seen, 24 kB for a deletion, in blocks of 4 kB."""


class BusyError(VragError):
    """Another process holds the write lock of the collection."""


class CollectionWriter(AbstractContextManager["CollectionWriter"]):
    """Exclusive write access: a second writer is refused. On a local disk the lock dies with its process; on an object
    store the claim of a killed process is void after a minute.

    What the disk refuses is raised as StorageError, which says what is committed. A method that raised it is not to
    be called again with the same values: a part of them may be committed. The next writer goes on from there.
    """

    def __init__(self, root: str | Path) -> None:
        self.files = Collection.open_or_create(root).files
        with storage_faults(self.files.root, "opening it for writing"):
            self._published = find_version(self.files, None)
        self._pages_committed = 0
        self._lock: IO[bytes] | None = None
        self._claim: WriterClaim | None = None
        try:
            with self._faults("opening it for writing"):
                if self.files.is_local:
                    self._lock = _lock(self.files.root)
                else:
                    self._claim = _claim(self.files)
                # Once more: who held the lock may have published meanwhile.
                self._published = find_version(self.files, None)
                self._sealer = Sealer(self.files)
                self._passages = self._open_table("passages")
                self._documents = self._open_table("documents")
                self._seal_leftovers()
                self.spaces = SpaceWriter(
                    self.files, self._sealer, self._faults, self._published.spaces if self._published else ()
                )
                self._adopt_vectors_of_passages()
                self._rows = DocumentRows(document for _, document in read_documents(self._documents))
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def __enter__(self) -> Self:
        return self

    def add_passages(self, stored: Sequence[StoredPassage]) -> None:
        """Append one batch. The caller has made sure, by ``unfinished_units``, that none of it is there yet."""
        table = passages_table(stored)
        pages = len({(row.passage.doc_id, row.unit) for row in stored})
        with self._faults(f"writing {pages} {'page' if pages == 1 else 'pages'}", needed_bytes=lambda: table.nbytes):
            self._passages.insert(table, mode="append")
            self._pages_committed += pages
            self._sealer.seal("passages.lance")

    def unembedded(self, space: str, columns: Mapping[str, str], where: str = "") -> Iterator[pa.RecordBatch]:
        """Passages of finished documents that have no row in ``space``: ``id``, ``doc_id`` and ``columns``, which are
        SQL expressions of the columns of their table."""
        import pyarrow as pa
        import pyarrow.compute as pc

        known = self.spaces.known_ids(space)
        finished = pa.array(sorted(self.documents), pa.string())
        columns = {"id": "id", "doc_id": "doc_id", **columns}
        batches = self._passages.to_batches(
            columns=columns, filter=where or None, batch_size=_TEXTS_AT_ONCE, batch_readahead=2, fragment_readahead=2
        )
        for batch in _together(batches):
            missing = pc.and_(
                pc.is_in(batch.column("doc_id"), value_set=finished),
                pc.invert(pc.is_in(batch.column("id"), value_set=known)),
            )
            yield batch.filter(missing)

    @property
    def version(self) -> int:
        """The newest published version, 0 before the first."""
        return latest_number(self.files)

    @property
    def table_versions(self) -> tuple[int, int]:
        """Lance's versions of the passages and of the documents, with what is not published yet."""
        return int(self._passages.version), int(self._documents.version)

    @property
    def has_unpublished(self) -> bool:
        """Whether something is committed that no published version has, as a killed writer leaves it."""
        published = self._published
        if published is None:
            return bool(self._documents.count_rows() or self._passages.count_rows())
        if self.table_versions != (published.passages_version, published.documents_version):
            return True
        return self.spaces.versions != {space.name: (space.table, space.version) for space in published.spaces}

    def unfinished_units(self, again: AbstractSet[str] = frozenset()) -> dict[str, dict[int, str]]:
        """What an earlier ingest left: by document without a finished row, its units and their error or "".

        The documents ``again`` count as unfinished, and those of their units that have an error are left out.
        """
        import pyarrow.compute as pc

        finished = {d.doc_id for d in self.documents.values() if not d.read_again} - again
        units: dict[str, dict[int, str]] = {}
        columns = ["doc_id", "unit", "meta"]
        for batch in self._passages.to_batches(columns=columns):
            for doc_id in set(batch.column("doc_id").to_pylist()) - finished:
                rows = batch.filter(pc.equal(batch.column("doc_id"), doc_id))
                states = zip(rows.column("unit").to_pylist(), rows.column("meta").to_pylist(), strict=True)
                known = units.setdefault(doc_id, {})
                known.update((unit, str(meta_from_json(meta).get(UNIT_ERROR, ""))) for unit, meta in states)
        for doc_id in again & units.keys():
            units[doc_id] = {unit: "" for unit, error in units[doc_id].items() if not error}
        return units

    @property
    def documents(self) -> Mapping[str, Document]:
        """Every committed document by id."""
        return self._rows.by_id

    def owner_of(self, uri: str) -> str | None:
        """The id of the document that has this name."""
        return self._rows.owner_of(uri)

    def drop_passages(self, doc_ids: Sequence[str]) -> None:
        """Remove documents' passages and their vectors."""
        with self._faults("removing documents' pages", needed_bytes=lambda: self._commit_bytes("passages")):
            self._passages.delete(f"doc_id IN ({quoted(doc_ids)})")
            self._sealer.seal("passages.lance")
        self.spaces.forget_documents(doc_ids)

    def drop_units(self, units: Iterable[tuple[str, int]]) -> None:
        """Remove the passages of single units (document id, unit), and their vectors in every space."""
        by_document: dict[str, list[str]] = {}
        for doc_id, unit in units:
            by_document.setdefault(doc_id, []).append(str(unit))
        chosen = [f"(doc_id = '{doc_id}' AND unit IN ({', '.join(pages)}))" for doc_id, pages in by_document.items()]
        where = " OR ".join(chosen)
        ids = self._passages.to_table(columns=["id"], filter=where)["id"].to_pylist() if chosen else []
        if not ids:
            return
        with self._faults("removing pages", needed_bytes=lambda: self._commit_bytes("passages")):
            self._passages.delete(where)
            self._sealer.seal("passages.lance")
        self.spaces.forget_passages(ids)

    def commit_documents(self, documents: Iterable[Document]) -> None:
        """Add or replace document rows, all in one commit; other documents lose the uris that these now have.

        A document without a uri left is removed, before the others are written.
        """
        changed, orphans = self._rows.changes(documents)
        if orphans:
            self._delete(orphans)
        if not changed:
            return
        with self._faults(_writing_rows(len(changed)), needed_bytes=lambda: self._commit_bytes("documents")):
            upsert = self._documents.merge_insert("doc_id").when_matched_update_all().when_not_matched_insert_all()
            upsert.execute(documents_table(changed))
            for document in changed:
                self._rows.put(document)
            self._sealer.seal("documents.lance")

    def delete(self, *doc_ids: str) -> None:
        """Remove documents and their passages. Their blobs stay for older versions.

        Raises NotFoundError, and removes none, where one is not there: another process may have removed it meanwhile.
        """
        for doc_id in doc_ids:
            if doc_id not in self.documents:
                raise NotFoundError(f"document {doc_id} is not in {self.files.root}: it was removed a moment ago")
        self._delete(doc_ids)

    def unit_notices(self, doc_id: str) -> tuple[dict[int, list[str]], set[Holds]]:
        """By unit what the stored passages of a document say was left out of it, and what its units hold."""
        notices: dict[int, list[str]] = {}
        holds: set[Holds] = set()
        columns = ["unit", "kind", "meta", "text"]
        for row in self._passages.to_table(columns=columns, filter=f"doc_id = '{doc_id}'").to_pylist():
            meta = meta_from_json(row["meta"])
            holds.add(holds_of(PassageKind(row["kind"]), row["text"], meta))
            if UNIT_NOTICES in meta:
                notices[row["unit"]] = str(meta[UNIT_NOTICES]).splitlines()
        return notices, holds

    def publish(self, note: str) -> int:
        """Bring the indexes up to date and make everything committed so far the newest version; its number."""
        with self._faults("updating the search index", needed_bytes=self._index_bytes):
            published = self._published.passages_version if self._published is not None else None
            # While spaces are filled no passage changes: merging the same index again would take as long as the first.
            if published != int(self._passages.version) and self._passages.count_rows():
                self._index_passages()
                _return_free_memory()
            self._sealer.seal("passages.lance")
            self._sealer.seal("documents.lance")
            self.spaces.seal()
        self._check_claim()
        with self._faults("writing the version record"):
            in_passages = self.spaces.get(TEXT) is None and text_space_of(self._passages, self._documents) is not None
            record = VersionRecord(
                number=latest_number(self.files) + 1,
                passages_version=int(self._passages.version),
                documents_version=int(self._documents.version),
                documents=len(self.documents),
                passages=int(self._passages.count_rows()),
                created_at=now_utc(),
                note=note,
                spaces=self.spaces.records,
                texts_dropped=in_passages,
            )
            write_version(self.files, record)
        self._published, self._pages_committed = record, 0
        return record.number

    def _adopt_vectors_of_passages(self) -> None:
        """Copy the vectors of texts that stand in the passages into the space ``text``, where there is none yet."""
        if self._published is None or self._published.texts_dropped or self.spaces.get(TEXT) is not None:
            return
        record = text_space_of(self._passages, self._documents)
        if record is None:
            return
        copies = other_copies(self._passages, record.embedder_id)
        if copies:
            with self._faults("removing passages that stand there twice"):
                self._passages.delete(copies)
                self._sealer.seal("passages.lance")
        self.spaces.create(
            TEXT,
            embedder_id=record.embedder_id,
            dim=record.dim,
            multi_vector=False,
            config=record.config,
            traits=record.traits,
        )
        batches = self._passages.to_batches(
            columns=list(COLUMNS),
            filter=where_of(record.embedder_id),
            batch_size=_TEXTS_AT_ONCE,
            batch_readahead=2,
            fragment_readahead=2,
        )
        # Each is a commit, and a collection may have thousands of fragments.
        for batch in _together(batches):
            if batch.num_rows:
                rows = as_space_rows(batch, record.dim)
                self.spaces.add(TEXT, space_table(dict(zip(rows.schema.names, rows.columns, strict=True))))

    def _check_claim(self) -> None:
        if self._claim is None:
            return
        try:
            self._claim.check()
        except LostClaimError as error:
            raise BusyError(f"nothing is published in {self.files.root}: {error}; run the same again") from error

    def _faults(self, doing: str, needed_bytes: Callable[[], int] | None = None) -> AbstractContextManager[None]:
        return storage_faults(self.files.root, doing, kept=self.kept, needed_bytes=needed_bytes)

    def kept(self) -> str:
        """What a failed write leaves, from what this writer remembers: nothing is read from the disk."""
        if self._published is None:
            message = "Nothing was lost: no version is published yet"
        else:
            count = self._published.documents
            documents = f"{count} {'document' if count == 1 else 'documents'}"
            message = f"Nothing was lost: version {self._published.number} with {documents} stays in service"
        if self._pages_committed:
            pages = "1 page" if self._pages_committed == 1 else f"{self._pages_committed} pages"
            message += f", and {pages} committed since then will not be read again"
        return message + "."

    def _commit_bytes(self, table: str) -> int:
        """About what a commit of a few rows writes: a manifest like the last, and small files beside it."""
        manifests = self.files.list(f"{table}.lance/_versions")
        return _SMALL_FILES_BYTES + max(map(self.files.size, manifests), default=0)

    def _index_bytes(self) -> int:
        """About what an index update writes: the index is merged anew, and the first is no larger than its table."""
        indices = self.files.list("passages.lance/_indices")
        return sum(map(self.files.size, indices or self.files.list("passages.lance/data")))

    def _index_passages(self) -> None:
        names = {index.name for index in self._passages.describe_indices()}
        if "id_idx" not in names:
            self._passages.create_scalar_index("id", "BTREE", name="id_idx")
        if "terms_idx" in names:
            # One merged index: BM25 statistics then do not depend on how ingest was cut into commits.
            self._passages.optimize.optimize_indices(num_indices_to_merge=len(self._passages.get_fragments()) + 1)
            return
        self._passages.create_scalar_index(
            _FTS_COLUMN, "INVERTED", name="terms_idx", base_tokenizer="whitespace", stem=False, lower_case=False,
            remove_stop_words=False, ascii_folding=False, with_position=False,
        )  # fmt: skip

    def _delete(self, doc_ids: Sequence[str]) -> None:
        removing = "removing a document" if len(doc_ids) == 1 else f"removing {len(doc_ids)} documents"
        with self._faults(removing, needed_bytes=lambda: self._commit_bytes("documents")):
            self._documents.delete(f"doc_id IN ({quoted(doc_ids)})")
            for doc_id in doc_ids:
                self._rows.remove(doc_id)
            self._sealer.seal("documents.lance")
        self.drop_passages(doc_ids)

    def _open_table(self, name: str) -> lance.LanceDataset:
        import lance

        uri = self.files.uri(f"{name}.lance")
        schema = passage_schema() if name == "passages" else document_schema()
        try:
            table = lance.dataset(uri, storage_options=self.files.lance_options)
        except (ValueError, OSError):
            if self.files.list(f"{name}.lance/_versions"):
                raise
            table = lance.write_dataset(
                schema.empty_table(), uri, schema=schema, storage_options=self.files.lance_options
            )
            self._sealer.seal(f"{name}.lance")
        return table

    def _seal_leftovers(self) -> None:
        """Seal what a killed writer committed but did not seal, once its rows have proved sound."""
        unsealed = self._sealer.unsealed("passages.lance")
        if any("/data/" in name for name in unsealed):
            for batch in self._passages.to_batches(filter="true"):
                for row in batch.to_pylist():
                    if not passage_is_sound(row):
                        raise CorruptionError(
                            f"passage {row['id']} is damaged on disk: run `vrag verify`, then delete its document"
                        )
        self._sealer.seal("passages.lance")
        self._sealer.seal("documents.lance")


def _writing_rows(count: int) -> str:
    return "writing a document's row" if count == 1 else f"writing the rows of {count} documents"


def now_utc() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _claim(files: CollectionFiles) -> WriterClaim:
    try:
        return files.claim()
    except ClaimedError as error:
        raise BusyError(
            f"another process is writing to the collection {files.root}: wait until it has finished, or a minute after "
            "it was killed"
        ) from error


def _return_free_memory() -> None:
    """Merging the index of words takes memory by the size of the collection; glibc would keep it for this process."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about ``_ROWS_AT_ONCE``."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= _ROWS_AT_ONCE:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


def _lock(root: str) -> IO[bytes]:
    import fcntl

    stream = (Path(root) / ".writer.lock").open("wb")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        stream.close()
        raise BusyError(f"another process is writing to the collection {root}: wait until it has finished") from error
    return stream
