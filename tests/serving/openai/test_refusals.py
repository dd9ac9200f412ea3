"""What the OpenAI-compatible routes refuse, and the lists of models and embeddings, over stand-ins."""

from __future__ import annotations

import base64
import gzip
import json

import httpx
import numpy as np
import pytest

from tests.support.openai_calls import CHAT, TOOL, ask, data_url, image_part, json_schema, refused
from tests.support.stand_in import EMBEDDER_ID, StandIn
from vrag_ray.types import Completion

pytestmark = pytest.mark.anyio


async def test_unknown_models_and_models_without_a_language_model_are_404(client: httpx.AsyncClient, backend: StandIn):
    assert refused(await client.post(CHAT, json=ask("gpt-4o"))) == (404, "model", "model_not_found")
    backend.known_agents = ("extractive",)
    for model in ("policy", "vimrag", "vrag"):
        reply = await client.post(CHAT, json=ask(model))
        assert refused(reply) == (404, "model", "model_not_found")
        assert "language model" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"model": "policy"}, "messages"),
        ({"model": "policy", "messages": []}, "messages"),
        (ask("policy", n=2), "n"),
        (ask("policy", temperature=3), "temperature"),
        (ask("policy", max_tokens="many"), "max_tokens"),
        (ask("policy", tool_choice="required"), "tool_choice"),
        (ask("policy", tool_choice={"type": "function", "function": {"name": "f"}}, tools=[TOOL]), "tool_choice"),
        (ask("policy", logprobs=True), "logprobs"),
        (ask("policy", response_format={"type": "xml"}), "response_format.type"),
        (ask("policy", response_format={"type": "json_schema"}), "response_format"),
        (ask("policy", response_format=json_schema({"type": "strange"})), "response_format"),
        (ask("policy", [{"type": "input_audio", "input_audio": {}}]), "messages.0.content.0"),
        (ask("policy", [{"type": "file", "file": {"file_data": "JVBERi0="}}]), "messages.0.content.0.file"),
        (ask("policy", [{"type": "image_url", "image_url": {}}]), "messages.0.content.0.image_url.url"),
        (ask("extractive", "crane \ud83d"), "messages.0.content"),
        (
            ask("policy", tools=[{"type": "function", "function": {"name": "f", "description": "\udc80"}}]),
            "tools.0.function.description",
        ),
        (ask("policy", tools=[{"type": "web_search_preview"}]), "tools"),
        (ask("policy", tools=[{"type": "function", "function": {"name": "a b"}}]), "tools.0.function.name"),
        (ask("extractive", tools=["weather"]), "tools.0"),
        (ask("extractive", "  "), "messages"),
        ({"model": "extractive", "messages": [{"role": "system", "content": "x"}]}, "messages"),
        (ask("extractive", max_steps=1), "max_steps"),
        (ask("extractive", filter={"pages": [1]}), "filter.pages"),
    ],
)
async def test_what_cannot_be_kept_is_refused_and_the_field_is_named(
    client: httpx.AsyncClient, body: dict[str, object], param: str
):
    content = json.dumps(body).encode()
    reply = await client.post(CHAT, content=content, headers={"content-type": "application/json"})
    assert refused(reply)[:2] == (422, param)


