"""Ingest jobs: queued one after the other, their state on disk, so that a restarted service goes on with them.

Ingest itself is idempotent by content hash, so a job that was interrupted is simply run again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.client.schemas import IngestJob, JobState
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.serving.backends import UploadedFile
from vrag_ray.serving.errors import OverloadedError
from vrag_ray.serving.files import utc_now, write_atomically
from vrag_ray.types import Meta, MetaValue, NotFoundError, VragError
from vrag_ray.types.redaction import scrub

log = logging.getLogger("vrag_ray.serving")
STATE_FILE = "job.json"
_ORPHAN_S = 3600.0
"""Files whose upload broke off before a job was made of them are removed when they are this old."""


class StoredJob(BaseModel):
    """A job on disk: what to ingest, and how far it is."""

    model_config = ConfigDict(frozen=True)

    created_at: str
    files: list[UploadedFile]
    meta: dict[str, MetaValue]
    public: IngestJob


Report = Callable[[IngestJob], None]
Ingest = Callable[[StoredJob, Report], Awaitable[IngestJob]]
"""Ingests a job's files; reports progress as changed copies of ``public``; returns the final one."""


class JobQueue:
    """All jobs of one service. ``ingest`` is called for one job at a time: it takes all cores anyway."""

    def __init__(self, folder: Path, ingest: Ingest, *, max_waiting: int, keep: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._ingest = ingest
        self._max_waiting = max_waiting
        self._keep = keep
        self._waiting: asyncio.Queue[str] = asyncio.Queue()
        self._jobs: dict[str, StoredJob] = {}
        self._load()
        self._worker = asyncio.create_task(self._work(), name="ingest-jobs")

    def submit(self, job_id: str, files: Sequence[UploadedFile], meta: Meta, collection: str = "") -> IngestJob:
        """Queue a job for the collection of that name.

        Raises OverloadedError when too many wait, StorageError when the disk does not take it.
        """
        if self._waiting.qsize() >= self._max_waiting:
            raise OverloadedError(f"{self._max_waiting} ingest jobs are waiting, the limit", retry_after_s=10)
        public = IngestJob(job_id=job_id, state=JobState.QUEUED, url=f"/v1/jobs/{job_id}", collection=collection)
        job = StoredJob(created_at=utc_now(), files=list(files), meta=dict(meta), public=public)
        with storage_faults(str(self._folder), "queueing the upload", is_collection=False):
            self._store(job)
        self._waiting.put_nowait(job_id)
        self._forget_oldest()
        return public

    def job(self, job_id: str) -> IngestJob:
        try:
            return self._jobs[job_id].public
        except KeyError:
            raise NotFoundError(f"no job {job_id}; only the last {self._keep} are kept") from None

    async def close(self) -> None:
        self._worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._worker

    async def _work(self) -> None:
        while True:
            job_id = await self._waiting.get()
            job = self._jobs[job_id]
            self._update(job_id, job.public.model_copy(update={"state": JobState.RUNNING}))
            self._update(job_id, await self._run(job))
            for file in job.files:
                await asyncio.to_thread(shutil.rmtree, file.path.parent, ignore_errors=True)

    async def _run(self, job: StoredJob) -> IngestJob:
        running = job.public.model_copy(update={"state": JobState.RUNNING})
        try:
            return await self._ingest(job.model_copy(update={"public": running}), self._progress)
        except VragError as error:
            reason = scrub(str(error))
        except Exception:
            log.exception("ingest job %s failed", running.job_id)
            reason = "ingest failed inside the server; its log has the reason under the id of the job"
        return running.model_copy(update={"state": JobState.FAILED, "error": reason})

    def _progress(self, public: IngestJob) -> None:
        # In memory only: a restarted job counts anew, and this loop serves pages meanwhile.
        self._jobs[public.job_id] = self._jobs[public.job_id].model_copy(update={"public": public})

    def _update(self, job_id: str, public: IngestJob) -> None:
        job = self._jobs[job_id].model_copy(update={"public": public})
        try:
            self._store(job)
        except OSError:
            # The queue goes on: a restarted service would only run the job again.
            self._jobs[job_id] = job
            log.exception("the state %s of ingest job %s cannot be kept", public.state, job_id)

    def _store(self, job: StoredJob) -> None:
        folder = self._folder / job.public.job_id
        folder.mkdir(exist_ok=True)
        write_atomically(folder / STATE_FILE, job.model_dump_json())
        self._jobs[job.public.job_id] = job

    def _load(self) -> None:
        stored = []
        for folder in self._folder.iterdir():
            state = folder / STATE_FILE
            if state.exists():
                try:
                    stored.append(StoredJob.model_validate_json(state.read_bytes()))
                except (OSError, ValidationError) as error:
                    log.warning("the ingest job %s cannot be read and is left out: %s", folder.name, error)
            elif time.time() - folder.stat().st_mtime > _ORPHAN_S:
                shutil.rmtree(folder, ignore_errors=True)
        for job in sorted(stored, key=lambda job: job.created_at):
            self._jobs[job.public.job_id] = job
            if not job.public.finished:
                self._waiting.put_nowait(job.public.job_id)

    def _forget_oldest(self) -> None:
        excess = len(self._jobs) - self._keep
        finished = [job_id for job_id, job in self._jobs.items() if job.public.finished]
        for job_id in finished[: max(0, excess)]:
            del self._jobs[job_id]
            shutil.rmtree(self._folder / job_id, ignore_errors=True)
