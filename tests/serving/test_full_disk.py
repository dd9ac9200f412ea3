"""A service on a full disk: refusals that say so, runs that end, a queue that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import httpx

from tests.support.disks import SmallDisk, needs_mounts, small_disk
from tests.support.http_gateway import http
from tests.support.ingest_queue import Ingest, ended, uploaded_file
from tests.support.stand_in import StandIn
from vrag_ray.agent.events import ErrorEvent
from vrag_ray.client.schemas import JobState, RunSummary
from vrag_ray.index.storage.errors import StorageError
from vrag_ray.serving.ingest_jobs.queue import JobQueue
from vrag_ray.serving.runs.event_log import EventLog, read_log

LIMIT_S = 20
SIZE = 1_000_000


def on_a_small_disk(folder: Path, test: Callable[[SmallDisk], Coroutine[None, None, None]]) -> None:
    async def limited(disk: SmallDisk) -> None:
        async with asyncio.timeout(LIMIT_S):
            await test(disk)

    with small_disk(folder / "disk", SIZE) as disk:
        asyncio.run(limited(disk))


@needs_mounts
def test_an_upload_that_does_not_fit_is_507_and_leaves_nothing(tmp_path: Path):
    async def upload(disk: SmallDisk) -> None:
        async with http(StandIn(tmp_path / "runs"), disk.folder) as client:
            before = disk.free
            reply: httpx.Response = await client.post("/v1/documents", files={"files": ("a.txt", b"x" * 2 * SIZE)})
            assert reply.status_code == 507
            assert reply.json()["error"]["code"] == "storage_full"
            assert "full disk" in reply.json()["error"]["message"]
            assert str(disk.folder) not in reply.text
            assert disk.free > before - 10_000
            small = await client.post("/v1/documents", files={"files": ("a.txt", b"x")})
            assert small.status_code == 202

    on_a_small_disk(tmp_path, upload)


@needs_mounts
def test_a_run_whose_log_no_longer_fits_goes_on_for_its_readers(tmp_path: Path):
    async def read(disk: SmallDisk) -> None:
        path = disk.folder / "run.events"
        log = EventLog(path, RunSummary(run_id="r1", question="what?", agent="a", status="running", started_at=""))
        log.append(ErrorEvent(seq=0, message="small"))
        disk.leave_free(0)
        # Longer than what is left of the page that the file has.
        log.append(ErrorEvent(seq=1, message="x" * 9000))
        log.append(ErrorEvent(seq=2, message="last", terminal=True))
        log.close()
        seen = [event.seq async for events in log.read(-1) for event in events]
        assert seen == [0, 1, 2]
        logged = read_log(path)
        assert logged is not None
        assert [event.seq for event in logged.events] == [0]

    on_a_small_disk(tmp_path, read)


@needs_mounts
def test_the_queue_of_ingest_jobs_goes_on_when_a_job_cannot_be_noted(tmp_path: Path):
    async def work(disk: SmallDisk) -> None:
        ingest = Ingest()
        queue = JobQueue(disk.folder / "jobs", ingest, max_waiting=9, keep=9)
        for job_id in ("a", "b"):
            queue.submit(job_id, [uploaded_file(disk.folder / "jobs", job_id)], {})
        third = uploaded_file(disk.folder / "jobs", "c")
        disk.leave_free(0)
        try:
            queue.submit("c", [third], {})
        except StorageError as error:
            assert "the folder " in str(error) and "queueing the upload failed" in str(error)
        else:
            raise AssertionError("a job that cannot be kept was accepted")
        ingest.go.set()
        assert (await ended(queue, "a")).state is JobState.DONE
        assert (await ended(queue, "b")).state is JobState.DONE
        await queue.close()

    on_a_small_disk(tmp_path, work)
