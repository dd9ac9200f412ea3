"""``ingest``: list → register and split → decode → embed → commit, streaming, resumable, bad files reported.

Resume needs no bookkeeping of its own: what is committed is what the collection holds, and the register stage
leaves those page ranges out.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from vrag_ray.cluster import is_connected, require_ray
from vrag_ray.config import Settings
from vrag_ray.config.embedding import WITHOUT_GPU_CODE
from vrag_ray.corpus.formats.attachments import ATTACHMENTS
from vrag_ray.corpus.formats.media.speech import model_folder
from vrag_ray.embedding.base import Modality
from vrag_ray.embedding.registry import LoadedEmbedder, load_embedder
from vrag_ray.index.search.served_legs import notice_of_texts
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.errors import StorageError
from vrag_ray.index.storage.spaces import SpaceRecord
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest.committer import READ_AGAIN, Committer, Outcome
from vrag_ray.ingest.gone import documents_in
from vrag_ray.ingest.graph import Job, embedded_sources
from vrag_ray.ingest.plan import SIDECARS, Committed
from vrag_ray.ingest.progress import (
    INGEST_STAGES,
    MOST_FILES_SHOWN,
    Counts,
    MovingBoard,
    ingest_progress,
    reporting,
)
from vrag_ray.ingest.report import IngestReport, Progress, SpaceReport
from vrag_ray.ingest.small_jobs import embedded_few, is_small
from vrag_ray.ingest.sources import Listing, Source, list_sources, nothing_in
from vrag_ray.ingest.spaces.embed import embed_into
from vrag_ray.placement import Cards, Part, Placement, configured_share, place, ray_cards
from vrag_ray.signals import word_for
from vrag_ray.types import DocumentStatus, Meta, VragError
from vrag_ray.types.copies import with_changes


def ingest(
    paths: Sequence[str | Path | Source],
    settings: Settings,
    *,
    meta: Meta | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> IngestReport:
    """Add files and folders to ``settings.collection``; blocks until all is committed. More than a few files, embedders
    with GPU code and vector spaces take a Ray, which is started where this process has none (``require_ray``).

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
        raise nothing_in(paths)
    documents = sum(source.documents for source in sources)
    # Where it cannot be had, that is said before anything is read; where it must be fetched, that is done once.
    model_folder(settings.corpus.speech_model)
    small = is_small(sources, settings)
    if not (small and settings.embedder.name in WITHOUT_GPU_CODE):
        require_ray()
    cards, has_ray = ray_cards(settings.gpus), is_connected()
    settings, placement = placed_texts(settings, cards)
    # For its id: the vectors are made by actors, which are given the GPU.
    loaded = load_embedder(with_changes(settings.embedder, {"device": "cpu"}))
    embedder_id = loaded.embedder.id if loaded.embedder else ""
    with CollectionWriter(settings.collection) as writer:
        committer = Committer(writer, embedder_id, settings.ingest.commit_pages)
        board = MovingBoard(INGEST_STAGES, by_file=documents <= MOST_FILES_SHOWN)
        committed = _committed(writer, settings, embedder_id)
        if not small:
            placement.report(on_line)
        job = Job(writer.files.root, settings, embedder_id, committed, board)

        def progress(counts: Counts, elapsed_s: float) -> Progress:
            return ingest_progress(counts, committer.outcome.pages, documents, elapsed_s)

        with _report_refusals(sources, writer, committer), reporting(board.read, progress, on_progress):
            try:
                for rows in (embedded_few if small else embedded_sources)(sources, meta or {}, job):
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
        spaces = embed_into(
            writer,
            settings,
            retry_errors=settings.ingest.retry_errors,
            on_progress=on_progress,
            on_line=on_line,
            # The actors of texts may still hold their GPUs.
            cards=cards if has_ray else None,
        )
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
        startup_s=max(0.0, (counts.embedders_ready_at or began_at) - began_at),
        version=version,
        doc_ids=tuple(outcome.doc_ids),
        notices=tuple(_notices(settings, loaded, records, spaces, outcome, listing)),
        bottleneck=bottleneck,
        spaces=tuple(space for space in spaces if not space.skipped),
        duplicates=outcome.duplicates,
        renamed=outcome.renamed,
        file_notices=tuple(outcome.notices),
        gone=tuple(outcome.gone),
    )


