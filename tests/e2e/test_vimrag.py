"""VimRAG and VRAG over the demo corpus: real Serve, retrieval and page drawing; only the language model is a script."""

from __future__ import annotations

import base64
import io
import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import httpx
import pytest
from PIL import Image, ImageChops

from tests.support.openai_stub import Body, Say, Stub, images_of, openai_stub, texts_of
from tests.support.paths import ROOT
from vrag_ray import VRAG, VimRAG
from vrag_ray.agent.actions import Action, AddAnswerNode, AddSearchNode, Crop, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.events import BudgetEvent, ContentEvent, CropEvent, PruneEvent, RunStatus
from vrag_ray.agent.memory.energy import energies, pixel_budgets, strongest
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.record import RunRecord
from vrag_ray.client.http import Client, ServerError
from vrag_ray.client.schemas import RunRequest
from vrag_ray.config import AgentConfig, Settings
from vrag_ray.demo.corpus import make_corpus
from vrag_ray.imaging.frame_times import sample_times
from vrag_ray.ingest import ingest
from vrag_ray.serving.local import LocalService, start_serving
from vrag_ray.types import VragError

QUESTION = "What did shore power at the ferry quay, ferry charging and blade B show?"
MEMORY_PIXELS, TOP_K, PATCH = 500_000, 2, 32
GRAPH = GraphProtocol()


def keep(information_id: str, priority: int, summary: str, *stamps: float) -> SummarizeAndMemorize:
    entry = MemorizeEntry(information_id=information_id, is_useful=True, priority_score=priority, key_timestamp=stamps)
    return SummarizeAndMemorize(summarize=summary, memorize=(entry,))


SCRIPT: tuple[Action, ...] = (
    AddSearchNode(id="quay", parent_ids=("root",), query="shore power delivered to the ferry quay by year"),
    Crop(information_id="Picture 1", bbox=(100, 290, 890, 620)),
    keep("Picture 3", 5, "the ferry quay took 3,467 MWh in 2024"),
    AddSearchNode(id="charging", parent_ids=("quay",), query="minutes of ferry charging by weekday"),
    keep("Picture 1", 4, "charging takes longest on Saturday"),
    AddSearchNode(id="blade", parent_ids=("root",), query="crack at the leading edge of blade B"),
    keep("Video 1", 2, "a crack of 23 cm", 34.0),
    AddAnswerNode(
        parent_ids=("charging", "blade"),
        answer="3,467 MWh [1], Saturday [2], a crack of 23 cm [3].",
        citations=("quay#1", "charging#1", "blade#1"),
    ),
)


class Actor:
    """Plays the script to every run: which step it is, is read from the request. Some questions are special."""

    def __init__(self) -> None:
        self.hold = threading.Event()

    def __call__(self, body: Body, number: int) -> Say | str:
        told = "\n".join(texts_of(body))
        if "wait for me" in told:
            return Say("thinking " * 4000, delay_s=0.005)
        if "<search>" in told:
            return self._tags(body)
        if "break down" in told and not self.hold.is_set():
            self.hold.set()
            return Say(GRAPH.render(SCRIPT[0]), cut_after=4)
        return Say(GRAPH.render(SCRIPT[self._step(told)]), reasoning="let me see")

    @staticmethod
    def _step(told: str) -> int:
        memorised = sum(f'"{name}#1"' in told for name in ("quay", "charging", "blade"))
        if "<tool_response>" in told:
            return (2 if "part of Picture 1" in told else 1, 4, 6)[memorised]
        return (0, 3, 5, 7)[memorised]

    @staticmethod
    def _tags(body: Body) -> str:
        replies = sum(message["role"] == "assistant" for message in body["messages"])
        if "search for ever" in texts_of(body)[0]:
            return f"<think>more</think><search>harbour {replies}</search>"
        return (
            "<think>a</think><search>shore power delivered to the ferry quay by year</search>",
            "<think>b</think><bbox>[40, 150, 500, 420]</bbox>",
            "<think>c</think><answer>3,467 MWh</answer>",
        )[replies]


@dataclass
class World:
    service: LocalService
    stub: Stub
    client: Client


