"""The client over HTTP: what stands between it and a server on this machine, and how it sends a key."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.http_gateway import http
from tests.support.openai_stub import openai_stub
from tests.support.stand_in import StandIn
from vrag_ray.agent.chat import Message, Role
from vrag_ray.client.http import AsyncClient
from vrag_ray.config import OpenAiConfig
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.policies.llm.openai_api import OpenAiModel
from vrag_ray.types.loopback import direct_mounts

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def dead_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that does not run, and no exception for this machine."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("dead_proxy")
async def test_a_server_on_this_machine_is_reached_past_the_proxy_of_the_environment(tmp_path: Path):
    backend = StandIn(tmp_path / "runs")
    async with http(backend, tmp_path) as gateway, AsyncClient(str(gateway.base_url)) as client:
        assert await client.models()
        with pytest.raises(httpx.ConnectError):
            await gateway.get("/v1/models")


@pytest.mark.usefixtures("dead_proxy")
async def test_a_language_model_on_this_machine_is_reached_past_the_proxy_of_the_environment():
    with openai_stub(lambda _, __: "the answer") as stub:
        model = OpenAiModel(OpenAiConfig(base_url=stub.base_url, model="stub", retries=0))
        request = ChatRequest((Message.of(Role.USER, "a question"),))
        assert [delta async for delta in model.chat(request)]
        await model.aclose()


def test_only_servers_on_this_machine_are_reached_past_a_proxy():
    assert direct_mounts("http://127.0.0.1:8000") == {"all://127.0.0.1": None}
    assert direct_mounts("http://LocalHost:8000/v1") == {"all://localhost": None}
    assert direct_mounts("http://[::1]:8000") == {"all://[::1]": None}
    for elsewhere in ("https://vrag.example.org", "http://10.0.0.7:8000", "http://localhost.example.org", "http://[x"):
        assert direct_mounts(elsewhere) == {}
