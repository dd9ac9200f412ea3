"""The OpenAI-compatible routes over stand-ins: what maps to what, what is refused, and what a hang-up ends."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from tests.serving.conftest import http
from tests.serving.stand_in import DOC_ID, EMBEDDER_ID, StandIn
from vrag_ray.agent.chat import Delta, ImagePart, Role, TextPart
from vrag_ray.agent.events import AnswerEvent, ErrorEvent, RunStatus, SearchEvent, UsageEvent
from vrag_ray.agent.evidence import Citation
from vrag_ray.api import RunRequest
from vrag_ray.config import ServingConfig
from vrag_ray.policies.chat_model import ModelDownError, ModelLostError
from vrag_ray.types import Completion, PassageKind, VragError

pytestmark = pytest.mark.anyio
CHAT = "/v1/chat/completions"
PAGE = Citation(
    number=1,
    doc_id=DOC_ID,
    title="report",
    uri="report.pdf",
    kind=PassageKind.PAGE,
    page=2,
    bbox=(0.1, 0.2, 0.5, 0.25),
    quote="cost 4.7 million",
    score=0.5,
    node_id="a",
)
CLIP = Citation(
    number=2, doc_id=DOC_ID, title="film", uri="f", kind=PassageKind.CLIP, t_start=60.0, t_end=90.0, node_id="b"
)
CITED = AnswerEvent(answer="It cost 4.7 [1], then more [1, 2].", abstained=False, status=RunStatus.ANSWERED,
                    citations=(PAGE, CLIP), notices=("one shard is down",))  # fmt: skip
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def _ask(model: str = "extractive", content: object = "q", **more: object) -> dict[str, object]:
    return {"model": model, "messages": [{"role": "user", "content": content}], **more}


async def _data(response: httpx.Response) -> AsyncIterator[str]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield line.removeprefix("data: ")


async def _chunks(client: httpx.AsyncClient, body: dict[str, object]) -> list[dict]:
    """The chunks of a stream that ends as it should."""
    async with client.stream("POST", CHAT, json=body | {"stream": True}) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        *chunks, end = [data async for data in _data(response)]
    assert end == "[DONE]"
    return [json.loads(chunk) for chunk in chunks]


def _joined(chunks: list[dict], name: str) -> str:
    return "".join(choice["delta"].get(name) or "" for chunk in chunks for choice in chunk["choices"])


def _refused(reply: httpx.Response) -> tuple[int, str, str]:
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return reply.status_code, error["param"], error["code"]


def _data_url(size: tuple[int, int] = (40, 20), form: str = "JPEG") -> str:
    buffer = io.BytesIO()
    Image.new("RGB", size, (200, 30, 30)).save(buffer, form)
    return f"data:image/{form.lower()};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _image(url: str) -> list[dict[str, object]]:
    return [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": url}}]


# Agents -----------------------------------------------------------------------------------------------------------


async def test_an_answer_has_marks_with_their_places_and_evidence_with_its_box(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    backend.ending = (UsageEvent(usage={"prompt_tokens": 7, "completion_tokens": 2, "cached_tokens": 4}), CITED)
    reply = await client.post(CHAT, json=_ask("vimrag"))
    body = reply.json()
    [choice] = body["choices"]
    message = choice["message"]
    assert (body["object"], body["model"], choice["finish_reason"]) == ("chat.completion", "vimrag", "stop")
    assert message["content"] == CITED.answer
    assert "thought 0" in message["reasoning_content"]
    assert message["notices"] == ["one shard is down"]
    marks = [annotation["url_citation"] for annotation in message["annotations"]]
    shown = [message["content"][mark["start_index"] : mark["end_index"]] for mark in marks]
    assert shown == ["[1]", "[1, 2]", "[1, 2]"]
    assert marks[0]["url"] == f"{client.base_url}/v1/documents/{DOC_ID}/pages/2.png?bbox=0.1,0.2,0.5,0.25"
    assert marks[2]["url"].endswith("/frames/60.000.png")
    assert (await client.get(marks[0]["url"])).content == b"\x89PNG"
    page, clip = message["evidence"]
    assert (page["document"], page["page"], page["box"]) == (DOC_ID, 2, [0.1, 0.2, 0.5, 0.25])
    assert (page["score"], page["node"], page["quote"]) == (0.5, "a", "cost 4.7 million")
    assert (clip["t_start"], clip["t_end"]) == (60.0, 90.0)
    assert body["usage"] == {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 4},
    }


async def test_the_run_behind_an_answer_can_be_fetched(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    reply = await client.post(CHAT, json=_ask())
    run_id = reply.headers["x-run-id"]
    assert reply.json()["id"] == f"chatcmpl-{run_id}"
    assert (await client.get(f"/v1/runs/{run_id}")).json()["answer"] == "42"


async def test_a_citation_without_a_mark_is_annotated_at_the_end(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.ending = (CITED.model_copy(update={"answer": "Much [9].", "citations": (PAGE,)}),)
    message = (await client.post(CHAT, json=_ask())).json()["choices"][0]["message"]
    [mark] = [annotation["url_citation"] for annotation in message["annotations"]]
    assert (mark["start_index"], mark["end_index"]) == (9, 9)


async def test_a_stream_tells_progress_as_reasoning_and_the_answer_once_it_is_certain(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.ending = (SearchEvent(node_id="a", parent_ids=("root",), query="crane"), CITED)
    async with client.stream("POST", CHAT, json=_ask("vrag", stream=True)) as response:
        data = _data(response)
        first = json.loads(await anext(data))
        assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        thought = json.loads(await anext(data))
        assert thought["choices"][0]["delta"] == {"reasoning_content": "thought 0\u2028next"}
        assert response.headers["x-run-id"] == first["id"].removeprefix("chatcmpl-")
        backend.go.set()
        *rest, end = [one async for one in data]
    assert end == "[DONE]"
    chunks = [first, thought, *map(json.loads, rest)]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert "Search: crane\n" in _joined(chunks, "reasoning_content")
    *_, answer, last = chunks
    assert answer["choices"][0]["delta"]["content"] == _joined(chunks, "content") == CITED.answer
    assert len(answer["choices"][0]["delta"]["annotations"]) == 3
    assert len(answer["choices"][0]["delta"]["evidence"]) == 2
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]


async def test_usage_comes_last_and_only_where_it_was_asked_for(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    plain = await _chunks(client, _ask())
    assert not any("usage" in chunk for chunk in plain)
    wanted = await _chunks(client, _ask(stream_options={"include_usage": True}))
    assert wanted[-1]["choices"] == []
    assert wanted[-1]["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


async def test_an_answer_at_the_end_of_the_budget_says_length(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.ending = (CITED.model_copy(update={"status": RunStatus.MAX_STEPS}),)
    assert (await client.post(CHAT, json=_ask())).json()["choices"][0]["finish_reason"] == "length"


async def test_a_run_that_fails_is_one_error_that_the_sdk_does_not_repeat(client: httpx.AsyncClient, backend: StandIn):
    reply = await client.post(CHAT, json=_ask(content="crash"))
    assert _refused(reply) == (500, None, "run_failed")
    assert reply.headers["x-should-retry"] == "false"
    assert "secret" not in reply.text
    assert (await client.get(f"/v1/runs/{reply.headers['x-run-id']}")).json()["status"] == "error"


async def test_a_run_that_fails_in_mid_stream_is_an_error_event_and_then_the_end(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    backend.ending = (ErrorEvent(message="the model /srv/x/weights.bin is gone", terminal=True),)
    async with client.stream("POST", CHAT, json=_ask(stream=True)) as response:
        *_, last = [json.loads(data) async for data in _data(response)]
    assert last["error"]["message"] == "the model weights.bin is gone"
    assert last["error"]["code"] == "run_failed"


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reader_who_hangs_up_ends_the_run(client: httpx.AsyncClient, backend: StandIn, stream: bool):
    if stream:
        async with client.stream("POST", CHAT, json=_ask(stream=True)) as response:
            await anext(_data(response))
    else:
        asking = asyncio.create_task(client.post(CHAT, json=_ask()))
        await backend.asked.wait()
        asking.cancel()
    run_id = backend.started[0].run_id
    # The stream of its events ends with the run.
    await client.get(f"/v1/runs/{run_id}/events")
    assert (await client.get(f"/v1/runs/{run_id}")).json()["status"] == "cancelled"


async def test_a_silent_reply_is_kept_alive(tmp_path: Path):
    backend = StandIn(tmp_path / "runs")
    async with http(backend, tmp_path, ServingConfig(heartbeat_s=0.05)) as client:
        async with client.stream("POST", CHAT, json=_ask(stream=True)) as response:
            comments = 0
            async for line in response.aiter_lines():
                comments += line.startswith(":")
                if comments == 3:
                    backend.go.set()
        assert comments >= 3


async def test_a_full_server_refuses_a_stream_with_a_status(client: httpx.AsyncClient, backend: StandIn):
    for number in range(4):
        backend.runs.start(RunRequest(question=f"q{number}"))
    for stream in (True, False):
        reply = await client.post(CHAT, json=_ask(stream=stream))
        assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")


async def test_the_question_is_the_last_user_message_and_a_model_is_told_the_rest(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    messages = [
        {"role": "system", "content": "Answer in French."},
        {"role": "user", "content": "Who runs\nthe harbour?"},
        {"role": "assistant", "content": "The authority [1]."},
        {"role": "user", "content": "Since when?"},
    ]
    for model in ("vimrag", "extractive"):
        await client.post(CHAT, json={"model": model, "messages": messages})
    told, alone = (request.question for request in backend.started)
    assert told.splitlines() == [
        "Since when?",
        "",
        "Earlier in this conversation:",
        "system: Answer in French.",
        "user: Who runs the harbour?",
        "assistant: The authority [1].",
    ]
    assert alone == "Since when?"


async def test_a_long_conversation_keeps_its_rules_and_its_newest_turns(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    turns = [{"role": "user", "content": f"turn {number} " + "word " * 400} for number in range(30)]
    messages = [{"role": "system", "content": "Be brief."}, *turns, {"role": "user", "content": "And now?"}]
    await client.post(CHAT, json={"model": "vimrag", "messages": messages})
    question = backend.started[0].question
    assert len(question) <= 4096
    assert question.startswith("And now?")
    assert "system: Be brief." in question
    kept = [number for number in range(30) if f"turn {number} " in question]
    assert kept == list(range(30 - len(kept), 30))
    assert len(kept) >= 4


async def test_extension_fields_and_attached_documents_bound_the_run(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    content = [
        {"type": "file", "file": {"file_id": f"file-{DOC_ID}"}},
        {"type": "image_url", "image_url": {"url": f"{DOC_ID[:12]}#page=2"}},
        {"type": "text", "text": "q"},
    ]
    extra = {"max_steps": 5, "top_k": 2, "thinking": True, "filter": {"kinds": ["page"]}, "verbosity": "low"}
    assert (await client.post(CHAT, json=_ask("vrag", content, **extra))).status_code == 200
    [run] = backend.started
    assert (run.max_steps, run.top_k, run.thinking, run.agent) == (5, 2, True, "vrag")
    assert run.filter is not None
    assert (run.filter.doc_ids, run.filter.kinds) == ([DOC_ID, DOC_ID[:12]], [PassageKind.PAGE])


async def test_agents_refuse_pictures_and_functions_in_words(client: httpx.AsyncClient, backend: StandIn):
    picture = await client.post(CHAT, json=_ask("vimrag", _image(_data_url())))
    assert _refused(picture) == (422, "messages.0.content.1", "invalid_value")
    assert "policy" in picture.json()["error"]["message"]
    assert _refused(await client.post(CHAT, json=_ask("vimrag", tools=[TOOL])))[:2] == (422, "tools")
    assert not backend.started


# The bare model ---------------------------------------------------------------------------------------------------


async def test_the_models_words_and_thoughts_come_as_they_are_said(client: httpx.AsyncClient, backend: StandIn):
    gate = asyncio.Event()
    whole = Completion("Yes.", "hm", usage={"prompt_tokens": 3, "completion_tokens": 2}, weights="step-7")
    backend.reply = (Delta(think="hm"), Delta(content="Ye"), gate, Delta(content="s."), whole)
    body = _ask("policy", stream=True, stream_options={"include_usage": True})
    async with client.stream("POST", CHAT, json=body) as response:
        assert "x-run-id" not in response.headers
        data = _data(response)
        begun = [json.loads(await anext(data)) for _ in range(3)]
        gate.set()
        *rest, _ = [one async for one in data]
    chunks = [*begun, *map(json.loads, rest)]
    assert (_joined(chunks, "reasoning_content"), _joined(chunks, "content")) == ("hm", "Yes.")
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks[2:4]] == ["Ye", "s."]
    assert chunks[-1]["usage"]["total_tokens"] == 5
    assert chunks[-2]["system_fingerprint"] == "step-7"


async def test_tags_of_thought_and_calls_never_show_in_the_content(client: httpx.AsyncClient, backend: StandIn):
    text = (
        "<think>rain?</think>\n\nLet me see: a < b.\n"
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Köln"}}\n</tool_call>\n'
        '<tool_call>{"name": "clock", "arguments": "{}"}</tool_call>'
    )
    backend.reply = (*(Delta(content=letter) for letter in text), Completion(text))
    chunks = await _chunks(client, _ask("policy", tools=[TOOL]))
    whole = (await client.post(CHAT, json=_ask("policy", tools=[TOOL]))).json()["choices"][0]
    assert _joined(chunks, "reasoning_content") == whole["message"]["reasoning_content"] == "rain?"
    assert _joined(chunks, "content") == whole["message"]["content"] == "Let me see: a < b.\n"
    calls = [call for chunk in chunks for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())]
    for told in (calls, whole["message"]["tool_calls"]):
        assert [call["function"] for call in told] == [
            {"name": "weather", "arguments": '{"city": "Köln"}'},
            {"name": "clock", "arguments": "{}"},
        ]
        assert len({call["id"] for call in told}) == 2
    assert [call["index"] for call in calls] == [0, 1]
    assert chunks[-1]["choices"][0]["finish_reason"] == whole["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    "text", ["<tool_call>not json</tool_call>", "<tool_call>", "a <tool_ca", '<tool_call>{"name": 3}', "<", "<thin"]
)
async def test_text_that_only_looks_like_a_call_stays_text(client: httpx.AsyncClient, backend: StandIn, text: str):
    backend.reply = (*(Delta(content=letter) for letter in text), Completion(text))
    choice = (await client.post(CHAT, json=_ask("policy", tools=[TOOL]))).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (text, "stop")


async def test_calls_are_looked_for_only_where_functions_were_offered(client: httpx.AsyncClient, backend: StandIn):
    text = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>'
    backend.reply = (Completion(text),)
    for body in (_ask("policy"), _ask("policy", tools=[TOOL], tool_choice="none")):
        message = (await client.post(CHAT, json=body)).json()["choices"][0]["message"]
        assert message["content"] == text
        assert backend.chats[-1].tools == ()


async def test_the_conversation_and_the_sampling_reach_the_model(client: httpx.AsyncClient, backend: StandIn):
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Rain?"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"at": 1}'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "sun"},
    ]
    sampling = {"max_completion_tokens": 9, "temperature": 0.5, "top_p": 0.9, "seed": 3, "stop": "END"}
    body = {"model": "policy", "messages": messages, "tools": [TOOL], "thinking": False, "user": "u1", **sampling}
    assert (await client.post(CHAT, json=body)).status_code == 200
    [chat] = backend.chats
    assert [message.role for message in chat.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER]
    assert [message.text for message in chat.messages] == [
        "Be brief.",
        "Rain?",
        '<tool_call>\n{"name": "weather", "arguments": {"at": 1}}\n</tool_call>',
        "<tool_response>\nsun\n</tool_response>",
    ]
    told = chat.sampling
    assert (told.max_tokens, told.temperature, told.top_p, told.seed, told.stop) == (9, 0.5, 0.9, 3, ("END",))
    assert (chat.tools[0].name, chat.thinking, chat.session) == ("weather", False, "u1")


async def test_pictures_are_sent_as_png_whether_inline_or_from_the_collection(
    client: httpx.AsyncClient, backend: StandIn
):
    content = [
        *_image(_data_url()),
        *_image(f"file-{DOC_ID}#page=3"),
        {"type": "file", "file": {"file_id": f"{DOC_ID}#t=12.5"}},
    ]
    assert (await client.post(CHAT, json=_ask("policy", content))).status_code == 200
    inline, page, frame = (part for part in backend.chats[0].messages[0].parts if isinstance(part, ImagePart))
    decoded = Image.open(io.BytesIO(inline.png))
    assert (decoded.format, decoded.size) == ("PNG", (40, 20))
    assert page.png == frame.png == b"\x89PNG"
    assert backend.drawn == [(DOC_ID, 3, 150.0, None), (DOC_ID, 12.5)]
    assert backend.chats[0].messages[0].parts[0] == TextPart("what is this?")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/x.png",
        "https://example.org/x.png",
        "file:///etc/passwd",
        "../../etc/passwd",
        "data:text/html;base64,PGI+",
        "data:image/png;base64,not base64!",
        "data:image/png;base64,aGVsbG8=",
        f"{DOC_ID}#page=0",
        "",
    ],
)
async def test_nothing_is_fetched_for_a_picture_and_the_field_is_named(
    client: httpx.AsyncClient, backend: StandIn, url: str
):
    reply = await client.post(CHAT, json=_ask("policy", _image(url)))
    status, param, _ = _refused(reply)
    assert (status, param.startswith("messages.0.content.1")) == (422, True)
    assert not backend.chats


async def test_pictures_too_heavy_or_with_too_many_pixels_are_refused(client: httpx.AsyncClient, backend: StandIn):
    heavy = "data:image/png;base64," + "A" * (12 << 20)
    many = _data_url((8000, 5000), "PNG")
    for url in (heavy, many):
        assert _refused(await client.post(CHAT, json=_ask("policy", _image(url))))[0] == 422
    assert not backend.chats


async def test_a_reader_who_hangs_up_ends_the_generation(client: httpx.AsyncClient, backend: StandIn):
    for stream in (True, False):
        backend.asked.clear()
        backend.reply_closed.clear()
        backend.reply = (Delta(content="Ye"), asyncio.Event())
        if stream:
            async with client.stream("POST", CHAT, json=_ask("policy", stream=True)) as response:
                await anext(_data(response))
        else:
            asking = asyncio.create_task(client.post(CHAT, json=_ask("policy")))
            await backend.asked.wait()
            asking.cancel()
        async with asyncio.timeout(10):
            await backend.reply_closed.wait()


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (VragError("the prompt is too long"), 400),
        (ModelLostError("it died"), 503),
        (ModelDownError("its key is wrong"), 502),
    ],
)
async def test_a_fault_of_the_model_has_a_status_before_the_first_word_and_is_an_event_after_it(
    client: httpx.AsyncClient, backend: StandIn, fault: Exception, status: int
):
    backend.reply = (fault,)
    for stream in (True, False):
        reply = await client.post(CHAT, json=_ask("policy", stream=stream))
        assert (reply.status_code, reply.json()["error"]["message"]) == (status, str(fault))
    backend.reply = (Delta(content="Ye"), fault)
    async with client.stream("POST", CHAT, json=_ask("policy", stream=True)) as response:
        *_, last = [json.loads(data) async for data in _data(response)]
    assert last["error"]["message"] == str(fault)


async def test_an_unforeseen_fault_in_mid_stream_tells_no_secret(client: httpx.AsyncClient, backend: StandIn):
    backend.reply = (Delta(content="Ye"), RuntimeError("secret"))
    async with client.stream("POST", CHAT, json=_ask("policy", stream=True)) as response:
        *_, last = [json.loads(data) async for data in _data(response)]
    assert last["error"]["code"] == "internal"
    assert "secret" not in json.dumps(last)


# Requests that are refused, models, embeddings ----------------------------------------------------------------------


async def test_unknown_models_and_models_without_a_language_model_are_404(client: httpx.AsyncClient, backend: StandIn):
    assert _refused(await client.post(CHAT, json=_ask("gpt-4o"))) == (404, "model", "model_not_found")
    backend.known_agents = ("extractive",)
    for model in ("policy", "vimrag", "vrag"):
        reply = await client.post(CHAT, json=_ask(model))
        assert _refused(reply) == (404, "model", "model_not_found")
        assert "language model" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "policy"}, "messages"),
        ({"model": "policy", "messages": []}, "messages"),
        (_ask("policy", n=2), "n"),
        (_ask("policy", temperature=3), "temperature"),
        (_ask("policy", max_tokens=0), "max_tokens"),
        (_ask("policy", tool_choice="required"), "tool_choice"),
        (_ask("policy", logprobs=True), "logprobs"),
        (_ask("policy", response_format={"type": "json_object"}), "response_format.type"),
        (_ask("policy", [{"type": "input_audio", "input_audio": {}}]), "messages.0.content.0"),
        (_ask("extractive", "  "), "messages"),
        (_ask("extractive", "w" * 4097), "messages"),
        ({"model": "extractive", "messages": [{"role": "system", "content": "x"}]}, "messages"),
        (_ask("extractive", max_steps=1), "max_steps"),
        (_ask("extractive", filter={"pages": [1]}), "filter.pages"),
    ],
)
async def test_what_cannot_be_kept_is_refused_and_the_field_is_named(
    client: httpx.AsyncClient, body: dict[str, object], param: str
):
    assert _refused(await client.post(CHAT, json=body))[:2] == (422, param)


async def test_models_are_those_that_can_be_asked(client: httpx.AsyncClient, backend: StandIn):
    listed = (await client.get("/v1/models")).json()
    assert [model["id"] for model in listed["data"]] == ["extractive", "vimrag", "vrag", "policy", EMBEDDER_ID]
    assert {model["owned_by"] for model in listed["data"]} == {"vrag_ray"}
    assert (await client.get(f"/v1/models/{EMBEDDER_ID}")).json()["id"] == EMBEDDER_ID
    backend.known_agents, backend.embedder_id = ("extractive",), ""
    assert [model["id"] for model in (await client.get("/v1/models")).json()["data"]] == ["extractive"]
    assert _refused(await client.get("/v1/models/policy")) == (404, "model", "model_not_found")


async def test_embeddings_are_the_same_as_numbers_and_as_base64(client: httpx.AsyncClient, backend: StandIn):
    body = {"model": "embedder", "input": ["one two", "three"]}
    plain = (await client.post("/v1/embeddings", json=body)).json()
    packed = (await client.post("/v1/embeddings", json=body | {"encoding_format": "base64"})).json()
    assert [item["index"] for item in plain["data"]] == [0, 1]
    for numbers, text in zip(plain["data"], packed["data"], strict=True):
        vector = np.frombuffer(base64.b64decode(text["embedding"]), "<f4")
        assert vector.tolist() == numbers["embedding"]
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    assert plain["model"] == EMBEDDER_ID
    assert plain["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    single = {"model": EMBEDDER_ID, "input": "three", "input_type": "query"}
    assert len((await client.post("/v1/embeddings", json=single)).json()["data"]) == 1
    assert backend.embedded[-1] == (["three"], True)
    assert backend.embedded[0] == (["one two", "three"], False)


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"input": []}, "input"),
        ({"input": [1, 2]}, "input.0"),
        ({"dimensions": 7}, "dimensions"),
        ({"input": ""}, "input.0"),
    ],
)
async def test_embeddings_that_cannot_be_made_are_refused(
    client: httpx.AsyncClient, more: dict[str, object], param: str
):
    reply = await client.post("/v1/embeddings", json={"model": "embedder", "input": "x"} | more)
    assert _refused(reply)[:2] == (422, param)


async def test_without_an_embedder_the_reason_is_told(client: httpx.AsyncClient, backend: StandIn):
    unknown = await client.post("/v1/embeddings", json={"model": "ada", "input": "x"})
    assert _refused(unknown) == (404, "model", "model_not_found")
    backend.embedder_id = ""
    reply = await client.post("/v1/embeddings", json={"model": "embedder", "input": "x"})
    assert _refused(reply) == (404, "model", "model_not_found")
    assert "lexical" in reply.json()["error"]["message"]
