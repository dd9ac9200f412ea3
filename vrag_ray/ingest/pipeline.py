"""``ingest``: list → register and split → decode → commit words → fill every vector space, streaming, resumable, bad
files reported. Words are searched before there are vectors of them.

Resume needs no bookkeeping of its own: what is committed is what the collection holds, and the register stage
leaves those page ranges out.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from vrag_ray.cluster import require_ray
from vrag_ray.config import Settings
from vrag_ray.corpus.formats.attachments import ATTACHMENTS
from vrag_ray.corpus.formats.media.speech import model_folder
from vrag_ray.corpus.sandbox.process import memory_limits_in
from vrag_ray.index.search.served_legs import NOT_EMBEDDED, notices_of_missing
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.errors import StorageError
from vrag_ray.index.storage.spaces import SpaceRecord
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest.committer import Committer, Outcome
from vrag_ray.ingest.gone import documents_in
from vrag_ray.ingest.graph import Job, decoded_sources
from vrag_ray.ingest.plan import SIDECARS, STYLES, Committed
from vrag_ray.ingest.progress import (
    INGEST_STAGES,
    MOST_FILES_SHOWN,
    Counts,
    MovingBoard,
    ingest_progress,
    reporting,
)
from vrag_ray.ingest.report import IngestReport, Progress, SpaceReport
from vrag_ray.ingest.small_jobs import decoded_few, is_small
from vrag_ray.ingest.sources import Listing, Source, list_sources, nothing_listed
from vrag_ray.ingest.spaces.embed import embed_into
from vrag_ray.signals import word_for
from vrag_ray.types import TEXT, DocumentStatus, Meta, VragError


def ingest(
    paths: Sequence[str | Path | Source],
    settings: Settings,
    *,
    meta: Meta | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> IngestReport:
    """Add files and folders to ``settings.collection``; blocks until all is committed. More than a few files, models
    with GPU code and spaces of pictures take a Ray, which is started where this process has none (``require_ray``).

    Files that cannot be read, wholly or in part, are in ``IngestReport.failed``; those whose bytes could be have a
    document row with their error. They never end the run. ``on_line`` is called with what runs on which device before
    it does; None: that is logged. Raises VragError for unusable arguments and when another process is writing, and
    StorageError, which says what is committed, when the disk of the collection refuses: the same call then goes on.
    KeyboardInterrupt, and Terminated of ``vrag_ray.signals``, say it too.
    """
    began, began_at = time.monotonic(), time.time()
    listing = list_sources(paths, settings.ingest.content_column)
    sources = listing.sources
    if not sources and not _has_documents_of(listing, settings.collection):
        raise nothing_listed(paths, listing)
    documents = sum(source.documents for source in sources)
    # A model that cannot be loaded is reported before anything is read; one that must be fetched is fetched once.
    model_folder(settings.corpus.speech_model)
    small = is_small(sources, settings)
    if not small:
        # Where it cannot be had, nothing has been written.
        require_ray()
    with CollectionWriter(settings.collection) as writer:
        committer = Committer(writer, settings.ingest.commit_pages)
        board = MovingBoard(INGEST_STAGES, by_file=documents <= MOST_FILES_SHOWN)
        job = Job(writer.files.root, settings, _committed(writer, settings), board)

        def progress(counts: Counts, elapsed_s: float) -> Progress:
            return ingest_progress(counts, committer.outcome.pages, documents, elapsed_s)

        with _report_refusals(sources, writer, committer), reporting(board.read, progress, on_progress):
            try:
                # Closed at once where it is interrupted: nothing goes on to be decoded.
                with closing((decoded_few if small else decoded_sources)(sources, meta or {}, job)) as blocks:
                    for rows in blocks:
                        committer.add_block(rows)
            except StorageError:
                # Not close: it would commit once more what may be committed already.
                raise
            except KeyboardInterrupt as interrupt:
                committer.stop()
                raise _with_outcome(interrupt, writer, committer) from interrupt
            except BaseException:
                committer.stop()
                raise
            committer.close(listing, prune=settings.ingest.prune)
        counts = board.read()
        bottleneck = counts.bottleneck(time.monotonic() - began)
        try:
            spaces = embed_into(
                writer,
                settings,
                retry_errors=settings.ingest.retry_errors,
                on_progress=on_progress,
                on_line=on_line,
                note="ingest",
            )
        except BaseException:
            committer.rescue()
            raise
        committer.publish("ingest")
        version, records = writer.version, writer.spaces.records
    outcome = committer.outcome
    return IngestReport(
        added=outcome.added,
        skipped=outcome.skipped,
        replaced=outcome.replaced,
        failed=tuple(outcome.failed),
        pages=outcome.pages,
        windows=outcome.windows,
        seconds=time.monotonic() - began,
        startup_s=max(0.0, (counts.ready_at or began_at) - began_at),
        version=version,
        doc_ids=tuple(outcome.doc_ids),
        notices=tuple(_notices(settings, records, spaces, outcome, listing)),
        bottleneck=bottleneck,
        spaces=tuple(space for space in spaces if not space.skipped),
        duplicates=outcome.duplicates,
        renamed=outcome.renamed,
        file_notices=tuple(outcome.notices),
        gone=tuple(outcome.gone),
    )


def _notices(
    settings: Settings,
    records: Sequence[SpaceRecord],
    spaces: Sequence[SpaceReport],
    outcome: Outcome,
    listing: Listing,
) -> list[str]:
    skipped = {space.name: space.skipped for space in spaces if space.skipped}
    filled = [record for record in records if record.name not in skipped]
    texts = skipped.pop(TEXT, "") if settings.texts_are_embedded else NOT_EMBEDDED
    notices = notices_of_missing({TEXT: texts}, filled) if texts else []
    notices += [f"the vector space {name} was not filled: {why}" for name, why in skipped.items()]
    if outcome.known_faulty:
        count = f"{outcome.known_faulty} {'file was' if outcome.known_faulty == 1 else 'files were'}"
        notices.append(
            f"{count} not read again: an earlier run found the errors below; --retry-errors (ingest.retry_errors) "
            "reads what has errors again"
        )
    notices += listing.notices()
    return notices


def _has_documents_of(listing: Listing, root: str) -> bool:
    """Whether the collection has documents from the folders that were walked: then it is worth saying that they are
    gone."""
    try:
        documents = Collection.open(root).documents() if listing.folders else []
    except VragError:
        return False
    return any(True for folder in listing.folders for _ in documents_in(folder, documents))


@contextmanager
def _report_refusals(sources: Sequence[Source], writer: CollectionWriter, committer: Committer) -> Iterator[None]:
    """After a StorageError of the block: publish what is committed, then tell that, and the bytes still to come."""
    try:
        yield
    except StorageError as error:
        committer.rescue()
        done = {uri for document in writer.documents.values() for uri in document.uris}
        waiting = _waiting_bytes(sources, done)
        raise StorageError(replace(error.failure, kept=writer.kept(), waiting_bytes=waiting)) from error


def _with_outcome(interrupt: KeyboardInterrupt, writer: CollectionWriter, committer: Committer) -> KeyboardInterrupt:
    """The same interruption, which says what is committed and how to go on."""
    pages, documents = committer.outcome.pages, len(writer.documents)
    committed = "1 page of this run is" if pages == 1 else f"{pages} pages of this run are"
    return type(interrupt)(
        f"{word_for(interrupt)}: {committed} committed, and version "
        f"{writer.version} of {writer.files.root} has {documents} {'document' if documents == 1 else 'documents'}. "
        "The same command goes on from there"
    )


def _waiting_bytes(sources: Sequence[Source], done: AbstractSet[str]) -> int:
    """At most so much is still to be stored. Of a Parquet file, the share of its rows that are not done."""
    files = [source.path for source in sources if source.uri not in done and source.rows is None]
    waiting = sum(path.stat().st_size for path in files if isinstance(path, Path) and path.exists())
    rows_done = Counter(uri.rpartition("#")[0] for uri in done)
    for uri, ranges in groupby((source for source in sources if source.rows is not None), lambda source: source.uri):
        parts = [part.rows for part in ranges if part.rows is not None]
        count = sum(part.count for part in parts)
        waiting += sum(part.size_bytes for part in parts) * max(0, count - rows_done[uri]) // count
    return waiting


def _committed(writer: CollectionWriter, settings: Settings) -> Committed:
    documents = writer.documents
    again = {
        doc_id
        for doc_id, document in documents.items()
        if document.status is not DocumentStatus.READY
        and (
            settings.ingest.retry_errors
            or any(limit < settings.corpus.limits.memory_mb for limit in memory_limits_in(document.error))
        )
    }
    units = writer.unfinished_units(again)
    # Where no unit is at fault by itself, the whole document is read again.
    units = {
        doc_id: done for doc_id, done in units.items() if not (doc_id in again and len(done) == documents[doc_id].units)
    }
    reread = again | {doc_id for doc_id, document in documents.items() if document.read_again}
    return Committed(
        finished=frozenset(documents.keys() - reread),
        units=units,
        counted={doc_id: documents[doc_id].units for doc_id in reread},
        containers=frozenset(doc_id for doc_id, document in documents.items() if ATTACHMENTS in document.meta),
        sidecars={
            doc_id: str(document.meta[name])
            for doc_id, document in documents.items()
            for name in (SIDECARS, STYLES)
            if name in document.meta
        },
    )
