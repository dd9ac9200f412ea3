import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from PIL import Image

from tests.support.http_gateway import http
from tests.support.planted_spaces import painted
from tests.support.stand_in import DOC_ID, StandIn, StandInSearch
from vrag_ray.client.schemas import data_url
from vrag_ray.config import ServingConfig
from vrag_ray.serving import system
from vrag_ray.serving.contract import ProfiledAnswer, Queries, SearchScope
from vrag_ray.serving.errors import NotReadyError, OverloadedError
from vrag_ray.types import Query, VragError

pytestmark = pytest.mark.anyio


async def test_search_answers_with_provenance_completeness_and_picture_links(client: httpx.AsyncClient):
    reply = await client.post("/v1/search", json={"queries": ["a", "b"], "top_k": 3})
    assert reply.status_code == 200
    body = reply.json()
    assert [len(hits) for hits in body["results"]] == [3, 3]
    assert (body["shards_ok"], body["shards_total"], body["collection_version"]) == (1, 2, 7)
    assert body["retrieval_profile"] == "embedded"
    assert body["notices"] == ["one shard is down"]
    page, clip, text = body["results"][0]
    assert page["image_url"] == f"/v1/documents/{DOC_ID}/pages/2.png"
    assert clip["image_url"] == f"/v1/documents/{DOC_ID}/frames/60.000.png"
    assert text["image_url"] is None
    assert page["uri"] == "re port.pdf"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "queries"),
        ({"query": "a", "queries": ["b"]}, "queries"),
        ({"queries": []}, "queries"),
        ({"queries": ["a"], "picture": "data:image/png;base64,AAAA"}, "queries"),
        ({"picture": "https://elsewhere/picture.png"}, "picture"),
        ({"picture": "data:image/png;base64,AAAA"}, "picture"),
        ({"query": " ", "picture": "data:image/png;base64,AAAA"}, "query"),
        ({"queries": ["a", " "]}, "queries.1"),
        ({"query": "a", "top_k": 0}, "top_k"),
        ({"query": "a", "top_k": 10**9}, "top_k"),
        ({"query": "a", "mode": ""}, "mode"),
        ({"query": "a", "topk": 3}, "topk"),
        ({"query": "a", "filter": {"kinds": ["page", "smell"]}}, "filter.kinds.1"),
        ({"query": "a" * 5000}, "query"),
        ({"query": 7}, "query"),
        ([1], "body"),
    ],
)
async def test_a_wrong_field_is_named_with_422(client: httpx.AsyncClient, body: object, field: str):
    reply = await client.post("/v1/search", json=body)
    assert reply.status_code == 422
    error = reply.json()["error"]
    assert error["param"] == field
    assert error["type"] == "invalid_request_error"
    assert field in error["message"]
    assert f"{field}: {field}: " not in error["message"]


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b'{"query": "\\ud800"}', b"null", b""])
async def test_a_body_that_is_no_request_is_422_and_not_a_crash(client: httpx.AsyncClient, content: bytes):
    reply = await client.post("/v1/search", content=content, headers={"content-type": "application/json"})
    assert reply.status_code in (400, 422)
    assert set(reply.json()) == {"error"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"query": "a"}}', "body: no JSON from character 14 on: Extra data"),
        (b"{'query': 'a'}", "body: no JSON from character 1 on: Expecting property name"),
        (
            b'{"query": "a", "filter": {"meta": {"year": [2024]}}}',
            "'year' is a text, a number, true, false, or an object",
        ),
    ],
)
async def test_a_refusal_says_where_a_body_is_wrong_and_what_it_takes(
    client: httpx.AsyncClient, content: bytes, message: str
):
    reply = await client.post("/v1/search", content=content, headers={"content-type": "application/json"})
    assert (reply.status_code, message in reply.json()["error"]["message"]) == (422, True)


async def test_post_search_has_the_originals_shape(client: httpx.AsyncClient):
    reply = await client.post("/search", json={"queries": ["a", "b"], "top_k": 2, "search_corpus": "ignored"})
    results = reply.json()["results"]
    assert len(results) == 2
    for result in results:
        assert set(result) == {"score", "indice", "data"}
        assert len(result["score"]) == len(result["indice"]) == len(result["data"]) == 2


