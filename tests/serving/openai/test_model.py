"""The bare model behind the OpenAI-compatible routes, over stand-ins: words, thoughts, calls, pictures, faults."""

from __future__ import annotations

import asyncio
import io
import json

import httpx
import pytest
from PIL import Image

from tests.support.openai_calls import CHAT, TOOL, ask, chunks_of, data_lines, data_url, image_part, joined, refused
from tests.support.stand_in import DOC_ID, StandIn
from vrag_ray.agent.chat import Delta, FunctionCall, ImagePart, Role, TextPart
from vrag_ray.policies.llm.chat_model import ModelBusyError, ModelDownError, ModelLostError
from vrag_ray.types import Completion, VragError

pytestmark = pytest.mark.anyio


async def test_words_and_thoughts_of_the_model_are_streamed(client: httpx.AsyncClient, backend: StandIn):
    gate = asyncio.Event()
    whole = Completion("Yes.", "hm", usage={"prompt_tokens": 3, "completion_tokens": 2}, weights="step-7")
    backend.reply = (Delta(think="hm"), Delta(content="Ye"), gate, Delta(content="s."), whole)
    body = ask("policy", stream=True, stream_options={"include_usage": True})
    async with client.stream("POST", CHAT, json=body) as response:
        assert "x-run-id" not in response.headers
        data = data_lines(response)
        begun = [json.loads(await anext(data)) for _ in range(3)]
        gate.set()
        *rest, _ = [chunk async for chunk in data]
    chunks = [*begun, *map(json.loads, rest)]
    assert (joined(chunks, "reasoning_content"), joined(chunks, "content")) == ("hm", "Yes.")
    assert [chunk["choices"][0]["delta"].get("content") for chunk in chunks[2:4]] == ["Ye", "s."]
    assert chunks[-1]["usage"]["total_tokens"] == 5
    assert chunks[-2]["system_fingerprint"] == "step-7"


