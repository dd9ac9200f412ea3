"""Framing, faults of the gateway, cancellation and who may connect, over a gateway with stand-ins behind it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest
from mcp import Client

from tests.support.http_gateway import http
from tests.support.mcp_processes import listening, open_door, stdio, text_of
from tests.support.patience import HANGS_AFTER_S
from tests.support.sse_client import events_of
from tests.support.stand_in import StandIn
from vrag_ray.cli.main import main
from vrag_ray.config import ServingConfig
from vrag_ray.serving.http.security import Security

pytestmark = pytest.mark.anyio
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
SEARCH = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "search_documents", "arguments": {"query": "x"}},
}
NOISY = """
import os, sys
from vrag_ray.client.http import AsyncClient
from vrag_ray.cli.main import main
quiet = AsyncClient.search
async def noisy(self, request):
    print("stray text", flush=True)
    os.write(1, b"stray bytes\\n")
    return await quiet(self, request)
AsyncClient.search = noisy
sys.exit(main(sys.argv[1:]))
"""
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def backend(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path / "runs")


@pytest.fixture
async def gateway(backend: StandIn, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with http(backend, tmp_path) as connected:
        yield connected


async def test_stray_text_on_standard_output_does_not_break_the_framing(gateway: httpx.AsyncClient):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", NOISY, "mcp", "--url", str(gateway.base_url)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    messages = []
    for sent in (HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}, SEARCH):
        process.stdin.write(json.dumps(sent).encode() + b"\n")
        if "id" in sent:
            messages.append(json.loads(await asyncio.wait_for(process.stdout.readline(), HANGS_AFTER_S)))
    rest, noise = await asyncio.wait_for(process.communicate(b""), HANGS_AFTER_S)
    assert [message["id"] for message in messages] == [1, 2]
    assert not messages[1]["result"]["isError"]
    assert rest == b""
    assert b"stray text" in noise
    assert b"stray bytes" in noise
    assert process.returncode == 0


async def test_ctrl_c_ends_a_server_whose_input_stays_open():
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "vrag_ray.cli", "mcp"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    await asyncio.wait_for(process.stdout.readline(), HANGS_AFTER_S)
    process.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(process.wait(), HANGS_AFTER_S) == -signal.SIGINT


async def test_a_gateway_that_is_down_is_a_tool_error_and_works_again_when_it_is_back(gateway: httpx.AsyncClient):
    target = gateway.base_url.port
    assert target is not None
    reserved = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = reserved.sockets[0].getsockname()[1]
    reserved.close()
    url = f"http://127.0.0.1:{port}"
    async with stdio(url) as client:
        for _ in range(2):
            for tool, arguments in (
                ("search_documents", {"query": "x"}),
                ("get_page", {"doc_id": "ab" * 32, "page": 1}),
                ("ask", {"question": "x"}),
            ):
                down = await client.call_tool(tool, arguments)
                assert down.is_error
                assert f"no server answers at {url}" in text_of(down)
                assert "vrag serve" in text_of(down)
            async with open_door(port, target):
                up = await client.call_tool("search_documents", {"query": "x"})
                assert not up.is_error, up


async def test_shards_that_are_missing_and_their_notice_reach_the_client(gateway: httpx.AsyncClient):
    async with stdio(str(gateway.base_url)) as client:
        content = (await client.call_tool("search_documents", {"query": "x"})).structured_content
    assert content is not None
    assert (content["shards_ok"], content["shards_total"], content["notices"]) == (1, 2, ["one shard is down"])


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_question_nobody_waits_for_any_more_is_cancelled_on_the_server(
    gateway: httpx.AsyncClient, transport: str
):
    url = str(gateway.base_url)

    async def ask_and_leave(client: Client) -> None:
        with anyio.CancelScope() as scope:

            async def leave(progress: float, total: float | None, message: str | None) -> None:
                scope.cancel()

            await client.call_tool("ask", {"question": "the run waits for ever"}, progress_callback=leave)
        assert scope.cancelled_caught

    async def outcome() -> str:
        [run] = (await gateway.get("/v1/runs")).json()["runs"]
        async with gateway.stream("GET", f"/v1/runs/{run['run_id']}/events") as response:
            assert [event.kind async for event in events_of(response)][-1] == "error"
        [run] = (await gateway.get("/v1/runs")).json()["runs"]
        return str(run["status"])

    with anyio.fail_after(60):
        if transport == "stdio":
            async with stdio(url) as client:
                await ask_and_leave(client)
                assert await outcome() == "cancelled"
        else:
            with listening(url) as address:
                async with Client(address) as client:
                    await ask_and_leave(client)
                    assert await outcome() == "cancelled"


async def test_a_run_that_fails_is_a_tool_error_without_the_servers_secrets(gateway: httpx.AsyncClient):
    async with stdio(str(gateway.base_url)) as client:
        failed = await client.call_tool("ask", {"question": "crash"})
    assert failed.is_error
    assert "failed" in text_of(failed)
    assert "secret" not in text_of(failed)


async def test_the_key_of_the_environment_opens_a_guarded_gateway_and_its_lack_is_explained(
    backend: StandIn, tmp_path: Path
):
    keys = Security.from_environment(ServingConfig(), {"VRAG_API_KEYS": "right"})
    async with http(backend, tmp_path, security=keys) as gateway:
        url = str(gateway.base_url)
        async with stdio(url, VRAG_API_KEY="right") as client:
            assert not (await client.call_tool("search_documents", {"query": "x"})).is_error
        async with stdio(url) as client:
            refused = await client.call_tool("search_documents", {"query": "x"})
    assert refused.is_error
    assert "VRAG_API_KEY" in text_of(refused)


async def test_http_without_keys_answers_no_foreign_host_and_no_page_of_another_origin(gateway: httpx.AsyncClient):
    with listening(str(gateway.base_url)) as address:
        async with httpx.AsyncClient(headers=JSON, timeout=HANGS_AFTER_S) as browser:
            assert (await browser.post(address, json=HELLO)).status_code == 200
            rebound = await browser.post(address, json=HELLO, headers={"host": "evil.example:8765"})
            assert rebound.status_code == 403
            foreign = await browser.post(address, json=HELLO, headers={"origin": "http://evil.example"})
            assert foreign.status_code == 403


async def test_http_with_keys_may_face_the_network_and_answers_only_their_bearers(gateway: httpx.AsyncClient):
    with listening(str(gateway.base_url), "--host", "0.0.0.0", VRAG_API_KEYS="one,two") as address:
        local = address.replace("0.0.0.0", "127.0.0.1")
        async with httpx.AsyncClient(headers=JSON, timeout=HANGS_AFTER_S) as client:
            assert (await client.post(local, json=HELLO)).status_code == 401
            wrong = await client.post(local, json=HELLO, headers={"authorization": "Bearer three"})
            assert wrong.status_code == 401
            right = await client.post(local, json=HELLO, headers={"authorization": "Bearer two"})
            assert right.status_code == 200


async def test_http_with_keys_answers_a_proxy_that_passes_on_the_public_name(gateway: httpx.AsyncClient):
    with listening(str(gateway.base_url), VRAG_API_KEYS="one") as address:
        public = {"host": "mcp.example.org", "origin": "https://mcp.example.org"}
        async with httpx.AsyncClient(headers={**JSON, **public}, timeout=HANGS_AFTER_S) as client:
            assert (await client.post(address, json=HELLO)).status_code == 401
            right = await client.post(address, json=HELLO, headers={"authorization": "Bearer one"})
            assert right.status_code == 200


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["--port", "1"], 2, "--transport http"),
        (["--url", "example.org"], 2, "example.org"),
        (["--url", "http://127.0.0.1:99999"], 2, "99999"),
        (["--transport", "carrier-pigeon"], 2, "carrier-pigeon"),
        (["--transport", "http", "--host", "0.0.0.0"], 1, "VRAG_API_KEYS"),
        (["--transport", "http", "--host", "127.0.0.1", "--port", "{taken}"], 1, "--port"),
    ],
)
async def test_wrong_use_is_one_line_that_names_it(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    named: str,
):
    monkeypatch.delenv("VRAG_API_KEYS", raising=False)
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = str(taken.sockets[0].getsockname()[1])
    result = await asyncio.to_thread(main, ["mcp", *(argument.format(taken=port) for argument in arguments)])
    taken.close()
    captured = capsys.readouterr()
    assert (result, captured.out) == (code, "")
    assert len(captured.err.splitlines()) == 1
    assert named in captured.err