def _notices(
    settings: Settings,
    loaded: LoadedEmbedder,
    records: Sequence[SpaceRecord],
    spaces: Sequence[SpaceReport],
    outcome: Outcome,
    listing: Listing,
) -> list[str]:
    filled = [record for record in records if not any(space.name == record.name and space.skipped for space in spaces)]
    notice = notice_of_texts(loaded.notice, settings.embedder, filled)
    notices = [notice] if notice else []
    if loaded.embedder is not None and Modality.PICTURE in loaded.embedder.modalities:
        notices.append(
            f"embedder.name is {settings.embedder.name}, a model that sees, and it embeds words alone there: name it "
            "under `spaces` to find pages by what they show"
        )
    notices += [f"the vector space {space.name} was not filled: {space.skipped}" for space in spaces if space.skipped]
    if outcome.known_faulty:
        count = f"{outcome.known_faulty} {'file was' if outcome.known_faulty == 1 else 'files were'}"
        notices.append(
            f"{count} not read again: an earlier run found the errors below; --retry-errors (ingest.retry_errors) "
            "reads what has errors again"
        )
    notices += listing.notices()
    return notices


def placed_texts(settings: Settings, cards: Cards) -> tuple[Settings, Placement]:
    """``settings`` with the GPU share of the actors that embed texts; on a GPU one actor a card, if none is configured.

    Raises VragError for a share that the embedder cannot use, or that ``cards`` cannot give.
    """
    config, embedder = settings.ingest, settings.embedder
    on_cpu = WITHOUT_GPU_CODE.get(embedder.name, "")
    setting = "ingest.num_gpus"
    share = config.num_gpus
    if settings.gpus != 0 and not on_cpu:
        share = configured_share(share, embedder.device, setting)
    part = Part(
        name="embedding of texts",
        setting=setting,
        share=share,
        processes=config.concurrency or max(1, cards.total),
        cannot=on_cpu,
        unless_set=f"{embedder.name} is a factory, and {setting} is not set" if ":" in embedder.name else "",
    )
    placement = place([part], cards)
    [placed] = placement.placed
    device = settings.device_of(embedder.device)
    if device == "cuda" and not placed.share:
        raise VragError(f"embedder.device is cuda, and {placed.why}: set it to auto")
    changes: dict[str, object] = {"num_gpus": placed.share}
    if placed.share:
        changes["concurrency"] = part.processes
    elif not on_cpu:
        # A process that was given none would take one that it sees.
        embedder = with_changes(embedder, {"device": "cpu"})
    update = {"ingest": with_changes(config, changes), "embedder": embedder}
    return with_changes(settings, update), placement


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


def _committed(writer: CollectionWriter, settings: Settings, embedder_id: str) -> Committed:
    documents = writer.documents
    again = {
        doc_id
        for doc_id, document in documents.items()
        if settings.ingest.retry_errors and document.status is not DocumentStatus.READY
    }
    units = writer.unfinished_units(embedder_id, again)
    # Where no unit is at fault by itself, the whole document is read again.
    units = {
        doc_id: done for doc_id, done in units.items() if not (doc_id in again and len(done) == documents[doc_id].units)
    }
    return Committed(
        finished={doc_id: document.embedder_id for doc_id, document in documents.items() if doc_id not in again},
        units=units,
        counted={
            doc_id: document.units
            for doc_id, document in documents.items()
            if doc_id in again or document.embedder_id == READ_AGAIN
        },
        containers=frozenset(doc_id for doc_id, document in documents.items() if ATTACHMENTS in document.meta),
        sidecars={
            doc_id: str(document.meta[SIDECARS]) for doc_id, document in documents.items() if SIDECARS in document.meta
        },
    )
