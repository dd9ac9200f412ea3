"""One contract, four places: a system in this process and behind Serve's handles, and either of them over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from tests.serving.service.conftest import RunningService
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.agent.events import AnswerEvent, StartEvent
from vrag_ray.client.contract import System, every_document, finished_job
from vrag_ray.client.http import AsyncClient
from vrag_ray.client.schemas import Feedback, JobState, Rating, RunRequest, SearchRequest
from vrag_ray.serving.paths import ServingPaths
from vrag_ray.serving.system import ServedSystem
from vrag_ray.system.here import local_system
from vrag_ray.types import Box, VragError, document_id
from vrag_ray.types.filters import SearchFilter

pytestmark = pytest.mark.anyio
QUESTION = "What did dredging the northern basin cost?"
GONE = "cd" * 32
WITHIN, OVER_HTTP = "within", "over HTTP"


@asynccontextmanager
async def opened(service: RunningService, where: str) -> AsyncIterator[System]:
    """The system of the service: over HTTP, or without it, by Serve's handles or opened in this process."""
    if where == OVER_HTTP:
        async with AsyncClient(service.base_url, timeout_s=HANGS_AFTER_S) as client:
            yield client
    elif service.on_ray:
        from ray import serve

        from vrag_ray.serving.app import APP_NAME
        from vrag_ray.serving.deployments.handles import handle_parts

        retriever, agent, library = (
            serve.get_deployment_handle(name, APP_NAME) for name in ("Retriever", "Agent", "Library")
        )
        system = ServedSystem(handle_parts(retriever, agent, library), ServingPaths.of(service.settings).uploads)
        yield system
        system.close()
    else:
        async with local_system(service.settings) as here:
            yield here


async def test_what_is_read_is_the_same_within_and_over_http(service: RunningService, library: dict[str, str]) -> None:
    report, text, clip = library["harbour.pdf"], library["notes.txt"], library["clip.mp4"]
    upper = Box(0.0, 0.0, 1.0, 0.5)
    requests = [
        SearchRequest(query="dredging cost of the northern basin"),
        SearchRequest(queries=["tide tables", "cranes"], top_k=2, mode="lexical"),
        SearchRequest(query="tables", filter=SearchFilter(doc_ids=[text])),
        SearchRequest(query="ships", collection="*"),
    ]

    async def everything(system: System) -> list[object]:
        return [
            *[await system.search(request) for request in requests],
            await system.documents(limit=2, offset=1),
            await system.documents(collection="side"),
            await every_document(system),
            *[await system.document(doc_id) for doc_id in (report, text[:12])],
            await system.page_png(report, 2, dpi=72.0),
            await system.page_png(report, 2, dpi=72.0, box=upper),
            await system.page_elements(report, 2),
            await system.frame_elements(clip, 1.5),
            await system.frame_png(clip, 1.5),
            await system.original(text),
            await system.models(),
            await system.ready(),
        ]

    answers = []
    for where in (WITHIN, OVER_HTTP):
        async with opened(service, where) as system:
            answers.append(await everything(system))
    for within, over_http in zip(*answers, strict=True):
        assert within == over_http


@pytest.mark.parametrize("where", [WITHIN, OVER_HTTP])
async def test_a_run_is_followed_stored_rated_and_listed(
    service: RunningService, library: dict[str, str], where: str
) -> None:
    assert library
    run_id = f"contract-{where.replace(' ', '-')}"
    async with opened(service, where) as system:
        events = [event async for event in system.ask(RunRequest(question=QUESTION, run_id=run_id))]
        assert isinstance(events[0], StartEvent) and isinstance(events[-1], AnswerEvent)
        record = await system.run(run_id)
        assert (record.events, record.citations[0].page) == (tuple(events), 2)
        assert [event async for event in system.follow(run_id, after=events[1].seq)] == events[2:]
        assert [event async for event in system.follow(run_id, after=events[-1].seq)] == []
        assert (await system.runs(limit=1)).runs[0].run_id == run_id
        rated = await system.rate(run_id, Feedback(rating=Rating.UP, comment=" good "))
        assert (rated.comment, rated.pages) == ("good", [2])
        assert rated in await system.rated_runs()
        assert run_id.encode() in await system.feedback_lines()
        await system.cancel(run_id)
        assert (await system.run(run_id)).status == record.status


@pytest.mark.parametrize("where", [WITHIN, OVER_HTTP])
async def test_a_caller_that_leaves_early_ends_no_run(
    service: RunningService, library: dict[str, str], where: str
) -> None:
    assert library
    run_id = f"left-early-{where.replace(' ', '-')}"
    async with opened(service, where) as system:
        async with aclosing(system.ask(RunRequest(question=QUESTION, run_id=run_id))) as events:
            assert (await anext(events)).kind == "start"
        *_, last = [event async for event in system.follow(run_id)]
        assert isinstance(last, AnswerEvent) and "4.7 million" in last.answer


