"""VimRAG and VRAG over the demo corpus: real Serve, retrieval and page drawing; only the language model is a script."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.patience import HANGS_AFTER_S
from tests.support.stubbed_service import GRAPH, MEMORY_PIXELS, QUESTION, SCRIPT, TOP_K, StubbedService, sizes
from vrag_ray.agent.events import BudgetEvent, ContentEvent, CropEvent, PruneEvent, RunStatus
from vrag_ray.agent.memory.energy import energies, pixel_budgets, strongest
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.http import ServerError
from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import AgentConfig
from vrag_ray.imaging.frame_times import sample_times

PATCH = 32


def ask(stubbed_service: StubbedService, question: str = QUESTION, agent: str = "vimrag") -> RunRecord:
    request = RunRequest(question=question, agent=agent)
    list(stubbed_service.client.events(request := request.model_copy(update={"run_id": f"run-{time.monotonic_ns()}"})))
    return stubbed_service.client.run(str(request.run_id))


def test_a_whole_vimrag_run_searches_crops_memorises_prunes_and_answers_exactly(
    stubbed_service: StubbedService,
) -> None:
    before = len(stubbed_service.stub.requests)
    record = ask(stubbed_service)
    bodies = stubbed_service.stub.requests[before:]
    assert (record.status, record.corrections, record.steps) == (RunStatus.ANSWERED, 0, len(SCRIPT))
    assert [(node.id, node.parents) for node in record.graph.nodes] == [
        ("root", ()),
        ("quay", ("root",)),
        ("charging", ("quay",)),
        ("blade", ("root",)),
        ("answer", ("charging", "blade")),
    ]
    report, photo, video = record.citations
    assert (report.title, report.page, report.node_id) == ("Northmere Harbour Energy Yearbook 2024", 4, "quay")
    [crop] = [event for event in record.events if isinstance(event, CropEvent)]
    assert "Ferry quay" in crop.text and "3,467" in crop.text
    assert report.bbox == crop.place.bbox
    assert (photo.title, photo.bbox) == ("photo ferry charging chart", None)
    # Of 32 pictures 2 are for memory and 2 for crops; the other result, the clip of the last 10 s, takes 10, and this
    # clip of 60 s 18.
    [seen] = [item.t_frame for item in record.graph.node("blade").items]
    assert seen in sample_times(0.0, 60.0, 1.0, 18)
    assert seen == pytest.approx(34.0, abs=60 / 27 / 2)
    # The caption that is read then.
    assert (video.t_start, video.t_end) == (30.0, 39.5)

    graph = record.graph.model_copy(update={"nodes": record.graph.nodes[:-1]})
    allotments = pixel_budgets(strongest(energies(graph, decay=0.1, feedback=0.3), TOP_K), MEMORY_PIXELS)
    budgets = [event for event in record.events if isinstance(event, BudgetEvent)]
    assert budgets[-1].kept == allotments
    assert [
        (ref.node_id, ref.index) for event in record.events if isinstance(event, PruneEvent) for ref in event.dropped
    ]
    shown = sizes(bodies[-1])
    shares = {(allotment.node_id, allotment.index): allotment.pixels for allotment in allotments}
    in_order = [
        shares[node.id, index] for node in graph.nodes for index in range(len(node.items)) if (node.id, index) in shares
    ]
    assert len(shown) == len(in_order) == TOP_K
    for (width, height), pixels in zip(shown, in_order, strict=True):
        assert width % PATCH == height % PATCH == 0
        assert width * height <= pixels
    assert budgets[-1].tokens_after == sum(width * height for width, height in shown) // PATCH**2
    assert budgets[-1].tokens_before > budgets[-1].tokens_after


def test_every_picture_a_model_is_shown_is_of_whole_patches_within_its_limit(stubbed_service: StubbedService) -> None:
    before = len(stubbed_service.stub.requests)
    ask(stubbed_service)
    limits = AgentConfig()
    for body in stubbed_service.stub.requests[before:]:
        for width, height in sizes(body):
            assert width % PATCH == height % PATCH == 0
            assert width * height <= limits.picture_pixels


def test_the_model_is_heard_while_it_speaks(stubbed_service: StubbedService) -> None:
    record = ask(stubbed_service)
    content = "".join(event.content for event in record.events if isinstance(event, ContentEvent) and event.step == 1)
    assert content == GRAPH.render(SCRIPT[0])


def test_vrag_crops_the_page_it_was_shown(stubbed_service: StubbedService) -> None:
    before = len(stubbed_service.stub.requests)
    record = ask(stubbed_service, agent="vrag")
    assert (record.status, record.answer) == (RunStatus.ANSWERED, "3,467 MWh")
    area = 28 * 28
    assert [len(sizes(body)) for body in stubbed_service.stub.requests[before:]] == [0, 1, 2]
    assert all(
        256 * area <= w * h <= 512 * area for body in stubbed_service.stub.requests[before:] for w, h in sizes(body)
    )
    assert record.citations[0].page == 4


def test_a_reply_lost_in_mid_stream_begins_anew_and_the_run_ends_well(stubbed_service: StubbedService) -> None:
    record = ask(stubbed_service, f"{QUESTION} break down")
    assert record.status is RunStatus.ANSWERED
    assert any("begins anew" in getattr(event, "message", "") for event in record.events)


def test_cancelling_a_run_stops_its_generation(stubbed_service: StubbedService) -> None:
    left = stubbed_service.stub.left
    request = RunRequest(question="wait for me", agent="vimrag", run_id="cancel-me-soon")
    events = stubbed_service.client.events(request)
    for event in events:
        if isinstance(event, ContentEvent):
            break
    stubbed_service.client.cancel("cancel-me-soon")
    deadline = time.monotonic() + HANGS_AFTER_S
    while stubbed_service.stub.left == left and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stubbed_service.stub.left == left + 1
    assert stubbed_service.client.run("cancel-me-soon").status is RunStatus.CANCELLED


def test_a_finished_run_is_replayed_event_by_event(stubbed_service: StubbedService) -> None:
    record = ask(stubbed_service)
    with httpx.stream(
        "GET", f"{stubbed_service.service.base_url}/v1/runs/{record.run_id}/events", timeout=HANGS_AFTER_S
    ) as reply:
        ids = [int(line.removeprefix("id:")) for line in reply.iter_lines() if line.startswith("id:")]
    assert ids == [event.seq for event in record.events]


@pytest.mark.exhaustive
def test_many_runs_go_on_at_once(stubbed_service: StubbedService) -> None:
    with ThreadPoolExecutor(24) as pool:
        records = list(pool.map(lambda _: ask(stubbed_service), range(24)))
    assert {record.status for record in records} == {RunStatus.ANSWERED}
    assert len({record.run_id for record in records}) == 24


def test_the_model_is_a_part_of_readiness_where_there_is_one(stubbed_service: StubbedService) -> None:
    assert set(stubbed_service.client.ready().parts) == {"retriever", "agent", "library", "policy"}


def test_an_unknown_agent_is_refused_with_the_ones_there_are(stubbed_service: StubbedService) -> None:
    with pytest.raises(ServerError, match="extractive, vimrag, vrag"):
        list(stubbed_service.client.events(RunRequest(question="q", agent="wizard")))
