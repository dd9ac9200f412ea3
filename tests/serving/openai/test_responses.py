"""The Responses API, read by the SDK's own types: a response as a whole, as a stream, stored, followed, cancelled."""

from __future__ import annotations

import base64
import json

import httpx
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.support.openai_calls import CITED, data_lines, data_url, json_schema, refused
from tests.support.stand_in import DOC_ID, StandIn
from vrag_ray.agent.chat import Delta, ImagePart, TextPart
from vrag_ray.agent.events import ErrorEvent, RunStatus, UsageEvent
from vrag_ray.types import Completion

pytestmark = pytest.mark.anyio
PATH = "/v1/responses"
EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
ASKS: dict[str, object] = {"role": "user", "content": "q"}
CALL: dict[str, object] = {"type": "function_call", "call_id": "c1", "name": "weather"}
OPAQUE = {"type": "reasoning", "summary": []}
PICTURE = {"type": "input_image", "image_url": "https://example.org/a.png"}
FUNCTION = {"type": "function", "name": "weather", "description": None, "parameters": {"type": "object"}}


def whole(reply: httpx.Response) -> Response:
    """A reply as strictly as the SDK's types read it: nothing that they need is missing."""
    assert reply.status_code == 200, reply.text
    return Response.model_validate(reply.json())


async def events_of(client: httpx.AsyncClient, body: dict[str, object]) -> list[ResponseStreamEvent]:
    async with client.stream("POST", PATH, json=body | {"stream": True}) as response:
        assert response.status_code == 200, await response.aread()
        data = [json.loads(line) async for line in data_lines(response)]
    assert [each["sequence_number"] for each in data] == list(range(len(data)))
    return [EVENT.validate_python(each) for each in data]


