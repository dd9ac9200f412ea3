"""Two replicas with one folder of jobs: one works, either answers, and the work goes on when one is gone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.ingest_queue import Ingest, ended, uploaded_file
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.client.schemas import JobState
from vrag_ray.index.storage.writer import BusyError
from vrag_ray.serving.ingest_jobs import queue as queue_module
from vrag_ray.serving.ingest_jobs.queue import JobQueue

pytestmark = pytest.mark.anyio


def replica(folder: Path, ingest: Ingest) -> JobQueue:
    return JobQueue(folder, ingest, max_waiting=2, keep=9)


async def test_one_replica_works_and_both_know_how_far_it_is(tmp_path: Path):
    ingests = Ingest(), Ingest()
    first = replica(tmp_path, ingests[0])
    first.submit("a", [uploaded_file(tmp_path, "a")], {})
    await asyncio.wait_for(ingests[0].reported.wait(), HANGS_AFTER_S)
    second = replica(tmp_path, ingests[1])
    second.submit("b", [uploaded_file(tmp_path, "b")], {})
    assert second.job("a").state is JobState.RUNNING
    assert second.job("a").done_pages == 1
    assert first.job("b").state is JobState.QUEUED
    ingests[0].go.set()
    for job_id in ("a", "b"):
        assert (await ended(second, job_id)).state is JobState.DONE
        assert (await ended(first, job_id)).state is JobState.DONE
    assert not ingests[1].reported.is_set()
    await first.close()
    await second.close()


async def test_another_replica_goes_on_with_the_jobs_of_one_that_is_gone(tmp_path: Path):
    lost, left = Ingest(), Ingest()
    first, second = replica(tmp_path, lost), replica(tmp_path, left)
    left.go.set()
    for job_id in ("a", "b"):
        first.submit(job_id, [uploaded_file(tmp_path, job_id)], {})
    await asyncio.wait_for(lost.reported.wait(), HANGS_AFTER_S)
    # As a killed process: no one works there any more, and nothing is cleaned up.
    first._worker.cancel()
    first.leave()
    for job_id in ("a", "b"):
        assert (await ended(second, job_id)).state is JobState.DONE
    await second.close()


async def test_a_job_whose_collection_is_being_written_to_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(queue_module, "BUSY_S", 0.05)
    ingest = Ingest(a=BusyError("another process is writing"))
    queue = replica(tmp_path, ingest)
    queue.submit("a", [uploaded_file(tmp_path, "a")], {})
    ingest.go.set()
    await asyncio.wait_for(ingest.reported.wait(), HANGS_AFTER_S)
    assert queue.job("a").state is JobState.RUNNING
    ingest.faults.clear()
    assert (await ended(queue, "a")).state is JobState.DONE
    await queue.close()
