"""The front door: the same calls on a collection in this process and on a service, blocking and async."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import vrag_ray as vrag
from tests.support import material
from vrag_ray.agent.events import AnswerEvent, StartEvent
from vrag_ray.client.schemas import RunRequest, SearchRequest
from vrag_ray.config import Settings
from vrag_ray.serving.local import start_here
from vrag_ray.system.opening import Opening
from vrag_ray.types import Box, InvalidError, NotFoundError, VragError

QUESTION = "What did dredging the northern basin cost?"


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("front-door")
    (folder / "papers").mkdir()
    (folder / "papers" / "harbour.pdf").write_bytes(material.pdf())
    (folder / "papers" / "broken.pdf").write_bytes(material.pdf()[:200])
    report = vrag.ingest_files([folder / "papers"], folder / "c", meta={"team": "harbour"})
    assert (report.added, len(report.failed)) == (1, 1)
    assert vrag.ingest_files([folder / "papers"], folder / "c").skipped == 2
    return folder / "c"


@pytest.fixture(scope="module", params=["open", "connect"])
def opening(request: pytest.FixtureRequest, collection: Path) -> Iterator[Opening]:
    if request.param == "open":
        yield vrag.open(collection)
        return
    service = start_here(Settings(collection=str(collection)), 0)
    yield vrag.connect(service.base_url)
    service.stop()


def test_a_program_searches_asks_and_sees_pages(opening: Opening) -> None:
    with opening as system:
        [hit, *_] = system.search("dredging cost of the northern basin").results[0]
        assert (hit.title, hit.page) == ("harbour", 2)
        assert system.search(SearchRequest(query="dredging", top_k=1)).results[0][0].doc_id == hit.doc_id
        record = system.ask(QUESTION)
        assert "4.7 million" in record.answer
        assert [citation.page for citation in record.citations] == [2]
        events = list(system.events(RunRequest(question=QUESTION)))
        assert isinstance(events[0], StartEvent) and isinstance(events[-1], AnswerEvent)
        assert events[-1].answer == record.answer
        # A caller that has seen enough leaves; the system goes on to answer.
        assert next(iter(system.events(QUESTION))).kind == "start"
        page, part = system.page_png(hit.doc_id, 2), system.page_png(hit.doc_id, 2, box=Box(0.0, 0.0, 0.5, 0.5))
        assert page.startswith(b"\x89PNG") and part.startswith(b"\x89PNG") and page != part
        with pytest.raises(VragError, match="document abab"):
            system.page_png("ab" * 32, 1)
        for empty in (system.search, system.ask, system.events):
            with pytest.raises(InvalidError, match="should have at least 1 character") as caught:
                empty("  ")
            assert caught.value.param in ("query", "question")


def test_the_same_on_an_event_loop(opening: Opening) -> None:
    async def use() -> None:
        async with opening as system:
            answers = await asyncio.gather(*(system.search(SearchRequest(query="dredging cost")) for _ in range(8)))
            assert {answer.results[0][0].page for answer in answers} == {2}
            *_, last = [event async for event in system.ask(RunRequest(question=QUESTION, run_id="front-door-run"))]
            assert isinstance(last, AnswerEvent)
            assert (await system.run("front-door-run")).answer == last.answer

    asyncio.run(use())


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="nowhere"), vrag.open(tmp_path / "nowhere"):
        pass
    with vrag.connect("http://127.0.0.1:9") as system, pytest.raises(VragError, match=r"127\.0\.0\.1:9"):
        system.search("anything")
    with pytest.raises(AttributeError, match="no attribute 'opened'"):
        _ = vrag.opened  # type: ignore[attr-defined]
