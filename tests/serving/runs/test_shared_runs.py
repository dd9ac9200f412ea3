"""Two replicas with one folder: each answers for the runs of the other."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.patience import HANGS_AFTER_S
from tests.support.stand_in import ScriptedRun
from vrag_ray.agent.events import EVENT, ErrorEvent, RunStatus
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.schemas import RunRequest, RunSummary
from vrag_ray.serving import owners as owners_module
from vrag_ray.serving.errors import ConflictError, NotReadyError
from vrag_ray.serving.owners import Owners
from vrag_ray.serving.runs.event_log import EventLog, LogTail
from vrag_ray.serving.runs.service import RunService
from vrag_ray.serving.runs.store import RunStore, end_runs
from vrag_ray.types import NotFoundError

pytestmark = pytest.mark.anyio
RUN = RunRequest(question="what?", run_id="the-run-id")
ID = "the-run-id"


class Replica(RunService):
    """A replica whose runs wait for ``go`` before their answer."""

    def __init__(self, folder: Path, keep: int = 9) -> None:
        self.go = asyncio.Event()
        super().__init__(
            RunStore(folder, keep),
            lambda run_id, request, _: ScriptedRun(run_id, request, self.go),
            max_concurrent=9,
            default_deadline_s=30.0,
            default_agent="extractive",
        )

    async def seen(self, run_id: str, after: int = -1) -> list[tuple[int, str]]:
        return [(event.seq, event.kind) async for events in self.read(run_id, after) for event in events]

    async def until(self, run_id: str, seq: int) -> None:
        async for events in self.read(run_id, -1):
            if events[-1].seq >= seq:
                return


def names(folder: Path, pattern: str) -> list[str]:
    return [path.name for path in folder.glob(pattern)]


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[Replica, Replica]]:
    first, second = Replica(tmp_path), Replica(tmp_path)
    yield first, second
    for replica in (first, second):
        replica.go.set()
        for run in replica.list(9).runs:
            await replica.seen(run.run_id)
        replica.close()


async def test_any_replica_follows_a_run_and_sees_what_its_own_readers_see(pair: tuple[Replica, Replica]):
    owner, other = pair
    owner.start(RUN)
    await owner.until(ID, 3)
    readers = [asyncio.create_task(replica.seen(ID, after)) for replica in pair for after in (-1, 1)]
    await other.until(ID, 3)
    assert RunSummary.model_validate_json(other.fetch(ID).body).last_event_id == 3
    assert [run.status for run in other.list(9).runs] == ["running"]
    with pytest.raises(ConflictError, match="going on"):
        other.finished(ID)
    owner.go.set()
    whole, rest, whole_elsewhere, rest_elsewhere = await asyncio.gather(*readers)
    assert [kind for _, kind in whole] == ["start", "think", "think", "think", "answer"]
    assert whole_elsewhere == whole
    assert rest_elsewhere == rest == whole[2:]
    assert RunRecord.model_validate_json(other.fetch(ID).body).answer == "42"
    assert [run.run_id for run in other.list(9).runs] == [ID]
    assert await other.seen(ID) == whole


async def test_a_repeated_start_joins_the_run_of_the_other_replica(pair: tuple[Replica, Replica]):
    owner, other = pair
    owner.start(RUN)
    assert other.start(RUN) == ID
    assert other.state().active == 0
    with pytest.raises(ConflictError, match="another question"):
        other.start(RunRequest(question="else?", run_id=ID))
    owner.go.set()
    await owner.seen(ID)
    assert other.start(RUN) == ID
    assert other.state().active == 0


async def test_any_replica_ends_a_run(pair: tuple[Replica, Replica]):
    owner, other = pair
    owner.start(RUN)
    await owner.until(ID, 3)
    ended = await other.cancel(ID)
    assert not ended.live
    assert RunRecord.model_validate_json(ended.body).status is RunStatus.CANCELLED
    assert (await owner.seen(ID))[-1][1] == "error"


async def test_all_runs_of_all_replicas_end_when_the_service_stops(pair: tuple[Replica, Replica], tmp_path: Path):
    ids = [replica.start(RunRequest(question="what?", run_id=f"run-of-{n}-here")) for n, replica in enumerate(pair)]
    readers = [asyncio.create_task(replica.seen(run_id)) for replica, run_id in zip(pair, ids, strict=True)]
    await asyncio.to_thread(end_runs, tmp_path, HANGS_AFTER_S)
    assert [(await reader)[-1][1] for reader in readers] == ["error", "error"]
    assert [run.status for run in pair[0].list(9).runs] == ["cancelled", "cancelled"]
    assert not names(tmp_path, "*.end")


async def test_a_run_that_nobody_runs_does_not_hold_up_the_stop(tmp_path: Path):
    log = EventLog(tmp_path / f"{ID}.events", RunSummary(run_id=ID, question="?", agent="", status="", started_at=""))
    log.close()
    end_runs(tmp_path, 0.0)
    end_runs(tmp_path / "missing", HANGS_AFTER_S)
    assert names(tmp_path, "*") == [f"{ID}.events"]


async def test_the_run_of_a_replica_that_is_gone_is_closed_for_its_readers(tmp_path: Path):
    owner, other = Replica(tmp_path), Replica(tmp_path)
    owner.start(RUN)
    await owner.until(ID, 3)
    reader = asyncio.create_task(other.seen(ID))
    await other.until(ID, 3)
    owner.close()
    assert (await asyncio.wait_for(reader, HANGS_AFTER_S))[-1] == (4, "error")
    record = RunRecord.model_validate_json(other.fetch(ID).body)
    end = EVENT.validate_python(record.events[-1])
    assert isinstance(end, ErrorEvent) and end.terminal and "ask again" in end.message
    assert Replica(tmp_path).fetch(ID).body == other.fetch(ID).body
    await owner.cancel(ID)


async def test_what_one_replica_no_longer_keeps_is_gone_in_the_other(tmp_path: Path):
    first, second = Replica(tmp_path, keep=2), Replica(tmp_path, keep=2)
    for number, replica in enumerate((first, second, first)):
        replica.go.set()
        await replica.seen(replica.start(RunRequest(question="what?", run_id=f"run-number-{number}")))
    expected = ["run-number-2", "run-number-1"]
    assert [run.run_id for run in first.list(9).runs] == expected
    assert [run.run_id for run in second.list(9).runs] == expected
    for replica in (first, second):
        with pytest.raises(NotFoundError):
            replica.fetch("run-number-0")
        replica.close()


async def test_runs_that_start_within_a_millisecond_are_listed_newest_first_by_every_replica(
    pair: tuple[Replica, Replica],
):
    ids = [pair[0].start(RunRequest(question="what?", run_id=f"run-number-{number}")) for number in range(9)]
    for replica in pair:
        assert [run.run_id for run in replica.list(9).runs] == ids[::-1]


async def test_a_run_that_cannot_be_kept_does_not_look_as_if_it_went_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    owner, other = Replica(tmp_path), Replica(tmp_path)

    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(owner._store, "_write", full)
    owner.start(RUN)
    owner.go.set()
    assert (await owner.seen(ID))[-1] == (4, "answer")
    for replica in (owner, other):
        assert replica.list(9).runs == []
        with pytest.raises(NotFoundError):
            replica.fetch(ID)
        replica.close()


async def test_a_follower_reads_a_line_that_is_being_written_once_and_whole(tmp_path: Path):
    log = EventLog(tmp_path / "run.events", RunSummary(run_id=ID, question="q", agent="a", status="r", started_at=""))
    tail = LogTail(tmp_path / "run.events")
    assert tail.news() == ()
    log.append(ErrorEvent(seq=0, message="first"))
    with (tmp_path / "run.events").open("a", encoding="utf-8") as torn:
        torn.write('{"kind": "error", "seq": 1')
        torn.flush()
        assert [event.seq for event in tail.news()] == [0]
        assert tail.news() == ()
        torn.write(', "message": "second"}\n')
    assert [event.seq for event in tail.news()] == [1]
    log.close()
    (tmp_path / "run.events").unlink()
    with pytest.raises(FileNotFoundError):
        tail.news()


async def test_a_folder_of_runs_that_is_removed_is_made_anew_and_one_that_cannot_be_is_reported(tmp_path: Path):
    folder = tmp_path / "volume" / "runs"
    replica = Replica(folder)
    shutil.rmtree(folder)
    replica.go.set()
    replica.start(RUN)
    await replica.seen(ID)
    assert replica.finished(ID).answer == "42"
    shutil.rmtree(folder.parent)
    with pytest.raises(NotReadyError, match="of runs cannot be made: No such file or directory"):
        replica.state()
    with pytest.raises(NotReadyError):
        replica.start(RunRequest(question="again?", run_id="another-run"))
    replica.close()


async def test_an_owner_whose_folder_is_removed_shows_again_that_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(owners_module, "RENEW_S", 0.01)
    owner, other = Owners(tmp_path / "runs" / "owners"), Owners(tmp_path / "runs" / "owners")
    shutil.rmtree(tmp_path / "runs")
    async with asyncio.timeout(HANGS_AFTER_S):
        while not other.is_alive(owner.me):  # noqa: ASYNC110  the other process shares a folder only
            await asyncio.sleep(0.01)
    owner.close()
    other.close()