@pytest.fixture(scope="module")
def world(local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("vimrag")
    make_corpus(root / "corpus")
    with openai_stub(Actor()) as stub:
        values = {
            "collection": str(root / "collection"),
            "openai": {"base_url": stub.base_url, "model": "stub"},
            "agent": {"memory_top_k": TOP_K, "memory_pixels": MEMORY_PIXELS, "search_top_k": 2},
            "serving": {"max_concurrent_runs": 64},
        }
        settings = Settings.model_validate(values)
        ingest([root / "corpus"], settings)
        service = start_serving(settings, 0)
        with Client(service.base_url) as client:
            yield World(service, stub, client)
        service.stop()


def asked(world: World, question: str = QUESTION, agent: str = "vimrag") -> RunRecord:
    request = RunRequest(question=question, agent=agent)
    list(world.client.ask(request := request.model_copy(update={"run_id": f"run-{time.monotonic_ns()}"})))
    return world.client.run(str(request.run_id))


def sizes(body: Body) -> list[tuple[int, int]]:
    return [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).size for url in images_of(body)]


def test_a_whole_vimrag_run_searches_crops_memorises_prunes_and_answers_exactly(world: World) -> None:
    before = len(world.stub.requests)
    record = asked(world)
    bodies = world.stub.requests[before:]
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
    # Of 32 pictures 2 are for memory and 2 for crops; the other result, a page, takes 1 and this clip of 60 s 27.
    assert video.t_start in sample_times(0.0, 60.0, 1.0, 27)
    assert video.t_start == pytest.approx(34.0, abs=60 / 27 / 2)

    graph = record.graph.model_copy(update={"nodes": record.graph.nodes[:-1]})
    kept = pixel_budgets(strongest(energies(graph, decay=0.1, feedback=0.3), TOP_K), MEMORY_PIXELS)
    budgets = [event for event in record.events if isinstance(event, BudgetEvent)]
    assert budgets[-1].kept == kept
    assert [
        (ref.node_id, ref.index) for event in record.events if isinstance(event, PruneEvent) for ref in event.dropped
    ]
    shown = sizes(bodies[-1])
    shares = {(one.node_id, one.index): one.pixels for one in kept}
    in_order = [
        shares[node.id, index] for node in graph.nodes for index in range(len(node.items)) if (node.id, index) in shares
    ]
    assert len(shown) == len(in_order) == TOP_K
    for (width, height), pixels in zip(shown, in_order, strict=True):
        assert width % PATCH == height % PATCH == 0
        assert width * height <= pixels
    assert budgets[-1].tokens_after == sum(width * height for width, height in shown) // PATCH**2
    assert budgets[-1].tokens_before > budgets[-1].tokens_after


def test_every_picture_a_model_is_shown_is_of_whole_patches_within_its_limit(world: World) -> None:
    before = len(world.stub.requests)
    asked(world)
    limits = AgentConfig()
    for body in world.stub.requests[before:]:
        for width, height in sizes(body):
            assert width % PATCH == height % PATCH == 0
            assert width * height <= limits.picture_pixels


def test_the_model_is_heard_while_it_speaks(world: World) -> None:
    record = asked(world)
    said = "".join(event.content for event in record.events if isinstance(event, ContentEvent) and event.step == 1)
    assert said == GRAPH.render(SCRIPT[0])


def test_vrag_crops_the_page_it_was_shown(world: World) -> None:
    before = len(world.stub.requests)
    record = asked(world, agent="vrag")
    assert (record.status, record.answer) == (RunStatus.ANSWERED, "3,467 MWh")
    area = 28 * 28
    assert [len(sizes(body)) for body in world.stub.requests[before:]] == [0, 1, 2]
    assert all(256 * area <= w * h <= 512 * area for body in world.stub.requests[before:] for w, h in sizes(body))
    assert record.citations[0].page == 4


def test_a_reply_lost_in_mid_stream_begins_anew_and_the_run_ends_well(world: World) -> None:
    record = asked(world, f"{QUESTION} break down")
    assert record.status is RunStatus.ANSWERED
    assert any("begins anew" in getattr(event, "message", "") for event in record.events)


