"""What the OpenAI-compatible routes refuse, and the lists of models and embeddings, over stand-ins."""

from __future__ import annotations

import base64

import httpx
import numpy as np
import pytest

from tests.support.openai_calls import CHAT, ask, refused
from tests.support.stand_in import EMBEDDER_ID, StandIn

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
        (ask("policy", max_tokens=0), "max_tokens"),
        (ask("policy", tool_choice="required"), "tool_choice"),
        (ask("policy", logprobs=True), "logprobs"),
        (ask("policy", response_format={"type": "json_object"}), "response_format.type"),
        (ask("policy", [{"type": "input_audio", "input_audio": {}}]), "messages.0.content.0"),
        (ask("extractive", "  "), "messages"),
        (ask("extractive", "w" * 4097), "messages"),
        ({"model": "extractive", "messages": [{"role": "system", "content": "x"}]}, "messages"),
        (ask("extractive", max_steps=1), "max_steps"),
        (ask("extractive", filter={"pages": [1]}), "filter.pages"),
    ],
)
async def test_what_cannot_be_kept_is_refused_and_the_field_is_named(
    client: httpx.AsyncClient, body: dict[str, object], param: str
):
    assert refused(await client.post(CHAT, json=body))[:2] == (422, param)


async def test_models_are_those_that_can_be_asked(client: httpx.AsyncClient, backend: StandIn):
    listed = (await client.get("/v1/models")).json()
    assert [model["id"] for model in listed["data"]] == ["extractive", "vimrag", "vrag", "policy", EMBEDDER_ID]
    assert {model["owned_by"] for model in listed["data"]} == {"vrag_ray"}
    assert (await client.get(f"/v1/models/{EMBEDDER_ID}")).json()["id"] == EMBEDDER_ID
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
        ({"input": [1, 2]}, "input.0"),
        ({"dimensions": 7}, "dimensions"),
        ({"input": ""}, "input.0"),
    ],
)
async def test_embeddings_that_cannot_be_made_are_refused(
    client: httpx.AsyncClient, more: dict[str, object], param: str
):
    reply = await client.post("/v1/embeddings", json={"model": "embedder", "input": "x"} | more)
    assert refused(reply)[:2] == (422, param)


async def test_without_an_embedder_the_reason_is_told(client: httpx.AsyncClient, backend: StandIn):
    unknown = await client.post("/v1/embeddings", json={"model": "ada", "input": "x"})
    assert refused(unknown) == (404, "model", "model_not_found")
    backend.embedder_id = ""
    reply = await client.post("/v1/embeddings", json={"model": "embedder", "input": "x"})
    assert refused(reply) == (404, "model", "model_not_found")
    assert "lexical" in reply.json()["error"]["message"]
