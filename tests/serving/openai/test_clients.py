"""Clients that nobody here wrote, against the whole service for real: the openai SDK and curl.

The language model is a scripted endpoint; everything else (Ray, Serve, index, library, agents) is the product.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import subprocess
import time
from collections.abc import Callable, Iterator

import httpx
import openai
import pytest

from tests.support import material
from tests.support.openai_calls import data_url
from tests.support.openai_stub import Body, Say, Stub, images_of, openai_stub, texts_of
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.config import Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.serving.local import LocalService, start_here

QUESTION = "What did dredging the northern basin cost?"
LONG = "word " * 400
"""At the stub's pace longer than any test waits."""
GRAPH = GraphProtocol()
SEARCH = AddSearchNode(id="cost", parent_ids=("root",), query="dredging cost northern basin")
KEEP = SummarizeAndMemorize(
    summarize="It cost 4.7 million.",
    memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=5),),
)
ANSWER = AddAnswerNode(parent_ids=("cost",), answer="4.7 million euros [1].", citations=("cost#1",))
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


def _respond(body: Body, _: int) -> Say:
    texts = texts_of(body)
    if any("Memory graph:" in text for text in texts):
        return _agent(texts)
    last = texts[-1]
    if "slowly" in last:
        return Say(LONG, delay_s=0.05)
    if "break" in last:
        return Say("this is half of", cut_after=2)
    if "refuse" in last:
        return Say(status=400)
    if body.get("tools") and "Rain" in last:
        return Say(calls=[("weather", '{"city": "Köln"}')])
    return Say(f"You said {last!r} with {len(images_of(body))} pictures.", "let me think")


def _agent(texts: list[str]) -> Say:
    """The model of a vimrag run: search, memorise, answer."""
    if any("slowly" in text for text in texts):
        return Say(f"<think>{LONG}", delay_s=0.05)
    if "<tool_response>" in texts[-1]:
        return Say(GRAPH.render(KEEP))
    return Say(GRAPH.render(ANSWER if '"cost"' in texts[-1] else SEARCH), "looking")


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with openai_stub(_respond) as running:
        yield running


@pytest.fixture(scope="module")
def service(stub: Stub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalService]:
    values = {
        "collection": str(tmp_path_factory.mktemp("openai") / "collection"),
        "serving": {"heartbeat_s": 1.0, "refresh_s": 0.5},
        "openai": {"base_url": stub.base_url, "model": "stub", "retries": 0},
    }
    Collection.open_or_create(values["collection"])
    running = start_here(Settings.model_validate(values), 0)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def report(service: LocalService) -> str:
    """Id of the one document of the collection."""
    with httpx.Client(base_url=service.base_url, timeout=HANGS_AFTER_S) as http:
        reply = http.post("/v1/documents", files={"files": ("harbour.pdf", material.pdf())})
        job = reply.json()
        _until(lambda: http.get(job["url"]).json()["state"] == "done")
        return str(http.get("/v1/documents").json()["documents"][0]["doc_id"])


@pytest.fixture(scope="module")
def sdk(service: LocalService, report: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{service.base_url}/v1", api_key="none", max_retries=0, timeout=HANGS_AFTER_S
    ) as client:
        yield client


def _until(holds: Callable[[], bool], within_s: float = HANGS_AFTER_S) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)


def _user(content: object) -> list[dict[str, object]]:
    return [{"role": "user", "content": content}]


def test_the_sdk_gets_an_agents_answer_with_citations_it_can_follow(
    sdk: openai.OpenAI, report: str, service: LocalService
):
    reply = sdk.chat.completions.with_raw_response.create(model="extractive", messages=_user(QUESTION))
    completion = reply.parse()
    message = completion.choices[0].message
    assert "4.7 million" in message.content
    assert "Search: " in message.model_extra["reasoning_content"]
    citation = message.annotations[0].url_citation
    assert message.content[citation.start_index : citation.end_index] == "[1]"
    assert citation.url.startswith(f"{service.base_url}/v1/documents/{report}/pages/2.png?bbox=")
    assert httpx.get(citation.url).content.startswith(b"\x89PNG")
    evidence = message.model_extra["evidence"][0]
    assert (evidence["document"], evidence["page"]) == (report, 2)
    assert "4.7 million" in evidence["quote"]
    run = httpx.get(f"{service.base_url}/v1/runs/{reply.headers['x-run-id']}").json()
    assert run["answer"] == message.content
    assert completion.usage.total_tokens == 0


