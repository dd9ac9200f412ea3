"""Asking in this process: what reaches the retriever, and a model without eyes over a collection of real files."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator, Sequence

import pytest

from tests.support import material
from tests.support.documents import picture_of, video
from tests.support.openai_calls import data_url
from tests.support.openai_stub import Body, images_of, openai_stub, texts_of
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.episode import SEARCHED_ONLY
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.record import RunRecord
from vrag_ray.agent.support import Support
from vrag_ray.client.schemas import PageElements, RunRequest
from vrag_ray.config import Settings, SpaceConfig, VllmConfig
from vrag_ray.imaging.fitting import size_of
from vrag_ray.policies.extractive.wording import MODEL_NOT_USED
from vrag_ray.serving.contract import ProfiledAnswer, Queries, SearchScope
from vrag_ray.serving.parts.collections import ServedCollections
from vrag_ray.serving.system import ServedSystem
from vrag_ray.system.here import local_system
from vrag_ray.types import Box, InvalidError, NotFoundError, Query, VragError

GRAPH = GraphProtocol()


async def record_of(system: ServedSystem, request: RunRequest) -> RunRecord:
    run_id = "only-one-run"
    async for _ in system.ask(request.model_copy(update={"run_id": run_id})):
        pass
    return await system.run(run_id)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str | Query]:
    """What reaches the retriever from here on."""
    seen: list[str | Query] = []
    search_groups = ServedCollections.search_groups

    async def watched(self: ServedCollections, groups: Sequence[Queries], scope: SearchScope) -> list[ProfiledAnswer]:
        seen.extend(query for group in groups for query in group)
        return await search_groups(self, groups, scope)

    monkeypatch.setattr(ServedCollections, "search_groups", watched)
    return seen


@pytest.fixture(scope="module")
def collection(local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A report of three pages, a text, and a photo and a film whose words only OCR knows. Lexical search."""
    from vrag_ray.ingest import ingest

    folder = tmp_path_factory.mktemp("files")
    (folder / "report.pdf").write_bytes(material.pdf())
    (folder / "notes.txt").write_text(material.TEXT, encoding="utf-8")
    (folder / "cranes.png").write_bytes(material.picture())
    slides = [["Ferries of the bay"], ["Summer timetable", "The ferry to Oudeschild sails at 9:40"]]
    video(folder / "ferries.mp4", 8, pictures=[picture_of(lines) for lines in slides])
    root = tmp_path_factory.mktemp("blind") / "collection"
    ingest([folder], Settings(collection=str(root), spaces={"text": SpaceConfig(model="none")}))
    yield str(root)


def test_the_picture_of_a_question_reaches_the_retriever_once_as_a_png(
    collection: str, queries: list[str | Query]
) -> None:
    question = "How much did dredging cost, and how often are tide tables printed?"

    async def run() -> RunRecord:
        async with local_system(Settings(collection=collection)) as system:
            return await record_of(system, RunRequest(question=question, picture=data_url(form="WEBP")))

    record = asyncio.run(run())
    first, *later = queries
    assert isinstance(first, Query) and first.text
    assert first.picture is not None and first.picture.startswith(b"\x89PNG")
    assert later and all(Query.of(query).picture is None for query in later)
    assert record.picture is not None
    assert record.picture.size == len(base64.b64decode(data_url(form="WEBP").partition(",")[2]))


def test_a_file_that_is_no_picture_is_refused_before_any_search(collection: str, queries: list[str | Query]) -> None:
    url = "data:image/png;base64," + base64.b64encode(b"no picture at all").decode()

    async def run() -> RunRecord:
        async with local_system(Settings(collection=collection)) as system:
            return await record_of(system, RunRequest(question="q", picture=url))

    with pytest.raises(InvalidError, match="picture"):
        asyncio.run(run())
    assert queries == []