async def test_values_that_mean_nothing_here_have_no_effect(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    neutral = {"max_tokens": -1, "max_completion_tokens": 0, "top_p": 0, "seed": -1, "temperature": 2.5, "user": 5}
    function = TOOL["function"] | {"description": None, "parameters": None}
    extra = neutral | {"tools": [TOOL | {"function": function}], "tool_choice": "none"}
    assert (await client.post(CHAT, json=ask("extractive", **extra))).status_code == 200
    assert (await client.post(CHAT, json=ask("policy", **(extra | {"temperature": 1.0})))).status_code == 200
    [chat] = backend.chats
    assert (chat.sampling.max_tokens, chat.sampling.top_p, chat.sampling.seed, chat.session) == (2048, None, None, "5")
    hot = await client.post(CHAT, json=ask("policy", temperature=2.5))
    assert refused(hot)[:2] == (422, "temperature")


@pytest.mark.parametrize(
    "extra",
    [
        {"max_tokens": 2147483647},
        {"max_completion_tokens": "many"},
        {"temperature": -1},
        {"seed": 1.5},
        {"stop": ["x"] * 20},
        {"user": "u" * 600},
        {"tools": [TOOL] * 130},
        {"tools": [{"type": "function", "function": {"name": "my tool"}}]},
    ],
)
async def test_what_agents_do_not_look_at_cannot_be_wrong_for_them(
    client: httpx.AsyncClient, backend: StandIn, extra: dict[str, object]
):
    backend.go.set()
    reply = await client.post(CHAT, json=ask("extractive", **extra))
    assert reply.status_code == 200
    assert any("tools" in notice for notice in reply.json()["choices"][0]["message"].get("notices") or ()) == (
        "tools" in extra
    )
    assert refused(await client.post(CHAT, json=ask("policy", **extra)))[:1] == (422,)


async def test_a_function_that_an_agent_must_call_has_to_be_right(client: httpx.AsyncClient):
    wrong = [{"type": "function", "function": {"name": "my tool"}}]
    reply = await client.post(CHAT, json=ask("vimrag", tools=wrong, tool_choice="required"))
    assert refused(reply)[:2] == (422, "tools.0.function.name")


@pytest.mark.parametrize(("sent", "read"), [("enabled", True), ("disabled", False), ("adaptive", None), (None, None)])
async def test_thinking_is_read_as_other_servers_write_it(
    client: httpx.AsyncClient, backend: StandIn, sent: str | None, read: bool | None
):
    thinking = {"type": sent, "budget_tokens": 1024} if sent else None
    assert (await client.post(CHAT, json=ask("policy", thinking=thinking))).status_code == 200
    assert backend.chats[0].thinking is read
    unknown = await client.post(CHAT, json=ask("policy", thinking={"type": "loudly"}))
    assert refused(unknown)[:2] == (422, "thinking")


async def test_a_null_is_no_value_anywhere(client: httpx.AsyncClient, backend: StandIn):
    call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": None}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": None}, {"type": "text", "text": "q"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "and?"},
    ]
    body = {"model": "policy", "messages": messages, "stream": True, "stream_options": {"include_usage": None}}
    assert (await client.post(CHAT, json=body)).status_code == 200
    assert backend.chats[0].messages[1].calls[0].arguments == "{}"


@pytest.mark.parametrize("collection", ["", [""], []])
async def test_a_field_of_several_types_is_named_without_them(client: httpx.AsyncClient, collection: object):
    for path, body in ((CHAT, ask("extractive")), ("/v1/search", {"query": "q"})):
        reply = await client.post(path, json=body | {"collection": collection})
        assert refused(reply)[1].removesuffix(".0") == "collection"


@pytest.mark.parametrize("path", ["//v1/models", "/v1//models", "///v1///models"])
async def test_slashes_that_a_base_url_doubles_are_one(client: httpx.AsyncClient, path: str):
    assert (await client.get(f"{str(client.base_url).rstrip('/')}{path}")).status_code == 200


@pytest.mark.parametrize(
    ("kind", "status", "says"),
    [
        ("application/json; charset=iso-8859-1", 415, "the charset iso-8859-1 is not read here: send UTF-8"),
        ("application/json", 400, "send JSON in UTF-8"),
        ('application/json; charset="UTF-8"', 400, "send JSON in UTF-8"),
    ],
)
async def test_a_body_in_another_encoding_is_refused_by_it(
    client: httpx.AsyncClient, kind: str, status: int, says: str
):
    content = '{"query": "café"}'.encode("latin-1")
    reply = await client.post("/v1/search", content=content, headers={"content-type": kind})
    assert reply.status_code == status
    assert says in reply.json()["error"]["message"]


@pytest.mark.parametrize("method", ["OPTIONS", "DELETE"])
async def test_a_method_that_is_not_offered_names_those_that_are(client: httpx.AsyncClient, method: str):
    models = await client.request(method, "/v1/models")
    assert (models.status_code, models.headers["allow"]) == (405, "GET, HEAD")
    feedback = await client.request("PATCH", "/v1/runs/some-run-id/feedback")
    assert feedback.headers["allow"] == "GET, HEAD, PUT"