def test_a_picture_in_the_question_reaches_search_and_model_and_is_not_kept(
    sdk: openai.OpenAI, service: LocalService, stub: Stub
):
    before = len(stub.requests)
    content = [{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {"url": data_url((90, 60))}}]
    reply = sdk.chat.completions.with_raw_response.create(model="vimrag", messages=_user(content))
    assert reply.parse().choices[0].message.content == "4.7 million euros [1]."
    requests = stub.requests[before:]
    assert [len(images_of(body)) >= 1 for body in requests] == [True, True, True]
    shown = [set(images_of(body)) for body in requests]
    assert shown[0] and shown[0] <= shown[1] & shown[2], "the question's picture is in every prompt"
    text = httpx.get(f"{service.base_url}/v1/runs/{reply.headers['x-run-id']}").text
    sent = base64.b64decode(data_url((90, 60)).partition(",")[2])
    assert json.loads(text)["picture"] == {"sha256": hashlib.sha256(sent).hexdigest(), "size": len(sent)}
    assert "base64" not in text


@pytest.mark.parametrize("model", ["extractive", "vimrag"])
def test_the_sdk_streams_an_agents_answer_and_adds_it_up(sdk: openai.OpenAI, model: str):
    with sdk.chat.completions.stream(
        model=model, messages=_user(QUESTION), stream_options={"include_usage": True}
    ) as stream:
        contents = [event.delta for event in stream if event.type == "content.delta" and event.delta]
        whole = stream.get_final_completion()
    message = whole.choices[0].message
    assert contents == [message.content]
    assert "4.7 million" in message.content
    assert whole.choices[0].finish_reason == "stop"
    assert "Search: " in message.model_extra["reasoning_content"]
    assert len(message.model_extra["evidence"]) == 1
    assert whole.usage.prompt_tokens == (300 if model == "vimrag" else 0)


def test_the_sdk_talks_to_the_bare_model_with_pages_and_pictures(sdk: openai.OpenAI, report: str, stub: Stub):
    picture = f"data:image/png;base64,{base64.b64encode(material.picture()).decode()}"
    content = [
        {"type": "text", "text": "Compare."},
        {"type": "image_url", "image_url": {"url": picture}},
        {"type": "image_url", "image_url": {"url": f"file-{report}#page=2"}},
    ]
    extra = {"thinking": True}
    whole = sdk.chat.completions.create(model="policy", messages=_user(content), temperature=0.3, extra_body=extra)
    assert whole.choices[0].message.content == "You said 'Compare.' with 2 pictures."
    assert whole.choices[0].message.model_extra["reasoning_content"] == "let me think"
    assert (whole.usage.prompt_tokens, whole.usage.prompt_tokens_details.cached_tokens) == (100, 64)
    request = stub.requests[-1]
    assert (request["temperature"], request["enable_thinking"]) == (0.3, True)
    chunks = list(sdk.chat.completions.create(model="policy", messages=_user("Hi"), stream=True))
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert "".join(pieces) == "You said 'Hi' with 0 pictures."
    assert sum(map(bool, pieces)) > 1


def test_the_sdk_calls_functions_through_the_bare_model(sdk: openai.OpenAI, stub: Stub):
    messages = _user("Rain in Köln?")
    reply = sdk.chat.completions.create(model="policy", messages=messages, tools=[WEATHER])
    assert reply.choices[0].finish_reason == "tool_calls"
    [call] = reply.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Köln"})
    with sdk.chat.completions.stream(model="policy", messages=messages, tools=[WEATHER]) as stream:
        [streamed] = stream.get_final_completion().choices[0].message.tool_calls
    assert streamed.function.name == "weather"
    assert json.loads(streamed.function.arguments) == {"city": "Köln"}
    answered = [
        *messages,
        reply.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "sun"},
    ]
    sdk.chat.completions.create(model="policy", messages=answered, tools=[WEATHER])
    *_, called, result = stub.requests[-1]["messages"]
    assert result == {"role": "tool", "tool_call_id": call.id, "content": "sun"}
    assert called["tool_calls"][0]["id"] == call.id
    assert json.loads(called["tool_calls"][0]["function"]["arguments"]) == {"city": "Köln"}