def test_a_question_with_a_picture_is_answered_from_a_collection_that_is_searched_by_words(collection: str) -> None:
    question = "How much did dredging the northern basin cost?"
    settings = Settings(collection=collection, spaces={"text": SpaceConfig(model="none")})

    async def run() -> RunRecord:
        async with local_system(settings) as system:
            return await record_of(system, RunRequest(question=question, picture=data_url()))

    record = asyncio.run(run())
    assert (record.status, record.citations[0].page) == ("answered", 2)
    assert SEARCHED_ONLY in record.notices


def test_pages_are_drawn_here_as_a_service_draws_them(collection: str) -> None:
    settings = Settings(collection=collection, spaces={"text": SpaceConfig(model="none")})

    async def run() -> tuple[bytes, bytes]:
        async with local_system(settings) as system:
            record = await record_of(system, RunRequest(question="How much did dredging the northern basin cost?"))
            doc_id = record.citations[0].doc_id
            with pytest.raises(NotFoundError, match="is no video"):
                await system.frame_png(doc_id, 1.0)
            with pytest.raises(NotFoundError, match="there is no page 99"):
                await system.page_png(doc_id, 99)
            part = await system.page_png(doc_id, 2, dpi=72.0, box=Box(0.0, 0.0, 0.5, 0.5))
            return await system.page_png(doc_id, 2, dpi=72.0), part

    whole, part = map(size_of, asyncio.run(run()))
    assert abs(whole.width - 2 * part.width) <= 2 and abs(whole.height - 2 * part.height) <= 2


def test_what_is_written_in_a_film_is_an_element_with_its_times_and_is_cited_there(collection: str) -> None:
    settings = Settings(collection=collection, spaces={"text": SpaceConfig(model="none")})

    async def run() -> tuple[RunRecord, PageElements]:
        async with local_system(settings) as system:
            record = await record_of(system, RunRequest(question="When does the ferry to Oudeschild sail?"))
            with pytest.raises(NotFoundError, match="has no 60 s: it lasts 8 s"):
                await system.frame_elements(record.citations[0].doc_id, 60.0)
            return record, await system.frame_elements(record.citations[0].doc_id, 3.0)

    record, clip = asyncio.run(run())
    assert (clip.page, clip.t_start, clip.t_end) == (None, 0.0, 8.0)
    assert [(part.kind, part.t_start, part.t_end, part.text) for part in clip.elements] == [
        ("shot", 0.0, 4.0, ""),
        ("paragraph", 0.0, 4.0, "Ferries of the bay"),
        ("shot", 4.0, 8.0, ""),
        ("paragraph", 4.0, 8.0, "Summer timetable"),
        ("paragraph", 4.0, 8.0, "The ferry to Oudeschild sails at 9:40"),
    ]
    citation, quoted = record.citations[0], clip.elements[4]
    assert "9:40" in record.answer and record.sentences[0].support is Support.CITED
    assert (citation.t_start, citation.t_end, citation.moment) == (4.0, 8.0, 7.5)
    assert citation.bbox is not None and citation.bbox == pytest.approx(quoted.bbox, abs=1e-4)
    assert citation.element is not None and citation.element.number == quoted.number


def _read(body: Body, pattern: str) -> str:
    """What a model without eyes finds between the fences of its prompt; "" where it is not there."""
    evidence = re.findall(r"<evidence>\n(.*?)\n</evidence>", "\n".join(texts_of(body)), re.DOTALL)
    match = re.search(pattern, "\n".join(evidence))
    return match[1] if match is not None else ""


def _graph(body: Body, query: str, pattern: str) -> str:
    text = "\n".join(texts_of(body))
    if "<tool_response>" in text and "Remembered in node" not in text:
        entry = MemorizeEntry(
            information_id="Text 1", is_useful=True, priority_score=5, quote=_read(body, f"({pattern})")
        )
        return GRAPH.render(SummarizeAndMemorize(summarize="found", memorize=(entry,)))
    if '"id": "a"' in text:
        # The turns but the memorise are gone: what it knows stands in the memory.
        return GRAPH.render(AddAnswerNode(parent_ids=("a",), answer=_read(body, pattern), citations=("a#1",)))
    return GRAPH.render(AddSearchNode(id="a", parent_ids=("root",), query=query))