def test_cancelling_a_run_stops_its_generation(world: World) -> None:
    left = world.stub.left
    request = RunRequest(question="wait for me", agent="vimrag", run_id="cancel-me-soon")
    events = world.client.ask(request)
    for event in events:
        if isinstance(event, ContentEvent):
            break
    world.client.cancel("cancel-me-soon")
    deadline = time.monotonic() + 20
    while world.stub.left == left and time.monotonic() < deadline:
        time.sleep(0.01)
    assert world.stub.left == left + 1
    assert world.client.run("cancel-me-soon").status is RunStatus.CANCELLED


def test_a_finished_run_is_replayed_event_by_event(world: World) -> None:
    record = asked(world)
    with httpx.stream("GET", f"{world.service.base_url}/v1/runs/{record.run_id}/events", timeout=30) as reply:
        ids = [int(line.removeprefix("id:")) for line in reply.iter_lines() if line.startswith("id:")]
    assert ids == [event.seq for event in record.events]


def test_many_runs_go_on_at_once(world: World) -> None:
    with ThreadPoolExecutor(24) as pool:
        records = list(pool.map(lambda _: asked(world), range(24)))
    assert {record.status for record in records} == {RunStatus.ANSWERED}
    assert len({record.run_id for record in records}) == 24


def test_the_model_is_a_part_of_readiness_where_there_is_one(world: World) -> None:
    assert set(world.client.ready().parts) == {"retriever", "agent", "library", "policy"}


def test_an_unknown_agent_is_refused_with_the_ones_there_are(world: World) -> None:
    with pytest.raises(ServerError, match="extractive, vimrag, vrag"):
        list(world.client.ask(RunRequest(question="q", agent="wizard")))


def test_leaving_a_programs_run_early_ends_it(world: World) -> None:
    left = world.stub.left
    agent = VimRAG(base_url=world.stub.base_url, search_url=world.service.base_url, model_name="stub")
    steps = agent.events("wait for me")
    for event in steps:
        if isinstance(event, ContentEvent):
            break
    steps.close()
    deadline = time.monotonic() + 20
    while world.stub.left == left and time.monotonic() < deadline:
        time.sleep(0.01)
    assert world.stub.left == left + 1


# Programs as the original publishes them: the import and the addresses are all that is changed ---------------------

VIMRAG_PROGRAM = """
import os
from vimrag_agent import VimRAG

agent = VimRAG(
    base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
    search_url="http://localhost:8001/search",
    model_name="qwen3.5-plus",
    api_key=os.environ.get("DASHSCOPE_API_KEY"),
    enable_thinking=True,
)
for event in agent.run({"query": QUESTION}):
    if event["event"] == "answer":
        print(event["content"])
"""
VRAG_PROGRAM = """
from vrag_agent import VRAG

vrag = VRAG(
    base_url='http://0.0.0.0:8002/v1', search_url='http://0.0.0.0:8001/search', generator=False, api_key="EMPTY"
)
answer = vrag.run(QUESTION)
print(answer)
"""
VRAG_STEPS = """
from vrag_agent import VRAG

generator = VRAG('http://0.0.0.0:8002/v1', 'http://0.0.0.0:8001/search').run(QUESTION)
seen = []
try:
    while True:
        action, content, raw_content = next(generator)
        seen.append((action, content, raw_content))
except StopIteration as end:
    action, content, raw_content = end.value
    print(content)
"""
AGENTS_PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
DOCUMENTED = [text for text in re.findall(r"```python\n(.*?)```", AGENTS_PAGE, re.DOTALL) if "RAG(" in text]
ADDRESSES = re.compile(r"https?://[\w.:]+/(?:compatible-mode/)?v1|http://[\w.:]+/search")


def ran(program: str, world: World, question: str = QUESTION) -> dict[str, Any]:
    """The names that ``program`` leaves behind, with its import replaced by ours and its addresses by the world's."""
    ours = re.sub(r"from v\w+ import", "from vrag_ray import", program)
    gateway = f"{world.service.base_url}/search"
    ours = ADDRESSES.sub(lambda match: gateway if match[0].endswith("/search") else world.stub.base_url, ours)
    names: dict[str, Any] = {"__name__": "__main__", "QUESTION": question}
    exec(compile(ours, "program", "exec"), names)
    return names