async def test_thoughts_without_their_first_tag_are_separated_in_a_whole_reply(
    client: httpx.AsyncClient, backend: StandIn
):
    text = "deep thoughts</think>\n\nAnswer"
    backend.reply = (*(Delta(content=letter) for letter in text), Completion(text))
    message = (await client.post(CHAT, json=ask("policy"))).json()["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("deep thoughts", "Answer")
    body = (await client.post("/v1/responses", json={"model": "policy", "input": "q"})).json()
    thoughts, reply = body["output"]
    backend.reply = (Completion(text),)
    chunks = await chunks_of(client, ask("policy"))
    assert (joined(chunks, "reasoning_content"), joined(chunks, "content")) == ("deep thoughts", "Answer")
    assert (thoughts["summary"][0]["text"], reply["content"][0]["text"]) == ("deep thoughts", "Answer")


async def test_tags_of_thought_and_calls_never_show_in_the_content(client: httpx.AsyncClient, backend: StandIn):
    text = (
        "<think>rain?</think>\n\nLet me see: a < b.\n"
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Köln"}}\n</tool_call>\n'
        '<tool_call>{"name": "clock", "arguments": "{}"}</tool_call>'
    )
    backend.reply = (*(Delta(content=letter) for letter in text), Completion(text))
    chunks = await chunks_of(client, ask("policy", tools=[TOOL]))
    whole = (await client.post(CHAT, json=ask("policy", tools=[TOOL]))).json()["choices"][0]
    assert joined(chunks, "reasoning_content") == whole["message"]["reasoning_content"] == "rain?"
    assert joined(chunks, "content") == whole["message"]["content"] == "Let me see: a < b.\n"
    calls = [call for chunk in chunks for choice in chunk["choices"] for call in choice["delta"].get("tool_calls", ())]
    for listed in (calls, whole["message"]["tool_calls"]):
        assert [call["function"] for call in listed] == [
            {"name": "weather", "arguments": '{"city": "Köln"}'},
            {"name": "clock", "arguments": "{}"},
        ]
        assert len({call["id"] for call in listed}) == 2
    assert [call["index"] for call in calls] == [0, 1]
    assert chunks[-1]["choices"][0]["finish_reason"] == whole["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    "text", ["<tool_call>not json</tool_call>", "<tool_call>", "a <tool_ca", '<tool_call>{"name": 3}', "<", "<thin"]
)
async def test_text_that_only_looks_like_a_call_stays_text(client: httpx.AsyncClient, backend: StandIn, text: str):
    backend.reply = (*(Delta(content=letter) for letter in text), Completion(text))
    choice = (await client.post(CHAT, json=ask("policy", tools=[TOOL]))).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (text, "stop")


async def test_calls_are_looked_for_only_where_functions_were_offered(client: httpx.AsyncClient, backend: StandIn):
    text = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>'
    backend.reply = (Completion(text),)
    for body in (ask("policy"), ask("policy", tools=[TOOL], tool_choice="none")):
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
    assert [message.role for message in chat.messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]
    assert [message.text for message in chat.messages] == ["Be brief.", "Rain?", "", "sun"]
    assert chat.messages[2].calls == (FunctionCall("c", "weather", '{"at": 1}'),)
    assert chat.messages[3].call_id == "c"
    reached = chat.sampling
    assert (reached.max_tokens, reached.temperature, reached.top_p, reached.seed, reached.stop) == (
        9,
        0.5,
        0.9,
        3,
        ("END",),
    )
    assert (chat.tools[0].name, chat.thinking, chat.session) == ("weather", False, "u1")


async def test_pictures_are_sent_as_png_whether_inline_or_from_the_collection(
    client: httpx.AsyncClient, backend: StandIn
):
    content = [
        *image_part(data_url()),
        *image_part(f"file-{DOC_ID}#page=3"),
        {"type": "file", "file": {"file_id": f"{DOC_ID}#t=12.5"}},
    ]
    assert (await client.post(CHAT, json=ask("policy", content))).status_code == 200
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
    reply = await client.post(CHAT, json=ask("policy", image_part(url)))
    status, param, _ = refused(reply)
    assert (status, param.startswith("messages.0.content.1")) == (422, True)
    assert not backend.chats


async def test_pictures_too_heavy_or_with_too_many_pixels_are_refused(client: httpx.AsyncClient, backend: StandIn):
    heavy = "data:image/png;base64," + "A" * (12 << 20)
    many = data_url((8000, 5000), "PNG")
    for url in (heavy, many):
        assert refused(await client.post(CHAT, json=ask("policy", image_part(url))))[0] == 422
    assert not backend.chats


async def test_a_reader_who_hangs_up_ends_the_generation(client: httpx.AsyncClient, backend: StandIn):
    for stream in (True, False):
        backend.asked.clear()
        backend.reply_closed.clear()
        backend.reply = (Delta(content="Ye"), asyncio.Event())
        if stream:
            async with client.stream("POST", CHAT, json=ask("policy", stream=True)) as response:
                await anext(data_lines(response))
        else:
            asking = asyncio.create_task(client.post(CHAT, json=ask("policy")))
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
        (ModelBusyError("it is full", 7), 429),
    ],
)
async def test_a_fault_of_the_model_has_a_status_before_the_first_word_and_is_an_event_after_it(
    client: httpx.AsyncClient, backend: StandIn, fault: Exception, status: int
):
    backend.reply = (fault,)
    for stream in (True, False):
        reply = await client.post(CHAT, json=ask("policy", stream=stream))
        assert (reply.status_code, reply.json()["error"]["message"]) == (status, str(fault))
        assert reply.headers.get("retry-after") == ("7" if status == 429 else None)
    backend.reply = (Delta(content="Ye"), fault)
    reply = await client.post(CHAT, json=ask("policy"))
    assert reply.status_code == (502 if isinstance(fault, ModelLostError) else status)
    assert reply.json()["error"]["message"] == str(fault)
    async with client.stream("POST", CHAT, json=ask("policy", stream=True)) as response:
        *_, last = [json.loads(data) async for data in data_lines(response)]
    assert last["error"]["message"] == str(fault)


async def test_an_unforeseen_fault_in_mid_stream_tells_no_secret(client: httpx.AsyncClient, backend: StandIn):
    backend.reply = (Delta(content="Ye"), RuntimeError("secret"))
    async with client.stream("POST", CHAT, json=ask("policy", stream=True)) as response:
        *_, last = [json.loads(data) async for data in data_lines(response)]
    assert last["error"]["code"] == "internal"
    assert "secret" not in json.dumps(last)