async def test_post_search_says_what_its_urls_lead_to(client: httpx.AsyncClient):
    data = (await client.post("/search", json={"queries": ["a"]})).json()["results"][0]["data"]
    base = str(client.base_url).rstrip("/")
    assert data == [
        {
            "uid": "p0",
            "type": "image",
            "file_path": f"{base}/v1/documents/{DOC_ID}/pages/2.png",
            "content": "text 0",
        },
        {
            "uid": "p1",
            "type": "video",
            "file_path": f"{base}/v1/documents/{DOC_ID}/original",
            "content": "text 1",
            "t_start": 60.0,
            "t_end": 120.0,
        },
        {"uid": "p2", "type": "text", "file_path": f"{base}/v1/documents/{DOC_ID}/original", "content": "text 2"},
    ]


async def test_vrag_ret_and_get_search_give_pictures_only_as_urls_of_this_server(client: httpx.AsyncClient):
    posted = (await client.post("/search", json={"queries": ["a"], "vrag_ret": True})).json()
    got = (await client.get("/search", params={"queries": ["a", "b"]})).json()
    assert posted == got[:1]
    assert len(got) == 2
    assert [image["idx"] for image in got[0]] == [0, 1]
    url = got[0][0]["image_file"]
    assert url.startswith("http://127.0.0.1:")
    assert (await client.get(url)).headers["content-type"] == "image/png"


async def test_get_search_without_queries_is_422(client: httpx.AsyncClient):
    reply = await client.get("/search")
    assert (reply.status_code, reply.json()["error"]["param"]) == (422, "queries")


async def test_requests_beyond_the_limit_are_refused_at_the_door_and_room_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    go, inside = asyncio.Event(), asyncio.Semaphore(0)
    answer = StandInSearch.search

    async def waiting(self: StandInSearch, queries: Queries, scope: SearchScope) -> ProfiledAnswer:
        inside.release()
        await go.wait()
        return await answer(self, queries, scope)

    monkeypatch.setattr(StandInSearch, "search", waiting)
    config = ServingConfig(max_concurrent_requests=2)
    async with http(StandIn(tmp_path / "runs"), tmp_path, config) as client, asyncio.timeout(20):
        held = [asyncio.create_task(client.post("/v1/search", json={"query": "x"})) for _ in range(2)]
        for _ in held:
            await inside.acquire()
        refused = await client.post("/v1/search", json={"query": "x"})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert refused.json()["error"]["code"] == "overloaded"
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.get("/v1/runs")).status_code == 200
        go.set()
        assert [reply.status_code for reply in await asyncio.gather(*held)] == [200, 200]
        assert (await client.post("/v1/search", json={"query": "x"})).status_code == 200


async def test_overload_is_429_with_retry_after(client: httpx.AsyncClient, backend: StandIn):
    backend.fault = OverloadedError("full", retry_after_s=3)
    reply = await client.post("/v1/search", json={"query": "a"})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "3")
    assert reply.json()["error"]["type"] == "rate_limit_error"


async def test_a_part_that_is_not_ready_is_503(client: httpx.AsyncClient, backend: StandIn):
    backend.fault = NotReadyError("the retriever is starting")
    assert (await client.post("/v1/search", json={"query": "a"})).status_code == 503


async def test_a_fault_of_the_package_is_400_without_the_servers_path(client: httpx.AsyncClient, backend: StandIn):
    backend.fault = VragError("cannot open '/srv/private data/blobs/ab' or /srv/other/file.lance: see GET /v1/runs")
    message = (await client.post("/v1/search", json={"query": "a"})).json()["error"]["message"]
    assert message == "cannot open 'ab' or file.lance: see GET /v1/runs"


async def test_an_unforeseen_fault_is_a_bare_500_with_the_request_id(client: httpx.AsyncClient, backend: StandIn):
    backend.fault = RuntimeError("secret /srv/private/key")
    reply = await client.post("/v1/search", json={"query": "a"}, headers={"x-request-id": "probe-1"})
    assert reply.status_code == 500
    assert "secret" not in reply.text
    assert "Traceback" not in reply.text
    assert "probe-1" in reply.json()["error"]["message"]
    own = await client.post("/v1/search", json={"query": "a"})
    assert own.headers["x-request-id"] in own.json()["error"]["message"]


