"""Ingest jobs: queued one after the other in a folder that all replicas share, so that any of them goes on with them.

One replica at a time works; when it dies, another takes its place. Ingest itself is idempotent by content hash, so
a job that was interrupted is simply run again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.client.schemas import IngestJob, JobState
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.index.storage.writer import BusyError
from vrag_ray.serving.contract import UploadedFile
from vrag_ray.serving.errors import OverloadedError
from vrag_ray.serving.files import utc_now, write_atomically
from vrag_ray.serving.owners import Owners, Seat
from vrag_ray.types import Meta, MetaValue, NotFoundError, VragError
from vrag_ray.types.copies import with_changes
from vrag_ray.types.redaction import scrub

log = logging.getLogger("vrag_ray.serving")
STATE_FILE = "job.json"
LOOK_S = 0.5
"""How often a replica looks for jobs of others, and whether it is its turn to work."""
PROGRESS_EVERY_S = 1.0
"""How often the progress of the running job is written for the other replicas."""
BUSY_S = 2.0
"""Pause before a job whose collection another process writes to is tried again."""
OWNERS = ".owners"
_ID = re.compile("[A-Za-z0-9_-]{1,64}")
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
    """All jobs of one service, as one replica sees them. In all replicas together ``ingest`` is called for one job at a
    time: it takes all cores anyway."""

    def __init__(self, folder: Path, ingest: Ingest, *, max_waiting: int, keep: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._ingest = ingest
        self._max_waiting = max_waiting
        self._keep = keep
        self._owners = Owners(folder / OWNERS)
        self._seat = Seat(folder / OWNERS, self._owners)
        self._submitted = asyncio.Event()
        self._running = ""
        self._written_at = 0.0
        self._jobs: dict[str, StoredJob] = {}
        self._refresh()
        self._worker = asyncio.create_task(self._work(), name="ingest-jobs")

    def submit(self, job_id: str, files: Sequence[UploadedFile], meta: Meta, collection: str = "") -> IngestJob:
        """Queue a job for the collection of that name.

        Raises OverloadedError when too many wait, StorageError when the disk does not take it.
        """
        self._refresh()
        if len(self._in_state(JobState.QUEUED)) >= self._max_waiting:
            raise OverloadedError(f"{self._max_waiting} ingest jobs are waiting, the limit", retry_after_s=10)
        public = IngestJob(job_id=job_id, state=JobState.QUEUED, url=f"/v1/jobs/{job_id}", collection=collection)
        job = StoredJob(created_at=utc_now(), files=list(files), meta=dict(meta), public=public)
        with storage_faults(str(self._folder), "queueing the upload", is_collection=False):
            self._store(job)
        self._submitted.set()
        self._forget_oldest()
        return public

    def job(self, job_id: str) -> IngestJob:
        # An id becomes the name of a folder: one that no upload can have is none.
        if _ID.fullmatch(job_id) and not self._is_current(job_id):
            self._read(job_id)
        try:
            return self._jobs[job_id].public
        except KeyError:
            raise NotFoundError(f"no job {job_id[:80]}; only the last {self._keep} are kept") from None

    def leave(self) -> None:
        """Another replica may take the place of this one at once."""
        self._owners.close()

    async def close(self) -> None:
        self._worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._worker
        self.leave()

    async def _work(self) -> None:
        while True:
            try:
                job = self._next()
            except OSError:
                log.exception("the ingest jobs in %s cannot be looked at", self._folder)
                await asyncio.sleep(BUSY_S)
                continue
            if job is None:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._submitted.wait()
                self._submitted.clear()
                continue
            job_id = self._running = job.public.job_id
            try:
                self._update(job_id, with_changes(job.public, {"state": JobState.RUNNING}))
                self._update(job_id, await self._run(job))
            finally:
                self._running = ""
            for file in job.files:
                await asyncio.to_thread(shutil.rmtree, file.path.parent, ignore_errors=True)

    def _next(self) -> StoredJob | None:
        """The job to run now: the oldest that has not ended, where it is this replica that works."""
        if not self._seat.take():
            return None
        self._refresh()
        return next(iter(self._in_state(JobState.QUEUED, JobState.RUNNING)), None)

    async def _run(self, job: StoredJob) -> IngestJob:
        running = with_changes(job.public, {"state": JobState.RUNNING})
        try:
            while True:
                try:
                    return await self._ingest(with_changes(job, {"public": running}), self._progress)
                except BusyError as error:
                    # With `vrag ingest`, with what is left of a replica that was killed, or on a volume that is gone:
                    # none is a fault of the job.
                    log.info("ingest job %s waits: %s", running.job_id, error)
                    await asyncio.sleep(BUSY_S)
        except VragError as error:
            reason = scrub(str(error))
        except Exception:
            log.exception("ingest job %s failed", running.job_id)
            reason = "ingest failed inside the server; its log has the reason under the id of the job"
        return with_changes(running, {"state": JobState.FAILED, "error": reason})

    def _progress(self, public: IngestJob) -> None:
        job = self._jobs[public.job_id] = with_changes(self._jobs[public.job_id], {"public": public})
        if time.monotonic() - self._written_at > PROGRESS_EVERY_S:
            self._written_at = time.monotonic()
            with contextlib.suppress(OSError):
                # For the other replicas. A restarted job counts anew, so it need not outlive the machine.
                write_atomically(self._folder / public.job_id / STATE_FILE, job.model_dump_json(), durable=False)

    def _update(self, job_id: str, public: IngestJob) -> None:
        job = with_changes(self._jobs[job_id], {"public": public})
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

    def _in_state(self, *states: JobState) -> list[StoredJob]:
        """Those in one of ``states``, oldest first."""
        return sorted(
            (job for job in self._jobs.values() if job.public.state in states), key=lambda job: job.created_at
        )

    def _is_current(self, job_id: str) -> bool:
        """Whether what this replica knows of a job cannot have changed elsewhere: it has ended, or is run here."""
        known = self._jobs.get(job_id)
        return known is not None and (known.public.finished or job_id == self._running)

    def _read(self, job_id: str) -> bool:
        """Know what is on disk of a job; False where there is nothing."""
        try:
            self._jobs[job_id] = StoredJob.model_validate_json((self._folder / job_id / STATE_FILE).read_bytes())
        except FileNotFoundError:
            self._jobs.pop(job_id, None)
            return False
        except (OSError, ValidationError) as error:
            log.warning("the ingest job %s cannot be read and is left out: %s", job_id, error)
        return True

    def _refresh(self) -> None:
        """Know what other replicas have submitted, run and forgotten."""
        with os.scandir(self._folder) as entries:
            # Not what desktops leave beside them, as `.DS_Store`.
            folders = {
                entry.name: Path(entry) for entry in entries if entry.is_dir() and not entry.name.startswith(".")
            }
        for job_id in self._jobs.keys() - folders.keys():
            self._jobs.pop(job_id, None)
        for job_id, folder in folders.items():
            if self._is_current(job_id) or self._read(job_id):
                continue
            with contextlib.suppress(FileNotFoundError):
                if time.time() - folder.stat().st_mtime > _ORPHAN_S:
                    shutil.rmtree(folder, ignore_errors=True)

    def _forget_oldest(self) -> None:
        excess = len(self._jobs) - self._keep
        finished = self._in_state(JobState.DONE, JobState.FAILED)
        for job_id in [job.public.job_id for job in finished[: max(0, excess)]]:
            del self._jobs[job_id]
            shutil.rmtree(self._folder / job_id, ignore_errors=True)
