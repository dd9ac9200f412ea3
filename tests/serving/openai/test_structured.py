"""Replies as JSON of a schema and as forced calls: of agents, whose answer a model puts into JSON, and of the model."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.support.openai_calls import CHAT, CITED, TOOL, ask, chunks_of, joined, json_schema, refused
from tests.support.stand_in import StandIn
from vrag_ray.agent.chat import TextPart
from vrag_ray.types import Completion

pytestmark = pytest.mark.anyio
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"millions": {"type": "number"}},
    "required": ["millions"],
    "additionalProperties": False,
}
COST = '{"millions": 4.7}'
RECORD = {"type": "function", "function": {"name": "record", "parameters": SCHEMA}}


async def test_an_answer_becomes_json_with_its_evidence(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.ending = (CITED,)
    backend.reply = (Completion(f"```json\n{COST}\n```", usage={"prompt_tokens": 9, "completion_tokens": 3}),)
    body = (
        await client.post(CHAT, json=ask("vimrag", "What did it cost?", response_format=json_schema(SCHEMA)))
    ).json()
    message = body["choices"][0]["message"]
    assert message["content"] == COST
    assert [each["number"] for each in message["evidence"]] == [1, 2]
    marks = [each["url_citation"] for each in message["annotations"]]
    assert {(mark["start_index"], mark["end_index"]) for mark in marks} == {(len(COST), len(COST))}
    assert body["usage"]["total_tokens"] == 12
    [chat] = backend.chats
    assert chat.form is not None
    assert (chat.form.schema, chat.form.rules, chat.thinking) == (SCHEMA, "", False)
    parts = [part for message in chat.messages for part in message.parts]
    prompt = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    assert "What did it cost?" in prompt and CITED.answer in prompt and json.dumps(SCHEMA) in prompt


async def test_a_reply_that_is_not_of_the_schema_is_mended_once(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.replies = [(Completion('{"cost": 4.7}'),), (Completion(COST),)]
    chunks = await chunks_of(client, ask("vimrag", response_format=json_schema(SCHEMA)))
    assert joined(chunks, "content") == COST
    assert "thought 0" in joined(chunks, "reasoning_content")
    _, second = backend.chats
    [correction] = second.messages[-1].parts
    assert isinstance(correction, TextPart)
    assert "'millions' is a required property" in correction.text or "'cost' was unexpected" in correction.text


async def test_a_second_reply_that_is_not_of_the_schema_is_the_models_fault(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    backend.reply = (Completion("It cost 4.7 million."),)
    reply = await client.post(CHAT, json=ask("vimrag", response_format={"type": "json_object"}))
    assert refused(reply) == (502, "response_format", "upstream")
    assert "it is no JSON" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    "extra", [{"response_format": json_schema(SCHEMA)}, {"tools": [RECORD], "tool_choice": "required"}]
)
async def test_without_a_model_the_reply_says_so(client: httpx.AsyncClient, backend: StandIn, extra: dict[str, object]):
    backend.known_agents = ("extractive",)
    reply = await client.post(CHAT, json=ask("extractive", **extra))
    assert refused(reply)[0] == 400
    assert "language model" in reply.json()["error"]["message"]
    assert not backend.started


@pytest.mark.parametrize("model", ["vimrag", "policy"])
@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "record"}}])
async def test_a_function_that_must_be_called_is_called(
    client: httpx.AsyncClient, backend: StandIn, model: str, choice: object
):
    backend.go.set()
    backend.reply = (Completion(COST),)
    reply = (await client.post(CHAT, json=ask(model, tools=[RECORD], tool_choice=choice))).json()["choices"][0]
    [call] = reply["message"]["tool_calls"]
    assert (call["function"], reply["finish_reason"]) == ({"name": "record", "arguments": COST}, "tool_calls")
    assert reply["message"]["content"] is None
    assert "index" not in call


async def test_of_several_functions_the_model_chooses(client: httpx.AsyncClient, backend: StandIn):
    backend.reply = (Completion('{"name": "weather", "arguments": {"city": "Oslo"}}'),)
    body = ask("policy", tools=[RECORD, TOOL], tool_choice="required")
    [call] = (await client.post(CHAT, json=body)).json()["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "weather", "arguments": '{"city": "Oslo"}'}


async def test_the_bare_model_is_held_to_a_schema_and_streams(client: httpx.AsyncClient, backend: StandIn):
    await chunks_of(client, ask("policy", response_format=json_schema(SCHEMA)))
    [chat] = backend.chats
    assert chat.form is not None
    assert (chat.form.schema, chat.thinking) == (SCHEMA, False)


async def test_a_schema_fetches_nothing_and_runs_no_pattern(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    backend.reply = (Completion('{"name": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}'),)
    evil = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^(a+)+$"}}}
    reply = await client.post(CHAT, json=ask("vimrag", response_format=json_schema(evil)))
    assert reply.status_code == 200


@pytest.mark.parametrize(
    ("schema", "missing"),
    [
        ({"$ref": "http://127.0.0.1:9/schema.json"}, "http://127.0.0.1:9/schema.json"),
        ({"type": "object", "properties": {"cost": {"anyOf": [{"$ref": "#/$defs/Cost"}]}}}, "#/$defs/Cost"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/Cost"}}}, "#/$defs/Cost"),
    ],
)
async def test_a_schema_that_refers_to_what_it_does_not_hold_is_refused_before_anything_runs(
    client: httpx.AsyncClient, backend: StandIn, schema: dict[str, object], missing: str
):
    reply = await client.post(CHAT, json=ask("vimrag", response_format=json_schema(schema)))
    assert refused(reply)[:2] == (422, "response_format")
    # A pointer loses its slashes with the paths of this machine, which no message shows.
    assert f"{missing.rpartition('/')[2]}', which it does not hold" in reply.json()["error"]["message"]
    assert not backend.started and not backend.chats


async def test_references_within_a_schema_and_values_that_look_like_them_are_taken(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    backend.reply = (Completion('{"$ref": "#/x", "cost": {"value": 4.7}}'),)
    schema = {
        "type": "object",
        "properties": {"cost": {"$ref": "#/$defs/Cost"}, "$ref": {"const": "#/x"}},
        "$defs": {"Cost": {"type": "object", "properties": {"value": {"type": "number"}}}},
    }
    reply = await client.post(CHAT, json=ask("vimrag", response_format=json_schema(schema)))
    assert reply.status_code == 200


async def test_a_schema_that_refers_to_itself_without_end_is_the_callers_fault_and_breaks_nothing(
    client: httpx.AsyncClient, backend: StandIn
):
    backend.go.set()
    backend.reply = (Completion("{}"),)
    reply = await client.post(CHAT, json=ask("vimrag", response_format=json_schema({"$ref": "#"})))
    assert refused(reply)[0] == 502
    assert "refers to itself without end" in reply.json()["error"]["message"]
