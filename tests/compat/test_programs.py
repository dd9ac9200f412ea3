"""Programs as the original project publishes them: the import and the addresses are all that is changed."""

from __future__ import annotations

import base64
import io
import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import av
import httpx
import pytest
from PIL import Image, ImageChops

from tests.support.openai_stub import images_of
from tests.support.paths import ROOT
from tests.support.patience import HANGS_AFTER_S
from tests.support.stubbed_service import GRAPH, QUESTION, SCRIPT, StubbedService, sizes
from vrag_ray import VRAG, VimRAG
from vrag_ray.agent.events import ContentEvent
from vrag_ray.types import VragError

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
PYTHON_PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
DOCUMENTED = [text for text in re.findall(r"```python\n(.*?)```", PYTHON_PAGE, re.DOTALL) if "RAG(" in text]
ADDRESSES = re.compile(r"https?://[\w.:]+/(?:compatible-mode/)?v1|http://[\w.:]+/search")


def ran(program: str, stubbed_service: StubbedService, question: str = QUESTION) -> dict[str, Any]:
    """The names that ``program`` leaves behind, with our import and the addresses of the service and its stub."""
    ours = re.sub(r"from v\w+ import", "from vrag_ray import", program)
    gateway = f"{stubbed_service.service.base_url}/search"
    ours = ADDRESSES.sub(lambda match: gateway if match[0].endswith("/search") else stubbed_service.stub.base_url, ours)
    names: dict[str, Any] = {"__name__": "__main__", "QUESTION": question}
    exec(compile(ours, "program", "exec"), names)
    return names


def test_the_published_vimrag_program_prints_the_answer(
    stubbed_service: StubbedService, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DASHSCOPE_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "of-another-host")
    before = len(stubbed_service.stub.requests)
    ran(VIMRAG_PROGRAM, stubbed_service)
    assert capsys.readouterr().out == "3,467 MWh [1], Saturday [2], a crack of 23 cm [3].\n"
    # No key was given, so none is taken from elsewhere; the sampling is the one that goes with thinking.
    assert set(stubbed_service.stub.keys[before:]) == {"EMPTY"}
    body = stubbed_service.stub.requests[-1]
    assert (body["model"], body["enable_thinking"]) == ("qwen3.5-plus", True)
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.6, 0.95, 4096)