@pytest.mark.parametrize("where", [WITHIN, OVER_HTTP])
async def test_a_file_is_uploaded_found_and_deleted(
    service: RunningService, library: dict[str, str], where: str, tmp_path: Path
) -> None:
    assert library
    text = f"The buoy tender anchors {where}.\n".encode()
    (tmp_path / "tender.txt").write_bytes(text)
    async with opened(service, where) as system:
        with (tmp_path / "tender.txt").open("rb") as second:
            job = await system.upload([tmp_path / "tender.txt", ("again.txt", second)], {"team": "buoys"})
        job = await finished_job(system, job.job_id, HANGS_AFTER_S)
        assert (job.state, job.documents[0]) == (JobState.DONE, document_id(text)), job
        request = SearchRequest(query="buoy tender anchors", filter=SearchFilter(doc_ids=job.documents[:1]))
        [hit, *_] = (await system.search(request)).results[0]
        assert (hit.doc_id, hit.span_start, hit.text.strip()) == (document_id(text), 0, text.decode().strip())
        deleted = await system.delete_document(document_id(text))
        assert deleted.collection_version > (job.collection_version or 0)
        with pytest.raises(VragError) as caught:
            await system.document(document_id(text))
        assert caught.value.status == 404
        with pytest.raises(VragError, match="cannot read"):
            await system.upload([tmp_path / "nowhere.txt"])


Call = Callable[[System, dict[str, str]], Awaitable[object]]


async def whole(events: AsyncIterator[object]) -> list[object]:
    return [event async for event in events]


FAULTS: dict[str, tuple[Call, tuple[int, str, str | None]]] = {
    "document": (lambda system, _: system.document(GONE), (404, "not_found", None)),
    "deleted document": (lambda system, _: system.delete_document(GONE), (404, "not_found", None)),
    "original": (lambda system, _: system.original(GONE), (404, "not_found", None)),
    "page": (lambda system, ids: system.page_png(ids["harbour.pdf"], 99), (404, "not_found", None)),
    "page of a text": (lambda system, ids: system.page_elements(ids["notes.txt"], 1), (404, "not_found", None)),
    "frame": (lambda system, ids: system.frame_png(ids["harbour.pdf"], 1.0), (404, "not_found", None)),
    "clip of a report": (lambda system, ids: system.frame_elements(ids["harbour.pdf"], 1.0), (404, "not_found", None)),
    "late clip": (lambda system, ids: system.frame_elements(ids["clip.mp4"], 99.0), (404, "not_found", None)),
    "heat map": (lambda system, ids: system.heatmap_png(ids["harbour.pdf"], 1, "a ship"), (404, "not_found", None)),
    "mode": (
        lambda system, _: system.search(SearchRequest(query="x", mode="smell")),
        (422, "invalid_value", "mode"),
    ),
    "collection": (
        lambda system, _: system.search(SearchRequest(query="x", collection="attic")),
        (422, "invalid_value", "collection"),
    ),
    "listed collection": (
        lambda system, _: system.documents(collection="attic"),
        (422, "invalid_value", "collection"),
    ),
    "picture": (
        lambda system, _: system.search(SearchRequest(picture="https://example.org/a.png")),
        (422, "invalid_value", "picture"),
    ),
    "filter": (
        lambda system, _: system.search(SearchRequest(query="x", filter=SearchFilter(doc_ids=[GONE]))),
        (404, "not_found", None),
    ),
    "agent": (
        lambda system, _: whole(system.ask(RunRequest(question="q", agent="vimrag"))),
        (422, "invalid_value", "agent"),
    ),
    "run's collection": (
        lambda system, _: whole(system.ask(RunRequest(question="q", collection="attic"))),
        (422, "invalid_value", "collection"),
    ),
    "run": (lambda system, _: system.run("never-started"), (404, "not_found", None)),
    "followed run": (lambda system, _: whole(system.follow("never-started")), (404, "not_found", None)),
    "rated run": (
        lambda system, _: system.rate("never-started", Feedback(rating=Rating.UP)),
        (404, "not_found", None),
    ),
    "job": (lambda system, _: system.job("ab" * 16), (404, "not_found", None)),
}


@pytest.mark.parametrize("where", [WITHIN, OVER_HTTP])
async def test_a_fault_has_the_same_status_code_and_parameter_everywhere(
    service: RunningService, library: dict[str, str], where: str
) -> None:
    async def names(call: Call) -> tuple[int, str, str | None]:
        with pytest.raises(VragError) as caught:
            await call(system, library)
        return caught.value.status, caught.value.code, caught.value.param

    async with opened(service, where) as system:
        seen = await asyncio.gather(*(names(call) for call, _ in FAULTS.values()))
    assert dict(zip(FAULTS, seen, strict=True)) == {name: expected for name, (_, expected) in FAULTS.items()}
