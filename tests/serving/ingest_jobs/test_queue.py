import asyncio
from pathlib import Path

import pytest

from tests.support.ingest_queue import Ingest, ended, uploaded_file
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.client.schemas import JobState
from vrag_ray.serving.errors import OverloadedError
from vrag_ray.serving.ingest_jobs.queue import JobQueue
from vrag_ray.types import NotFoundError, VragError

pytestmark = pytest.mark.anyio


async def test_jobs_run_one_at_a_time_report_progress_and_remove_their_files(tmp_path: Path):
    ingest = Ingest()
    queue = JobQueue(tmp_path, ingest, max_waiting=9, keep=9)
    for job_id in ("a", "b", "c"):
        assert queue.submit(job_id, [uploaded_file(tmp_path, job_id)], {}).state is JobState.QUEUED
    await asyncio.wait_for(ingest.reported.wait(), HANGS_AFTER_S)
    assert queue.job("a").done_pages == 1
    assert queue.job("b").state is JobState.QUEUED
    ingest.go.set()
    for job_id in ("a", "b", "c"):
        assert (await ended(queue, job_id)).state is JobState.DONE
    await queue.close()
    assert ingest.most == 1
    assert not (tmp_path / "a" / "0").exists()


async def test_a_job_that_breaks_says_why_and_the_next_one_runs(tmp_path: Path):
    ingest = Ingest(a=VragError("no space on /srv/disk/x"), b=RuntimeError("secret"))
    ingest.go.set()
    queue = JobQueue(tmp_path, ingest, max_waiting=9, keep=9)
    for job_id in ("a", "b", "c"):
        queue.submit(job_id, [uploaded_file(tmp_path, job_id)], {})
    first, second, third = [await ended(queue, job_id) for job_id in ("a", "b", "c")]
    await queue.close()
    assert (first.state, first.error) == (JobState.FAILED, "no space on x")
    assert second.state is JobState.FAILED
    assert "secret" not in second.error
    assert third.state is JobState.DONE


async def test_a_restarted_service_goes_on_with_unfinished_jobs_and_knows_the_finished(tmp_path: Path):
    first = Ingest()
    queue = JobQueue(tmp_path, first, max_waiting=9, keep=9)
    queue.submit("a", [uploaded_file(tmp_path, "a")], {"year": 2026})
    queue.submit("b", [uploaded_file(tmp_path, "b")], {})
    await asyncio.wait_for(first.reported.wait(), HANGS_AFTER_S)
    await queue.close()
    second = Ingest()
    second.go.set()
    again = JobQueue(tmp_path, second, max_waiting=9, keep=9)
    for job_id in ("a", "b"):
        assert (await ended(again, job_id)).state is JobState.DONE
    await again.close()
    third = JobQueue(tmp_path, Ingest(), max_waiting=9, keep=9)
    assert third.job("a").state is JobState.DONE
    await third.close()


async def test_the_queue_is_bounded_and_old_jobs_are_forgotten(tmp_path: Path):
    ingest = Ingest()
    queue = JobQueue(tmp_path, ingest, max_waiting=2, keep=3)
    queue.submit("a", [uploaded_file(tmp_path, "a")], {})
    await asyncio.wait_for(ingest.reported.wait(), HANGS_AFTER_S)
    queue.submit("b", [uploaded_file(tmp_path, "b")], {})
    queue.submit("c", [uploaded_file(tmp_path, "c")], {})
    with pytest.raises(OverloadedError):
        queue.submit("d", [uploaded_file(tmp_path, "d")], {})
    ingest.go.set()
    await ended(queue, "c")
    queue.submit("e", [uploaded_file(tmp_path, "e")], {})
    with pytest.raises(NotFoundError):
        queue.job("a")
    await queue.close()


async def test_what_a_desktop_leaves_beside_the_jobs_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / ".DS_Store").write_bytes(b"x")
    (tmp_path / "Thumbs.db").write_bytes(b"x")
    queue = JobQueue(tmp_path, Ingest(), max_waiting=9, keep=9)
    queue.submit("a", [uploaded_file(tmp_path, "a")], {})
    await queue.close()
    assert [record for record in caplog.records if "cannot be read" in record.getMessage()] == []


@pytest.mark.parametrize("job_id", ["a\0b", "..", "a" * 300])
async def test_an_id_that_no_job_can_have_is_of_none(tmp_path: Path, job_id: str):
    queue = JobQueue(tmp_path / "jobs", Ingest(), max_waiting=9, keep=9)
    (tmp_path / "job.json").write_text("{}")
    with pytest.raises(NotFoundError, match="no job"):
        queue.job(job_id)
    await queue.close()