async def test_head_is_counted_for_its_route(client: httpx.AsyncClient):
    await client.head("/v1/models")
    counted = (await client.get("/metrics")).text
    assert 'vrag_http_requests_total{method="HEAD",route="/v1/models",status="200"} 1.0' in counted


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"content-type": "application/x-www-form-urlencoded"}, "Content-Type"),
        ({}, "Content-Type: none"),
        ({"content-type": "application/json", "content-encoding": "gzip"}, "Content-Encoding: gzip"),
    ],
)
async def test_a_body_that_is_no_json_by_its_headers_names_the_header(
    client: httpx.AsyncClient, headers: dict[str, str], says: str
):
    reply = await client.post("/v1/search", content=gzip.compress(b'{"query": "crane"}'), headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (415, "unsupported_media_type")
    assert says in reply.json()["error"]["message"]


async def test_an_unknown_route_lists_those_that_there_are(client: httpx.AsyncClient):
    reply = await client.post("/v1/completions", json={"model": "x", "prompt": "y"})
    assert refused(reply)[0] == 404
    message = reply.json()["error"]["message"]
    assert message.startswith("there is no POST /v1/completions: use one of ")
    assert "/v1/chat/completions" in message and "/v1/responses" in message


async def test_the_list_of_models_has_those_that_answer(client: httpx.AsyncClient, backend: StandIn):
    listed = (await client.get("/v1/models")).json()
    assert [model["id"] for model in listed["data"]] == ["extractive", "vimrag", "vrag", "policy", EMBEDDER_ID]
    assert {model["owned_by"] for model in listed["data"]} == {"vrag_ray"}
    for name in (EMBEDDER_ID, "embedder"):
        assert (await client.get(f"/v1/models/{name}")).json()["id"] == EMBEDDER_ID
    backend.known_agents, backend.embedder_id = ("extractive",), ""
    assert [model["id"] for model in (await client.get("/v1/models")).json()["data"]] == ["extractive"]
    assert refused(await client.get("/v1/models/policy")) == (404, "model", "model_not_found")


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
        ({"input": [1, 2]}, "input"),
        ({"input": [[1, 2]]}, "input"),
        ({"dimensions": 7}, "dimensions"),
        ({"input": ""}, "input.0"),
    ],
)
async def test_embeddings_that_cannot_be_made_are_refused(
    client: httpx.AsyncClient, more: dict[str, object], param: str
):
    reply = await client.post("/v1/embeddings", json={"model": "embedder", "input": "x"} | more)
    assert refused(reply)[:2] == (422, param)


async def test_without_an_embedder_the_reason_is_reported(client: httpx.AsyncClient, backend: StandIn):
    unknown = await client.post("/v1/embeddings", json={"model": "ada", "input": "x"})
    assert refused(unknown) == (404, "model", "model_not_found")
    backend.embedder_id = ""
    reply = await client.post("/v1/embeddings", json={"model": "embedder", "input": "x"})
    assert refused(reply) == (404, "model", "model_not_found")
    assert "lexical" in reply.json()["error"]["message"]


async def test_a_body_that_is_nested_deep_breaks_nothing(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    deep = b"[" * 900 + b"]" * 900
    content = b'{"model": "extractive", "messages": [{"role": "user", "content": "q"}], "metadata": ' + deep + b"}"
    reply = await client.post(CHAT, content=content, headers={"content-type": "application/json"})
    assert reply.status_code == 200


EARLIER = [
    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}},
    {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}},
    {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,xx"}},
]