async def test_unknown_routes_and_methods_answer_in_the_envelope(client: httpx.AsyncClient):
    missing, wrong = await client.get("/v2/none"), await client.put("/v1/search")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")


async def test_a_body_beyond_the_limit_is_413(client: httpx.AsyncClient):
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b" " * 65536

    declared = await client.post("/v1/embeddings", content=b" " * (5 << 20))
    streamed = await client.post("/v1/embeddings", content=endless(), headers={"content-type": "application/json"})
    assert (declared.status_code, streamed.status_code) == (413, 413)
    assert streamed.json()["error"]["code"] == "too_large"


async def test_health_readiness_metrics_and_schema(client: httpx.AsyncClient, backend: StandIn):
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["collection"]["legs"]) == (200, ["lexical", "late"])
    assert ready.json()["collection"]["heatmaps"] is True
    backend.retriever_ready = False
    not_ready = await client.get("/readyz")
    assert not_ready.status_code == 503
    assert not_ready.json()["parts"]["retriever"] == {"ready": False, "why": "starting", "busy": False}
    await client.post("/v1/search", json={"query": "a"})
    text = (await client.get("/metrics")).text
    assert 'vrag_http_requests_total{method="POST",route="/v1/search",status="200"} 1.0' in text
    assert "vrag_search_seconds_count 1.0" in text
    assert 'vrag_shards_ok{collection="papers"} 1.0' in text
    assert 'vrag_collection_version{collection="papers"} 7.0' in text
    schema = (await client.get("/openapi.json")).json()
    assert schema["info"]["title"] == "vrag_ray"
    assert {"/v1/search", "/search", "/v1/runs", "/v1/documents", "/v1/jobs/{job_id}"} <= set(schema["paths"])


async def test_every_reply_forbids_sniffing_and_scripts(client: httpx.AsyncClient):
    for reply in (await client.get("/healthz"), await client.get("/v2/none")):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in reply.headers["content-security-policy"]


async def test_a_picture_is_decoded_once_and_searched_with_or_without_words(
    client: httpx.AsyncClient, backend: StandIn
):
    picture = data_url(painted(["red"] * 16))
    assert (await client.post("/v1/search", json={"picture": picture})).status_code == 200
    assert (await client.post("/v1/search", json={"query": "a ship", "picture": picture})).status_code == 200
    alone, both = backend.searched
    assert isinstance(alone, Query) and isinstance(both, Query)
    assert (alone.text, both.text) == ("", "a ship")
    for query in (alone, both):
        assert query.picture is not None
        with Image.open(io.BytesIO(query.picture)) as image:
            assert (image.size, image.getpixel((3, 3))) == ((64, 64), (255, 0, 0))


@pytest.mark.parametrize("part", ["retriever", "agent", "library", "policy"])
async def test_readyz_answers_soon_and_names_the_part_that_hangs(
    client: httpx.AsyncClient, backend: StandIn, monkeypatch: pytest.MonkeyPatch, part: str
):
    go = asyncio.Event()

    async def hang(*_: object) -> None:
        # As a call through Ray may: not even its cancellation ends it.
        while not go.is_set():
            with suppress(asyncio.CancelledError):
                await go.wait()

    parts = backend.parts
    method = {
        "retriever": (parts.search, "states"),
        "agent": (parts.runs, "state"),
        "library": (parts.documents, "ready"),
        "policy": (parts.model, "ready"),
    }[part]
    monkeypatch.setattr(type(method[0]), method[1], hang)
    monkeypatch.setattr(system, "ANSWERS_WITHIN_S", 0.05)
    async with asyncio.timeout(10):
        reply = await client.get("/readyz")
    go.set()
    assert reply.status_code == 503
    parts = reply.json()["parts"]
    assert parts[part] == {"ready": False, "why": f"the {part} did not answer within 0.05 s", "busy": True}
    assert all(state["ready"] for name, state in parts.items() if name != part)