def test_the_sdk_gets_its_own_exceptions(sdk: openai.OpenAI):
    with pytest.raises(openai.NotFoundError, match="no model"):
        sdk.chat.completions.create(model="gpt-4o", messages=_user("Hi"))
    fetched = [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:1/x.png"}}]
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        sdk.chat.completions.create(model="policy", messages=_user(fetched))
    assert refused.value.param == "messages.0.content.0.image_url.url"
    with pytest.raises(openai.BadRequestError, match="stub refuses"):
        sdk.chat.completions.create(model="policy", messages=_user("refuse"))
    stream = sdk.chat.completions.create(model="policy", messages=_user("break"), stream=True)
    with pytest.raises(openai.APIError, match="in mid-reply"):
        list(stream)


def test_the_sdk_lists_models_and_embeds_with_the_embedder_of_the_collection(sdk: openai.OpenAI):
    ids = [model.id for model in sdk.models.list()]
    assert ids[:4] == ["extractive", "vimrag", "vrag", "policy"]
    [embedder] = ids[4:]
    assert sdk.models.retrieve(embedder).owned_by == "vrag_ray"
    texts = ["dredging the basin", "The harbour was dredged.", "Apprentices learn to bake bread."]
    packed = sdk.embeddings.create(model=embedder, input=texts)
    plain = sdk.embeddings.create(model="embedder", input=texts, encoding_format="float")
    vectors = [item.embedding for item in packed.data]
    assert vectors == [pytest.approx(item.embedding, abs=1e-7) for item in plain.data]
    assert [math.hypot(*vector) for vector in vectors] == [pytest.approx(1, abs=1e-5)] * 3
    alike, unlike = (sum(a * b for a, b in zip(vectors[0], other, strict=True)) for other in vectors[1:])
    assert alike > unlike + 0.2
    assert packed.usage.total_tokens == 12


def test_a_sdk_reader_who_hangs_up_ends_the_generation(sdk: openai.OpenAI, stub: Stub):
    left = stub.left
    stream = sdk.chat.completions.create(model="policy", messages=_user("slowly"), stream=True)
    assert len(list(itertools.islice(stream, 3))) == 3
    stream.close()
    _until(lambda: stub.left == left + 1)
    with pytest.raises(openai.APITimeoutError):
        sdk.with_options(timeout=1.5).chat.completions.create(model="policy", messages=_user("slowly"))
    _until(lambda: stub.left == left + 2)


def test_a_sdk_reader_who_hangs_up_ends_the_run_and_its_generation(
    sdk: openai.OpenAI, stub: Stub, service: LocalService
):
    left, count = stub.left, len(stub.requests)
    stream = sdk.chat.completions.create(model="vimrag", messages=_user("Think slowly."), stream=True)
    first = next(iter(stream))
    # The first piece says that the run has begun; a generation that has not could not be ended.
    _until(lambda: len(stub.requests) > count)
    stream.close()
    url = f"{service.base_url}/v1/runs/{first.id.removeprefix('chatcmpl-')}"
    _until(lambda: httpx.get(url).status_code == 200)
    assert httpx.get(url).json()["status"] == "cancelled"
    _until(lambda: stub.left == left + 1)


def _curl(url: str, body: dict[str, object]) -> subprocess.Popen[str]:
    command = ["curl", "-N", "-sS", url, "-H", "content-type: application/json", "-d", json.dumps(body)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_curl_shows_words_while_the_model_still_speaks(service: LocalService, stub: Stub, report: str):
    left = stub.left
    url = f"{service.base_url}/v1/chat/completions"
    with _curl(url, {"model": "policy", "stream": True, "messages": _user("slowly")}) as curl:
        assert curl.stdout is not None
        lines = (line for line in curl.stdout if line.startswith("data: "))
        contents = [json.loads(next(lines).removeprefix("data: "))["choices"][0]["delta"] for _ in range(3)]
        assert contents[1]["content"] == LONG[:12]
        assert curl.poll() is None
        curl.terminate()
    _until(lambda: stub.left == left + 1)


def test_curl_reads_an_agents_chat_and_a_run_to_their_ends(service: LocalService, report: str):
    body = {"model": "extractive", "stream": True, "messages": _user(QUESTION)}
    with _curl(f"{service.base_url}/v1/chat/completions", body) as curl:
        text, _ = curl.communicate(timeout=HANGS_AFTER_S)
    assert curl.returncode == 0
    blocks = [block for block in text.split("\n\n") if block.startswith("data: ")]
    assert blocks[-1] == "data: [DONE]"
    assert "4.7 million" in blocks[-3]
    with _curl(f"{service.base_url}/v1/runs", {"question": QUESTION}) as curl:
        text, _ = curl.communicate(timeout=HANGS_AFTER_S)
    assert curl.returncode == 0
    kinds = [line.removeprefix("event: ") for line in text.splitlines() if line.startswith("event: ")]
    assert kinds[0] == "start"
    assert {"search", "search_done", "memorize"} <= set(kinds)
    assert kinds[-1] == "answer"
