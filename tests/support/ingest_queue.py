"""An ingest that waits for a signal, and the uploads and ends of the jobs of its queue."""

from __future__ import annotations

import asyncio
from pathlib import Path

from vrag_ray.client.schemas import IngestJob, JobState
from vrag_ray.serving.contract import UploadedFile
from vrag_ray.serving.ingest_jobs.queue import JobQueue, Report, StoredJob


class Ingest:
    """Waits for ``go``, reports once, and fails for jobs named in ``faults``."""

    def __init__(self, **faults: Exception) -> None:
        self.go = asyncio.Event()
        self.reported = asyncio.Event()
        self.faults = faults
        self.running = self.most = 0

    async def __call__(self, job: StoredJob, report: Report) -> IngestJob:
        self.running += 1
        self.most = max(self.most, self.running)
        report(job.public.model_copy(update={"done_pages": 1}))
        self.reported.set()
        try:
            await self.go.wait()
            if job.public.job_id in self.faults:
                raise self.faults[job.public.job_id]
        finally:
            self.running -= 1
        return job.public.model_copy(update={"state": JobState.DONE})


def uploaded_file(folder: Path, job_id: str) -> UploadedFile:
    """A file of the job, where its upload would have put it."""
    path = folder / job_id / "0" / "a.txt"
    path.parent.mkdir(parents=True)
    path.write_text("x")
    return UploadedFile(path, "a.txt", "ab" * 32)


async def ended(queue: JobQueue, job_id: str) -> IngestJob:
    """The job, once it is over."""
    async with asyncio.timeout(5):
        while not queue.job(job_id).finished:  # noqa: ASYNC110  polled over HTTP, so polled here
            await asyncio.sleep(0.01)
    return queue.job(job_id)