def _tags(body: Body, query: str, pattern: str) -> str:
    answer = _read(body, pattern)
    return f"<think></think><answer>{answer}</answer>" if answer else f"<think></think><search>{query}</search>"


@pytest.mark.parametrize("agent", ["vimrag", "vrag"])
@pytest.mark.parametrize(
    ("query", "pattern", "answer", "page", "has_box"),
    [
        ("dredging the northern basin", r"cost (4\.7 million)", "4.7 million", 2, True),
        ("cranes", r"Cranes (17)", "17", 1, True),
        ("tide tables printed", r"printed every (\w+)", "spring", None, False),
    ],
    ids=["text layer", "OCR", "plain text"],
)
def test_a_model_without_eyes_answers_from_words_in_both_protocols(
    collection: str, agent: str, query: str, pattern: str, answer: str, page: int | None, has_box: bool
) -> None:
    play = _graph if agent == "vimrag" else _tags
    with openai_stub(lambda body, _: play(body, query, pattern)) as stub:
        values = {
            "collection": collection,
            "spaces": {"text": {"model": "none"}},
            "openai": {"base_url": stub.base_url, "model": "stub", "max_images": 0},
            "agent": {"evidence": "text", "search_top_k": 1},
        }

        async def run() -> RunRecord:
            async with local_system(Settings.model_validate(values)) as system:
                return await record_of(system, RunRequest(question="What is asked?", agent=agent))

        record = asyncio.run(run())
    assert (record.status, record.answer, record.corrections) == ("answered", answer, 0)
    assert not any(images_of(body) for body in stub.requests)
    [citation] = record.citations
    assert (citation.page, citation.bbox is not None) == (page, has_box)
    if agent == "vimrag" and has_box:
        assert answer in citation.quote
        assert citation.bbox is not None
        assert citation.bbox[3] - citation.bbox[1] < 0.35, "around its line, not the page"


def test_a_question_without_an_agent_is_answered_by_the_model_where_there_is_a_model(collection: str) -> None:
    with openai_stub(lambda body, _: _graph(body, "cranes", r"Cranes (17)")) as stub:
        values = {
            "collection": collection,
            "spaces": {"text": {"model": "none"}},
            "openai": {"base_url": stub.base_url, "model": "stub", "max_images": 0},
            "agent": {"evidence": "text", "search_top_k": 1},
        }

        async def run(agent: str | None = None) -> RunRecord:
            async with local_system(Settings.model_validate(values)) as system:
                return await record_of(system, RunRequest(question="How many cranes?", agent=agent))

        record = asyncio.run(run())
        assert (record.agent, record.answer) == ("vimrag", "17")
        count = len(stub.requests)
        chosen = asyncio.run(run("extractive"))
        assert len(stub.requests) == count
    assert chosen.answer.endswith(MODEL_NOT_USED)
    assert "no language model" not in chosen.answer


def test_a_model_that_only_the_service_loads_is_not_silently_replaced_by_rules(collection: str) -> None:
    settings = Settings(
        collection=collection, spaces={"text": SpaceConfig(model="none")}, vllm=VllmConfig(model="org/name")
    )

    async def run(agent: str | None) -> RunRecord:
        async with local_system(settings) as system:
            return await record_of(system, RunRequest(question="How many cranes?", agent=agent))

    with pytest.raises(VragError, match=r"agent vimrag needs the model org/name.*or ask here with --agent extractive"):
        asyncio.run(run(None))
    assert asyncio.run(run("extractive")).answer.endswith(MODEL_NOT_USED)