def test_the_published_vimrag_program_prints_the_answer(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DASHSCOPE_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "of-another-host")
    before = len(world.stub.requests)
    ran(VIMRAG_PROGRAM, world)
    assert capsys.readouterr().out == "3,467 MWh [1], Saturday [2], a crack of 23 cm [3].\n"
    # No key was given, so none is taken from elsewhere; the sampling is the one that goes with thinking.
    assert set(world.stub.keys[before:]) == {"EMPTY"}
    body = world.stub.requests[-1]
    assert (body["model"], body["enable_thinking"]) == ("qwen3.5-plus", True)
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.6, 0.95, 4096)


@pytest.mark.parametrize("program", DOCUMENTED, ids=["vimrag", "vrag", "steps"])
def test_the_documented_programs_print_the_answer(
    program: str, world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ran(program, world)
    assert "3,467 MWh" in capsys.readouterr().out.splitlines()[-1]


def test_vimrags_events_carry_the_originals_names_and_fill_the_sample_in(world: World) -> None:
    agent = VimRAG(world.stub.base_url, f"{world.service.base_url}/search", "stub", "any", search_top_k=2)
    sample: dict[str, Any] = {"query": QUESTION, "uid": "7"}
    events = list(agent.run(sample))
    kinds = [event["event"] for event in events]
    assert kinds == [event["type"] for event in events]
    assert kinds[0] == "start" and kinds[-1] == "answer"
    assert {"think", "content", "search", "search_done", "crop", "memorize", "budget"} <= set(kinds)
    first = {str(event["event"]): event for event in reversed(events)}
    assert first["search"]["query"] == "shore power delivered to the ferry quay by year"
    assert first["search"]["node_id"] == "quay"
    assert first["memorize"]["summary"] == "the ferry quay took 3,467 MWh in 2024"
    results = first["search_done"]["results"]
    assert isinstance(results, dict)
    assert set(results) == {"score", "indice", "data"} and len(results["data"]) == 2

    assert events[-1]["sample"] is sample
    assert sample["uid"] == "7" and sample["generate"] == events[-1]["content"]
    assert sample["generate_times"] == len(SCRIPT) - 1
    assert [(node["id"], node["parent_ids"]) for node in sample["graph"]] == [
        ("root", []),
        ("quay", ["root"]),
        ("charging", ["quay"]),
        ("blade", ["root"]),
        ("answer", ["charging", "blade"]),
    ]
    assert sample["graph"][1]["summary"] == "the ferry quay took 3,467 MWh in 2024"
    assert sample["search_results"][0] == results and len(sample["search_results"]) == 3
    # One chat for each memorise and one for the answer, each with the reply that ended it.
    assert [chat[-1]["content"] for chat in sample["trajectory"]] == [GRAPH.render(SCRIPT[n]) for n in (2, 4, 6, 7)]
    assert sample["trajectory"][0][0]["role"] == "system"
    json.dumps(sample)


def test_a_vimrag_run_without_an_answer_ends_with_max_steps(world: World) -> None:
    agent = VimRAG(world.stub.base_url, world.service.base_url, "stub", max_mem_steps=3)
    sample: dict[str, Any] = {"query": QUESTION}
    events = list(agent.run(sample))
    assert [event["event"] for event in events][-1] == "max_steps"
    assert events[-1]["content"] == "no answer within 3 steps"
    assert sample["status"] == "max_steps" and "generate" not in sample and "graph" in sample


def test_vimrags_arguments_do_what_they_say(world: World) -> None:
    agent = VimRAG(
        world.stub.base_url,
        world.service.base_url,
        "stub",
        max_pixels_image=100_000,
        max_pixels_video=20_000,
        memory_buffer_pixels=60_000,
        search_top_k=2,
        enable_thinking=False,
    )
    before = len(world.stub.requests)
    events = list(agent.run({"query": QUESTION}))
    assert {len(event["items"]) for event in events if event["event"] == "search_done"} == {2}  # type: ignore[arg-type]
    bodies = world.stub.requests[before:]
    assert {(body["temperature"], body["enable_thinking"]) for body in bodies} == {(0.0, False)}
    frames = max((sizes(body) for body in bodies), key=len)
    assert all(width * height <= 100_000 for body in bodies for width, height in sizes(body))
    # Of 32 pictures 5 are for memory and 2 for crops; the two results share the rest.
    assert sum(width * height <= 20_000 for width, height in frames) == 25
    assert sum(width * height for width, height in sizes(bodies[-1])) <= 60_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_mem_steps": 1}, "max_mem_steps=1"),
        ({"search_top_k": 0}, "search_top_k=0"),
        ({"max_pixels_image": 100}, "max_pixels_image=100"),
    ],
)
def test_an_argument_that_cannot_be_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(VragError, match=message):
        VimRAG("http://127.0.0.1:1/v1", "http://127.0.0.1:1", "stub", **arguments)


