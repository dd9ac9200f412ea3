"""Jobs and searches of a collection whose folder is taken away while it is served, as with its volume."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from tests.support.ingest_queue import uploaded_file
from tests.support.patience import HANGS_AFTER_S
from tests.support.planted import plant
from vrag_ray.client.schemas import IngestJob, JobState
from vrag_ray.config import Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.rows import AbsentError, CorruptionError
from vrag_ray.ingest import IngestReport, Progress, Source, ingest
from vrag_ray.serving.ingest_jobs import queue as queue_module
from vrag_ray.serving.ingest_jobs.queue import JobQueue, Report, StoredJob
from vrag_ray.serving.ingest_jobs.task import run_job
from vrag_ray.types import Meta

pytestmark = pytest.mark.anyio


async def test_a_job_waits_for_its_collection_and_makes_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(queue_module, "BUSY_S", 0.01)
    root, away = tmp_path / "c", tmp_path / "away"
    Collection.open_or_create(root)
    settings = Settings(collection=str(root))
    begun = 0

    async def ingested(of: Settings, sources: Sequence[Source], meta: Meta) -> AsyncGenerator[Progress | IngestReport]:
        nonlocal begun
        begun += 1
        if begun == 1:
            root.rename(away)
            raise OSError("Invalid: cannot open fragment 7")
        yield await asyncio.to_thread(ingest, sources, of, meta=meta)

    async def refresh() -> int:
        return 1

    async def run(job: StoredJob, report: Report) -> IngestJob:
        return await run_job(settings, job, report, ingested, refresh)

    jobs = JobQueue(tmp_path / "uploads", run, max_waiting=9, keep=9)
    jobs.submit("a", [uploaded_file(tmp_path / "uploads", "a")], {})
    async with asyncio.timeout(HANGS_AFTER_S):
        while sum("is not in its place" in record.getMessage() for record in caplog.records) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (jobs.job("a").state, begun, root.exists()) == (JobState.RUNNING, 1, False)
    away.rename(root)
    async with asyncio.timeout(HANGS_AFTER_S):
        while not jobs.job("a").finished:  # noqa: ASYNC110  polled over HTTP, so polled here
            await asyncio.sleep(0.01)
    job = jobs.job("a")
    await jobs.close()
    assert (job.state, begun, len(Collection.open(root).documents())) == (JobState.DONE, 2, 1)


async def test_a_table_of_an_absent_collection_is_not_called_damaged(tmp_path: Path):
    plant(tmp_path / "c", {"a": ["red apple"]})
    opened = Collection.open(tmp_path / "c")
    (tmp_path / "c").rename(tmp_path / "away")
    with pytest.raises(AbsentError, match="is no longer in its place: mount or move it back") as absent:
        opened.table("passages")
    assert (absent.value.status, absent.value.code) == (503, "storage_unavailable")
    (tmp_path / "away").rename(tmp_path / "c")
    for version in (tmp_path / "c" / "passages.lance" / "_versions").iterdir():
        version.unlink()
    with pytest.raises(CorruptionError, match="run `vrag verify`"):
        opened.table("passages")
