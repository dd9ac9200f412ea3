"""One ingest job: its files into the collection, its progress and its result as the gateway sends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeAlias

from vrag_ray.client.schemas import FileNotice, FileProblem, FileState, IngestJob, JobState
from vrag_ray.config import Settings
from vrag_ray.types import DocumentStatus, Meta, NotFoundError, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.redaction import scrub

if TYPE_CHECKING:
    from vrag_ray.ingest import IngestReport, Progress, Source
    from vrag_ray.serving.ingest_jobs.queue import Report, StoredJob

    IngestFiles: TypeAlias = Callable[[Settings, Sequence[Source], Meta], AsyncGenerator[Progress | IngestReport]]
    """Ingests files in another process, so that neither searches nor a crash of ingest meet each other: progress, then
    the report. Raises VragError."""


async def run_job(
    settings: Settings,
    job: StoredJob,
    report: Report,
    ingest: IngestFiles,
    refresh: Callable[[], Awaitable[int]],
) -> IngestJob:
    """Ingest, report progress, have searches find the result; the final state of the job.

    Raises BusyError where the collection is not in its place, as on a volume that is not mounted: the files wait.
    """
    from vrag_ray.ingest import IngestReport, Source

    state = job.public
    sources = [
        Source(path=file.path, uri=f"upload:{state.job_id[:8]}-{number}/{file.name}", name=file.name)
        for number, file in enumerate(job.files)
    ]
    outcome: IngestReport | None = None
    # An ingest would make the collection that is missing.
    await asyncio.to_thread(_require_collection, settings.collection)
    try:
        async with aclosing(ingest(settings, sources, job.meta)) as updates:
            async for update in updates:
                if isinstance(update, IngestReport):
                    outcome = update
                else:
                    state = _progressed(state, update, sources)
                    report(state)
    except Exception:
        # Whatever it died of in mid-work: without its collection it can do nothing.
        await asyncio.to_thread(_require_collection, settings.collection)
        raise
    if outcome is None:
        raise VragError("ingest ended without a report: upload the files again")
    version = await refresh()
    names = {source.uri: source.name for source in sources}
    return with_changes(
        state,
        {
            "state": JobState.DONE,
            "done_pages": max(state.done_pages, outcome.pages),
            "total_pages": max(state.total_pages or 0, outcome.pages),
            "eta_s": None,
            "documents": _searchable(settings.collection, [file.doc_id for file in job.files]),
            "errors": [
                FileProblem(name=names.get(failed.uri, scrub(failed.uri)), error=scrub(failed.error))
                for failed in outcome.failed
            ],
            "notices": [
                FileNotice(name=names.get(file_notice.uri, scrub(file_notice.uri)), notice=scrub(file_notice.notice))
                for file_notice in outcome.file_notices
            ],
            "collection_version": version,
        },
    )


def _require_collection(root: str) -> None:
    from vrag_ray.index.storage.collection import Collection
    from vrag_ray.index.storage.writer import BusyError

    try:
        Collection.open(root)
    except NotFoundError as error:
        raise BusyError(f"the collection {root} is not in its place: mount or move it back") from error


def _progressed(state: IngestJob, progress: Progress, sources: Sequence[Source]) -> IngestJob:
    if progress.spaces:
        # The pages of the files are all read and can be searched.
        return with_changes(state, {"eta_s": progress.eta_s})
    by_uri = {file.uri: file for file in progress.by_file}
    return with_changes(
        state,
        {
            "files": [
                FileState(
                    name=source.name,
                    done_pages=by_uri[source.uri].done_pages,
                    total_pages=by_uri[source.uri].total_pages,
                )
                if source.uri in by_uri
                else FileState(name=source.name)
                for source in sources
            ],
            "done_pages": progress.done_pages,
            "total_pages": progress.total_pages,
            "pages_per_s": progress.pages_per_s,
            "eta_s": progress.eta_s,
        },
    )


def _searchable(root: str, doc_ids: Sequence[str]) -> list[str]:
    from vrag_ray.index.storage.collection import Collection

    collection = Collection.open(root)
    return [
        doc_id
        for doc_id in dict.fromkeys(doc_ids)
        if collection.has_document(doc_id) and collection.document(doc_id).status is not DocumentStatus.ERROR
    ]
