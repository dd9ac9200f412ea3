"""Who answers where nobody is named: the agent that the service begins with, whichever way the question comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
from mcp.server.mcpserver import Context

from tests.support.http_gateway import http
from tests.support.stand_in import StandIn
from vrag_ray.cli.main import main
from vrag_ray.client.blocking import Client
from vrag_ray.client.http import AsyncClient
from vrag_ray.client.schemas import RunRequest
from vrag_ray.mcp.tools import Tools

pytestmark = pytest.mark.anyio
Surface = Callable[[str], Awaitable[object]]


class NoContext:
    """What the tool tells of its progress is not of interest."""

    async def report_progress(self, progress: float, *, message: str) -> None: ...


async def over_mcp(url: str) -> object:
    async with Tools(url, None) as tools:
        return await tools.ask(cast("Context", NoContext()), "q")


async def over_the_blocking_client(url: str) -> object:
    def ask() -> object:
        with Client(url) as client:
            return list(client.events(RunRequest(question="q")))

    return await asyncio.to_thread(ask)


async def over_the_async_client(url: str) -> object:
    async with AsyncClient(url) as client:
        return [event async for event in client.ask(RunRequest(question="q"))]


async def over_the_command_line(url: str) -> object:
    return await asyncio.to_thread(main, ["ask", "q", "--url", url])


@pytest.mark.parametrize("ask", [over_mcp, over_the_blocking_client, over_the_async_client, over_the_command_line])
async def test_a_question_without_an_agent_is_answered_by_the_services_own(tmp_path: Path, ask: Surface) -> None:
    backend = StandIn(tmp_path / "runs", default_agent="vimrag")
    backend.go.set()
    async with http(backend, tmp_path) as client:
        await ask(str(client.base_url))
        [run] = (await client.get("/v1/runs")).json()["runs"]
        assert run["agent"] == "vimrag"
        assert (await client.get(f"/v1/runs/{run['run_id']}")).json()["agent"] == "vimrag"


async def test_a_client_learns_from_the_service_who_answers(tmp_path: Path) -> None:
    async with http(StandIn(tmp_path / "runs", default_agent="vrag"), tmp_path) as client:
        body = json.loads((await client.get("/v1/models")).content)
        assert body["default_agent"] == "vrag"
        with Client(str(client.base_url)) as blocking:
            assert (await asyncio.to_thread(blocking.models)).default_agent == "vrag"


async def test_a_start_repeated_without_the_agents_name_joins_its_run(tmp_path: Path) -> None:
    backend = StandIn(tmp_path / "runs", default_agent="vimrag")
    backend.go.set()
    body = {"question": "q", "run_id": "mine-0001"}
    async with http(backend, tmp_path) as client:
        first = await client.post("/v1/runs", json=body)
        again = await client.post("/v1/runs", json={**body, "agent": "vimrag"})
        other = await client.post("/v1/runs", json={**body, "agent": "vrag"})
    assert (first.status_code, again.status_code, other.status_code) == (200, 200, 409)