@pytest.mark.parametrize("part", EARLIER)
async def test_what_an_agent_cannot_read_ends_no_chat_in_which_it_came_earlier(
    client: httpx.AsyncClient, backend: StandIn, part: dict[str, object]
):
    backend.go.set()
    earlier = [{"role": "user", "content": [part]}, {"role": "assistant", "content": "x"}]
    question = {"role": "user", "content": "When was the crane inspected?"}
    for model in ("extractive", "vimrag"):
        reply = await client.post(CHAT, json={"model": model, "messages": [*earlier, question]})
        assert reply.status_code == 200, reply.text
        assert refused(await client.post(CHAT, json={"model": model, "messages": earlier}))[0] == 422
    items = [{"role": "user", "content": [{"type": "input_file", "file_data": "x"}]}, *earlier[1:], question]
    assert (await client.post("/v1/responses", json={"model": "extractive", "input": items})).status_code == 200
    backend.reply = (Completion("A crane"),)
    title = {"role": "user", "content": "Generate a title for this conversation."}
    assert (await client.post(CHAT, json={"model": "vimrag", "messages": [*earlier, title]})).status_code == 200


CALL = {"id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}


@pytest.mark.parametrize(
    "earlier",
    [
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
        [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "output_text", "text": "x"}],
            }
        ],
        [{"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "a", "content": "r"}],
        [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}],
        [{"role": "assistant", "function_call": {"name": "f"}}, {"role": "function", "name": "f", "content": "r"}],
        [{"role": "assistant", "content": "x"}] * 1200,
    ],
)
@pytest.mark.parametrize("model", ["extractive", "policy"])
async def test_messages_of_every_type_that_openai_has_are_taken(
    client: httpx.AsyncClient, backend: StandIn, earlier: list[dict[str, object]], model: str
):
    backend.go.set()
    backend.reply = (Completion("In May."),)
    messages = [{"role": "user", "content": "Hi"}, *earlier, {"role": "user", "content": "When was it inspected?"}]
    reply = await client.post(CHAT, json={"model": model, "messages": messages})
    assert reply.status_code == 200, reply.text


async def test_a_choice_among_allowed_tools_leaves_those_alone(client: httpx.AsyncClient, backend: StandIn):
    backend.reply = (Completion("In May."),)
    other = {"type": "function", "function": {"name": "other"}}
    named = {"type": "function", "function": {"name": "weather"}}
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [named]}}
    reply = await client.post(CHAT, json=ask("policy", tools=[TOOL, other], tool_choice=choice))
    assert reply.status_code == 200, reply.text
    [chat] = backend.chats
    assert [tool.name for tool in chat.tools] == ["weather"]
    body = {"model": "policy", "input": "q", "tools": [{"type": "function", "name": "weather"}]}
    flat = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "weather"}]}
    assert (await client.post("/v1/responses", json=body | {"tool_choice": flat})).status_code == 200


async def test_items_of_tools_that_openai_runs_are_passed_over(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    kinds = ("web_search_call", "file_search_call", "local_shell_call_output", "mcp_list_tools", "item_reference")
    items = [{"type": kind, "id": "x"} for kind in kinds]
    called = [
        {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "y"},
    ]
    question = {"role": "user", "content": "When was the crane inspected?"}
    body = {"model": "extractive", "input": [*items, *called, question]}
    assert (await client.post("/v1/responses", json=body)).status_code == 200
    strange = body | {"input": [{"type": "strange"}, question]}
    assert refused(await client.post("/v1/responses", json=strange))[:2] == (422, "input.0.type")


async def test_a_picture_may_have_the_line_breaks_of_base64(client: httpx.AsyncClient, backend: StandIn):
    backend.go.set()
    kind, _, data = data_url(form="PNG").partition(",")
    lines = "\n".join(data[place : place + 76] for place in range(0, len(data), 76))
    for url in (f"{kind},{lines}\n", f"data:image/png;charset=utf-8;base64,{data}"):
        reply = await client.post(CHAT, json=ask("vimrag", image_part(url)))
        assert reply.status_code == 200, reply.text
    assert len(backend.started) == 2


async def test_nulls_of_an_embeddings_request_are_no_values(client: httpx.AsyncClient):
    nulls = {"encoding_format": None, "dimensions": None, "input_type": None, "user": None}
    reply = await client.post("/v1/embeddings", json={"model": "embedder", "input": "x"} | nulls)
    assert reply.status_code == 200, reply.text


async def test_a_slash_behind_the_models_lists_them(client: httpx.AsyncClient):
    assert (await client.get("/v1/models/")).json() == (await client.get("/v1/models")).json()