async def test_a_response_has_the_answer_with_citations_page_and_box(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.ending = (UsageEvent(usage={"prompt_tokens": 7, "completion_tokens": 2, "cached_tokens": 4}), CITED)
    reply = await client.post(PATH, json={"model": "vimrag", "input": "What did it cost?", "metadata": {"a": "b"}})
    response = whole(reply)
    assert (response.status, response.model, response.metadata) == ("completed", "vimrag", {"a": "b"})
    assert response.id == f"resp_{reply.headers['x-run-id']}"
    assert response.output_text == CITED.answer
    thoughts, message = response.output
    assert (thoughts.type, message.type) == ("reasoning", "message")
    [text] = message.content
    urls = [each for each in text.annotations if each.type == "url_citation"]
    [file, *_] = [each for each in text.annotations if each.type == "file_citation"]
    assert [CITED.answer[each.start_index : each.end_index] for each in urls] == ["[1]", "[1, 2]", "[1, 2]"]
    assert (urls[0].page, urls[0].box) == (2, [0.1, 0.2, 0.5, 0.25])
    assert (urls[0].element["number"], urls[0].value_box) == (7, [0.4, 0.2, 0.5, 0.25])
    assert [sentence["missing"] for sentence in reply.json()["sentences"]] == [["4.7"]]
    assert (file.file_id, file.filename) == (f"file-{DOC_ID}", "report")
    assert response.usage is not None
    assert (response.usage.total_tokens, response.usage.input_tokens_details.cached_tokens) == (9, 4)
    assert reply.json()["notices"] == ["one shard is down"]


async def test_a_stream_grows_into_the_same_response(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.ending = (CITED,)
    events = await events_of(client, {"model": "vimrag", "input": "What did it cost?"})
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    thought = "".join(event.delta for event in events if event.type == "response.reasoning_summary_text.delta")
    response = events[-1].response
    assert text == response.output_text == CITED.answer
    assert thought == response.output[0].summary[0].text
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert done == response.output
    marked = [event.annotation for event in events if event.type == "response.output_text.annotation.added"]
    assert len(marked) == len(response.output[1].content[0].annotations) == 4


async def test_a_follow_up_receives_the_previous_question_and_answer(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.ending = (CITED,)
    first = whole(await client.post(PATH, json={"model": "vimrag", "input": "What did it cost?"}))
    body = {"model": "vimrag", "input": "And then?", "previous_response_id": first.id, "instructions": "Be brief."}
    second = whole(await client.post(PATH, json=body))
    assert second.previous_response_id == first.id
    assert backend.started[1].question.splitlines() == [
        "And then?",
        "",
        "Earlier in this conversation:",
        "system: Be brief.",
        "user: What did it cost?",
        f"assistant: {CITED.answer}",
    ]
    gone = await client.post(PATH, json=body | {"previous_response_id": "resp_none"})
    assert refused(gone) == (404, "previous_response_id", "response_not_found")


async def test_a_response_is_fetched_in_the_background_and_cancelled(client: httpx.AsyncClient, backend: StandIn):
    begun = whole(await client.post(PATH, json={"model": "vimrag", "input": "q", "background": True}))
    assert begun.status == "in_progress"
    assert whole(await client.get(f"{PATH}/{begun.id}")).status == "in_progress"
    assert whole(await client.post(f"{PATH}/{begun.id}/cancel")).status == "cancelled"
    backend.go.set()
    backend.ending = (CITED,)
    other = whole(await client.post(PATH, json={"model": "vimrag", "input": "q", "background": True}))
    await client.get(f"/v1/runs/{other.id.removeprefix('resp_')}/events")
    fetched = whole(await client.get(f"{PATH}/{other.id}"))
    assert (fetched.status, fetched.output_text) == ("completed", CITED.answer)
    assert len(fetched.output[0].content[0].annotations) == 4
    assert refused(await client.get(f"{PATH}/resp_none"))[0] == 404
    assert refused(await client.post(PATH, json={"model": "policy", "input": "q", "background": True}))[0] == 422


async def fetched_events(client: httpx.AsyncClient, response_id: str, query: str = "") -> list[ResponseStreamEvent]:
    async with client.stream("GET", f"{PATH}/{response_id}?stream=true{query}") as response:
        assert (response.status_code, response.headers["content-type"].split(";")[0]) == (200, "text/event-stream")
        return [EVENT.validate_python(json.loads(line)) async for line in data_lines(response)]


async def test_a_stream_of_the_background_is_taken_up_where_its_reader_left(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.ending = (CITED,)
    body = {"model": "vimrag", "input": "q", "background": True, "stream": True}
    async with client.stream("POST", PATH, json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        first: list[dict] = []
        async for line in data_lines(response):
            first.append(json.loads(line))
            if first[-1]["type"] == "response.reasoning_summary_text.delta":
                break
    response_id = first[0]["response"]["id"]
    assert whole(await client.get(f"{PATH}/{response_id}")).status == "in_progress"
    backend.go.set()
    rest = await fetched_events(client, response_id, f"&starting_after={len(first) - 1}")
    assert [event.sequence_number for event in rest] == list(range(len(first), len(first) + len(rest)))
    assert (rest[-1].type, rest[-1].response.output_text) == ("response.completed", CITED.answer)
    again = await fetched_events(client, response_id)
    assert again[len(first) :] == rest
    assert [event.type for event in again[: len(first)]] == [event["type"] for event in first]
    unknown = await client.get(f"{PATH}/resp_none?stream=true")
    assert refused(unknown)[0] == 404


async def test_a_failed_response_is_fetched_as_events_too(client: httpx.AsyncClient, backend: StandIn):
    reply = await client.post(PATH, json={"model": "vimrag", "input": "crash"})
    *_, last = await fetched_events(client, f"resp_{reply.headers['x-run-id']}")
    assert last.type == "response.failed"


async def test_omissions_of_a_background_request_are_reported_at_its_end(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    body = {"model": "vimrag", "input": "q", "background": True, "tools": [FUNCTION]}
    *_, last = await events_of(client, body)
    assert last.type == "response.completed"
    assert "tools" in "".join(last.response.model_dump()["notices"])


async def test_a_run_that_fails_is_a_failed_response_that_is_not_repeated(client: httpx.AsyncClient, backend: StandIn):
    reply = await client.post(PATH, json={"model": "vimrag", "input": "crash"})
    assert refused(reply) == (502, None, "run_failed")
    assert reply.headers["x-should-retry"] == "false"
    stored = whole(await client.get(f"{PATH}/resp_{reply.headers['x-run-id']}"))
    assert stored.status == "failed"
    backend.go.set()
    backend.ending = (ErrorEvent(message="the model is gone", terminal=True),)
    *_, last = await events_of(client, {"model": "vimrag", "input": "q"})
    assert (last.type, last.response.status, last.response.error.message) == (
        "response.failed",
        "failed",
        "the model is gone",
    )


async def test_an_answer_at_the_end_of_the_budget_is_incomplete(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.ending = (CITED.model_copy(update={"status": RunStatus.MAX_STEPS}),)
    response = whole(await client.post(PATH, json={"model": "vimrag", "input": "q"}))
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


async def test_the_bare_model_reads_items_of_every_kind(client: httpx.AsyncClient, backend: StandIn):
    backend.reply = (
        Delta(content="Rain"),
        Completion('Rain<tool_call>{"name": "weather", "arguments": {}}</tool_call>'),
    )
    items = [
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "What is this?"}, {"type": "input_image", "image_url": data_url()},
            {"type": "input_file", "file_id": f"file-{DOC_ID}"}]},
        {"type": "reasoning", "summary": []},
        {"role": "assistant", "content": [{"type": "output_text", "text": "A crane."}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "wet"},
    ]  # fmt: skip
    backend.page = base64.b64decode(data_url(form="PNG").partition(",")[2])
    response = whole(await client.post(PATH, json={"model": "policy", "input": items, "tools": [FUNCTION]}))
    assert [item.type for item in response.output] == ["message", "function_call"]
    assert (response.output_text, response.output[1].name) == ("Rain", "weather")
    first, _, called, last = backend.chats[0].messages
    assert [type(part) for part in first.parts] == [TextPart, ImagePart, ImagePart]
    assert [(call.id, call.name) for call in called.calls] == [("c1", "weather")]
    assert (last.text, last.call_id) == ("wet", "c1")


async def test_text_format_and_tool_choice_are_those_of_a_chat(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.reply = (Completion('{"city": "Oslo"}'),)
    schema = json_schema({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
    form = {"type": "json_schema", **schema["json_schema"]}
    response = whole(await client.post(PATH, json={"model": "vimrag", "input": "q", "text": {"format": form}}))
    assert json.loads(response.output_text) == {"city": "Oslo"}
    body = {
        "model": "policy",
        "input": "q",
        "tools": [FUNCTION],
        "tool_choice": {"type": "function", "name": "weather"},
    }
    [call] = whole(await client.post(PATH, json=body)).output
    assert (call.type, call.name, call.arguments) == ("function_call", "weather", '{"city": "Oslo"}')


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "vimrag"}, "input"),
        ({"model": "vimrag", "input": []}, "input"),
        ({"model": "vimrag", "input": [{"type": "computer_calls"}]}, "input.0.type"),
        ({"model": "vimrag", "input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input.0.content.0"),
        ({"model": "vimrag", "input": [{"role": "pirate", "content": "q"}]}, "input.0.role"),
        ({"model": "vimrag", "input": ""}, "input"),
        (
            {"model": "vimrag", "input": "q", "instructions": "x", "text": {"format": {"type": "xml"}}},
            "text.format.type",
        ),
        (
            {"model": "vimrag", "input": "q", "text": {"format": {"type": "json_schema", "schema": 5}}},
            "text.format.schema",
        ),
        ({"model": "policy", "input": "q", "tools": [{"type": "function", "name": "a b"}]}, "tools.0.name"),
        ({"model": "policy", "input": "q", "max_output_tokens": 1 << 30}, "max_output_tokens"),
        ({"model": "policy", "instructions": "x", "input": [CALL | {"arguments": 5}, ASKS]}, "input.0.arguments"),
        (
            {"model": "policy", "instructions": "x", "input": [OPAQUE, ASKS | {"content": [PICTURE]}]},
            "input.1.content.0.image_url",
        ),
        ({"model": "vimrag", "input": "q", "tool_choice": {"type": "file_search"}}, "tool_choice"),
        ({"model": "vimrag", "input": "q", "max_steps": 1}, "max_steps"),
    ],
)
async def test_what_is_wrong_is_named(client: httpx.AsyncClient, body: dict[str, object], param: str):
    assert refused(await client.post(PATH, json=body))[:2] == (422, param)


async def test_a_lone_surrogate_is_refused(client: httpx.AsyncClient):
    content = b'{"model": "vimrag", "input": "crane \\ud83d"}'
    reply = await client.post(PATH, content=content, headers={"content-type": "application/json"})
    assert refused(reply)[:2] == (422, "input")


async def test_a_fault_names_the_field_of_the_request(client: httpx.AsyncClient):
    empty = await client.post(PATH, json={"model": "vimrag", "input": ""})
    assert empty.json()["error"]["message"].startswith("input: there is no question")
    for unknown in (await client.get(f"{PATH}/resp_none"), await client.post(f"{PATH}/resp_none/cancel")):
        assert refused(unknown)[:2] == (404, "response_id")


async def test_nulls_and_empty_ids_are_no_values(client: httpx.AsyncClient, backend: StandIn):
    items = [{"type": None, **ASKS}, CALL | {"arguments": None}, ASKS]
    assert whole(await client.post(PATH, json={"model": "policy", "input": items, "previous_response_id": ""}))
    assert backend.chats[0].messages[1].calls[0].arguments == "{}"


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/resp_x"), ("POST", "/input_tokens"), ("POST", "/compact")])
async def test_what_is_not_offered_of_a_response_says_what_is(client: httpx.AsyncClient, method: str, path: str):
    reply = await client.request(method, PATH + path, json={})
    assert refused(reply) == (405, None, "method_not_allowed")
    assert reply.json()["error"]["message"] == f"{method} {PATH}{path} is not offered here: use GET, HEAD"
    assert reply.headers["allow"] == "GET, HEAD"
