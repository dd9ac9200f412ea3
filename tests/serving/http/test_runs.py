import asyncio
from pathlib import Path

import httpx
import pytest

from tests.support.http_gateway import http
from tests.support.openai_calls import data_url
from tests.support.sse_client import Received, events_of
from tests.support.stand_in import StandIn
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.http import AsyncClient
from vrag_ray.config import ServingConfig
from vrag_ray.serving.system import ServedSystem
from vrag_ray.types import VragError

pytestmark = pytest.mark.anyio


async def _read(client: httpx.AsyncClient, run_id: str, after: int | None = None) -> list[Received]:
    headers = {} if after is None else {"Last-Event-ID": str(after)}
    async with client.stream("GET", f"/v1/runs/{run_id}/events", headers=headers) as response:
        return [event async for event in events_of(response)]


async def _start(client: httpx.AsyncClient, question: str = "q", events: int = 2, **more: object) -> str:
    """Start a run, read its first ``events`` events and hang up."""
    async with client.stream("POST", "/v1/runs", json={"question": question, **more}) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        seen = 0
        async for _ in events_of(response):
            seen += 1
            if seen == events:
                break
        return response.headers["x-run-id"]


async def test_a_run_streams_to_its_answer_and_can_then_be_fetched(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    async with client.stream("POST", "/v1/runs", json={"question": "q"}) as response:
        received = []
        async for event in events_of(response):
            received.append(event)
            if event.kind == "answer":
                # At this very moment, not only after the stream's end.
                fetched = await client.get(response.headers["location"])
                assert fetched.status_code == 200
    assert [event.id for event in received] == [0, 1, 2, 3, 4]
    assert [event.kind for event in received] == ["start", "think", "think", "think", "answer"]
    record = RunRecord.from_json(fetched.text)
    assert record.answer == "42"
    assert [event.seq for event in record.events] == [0, 1, 2, 3, 4]


async def test_line_separators_inside_an_event_do_not_break_the_stream(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    async with client.stream("POST", "/v1/runs", json={"question": "q"}) as response:
        lines = [line async for line in response.aiter_lines()]  # httpx splits at U+2028 too
    assert sum(line.startswith("data: ") for line in lines) == 5
    assert all(line.split(":")[0] in ("id", "event", "data", "") for line in lines)


async def test_a_reader_who_hung_up_resumes_without_loss_or_repetition(client: httpx.AsyncClient, backend: StandIn):
    run_id = await _start(client, events=2)
    assert (await client.get(f"/v1/runs/{run_id}")).status_code == 202
    resumed = asyncio.create_task(_read(client, run_id, after=1))
    await asyncio.sleep(0)
    backend.go.set()
    assert [event.id for event in await resumed] == [2, 3, 4]


async def test_many_readers_get_every_event_exactly_once(client: httpx.AsyncClient, backend: StandIn):
    run_id = await _start(client, events=1)
    readers = [asyncio.create_task(_read(client, run_id, after)) for after in (-1, 0, 2, None) for _ in range(5)]
    backend.go.set()
    for after, reader in zip([a for a in (-1, 0, 2, None) for _ in range(5)], readers, strict=True):
        assert [event.id for event in await reader] == list(range((-1 if after is None else after) + 1, 5))


async def test_a_finished_run_replays_and_then_says_there_is_no_more(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    run_id = await _start(client, events=5)
    assert [event.id for event in await _read(client, run_id)] == [0, 1, 2, 3, 4]
    reply = await client.get(f"/v1/runs/{run_id}/events", headers={"Last-Event-ID": "4"})
    assert reply.status_code == 204


async def test_a_post_repeated_with_its_run_id_joins_the_run(client: httpx.AsyncClient, backend: StandIn):
    body = {"question": "q", "run_id": "mine-0001"}
    assert await _start(client, **body) == "mine-0001"
    backend.go.set()
    async with client.stream("POST", "/v1/runs", json=body, headers={"Last-Event-ID": "0"}) as response:
        assert [event.id async for event in events_of(response)] == [1, 2, 3, 4]
    assert (await client.get("/v1/runs")).json()["total"] == 1
    other = await client.post("/v1/runs", json={"question": "another", "run_id": "mine-0001"})
    assert (other.status_code, other.json()["error"]["param"]) == (409, "run_id")


async def test_too_many_runs_are_429_and_room_comes_back(client: httpx.AsyncClient, backend: StandIn):
    ids = [await _start(client) for _ in range(4)]
    full = await client.post("/v1/runs", json={"question": "q"})
    assert full.status_code == 429
    assert int(full.headers["retry-after"]) >= 1
    assert (await client.delete(f"/v1/runs/{ids[0]}")).status_code == 200
    await _start(client)


async def test_cancel_ends_the_run_and_its_readers(client: httpx.AsyncClient):
    run_id = await _start(client)
    reader = asyncio.create_task(_read(client, run_id))
    cancelled = await client.delete(f"/v1/runs/{run_id}")
    assert RunRecord.from_json(cancelled.text).status == "cancelled"
    last = (await reader)[-1]
    assert (last.kind, last.body["terminal"]) == ("error", True)
    again = await client.delete(f"/v1/runs/{run_id}")
    assert again.json() == cancelled.json()


async def test_a_run_that_crashes_ends_with_an_error_event_that_tells_no_secret(client: httpx.AsyncClient):
    async with client.stream("POST", "/v1/runs", json={"question": "crash"}) as response:
        received = [event async for event in events_of(response)]
    assert (received[-1].kind, received[-1].body["terminal"]) == ("error", True)
    assert "secret" not in str(received)
    record = (await client.get(response.headers["location"])).json()
    assert record["status"] == "error"


async def test_a_silent_stream_is_kept_alive(tmp_path: Path):
    backend = StandIn(tmp_path / "runs")
    async with http(backend, tmp_path, ServingConfig(heartbeat_s=0.05)) as client:
        async with client.stream("POST", "/v1/runs", json={"question": "q"}) as response:
            comments = 0
            async for line in response.aiter_lines():
                comments += line.startswith(":")
                if comments == 3:
                    backend.go.set()
        assert comments >= 3
        assert [event.id for event in await _read(client, response.headers["x-run-id"])] == [0, 1, 2, 3, 4]


async def test_only_the_newest_runs_are_kept(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    ids = [await _start(client, question=f"q{number}", events=5) for number in range(5)]
    page = (await client.get("/v1/runs")).json()
    assert [run["run_id"] for run in page["runs"]] == ids[:1:-1]
    assert (await client.get(f"/v1/runs/{ids[0]}")).status_code == 404


async def test_runs_survive_a_restart_and_interrupted_ones_are_closed(
    client: httpx.AsyncClient, backend: StandIn, tmp_path: Path
):
    cut = await _start(client, question="cut", events=3)
    # What the folder holds now is what a killed service leaves behind.
    left = tmp_path / "left"
    left.mkdir()
    for path in (tmp_path / "runs").glob("*.*"):
        (left / path.name).write_bytes(path.read_bytes())
    with (left / f"{cut}.events").open("a") as torn:
        torn.write('{"kind": "thi')
    async with http(StandIn(left), tmp_path) as restarted:
        assert [event.kind for event in await _read(restarted, cut, after=0)] == ["think", "think", "think", "error"]
        assert (await restarted.get(f"/v1/runs/{cut}")).json()["status"] == "error"


@pytest.mark.parametrize(
    "run_id", ["unknown0", "..%2f..%2fetc%2fpasswd", "%2e%2e", "a%00b", "%c0%ae%c0%ae", "a" * 5000, ".json", "*"]
)
async def test_unknown_and_hostile_run_ids_are_404(client: httpx.AsyncClient, run_id: str):
    for path in (f"/v1/runs/{run_id}", f"/v1/runs/{run_id}/events"):
        reply = await client.get(path)
        assert reply.status_code == 404
        assert set(reply.json()) == {"error"}
    assert (await client.delete(f"/v1/runs/{run_id}")).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "question"),
        ({"question": ""}, "question"),
        ({"question": "q", "max_steps": 1}, "max_steps"),
        ({"question": "q", "run_id": "../../etc/x"}, "run_id"),
        ({"question": "q", "deadline_s": 0}, "deadline_s"),
    ],
)
async def test_a_wrong_field_of_a_run_is_named(client: httpx.AsyncClient, body: dict[str, object], field: str):
    reply = await client.post("/v1/runs", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (422, field)


async def test_a_last_event_id_that_is_no_number_is_422(client: httpx.AsyncClient):
    reply = await client.post("/v1/runs", json={"question": "q"}, headers={"Last-Event-ID": "x"})
    assert (reply.status_code, reply.json()["error"]["param"]) == (422, "Last-Event-ID")


async def test_a_run_takes_a_picture_and_keeps_its_name(client: httpx.AsyncClient, backend: StandIn):
    url = data_url(form="GIF")
    run_id = await _start(client, picture=url, run_id="with-a-picture")
    [request], [picture] = backend.started, backend.pictures
    assert request.picture is None
    assert picture is not None and picture.png.startswith(b"\x89PNG")
    summary = (await client.get(f"/v1/runs/{run_id}")).json()
    assert summary["picture_sha256"] == picture.sha256
    again = await client.post("/v1/runs", json={"question": "q", "run_id": run_id, "picture": data_url((30, 30))})
    assert again.status_code == 409, "the same words about another picture are another question"
    backend.go.set()


@pytest.mark.parametrize("picture", ["https://example.org/a.png", "data:image/png;base64,AAAA", "data:text/plain,x"])
async def test_a_picture_that_is_none_is_refused(client: httpx.AsyncClient, backend: StandIn, picture: str):
    reply = await client.post("/v1/runs", json={"question": "q", "picture": picture})
    assert (reply.status_code, reply.json()["error"]["param"]) == (422, "picture")
    assert not backend.started


async def test_a_picture_has_room_in_a_run_and_nowhere_beyond_it(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    large = "data:image/png;base64," + "A" * (6 << 20)
    assert (await client.post("/v1/runs", json={"question": "q", "picture": large})).status_code == 422
    assert (await client.post("/v1/embeddings", json={"model": "embedder", "input": large})).status_code == 413
    too_large = "data:image/png;base64," + "A" * (12 << 20)
    reply = await client.post("/v1/runs", json={"question": "q", "picture": too_large})
    assert reply.json()["error"]["param"] == "picture"


async def test_a_run_that_goes_on_is_no_record_yet(client: httpx.AsyncClient, backend: StandIn, tmp_path: Path):
    run_id = await _start(client, events=1)
    async with AsyncClient(str(client.base_url)) as remote:
        for system in (remote, ServedSystem(backend.parts, tmp_path)):
            with pytest.raises(VragError, match="still going on: follow its events") as caught:
                await system.run(run_id)
            assert (caught.value.status, caught.value.code) == (409, "running")
