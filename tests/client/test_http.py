"""The client over HTTP: what stands between it and a server on this machine, and how it sends a key."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.support.http_gateway import http
from tests.support.openai_stub import openai_stub
from tests.support.stand_in import StandIn
from vrag_ray.agent.chat import Message, Role
from vrag_ray.client.http import AsyncClient, UnreachableError, server_address
from vrag_ray.config import OpenAiConfig, ServingConfig
from vrag_ray.policies.llm.chat_model import ChatRequest
from vrag_ray.policies.llm.openai_api import OpenAiModel
from vrag_ray.serving.http.security import Security
from vrag_ray.types import VragError
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


@pytest.mark.parametrize("text", ["http://127.0.0.1:8000/v1/", " http://127.0.0.1:8000 ", "http://127.0.0.1:8000//"])
def test_an_address_may_be_that_of_openais_clients(text: str) -> None:
    assert server_address(text) == "http://127.0.0.1:8000"


@pytest.mark.parametrize("text", ["", "127.0.0.1:8000", "localhost", "ftp://host", "http://", "http://host:99999"])
def test_what_is_no_address_is_refused_with_the_form_of_one(text: str) -> None:
    with pytest.raises(UnreachableError, match="write it as http://HOST:PORT"):
        AsyncClient(text)


@pytest.mark.usefixtures("dead_proxy")
async def test_a_server_on_this_machine_is_reached_past_the_proxy_of_the_environment(tmp_path: Path) -> None:
    backend = StandIn(tmp_path / "runs")
    async with http(backend, tmp_path) as gateway, AsyncClient(str(gateway.base_url)) as client:
        assert await client.models()
        with pytest.raises(httpx.ConnectError):
            await gateway.get("/v1/models")


@pytest.mark.usefixtures("dead_proxy")
async def test_a_language_model_on_this_machine_is_reached_past_the_proxy_of_the_environment() -> None:
    with openai_stub(lambda _, __: "the answer") as stub:
        model = OpenAiModel(OpenAiConfig(base_url=stub.base_url, model="stub", retries=0))
        request = ChatRequest((Message.of(Role.USER, "a question"),))
        assert [delta async for delta in model.chat(request)]
        await model.aclose()


def test_only_servers_on_this_machine_are_reached_past_a_proxy() -> None:
    assert direct_mounts("http://127.0.0.1:8000") == {"all://127.0.0.1": None}
    assert direct_mounts("http://LocalHost:8000/v1") == {"all://localhost": None}
    assert direct_mounts("http://[::1]:8000") == {"all://[::1]": None}
    for elsewhere in ("https://vrag.example.org", "http://10.0.0.7:8000", "http://localhost.example.org", "http://[x"):
        assert direct_mounts(elsewhere) == {}


@pytest.mark.parametrize("key", ["größe 7", "鍵", '"quoted"', "plain\n", "  plain\r\n"])
async def test_a_key_of_any_letters_opens_the_service_with_white_space_around_it_or_without(
    tmp_path: Path, key: str
) -> None:
    security = Security.from_environment(ServingConfig(), {"VRAG_API_KEYS": f"other,{key}"})
    async with http(StandIn(tmp_path / "runs"), tmp_path, security=security) as gateway:
        async with AsyncClient(str(gateway.base_url), api_key=key) as client:
            assert await client.models()
        if key.isascii() or key == "größe 7":
            latin = {b"authorization": f"Bearer {key.strip()}".encode("latin-1")}
            assert (await gateway.get("/v1/models", headers=latin)).status_code == 200
        wrong = {b"authorization": f"Bearer {key.strip()}x".encode()}
        assert (await gateway.get("/v1/models", headers=wrong)).status_code == 401


def test_a_key_with_a_line_break_in_it_is_refused_by_name() -> None:
    with pytest.raises(VragError, match="VRAG_API_KEY"):
        AsyncClient("http://127.0.0.1:8000", api_key="first\nsecond")
