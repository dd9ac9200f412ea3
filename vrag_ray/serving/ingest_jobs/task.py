"""One ingest job as a Ray task of its own process, so that neither searches nor a crash of ingest meet each other."""

from __future__ import annotations

import queue
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from vrag_ray.client.schemas import FileNotice, FileProblem, FileState, IngestJob, JobState
from vrag_ray.config import Settings
from vrag_ray.serving.ray_faults import unwrapped
from vrag_ray.types import DocumentStatus, Meta, VragError
from vrag_ray.types.redaction import scrub

if TYPE_CHECKING:
    from vrag_ray.ingest import IngestReport, Progress, Source
    from vrag_ray.serving.ingest_jobs.queue import Report, StoredJob


async def run_job(
    settings: Settings, job: StoredJob, report: Report, refresh: Callable[[], Awaitable[int]]
) -> IngestJob:
    """Ingest, report progress, make the retriever serve the result; the final state of the job."""
    import ray
    from ray.exceptions import RayError

    from vrag_ray.ingest import IngestReport, Source

    state = job.public
    sources = [
        Source(path=file.path, uri=f"upload:{state.job_id[:8]}-{number}/{file.name}", name=file.name)
        for number, file in enumerate(job.files)
    ]
    # Retried once: ingest goes on where a killed process left it.
    task = ray.remote(num_cpus=0, max_retries=1)(_ingest_in_thread)
    outcome: IngestReport | None = None
    try:
        async for reference in task.options(num_returns="streaming").remote(settings, sources, job.meta):
            update = await reference
            if isinstance(update, IngestReport):
                outcome = update
            else:
                state = _progressed(state, update, sources)
                report(state)
    except RayError as error:
        raise unwrapped(error, "ingest") from error
    if outcome is None:
        raise VragError("ingest ended without a report: upload the files again")
    version = await refresh()
    names = {source.uri: source.name for source in sources}
    return state.model_copy(
        update={
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
                FileNotice(name=names.get(one.uri, scrub(one.uri)), notice=scrub(one.notice))
                for one in outcome.file_notices
            ],
            "collection_version": version,
        }
    )


def _ingest_in_thread(settings: Settings, sources: Sequence[Source], meta: Meta) -> Iterator[Progress | IngestReport]:
    """Ingest as a generator: progress, then the report. The task's own thread only hands values on."""
    from vrag_ray.ingest import IngestReport, ingest

    updates: queue.Queue[Progress | IngestReport | Exception] = queue.Queue()

    def work() -> None:
        try:
            updates.put(ingest(sources, settings, meta=meta, on_progress=updates.put))
        except Exception as error:  # noqa: BLE001  raised again in the task's own thread
            updates.put(error)

    threading.Thread(target=work, name="ingest", daemon=True).start()
    while True:
        update = updates.get()
        if isinstance(update, Exception):
            raise update
        yield update
        if isinstance(update, IngestReport):
            return


def _progressed(state: IngestJob, progress: Progress, sources: Sequence[Source]) -> IngestJob:
    told = {one.uri: one for one in progress.by_file}
    return state.model_copy(
        update={
            "files": [
                FileState(
                    name=source.name, done_pages=told[source.uri].done_pages, total_pages=told[source.uri].total_pages
                )
                if source.uri in told
                else FileState(name=source.name)
                for source in sources
            ],
            "done_pages": progress.done_pages,
            "total_pages": progress.total_pages,
            "pages_per_s": progress.pages_per_s,
            "eta_s": progress.eta_s,
        }
    )


def _searchable(root: str, doc_ids: Sequence[str]) -> list[str]:
    from vrag_ray.index.storage.collection import Collection

    collection = Collection.open(root)
    return [
        doc_id
        for doc_id in dict.fromkeys(doc_ids)
        if collection.has_document(doc_id) and collection.document(doc_id).status is not DocumentStatus.ERROR
    ]
