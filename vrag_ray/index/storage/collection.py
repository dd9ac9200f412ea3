"""A collection opened for reading at one version.

Layout below the root: ``blobs/<sha256>`` (original bytes, and what LibreOffice made of them; never rewritten),
``passages.lance``, ``documents.lance``, ``spaces/<name>-<n>.lance`` (vectors), ``versions/`` (one record a collection
version) and ``seals/`` (file hashes). A passage counts only when its document has a row, so
a half-ingested document is never searched.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.caching import SizedLRU
from vrag_ray.index.storage.document_list import DocumentList, document_sums, read_rows
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.passage_names import MOST_ROWS, PassageNames
from vrag_ray.index.storage.rows import (
    HIT_COLUMNS,
    AbsentError,
    CorruptionError,
    passage_from_row,
    quoted,
)
from vrag_ray.index.storage.spaces import SpaceRecord
from vrag_ray.index.storage.term_scores import TermScores
from vrag_ray.index.storage.texts_before_spaces import text_space_of
from vrag_ray.index.storage.versions import VersionRecord, find_version, latest_number, list_versions
from vrag_ray.types import PREFIX_OF_PASSAGES, TEXT, Document, Locator, NotFoundError, Passage, VragError
from vrag_ray.types.file_names import distinct_titles

if TYPE_CHECKING:
    import lance

FORMAT = {"format": "vrag_ray collection", "layout": 2}
MARKER = "collection.json"
CACHED_PASSAGE_BYTES = 32 << 20
MIN_PREFIX = 8
ID_LENGTH = 64
"""Hex digits of a SHA-256."""


class Collection:
    """Read access to one version of a collection. Cheap to open; not affected by later commits."""

    def __init__(
        self, files: CollectionFiles, record: VersionRecord | None, earlier: DocumentList | None = None
    ) -> None:
        """``earlier`` are the documents of another version, of which those that are the same are not read again."""
        self.files = files
        self.record = record
        self.root = files.root
        self.version = record.number if record else 0
        self._tables: dict[str, lance.LanceDataset] = {}
        self._documents: DocumentList | None = None
        self._earlier = earlier
        # A version never changes, so neither does what was read of it. Searches come from several threads.
        self._cached: SizedLRU[str, Passage] = SizedLRU(CACHED_PASSAGE_BYTES, _size_of)
        self._keeping = threading.Lock()
        self._names: PassageNames | None = None
        self._titles: dict[str, str] | None = None
        self._distinct: dict[str, Mapping[str, str]] = {}
        self._is_large = False
        self._naming = threading.Lock()

    @classmethod
    def open(cls, root: str | Path, version: int | None = None, *, earlier: Collection | None = None) -> Collection:
        """Open the newest version, or an older one by number. Raises NotFoundError when ``root`` is none.

        ``earlier`` is the same collection at another version: what still holds of its documents is not read again.
        """
        files = CollectionFiles(str(root))
        if not files.exists(MARKER):
            raise NotFoundError(f"{root} is not a collection: `vrag ingest PATH --collection {root}` makes one")
        marker = json.loads(files.read(MARKER))
        if marker != FORMAT:
            raise VragError(
                f"{root} has layout {marker.get('layout')}, this program reads layout {FORMAT['layout']}: "
                "ingest its documents into a new folder"
            )
        return cls(files, find_version(files, version), earlier._documents if earlier is not None else None)

    @classmethod
    def open_or_create(cls, root: str | Path) -> Collection:
        files = CollectionFiles(str(root))
        if not files.exists(MARKER):
            if files.is_local and Path(files.root).exists() and not Path(files.root).is_dir():
                raise VragError(f"{root} is a file: choose an empty or new folder for the collection")
            if files.is_local and Path(files.root).is_dir() and any(Path(files.root).iterdir()):
                raise VragError(f"{root} holds other files: choose an empty or new folder for the collection")
            files.write(MARKER, json.dumps(FORMAT).encode())
        return cls.open(root)

    def newest_version(self) -> int:
        """Number of the newest version on disk, which may be later than this one."""
        return latest_number(self.files)

    def versions(self) -> list[VersionRecord]:
        return list_versions(self.files)

    def documents(self) -> list[Document]:
        """All documents of this version, by first uri."""
        return sorted(self._by_id().values(), key=lambda document: (document.uri, document.doc_id))

    def document(self, doc_id: str) -> Document:
        """By full id or by a unique prefix of at least eight hex digits."""
        known = self._by_id()
        if doc_id in known:
            return known[doc_id]
        # A whole id that is not here is looked up in every collection of a service, which must cost nothing.
        is_prefix = MIN_PREFIX <= len(doc_id) < ID_LENGTH
        matching = [d for d in known.values() if d.doc_id.startswith(doc_id)] if is_prefix else []
        if len(matching) != 1:
            problem = "is ambiguous" if matching else "is not in this collection"
            raise NotFoundError(f"document {doc_id} {problem}: `vrag documents` lists the ids")
        return matching[0]

    def shown(self, document: Document) -> Document:
        """``document``, of this version, under the title that readers see: with the folder or the file name that
        differs, where other documents have the title too."""
        title = document.title
        if title not in self._sharing:
            return document
        if title not in self._distinct:
            self._distinct[title] = distinct_titles(self._sharing[title])
        return replace(document, title=self._distinct[title][document.doc_id])

    @cached_property
    def _sharing(self) -> Mapping[str, Sequence[Document]]:
        """The documents of each title that several have."""
        documents = self._by_id().values()
        # A list for each of 100,000 titles would take a quarter of a second.
        times = Counter(document.title for document in documents)
        sharing: dict[str, list[Document]] = defaultdict(list)
        for document in documents:
            if document.title and times[document.title] > 1:
                sharing[document.title].append(document)
        return sharing

    def titles_of(self, passage_ids: Iterable[str]) -> dict[str, str]:
        """The stored title of the document of each passage, of those documents that this version has."""
        if self._titles is None:
            self._titles = {doc_id[:PREFIX_OF_PASSAGES]: document.title for doc_id, document in self._by_id().items()}
        titles = self._titles
        documents = ((passage_id, passage_id[:PREFIX_OF_PASSAGES]) for passage_id in passage_ids)
        return {passage_id: titles[document] for passage_id, document in documents if document in titles}

    def distinct_titles(self, most: int) -> list[str]:
        """The first ``most`` of the titles that documents of this version have, each once."""
        titles: dict[str, None] = {}
        for document in self._by_id().values():
            titles[document.title] = None
            # Of a large collection the rest is not looked at.
            if len(titles) == most:
                break
        return list(titles)

    @property
    def document_count(self) -> int:
        return len(self._by_id())

    def has_document(self, doc_id: str) -> bool:
        return doc_id in self._by_id()

    def document_sums(self) -> Mapping[str, int]:
        """The checksum of each document's row by id, as it stands on disk: another one where the row is another."""
        if self.record is None:
            return {}
        with storage_faults(self.root, "reading the list of documents"):
            return document_sums(self.table("documents"))

    def check_documents(self, doc_ids: Iterable[str]) -> None:
        """Raises CorruptionError where the row of one of these documents is damaged."""
        with storage_faults(self.root, "reading the list of documents"):
            # Reading verifies.
            dict(read_rows(self.table("documents"), doc_ids))

    def blob_path(self, doc_id: str) -> Path:
        """A local file with the original bytes of a document of this version."""
        return self.files.local_path(f"blobs/{self.document(doc_id).doc_id}")

    def pages_path(self, doc_id: str) -> Path:
        """A local file that the units of a document of this version are read and drawn from."""
        return self.files.local_path(f"blobs/{self.document(doc_id).pages_blob}")

    def notes_path(self, doc_id: str) -> Path | None:
        """A local file with the notes of the slides of a document, where the file of its pages has them not."""
        name = self.document(doc_id).notes_blob
        return self.files.local_path(f"blobs/{name}") if name else None

    def passage_names(self) -> PassageNames | None:
        """The names of all passages, read once; None where there are more than are held in memory. Blocking."""
        with self._naming:
            if self._names is None and not self._is_large:
                table = self.table("passages")
                self._is_large = table.count_rows() > MOST_ROWS
                self._names = None if self._is_large else PassageNames(table)
            return self._names

    def passages(self, passage_ids: Sequence[str]) -> dict[str, Passage]:
        """The passages that exist, by id; those read last from memory. Raises CorruptionError for a damaged row."""
        if not passage_ids or self.record is None:
            return {}
        with self._keeping:
            stored = {
                passage_id: passage
                for passage_id in passage_ids
                if (passage := self._cached.get(passage_id)) is not None
            }
        missing = [passage_id for passage_id in passage_ids if passage_id not in stored]
        if not missing:
            return stored
        with storage_faults(self.root, "reading passages"):
            table = self.table("passages").to_table(columns=HIT_COLUMNS, filter=f"id IN ({quoted(missing)})")
        loaded = {str(row["id"]): passage_from_row(row) for row in table.to_pylist()}
        with self._keeping:
            for passage_id, passage in loaded.items():
                self._cached.put(passage_id, passage)
        return stored | loaded

    def passage(self, passage_id: str) -> Passage:
        passage = self.passages([passage_id]).get(passage_id)
        if passage is None or not self.has_document(passage.doc_id):
            raise NotFoundError(f"passage {passage_id} is not in this collection")
        return passage

    def unit_passages(self, doc_id: str, locator: Locator) -> list[Passage]:
        """All windows of one page, clip, picture or span, in order."""
        if self.record is None:
            return []
        prefix = f"{self.document(doc_id).doc_id[:PREFIX_OF_PASSAGES]}:{locator.key}:w"
        # ';' is the character after ':' and 'x' the one after 'w': a range the id index can answer.
        where = f"id >= {_quote(prefix)} AND id < {_quote(prefix[:-1] + 'x')}"
        with storage_faults(self.root, "reading passages"):
            rows = self.table("passages").to_table(columns=HIT_COLUMNS, filter=where).to_pylist()
        return sorted((passage_from_row(row) for row in rows), key=lambda passage: passage.window)

    def with_words(self, doc_ids: Iterable[str]) -> list[str]:
        """Those of the documents that have words, and not pictures alone."""
        if self.record is None:
            return []
        where = rf"doc_id IN ({quoted(doc_ids)}) AND regexp_like(text, '\S')"
        with storage_faults(self.root, "reading passages"):
            return sorted(set(self.table("passages").to_table(columns=["doc_id"], filter=where)["doc_id"].to_pylist()))

    def clips(self, doc_id: str) -> list[Locator]:
        """The clips of a video in their order."""
        if self.record is None:
            return []
        where = f"doc_id = {_quote(self.document(doc_id).doc_id)} AND window = 0"
        with storage_faults(self.root, "reading passages"):
            rows = self.table("passages").to_table(columns=["t_start", "t_end"], filter=where).to_pylist()
        clips = (Locator(t_start=row["t_start"], t_end=row["t_end"]) for row in rows if row["t_start"] is not None)
        return sorted(clips, key=lambda clip: clip.t_start or 0.0)

    def first_windows(self) -> list[Passage]:
        """One passage of each page, clip, picture or span: documents by first uri, their units in order."""
        if self.record is None:
            return []
        place = {document.doc_id: number for number, document in enumerate(self.documents())}
        rows = self.table("passages").to_table(columns=HIT_COLUMNS, filter="window = 0").to_pylist()
        known = [row for row in rows if row["doc_id"] in place]
        return [passage_from_row(row) for row in sorted(known, key=lambda row: (place[row["doc_id"]], row["unit"]))]

    def first_window(self, doc_id: str, locator: Locator) -> Passage | None:
        """The window that holds the words that OCR found at ingest in the whole unit, and the timed words and shots of
        a clip."""
        return next(iter(self.unit_passages(doc_id, locator)), None)

    def table(self, name: str) -> lance.LanceDataset:
        """The Lance table ``passages`` or ``documents`` at this version."""
        if self.record is None:
            raise NotFoundError(f"the collection {self.root} is empty: `vrag ingest` adds documents")
        pinned = self.record.passages_version if name == "passages" else self.record.documents_version
        return self._table(f"{name}.lance", pinned)

    @cached_property
    def spaces(self) -> tuple[SpaceRecord, ...]:
        """The vector spaces of this version, that of the texts first."""
        if self.record is None:
            return ()
        spaces = sorted(self.record.spaces, key=lambda space: space.name != TEXT)
        if not self.record.texts_dropped and not (spaces and spaces[0].name == TEXT):
            texts = text_space_of(self.table("passages"), self.table("documents"))
            spaces[:0] = [] if texts is None else [texts]
        return tuple(spaces)

    def find_space(self, name: str) -> SpaceRecord | None:
        return next((space for space in self.spaces if space.name == name), None)

    def space(self, name: str) -> SpaceRecord:
        """Raises NotFoundError, naming those there are."""
        record = self.find_space(name)
        if record is None:
            known = ", ".join(space.name for space in self.spaces) or "none"
            raise NotFoundError(
                f"the collection {self.root} has no vector space {name} (there are: {known}): "
                f"`vrag embed --space {name}` makes one"
            )
        return record

    def space_table(self, name: str) -> lance.LanceDataset:
        """The Lance table of a vector space at this version."""
        space = self.space(name)
        return self._table(space.table, space.version)

    def _table(self, folder: str, pinned: int) -> lance.LanceDataset:
        import lance

        if folder not in self._tables:
            try:
                with storage_faults(self.root, f"opening {folder}"):
                    self._tables[folder] = lance.dataset(
                        self.files.uri(folder), version=pinned, storage_options=self.files.lance_options
                    )
            except (ValueError, OSError) as error:
                if not self.files.exists(MARKER):
                    raise AbsentError(
                        f"the collection {self.root} is no longer in its place: mount or move it back"
                    ) from error
                raise CorruptionError(f"{folder} version {pinned} cannot be opened: run `vrag verify`") from error
        return self._tables[folder]

    @cached_property
    def term_scores(self) -> TermScores:
        """The best BM25 scores of single terms at this version, looked up when they are needed."""
        return TermScores(self.table("passages"))

    def _by_id(self) -> Mapping[str, Document]:
        if self.record is None:
            return {}
        if self._documents is None:
            with storage_faults(self.root, "reading the list of documents"):
                self._documents = DocumentList.read(self.table("documents"), self._earlier)
            self._earlier = None
        return self._documents.by_id


def _size_of(passage: Passage) -> int:
    """About the bytes that a passage takes in memory; a word has a text, a box and four numbers."""
    return 1000 + len(passage.text) + 300 * len(passage.words)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