def test_the_published_vrag_program_prints_the_answer(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    ran(VRAG_PROGRAM, world)
    assert capsys.readouterr().out == "3,467 MWh\n"
    assert world.stub.requests[-1]["model"] == "Qwen/Qwen2.5-VL-7B-Instruct"


def test_vrags_generator_yields_the_originals_triples(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    names = ran(VRAG_STEPS, world)
    assert capsys.readouterr().out == "3,467 MWh\n"
    assert (names["action"], names["raw_content"]) == ("answer", "<answer>3,467 MWh</answer>")
    seen = names["seen"]
    query = "shore power delivered to the ferry quay by year"
    assert [step[0] for step in seen] == [
        "think",
        "search",
        "search_image",
        "think",
        "bbox",
        "crop_image",
        "think",
        "answer",
    ]
    assert seen[0] == ("think", "a", "<think>a</think>")
    assert seen[1] == ("search", query, f"<search>{query}</search>")
    assert seen[4] == ("bbox", "[40, 150, 500, 420]", "<bbox>[40, 150, 500, 420]</bbox>")
    page, (_, crop, boxed) = seen[2][1], seen[5]
    shown = [
        Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) for url in images_of(world.stub.requests[-1])
    ]
    assert page.tobytes() == shown[0].convert("RGB").tobytes()
    assert crop.tobytes() == shown[1].convert("RGB").tobytes()
    # The box stands in the picture that was cropped, where the model put it, and nowhere else.
    assert boxed.size == page.size
    changed = ImageChops.difference(page, boxed).getbbox()
    assert changed == pytest.approx((40, 150, 501, 421), abs=1)
    assert boxed.getpixel((42, 300)) == (160, 32, 240)


def test_vrags_max_steps_can_be_set_as_the_original_ui_does(world: World) -> None:
    agent = VRAG(world.stub.base_url, world.service.base_url, generator=True)
    agent.max_steps = 2
    steps = list(agent.steps("search for ever"))
    assert [step[0] for step in steps if step[0] == "search"] == ["search"] * 3
    assert steps[-1] == ("answer", "No answer within the budget of 3 steps.", "")


def test_legacy_search_gives_urls_of_what_it_says(world: World) -> None:
    """Everything that ``POST /search`` calls an image, a video or a text is one, byte for byte."""
    queries = ["crack at the leading edge of blade B", "minutes of ferry charging by weekday", "night desk log"]
    reply = httpx.post(f"{world.service.base_url}/search", json={"queries": queries, "top_k": 8}).json()
    records = {record["uid"]: record for result in reply["results"] for record in result["data"]}.values()
    assert {record["type"] for record in records} == {"image", "video", "text"}
    for record in records:
        data = httpx.get(record["file_path"], timeout=60).content
        if record["type"] == "image":
            Image.open(io.BytesIO(data)).verify()
        elif record["type"] == "video":
            with av.open(io.BytesIO(data)) as container:
                assert container.streams.video
                assert 0 <= record["t_start"] < record["t_end"] <= container.duration / av.time_base + 0.01
        else:
            assert record["content"].split()[0] in data.decode()