@pytest.mark.parametrize("program", DOCUMENTED, ids=["vimrag", "vrag", "steps"])
def test_the_documented_programs_print_the_answer(
    program: str,
    stubbed_service: StubbedService,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran(program, stubbed_service)
    assert "3,467 MWh" in capsys.readouterr().out.splitlines()[-1]


def test_vimrags_events_carry_the_originals_names_and_fill_the_sample_in(stubbed_service: StubbedService) -> None:
    agent = VimRAG(
        stubbed_service.stub.base_url, f"{stubbed_service.service.base_url}/search", "stub", "any", search_top_k=2
    )
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


def test_a_vimrag_run_without_an_answer_ends_with_max_steps(stubbed_service: StubbedService) -> None:
    agent = VimRAG(stubbed_service.stub.base_url, stubbed_service.service.base_url, "stub", max_mem_steps=3)
    sample: dict[str, Any] = {"query": QUESTION}
    events = list(agent.run(sample))
    assert [event["event"] for event in events][-1] == "max_steps"
    assert events[-1]["content"] == "no answer within 3 steps"
    assert sample["status"] == "max_steps" and "generate" not in sample and "graph" in sample


def test_vimrags_arguments_do_what_they_say(stubbed_service: StubbedService) -> None:
    agent = VimRAG(
        stubbed_service.stub.base_url,
        stubbed_service.service.base_url,
        "stub",
        max_pixels_image=100_000,
        max_pixels_video=20_000,
        memory_buffer_pixels=60_000,
        search_top_k=2,
        enable_thinking=False,
    )
    before = len(stubbed_service.stub.requests)
    events = list(agent.run({"query": QUESTION}))
    assert {len(event["items"]) for event in events if event["event"] == "search_done"} == {2}  # type: ignore[arg-type]
    bodies = stubbed_service.stub.requests[before:]
    assert {(body["temperature"], body["enable_thinking"]) for body in bodies} == {(0.0, False)}
    frames = max((sizes(body) for body in bodies), key=len)
    assert all(width * height <= 100_000 for body in bodies for width, height in sizes(body))
    # Of 32 pictures 5 are for memory and 2 for crops; the two results, clips of one video, share the rest.
    [(size, count)] = Counter(frames).most_common(1)
    assert (count, size[0] * size[1] <= 20_000) == (25, True)
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


def test_the_published_vrag_program_prints_the_answer(
    stubbed_service: StubbedService, capsys: pytest.CaptureFixture[str]
) -> None:
    ran(VRAG_PROGRAM, stubbed_service)
    assert capsys.readouterr().out == "3,467 MWh\n"
    assert stubbed_service.stub.requests[-1]["model"] == "Qwen/Qwen2.5-VL-7B-Instruct"


def test_vrags_generator_yields_the_originals_triples(
    stubbed_service: StubbedService, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ran(VRAG_STEPS, stubbed_service)
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
        Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))
        for url in images_of(stubbed_service.stub.requests[-1])
    ]
    assert page.tobytes() == shown[0].convert("RGB").tobytes()
    assert crop.tobytes() == shown[1].convert("RGB").tobytes()
    # The box stands in the picture that was cropped, where the model put it, and nowhere else.
    assert boxed.size == page.size
    changed = ImageChops.difference(page, boxed).getbbox()
    assert changed == pytest.approx((40, 150, 501, 421), abs=1)
    assert boxed.getpixel((42, 300)) == (160, 32, 240)


def test_vrags_max_steps_can_be_set_as_the_original_ui_does(stubbed_service: StubbedService) -> None:
    agent = VRAG(stubbed_service.stub.base_url, stubbed_service.service.base_url, generator=True)
    agent.max_steps = 2
    steps = list(agent.steps("search for ever"))
    assert [step[0] for step in steps if step[0] == "search"] == ["search"] * 3
    assert steps[-1] == ("answer", "No answer within the budget of 3 steps.", "")


def test_leaving_a_programs_run_early_ends_it(stubbed_service: StubbedService) -> None:
    left = stubbed_service.stub.left
    agent = VimRAG(
        base_url=stubbed_service.stub.base_url, search_url=stubbed_service.service.base_url, model_name="stub"
    )
    steps = agent.events("wait for me")
    for event in steps:
        if isinstance(event, ContentEvent):
            break
    steps.close()
    deadline = time.monotonic() + HANGS_AFTER_S
    while stubbed_service.stub.left == left and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stubbed_service.stub.left == left + 1


def test_legacy_search_gives_urls_of_what_it_says(stubbed_service: StubbedService) -> None:
    """Everything that ``POST /search`` calls an image, a video or a text is one, byte for byte."""
    queries = ["crack at the leading edge of blade B", "minutes of ferry charging by weekday", "night desk log"]
    reply = httpx.post(f"{stubbed_service.service.base_url}/search", json={"queries": queries, "top_k": 8}).json()
    records = {record["uid"]: record for result in reply["results"] for record in result["data"]}.values()
    assert {record["type"] for record in records} == {"image", "video", "text"}
    for record in records:
        data = httpx.get(record["file_path"], timeout=HANGS_AFTER_S).content
        if record["type"] == "image":
            Image.open(io.BytesIO(data)).verify()
        elif record["type"] == "video":
            with av.open(io.BytesIO(data)) as container:
                assert container.streams.video
                assert 0 <= record["t_start"] < record["t_end"] <= container.duration / av.time_base + 0.01
        else:
            assert record["content"].split()[0] in data.decode()
