"""The end of the graph: unit rows become committed passages, and a document whose last unit arrived gets its row."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from vrag_ray.corpus.model import title_from_name, words_from_name
from vrag_ray.corpus.passages import Holds
from vrag_ray.index.storage.errors import StorageError, StorageFailure
from vrag_ray.index.storage.rows import StoredPassage, passage_from_json
from vrag_ray.index.storage.writer import CollectionWriter, now_utc
from vrag_ray.ingest.gone import Gone, gone_names
from vrag_ray.ingest.plan import DocumentPlan
from vrag_ray.ingest.report import FileError, FileNotice, GoneFile
from vrag_ray.ingest.sources import Listing
from vrag_ray.ingest.stages import NO_UNIT
from vrag_ray.types import NOTES, PAGES, Document, DocumentKind, DocumentStatus, Meta
from vrag_ray.types.file_names import names_of

COMMIT_EVERY_S = 10.0
"""What a killed run has read and not committed is read again."""
PUBLISH_EVERY_S = 30.0
MOST_TIME_PUBLISHING = 0.1
"""Publishing brings the index of all passages up to date: the more there are, the seldomer it is done."""
MAX_ERRORS_IN_ROW = 20
MAX_NOTICES_IN_ROW = 20
MOST_DUPLICATES_NAMED = 100
"""A data set may have any number of rows with the same picture."""
NOTHING_TO_READ = "nothing to read: it is blank"
NO_WORDS = "nothing to read: no word could be found in it; a vector space that sees finds it by what it shows"
EMPTIED = "the file is empty now: its former text was removed from the collection"
NAMED = ", any search by its name"
_UNIT_NAMES = {
    DocumentKind.PDF: "page",
    DocumentKind.IMAGE: "page",
    DocumentKind.VIDEO: "clip",
    DocumentKind.TEXT: "piece",
}


@dataclass
class _Open:
    """A document whose units are arriving."""

    plan: DocumentPlan
    missing: int
    errors: dict[int, str]
    transient: bool = False
    """Whether the next run is to decode a unit again, because the machine was the reason that it could not be read."""
    notices: dict[int, list[str]] = field(default_factory=dict)
    holds: set[Holds] = field(default_factory=set)
    """What its units hold."""


@dataclass(frozen=True, slots=True)
class _Unit:
    doc_id: str
    number: int
    error: str
    transient: bool
    notices: list[str]
    holds: Holds


@dataclass
class Outcome:
    """What has been committed so far in this run."""

    added: int = 0
    skipped: int = 0
    duplicates: int = 0
    renamed: int = 0
    replaced: int = 0
    failed: list[FileError] = field(default_factory=list)
    known_faulty: int = 0
    """Files among the skipped ones that an earlier run could not read, or not wholly."""
    pages: int = 0
    windows: int = 0
    doc_ids: list[str] = field(default_factory=list)
    notices: list[FileNotice] = field(default_factory=list)
    gone: list[GoneFile] = field(default_factory=list)


class Committer:
    """Collects whole blocks and commits them in batches of about ``commit_pages`` units, or every ten seconds."""

    def __init__(self, writer: CollectionWriter, commit_pages: int) -> None:
        self.outcome = Outcome()
        self._writer, self._commit_pages = writer, commit_pages
        self._rows: list[StoredPassage] = []
        self._units: list[_Unit] = []
        self._open: dict[str, _Open] = {}
        self._complete: list[DocumentPlan] = []
        self._owners: dict[str, str] = {}
        self._copies: list[DocumentPlan] = []
        self._renamed: dict[str, Document] = {}
        self._taken: dict[str, str] = {}
        """Document by uri, where the uri was another document's before this run."""
        self._met: set[str] = set()
        """The uris of this run."""
        self._new_names: dict[str, list[str]] = {}
        """By the id of a document that the collection, or this run, had under another name: its further names."""
        self._emptied: list[str] = []
        """The uris of files without bytes."""
        self._reopened: list[Document] = []
        self._whole: set[str] = set()
        """Documents of the collection all of whose units come again, so that the old ones go together."""
        self._in_part: set[str] = set()
        """Documents of the collection of which single units come again."""
        self._committed_at = self._published_at = time.monotonic()
        self._publish_every_s = PUBLISH_EVERY_S

    def add_block(self, rows: Sequence[Mapping[str, object]]) -> None:
        """One output block of the decode stage. Blocks are committed whole (see ``plan.work_items``).

        Raises StorageError where a stage, or the commit, was refused by the collection's disk.
        """
        for row in rows:
            plan = DocumentPlan.from_json(str(row["plan"]))
            if plan.fault is not None:
                raise StorageError(StorageFailure.from_dict(plan.fault))
            self._met.add(plan.uri)
            if plan.doc_id and self._owners.setdefault(plan.doc_id, plan.uri) != plan.uri:
                # The same bytes under a second name in one run: its units are already coming under the first.
                self._copies.append(plan)
            elif row["unit"] == NO_UNIT:
                self._complete.append(plan)
            else:
                self._add_unit(plan, row)
        waiting = len(self._units) + len(self._complete)
        if waiting >= self._commit_pages or time.monotonic() - self._committed_at > COMMIT_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Commit what is in hand: passages first, then the rows of documents that are complete by it."""
        # Out of hand before it is written: a caller that is interrupted in between must not write it again.
        reopened, self._reopened = self._reopened, []
        whole, self._whole = self._whole, set()
        rows, self._rows = self._rows, []
        units, self._units = self._units, []
        complete, self._complete = self._complete, []
        if reopened:
            # Should this run be interrupted, the rows must not say that the documents are finished.
            self._commit([replace(document, read_again=True) for document in reopened])
        if whole:
            self._writer.drop_passages(sorted(whole))
        self._writer.drop_units((unit.doc_id, unit.number) for unit in units if unit.doc_id in self._in_part)
        if rows:
            self._writer.add_passages(rows)
        self.outcome.pages += len(units)
        self.outcome.windows += len(rows)
        finished: list[Document | None] = []
        for unit in units:
            document = self._open[unit.doc_id]
            document.missing -= 1
            document.transient |= unit.transient
            if unit.error:
                document.errors[unit.number] = unit.error
            if unit.notices:
                document.notices[unit.number] = unit.notices
            document.holds.add(unit.holds)
            if document.missing == 0:
                del self._open[unit.doc_id]
                finished.append(self._finished(document))
        finished += [self._finished(_Open(plan, 0, _prior_errors(plan), plan.transient)) for plan in complete]
        self._commit([document for document in finished if document is not None])
        self._committed_at = time.monotonic()
        if time.monotonic() - self._published_at > self._publish_every_s:
            self.publish("ingest (running)")

    def close(self, listing: Listing, *, prune: bool = False) -> None:
        """Commit the rest, and give documents the names that they were found under. Nothing is published.

        Names that lead nowhere any more (see ``gone_names``) are dropped where the same bytes were met under another;
        documents without another are reported, and removed where ``prune`` says so. Documents whose file is empty now
        lose its name.
        """
        self.flush()
        for uri, doc_id in sorted({(plan.uri, plan.doc_id) for plan in self._copies}):
            known = self._renamed.get(doc_id) or self._writer.documents.get(doc_id)
            if known is not None and uri in known.uris:
                self.outcome.skipped += 1
            elif known is not None:
                self._new_names.setdefault(doc_id, []).append(uri)
                self._rename(uri, replace(known, uris=(*known.uris, uri)))
        renamed, self._renamed = self._renamed, {}
        self._commit([self._with_own_names(document) for document in renamed.values()])
        self._take_from_emptied()
        gone = gone_names(self._writer.documents.values(), listing, self._met)
        self._name_duplicates(gone)
        self._drop_names(gone)
        self._report_gone(gone, listing, prune=prune)

    def stop(self) -> None:
        """After an interruption: commit and publish what is complete. Names stay where they were, because the documents
        that had them may have been about to come under others."""
        self.flush()
        self.publish("ingest (interrupted)")

    def rescue(self) -> None:
        """After a StorageError: publish what is committed, if the disk takes that. Nothing is committed again."""
        with suppress(StorageError):
            self.publish("ingest (interrupted)")

    def publish(self, note: str) -> None:
        """Make a version of what is committed, also by a run that was killed; none where nothing is new."""
        if self._writer.has_unpublished:
            began = time.monotonic()
            self._writer.publish(note)
            self._published_at = time.monotonic()
            self._publish_every_s = max(PUBLISH_EVERY_S, (self._published_at - began) / MOST_TIME_PUBLISHING)

    def _add_unit(self, plan: DocumentPlan, row: Mapping[str, object]) -> None:
        texts, unit = row["texts"], row["unit"]
        assert isinstance(texts, list) and isinstance(unit, int)
        names = f"{plan.title} {words_from_name(plan.name)}"
        for value, text in zip(json.loads(str(row["passages"])), texts, strict=True):
            self._rows.append(StoredPassage(passage_from_json(value, text), unit, names))
        if plan.doc_id not in self._open:
            known = self._writer.documents.get(plan.doc_id)
            if known is not None:
                # A retry: the units that come have perhaps been committed before, with their errors.
                (self._whole if plan.pending == plan.units else self._in_part).add(plan.doc_id)
                if not known.read_again:
                    self._reopened.append(known)
            self._open[plan.doc_id] = _Open(plan, plan.pending, _prior_errors(plan))
        error, transient = str(row["error"]), bool(row["transient"])
        notices, holds = json.loads(str(row["notices"])), Holds(str(row["holds"]))
        self._units.append(_Unit(plan.doc_id, unit, error, transient, notices, holds))

    def _finished(self, document: _Open) -> Document | None:
        """Counts a document whose last unit has come; the row that it gets now, if it needs another one."""
        plan, errors = document.plan, document.errors
        if plan.error:
            self.outcome.failed.append(FileError(plan.uri, plan.error))
        if not plan.doc_id:
            if plan.is_empty:
                self._emptied.append(plan.uri)
            return None
        self.outcome.doc_ids.append(plan.doc_id)
        known = self._writer.documents.get(plan.doc_id)
        if plan.skipped and known is not None:
            self.outcome.notices += [FileNotice(plan.uri, notice, known=True) for notice in known.notices]
            if known.error:
                self.outcome.known_faulty += 1
                self.outcome.failed.append(FileError(plan.uri, known.error))
            if plan.uri in known.uris:
                self.outcome.skipped += 1
                return None
            self._new_names.setdefault(plan.doc_id, []).append(plan.uri)
            return self._if_free(plan.uri, replace(known, uris=(*known.uris, plan.uri)))
        if plan.transient and known is not None:
            # What an earlier run has read of it stays, and so does what its row says.
            return None
        messages = [error for _, error in sorted(errors.items())]
        self.outcome.failed += [FileError(plan.uri, error) for error in messages]
        row = replace(self._document(plan, len(errors), messages, known), notices=self._notices(document))
        self.outcome.notices += [FileNotice(plan.uri, notice) for notice in row.notices]
        if document.transient:
            row = replace(row, read_again=True)
        if row.status is not DocumentStatus.ERROR:
            replaced = self._writer.owner_of(plan.uri) not in (None, plan.doc_id)
            self.outcome.replaced += replaced
            self.outcome.added += not replaced
        if known is not None and replace(row, added_at=known.added_at) == known:
            # Read again without another result: no reason for a new version.
            return None
        return self._if_free(plan.uri, row)

    def _notices(self, document: _Open) -> tuple[str, ...]:
        """The notices of the whole document: its own, those of its units with their numbers, and that there
        is nothing to read."""
        plan, by_unit, holds = document.plan, document.notices, document.holds
        if plan.error:
            return ()
        if plan.pending < plan.units:
            # The others were committed by an earlier run, which was interrupted, or could not read these.
            by_unit, holds = self._writer.unit_notices(plan.doc_id)
        notices = list(plan.notices)
        if Holds.WORDS not in holds and not document.errors:
            named = NAMED if plan.kind in (DocumentKind.IMAGE, DocumentKind.VIDEO) else ""
            notices.append(f"{NO_WORDS}{named}" if Holds.PICTURE in holds else NOTHING_TO_READ)
        units: dict[str, list[int]] = {}
        for number, of_unit in sorted(by_unit.items()):
            for notice in of_unit:
                units.setdefault(notice, []).append(number + 1)
        for notice, numbers in units.items():
            notices.append(notice if plan.units == 1 else f"{_counted(_UNIT_NAMES[plan.kind], numbers)}: {notice}")
        if len(notices) > MAX_NOTICES_IN_ROW:
            notices[MAX_NOTICES_IN_ROW:] = [f"and {len(notices) - MAX_NOTICES_IN_ROW} more"]
        return tuple(notices)

    def _take_from_emptied(self) -> None:
        """Take the names of files that are empty now from the documents that had them, and remove those without
        another."""
        for uri in self._emptied:
            owner = self._writer.owner_of(uri)
            if owner is None:
                continue
            document = self._writer.documents[owner]
            if left := tuple(name for name in document.uris if name != uri):
                self._commit([_with_names(document, left)])
            else:
                self._writer.delete(owner)
            self.outcome.notices.append(FileNotice(uri, EMPTIED))

    def _name_duplicates(self, gone: Mapping[str, Gone]) -> None:
        """Count files with the bytes of another, and say of which."""
        for doc_id, names in self._new_names.items():
            document = self._writer.documents.get(doc_id)
            further, lost = names, gone[doc_id].uris if doc_id in gone else ()
            first = next((uri for uri in document.uris if uri not in (*names, *lost)), "") if document else ""
            if not first:
                # Under its former names it is not there any more: the first new name is no second file.
                first, *further = names
                self.outcome.renamed += 1
            for name in further:
                self.outcome.duplicates += 1
                if self.outcome.duplicates <= MOST_DUPLICATES_NAMED:
                    _, other = shown = names_of([name, first])
                    same = other if len(set(shown)) > 1 else "an earlier file of this name"
                    notice = f"the same as {same}; both are one document"
                    self.outcome.notices.append(FileNotice(name, notice, other=first))

    def _drop_names(self, gone: Mapping[str, Gone]) -> None:
        """Of documents that were met under another name: the names that lead nowhere, and a title made of such. What
        is a part of a file that was renamed is renamed with it."""
        left = {
            doc_id: tuple(uri for uri in self._writer.documents[doc_id].uris if uri not in lost.uris)
            for doc_id, lost in gone.items()
        }
        met = {doc_id: next((uri for uri in uris if uri in self._met), "") for doc_id, uris in left.items()}
        moved = {uri: met[doc_id] for doc_id, lost in gone.items() if met[doc_id] for uri in lost.uris}
        changed: list[Document] = []
        for doc_id, lost in gone.items():
            document, uris = self._writer.documents[doc_id], left[doc_id]
            if met[doc_id]:
                changed.append(_with_names(document, uris))
                continue
            bases = {uri: uri.partition("#") for uri in lost.uris}
            parts = tuple(f"{moved[base]}#{part}" for base, _, part in bases.values() if part and base in moved)
            if len(parts) == len(lost.uris):
                changed.append(replace(document, uris=(*uris, *parts)))
        self._commit(changed)

    def _report_gone(self, gone: Mapping[str, Gone], listing: Listing, *, prune: bool) -> None:
        """The documents all of whose names are gone. Of a folder in which nothing is any more, none is removed."""
        lost = {
            doc_id: names
            for doc_id, names in gone.items()
            if doc_id in self._writer.documents and set(self._writer.documents[doc_id].uris) <= set(names.uris)
        }
        empty = {folder.uri: folder.shown for folder in listing.folders if folder.is_empty}
        removed = [doc_id for doc_id, names in lost.items() if prune and names.folder.uri not in empty]
        self.outcome.gone = [
            GoneFile(names.uris[0], doc_id, doc_id in removed, empty.get(names.folder.uri, ""))
            for doc_id, names in lost.items()
        ]
        if removed:
            self._writer.delete(*removed)

    def _if_free(self, uri: str, document: Document) -> Document | None:
        """``document``, unless its name is still another's: then it gets its row in the end.

        Files that were renamed in turn, or rows that moved up in their file, take one another's names. Who loses its
        last one is removed, so that none may be taken before all documents of this run are known by theirs.
        """
        if self._writer.owner_of(uri) in (None, document.doc_id):
            return document
        self._rename(uri, document)
        return None

    def _rename(self, uri: str, document: Document) -> None:
        self._renamed[document.doc_id] = document
        self._taken[uri] = document.doc_id

    def _with_own_names(self, document: Document) -> Document:
        uris = tuple(uri for uri in document.uris if self._taken.get(uri, document.doc_id) == document.doc_id)
        return _with_names(document, uris)

    def _commit(self, documents: Sequence[Document]) -> None:
        if documents:
            self._writer.commit_documents(documents)

    def _document(self, plan: DocumentPlan, unread: int, errors: Sequence[str], known: Document | None) -> Document:
        failed_wholly = bool(plan.error) or (unread > 0 and unread >= plan.units)
        status = DocumentStatus.ERROR if failed_wholly else DocumentStatus.PARTIAL if errors else DocumentStatus.READY
        shown = list(errors[:MAX_ERRORS_IN_ROW])
        if len(errors) > len(shown):
            shown.append(f"and {len(errors) - len(shown)} more")
        uris = known.uris if known is not None else ()
        return Document(
            doc_id=plan.doc_id,
            uris=uris if plan.uri in uris else (*uris, plan.uri),
            title=plan.title or plan.name,
            kind=plan.kind,
            status=status,
            units=plan.units,
            size_bytes=plan.size_bytes,
            added_at=now_utc(),
            error=plan.error or "; ".join(shown),
            meta=_document_meta(plan),
        )


def _counted(name: str, numbers: Sequence[int], most: int = 5) -> str:
    """``page 3`` or ``pages 1, 2, 4 and 12 more``."""
    shown = ", ".join(map(str, numbers[:most]))
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return f"{name if len(numbers) == 1 else f'{name}s'} {shown}{more}"


def _with_names(document: Document, uris: tuple[str, ...]) -> Document:
    """``document`` under ``uris`` alone. A title that was made of a name that it loses is made of the first that it
    has now, so that no answer cites another file's name."""
    lost = [uri for uri in document.uris if uri not in uris]
    was_name = document.title in {title_from_name(name) for uri in lost for name in names_of([uri])}
    title = title_from_name(names_of(uris)[0]) if was_name and uris else document.title
    return replace(document, uris=uris, title=title)


def _document_meta(plan: DocumentPlan) -> Meta:
    """The user's metadata of the document. The blobs that its pages are made of are never part of it."""
    meta = {name: value for name, value in plan.meta.items() if name not in (PAGES, NOTES)}
    made = {PAGES: plan.pages, NOTES: plan.slides}
    return {**meta, **{name: blob for name, blob in made.items() if blob}}


def _prior_errors(plan: DocumentPlan) -> dict[int, str]:
    return {int(unit): error for unit, error in plan.prior_errors.items()}
