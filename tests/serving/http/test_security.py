from pathlib import Path

import pytest

from tests.support.http_gateway import http
from tests.support.openai_calls import CHAT, CITED, ask
from tests.support.stand_in import StandIn
from vrag_ray.config import Auth, ServingConfig
from vrag_ray.serving.http.security import Security
from vrag_ray.types import Completion, VragError

LOCAL = {"host": "127.0.0.1:8000"}


@pytest.mark.anyio
async def test_with_keys_only_a_known_bearer_passes_and_probes_stay_open(tmp_path: Path):
    security = Security.from_environment(ServingConfig(), {"VRAG_API_KEYS": "first-key, second-key"})
    async with http(StandIn(tmp_path / "runs"), tmp_path, security=security) as client:
        for header in (
            {},
            {"Authorization": "Bearer nope"},
            {"Authorization": "Basic first-key"},
            {"Authorization": "Bearer"},
        ):
            reply = await client.get("/v1/documents", headers=header)
            assert reply.status_code == 401
            assert reply.headers["www-authenticate"] == "Bearer"
            assert reply.json()["error"]["code"] == "invalid_api_key"
        for key in ("first-key", "second-key"):
            assert (await client.get("/v1/documents", headers={"Authorization": f"Bearer {key}"})).status_code == 200
        assert (await client.get("/metrics")).status_code == 401
        assert (await client.get("/healthz")).status_code == 200
        assert (await client.get("/readyz")).status_code == 200


@pytest.mark.anyio
async def test_a_path_that_ends_in_a_slash_is_answered_and_not_redirected(tmp_path: Path):
    async with http(StandIn(tmp_path / "runs"), tmp_path) as client:
        for path in ("/v1/documents/", "/v1//documents//", "/healthz/", "/v1/models/"):
            assert (await client.get(path)).status_code == 200
        assert (await client.post("/v1/search/", json={"query": "a"})).status_code == 200
        assert (await client.get("/")).status_code == 404


@pytest.mark.anyio
async def test_without_keys_a_rebound_name_and_a_foreign_page_are_refused(tmp_path: Path):
    async with http(StandIn(tmp_path / "runs"), tmp_path) as client:
        rebound = await client.get("/v1/documents", headers={"Host": "evil.example"})
        foreign = await client.post("/v1/search", json={"query": "a"}, headers={"Origin": "https://evil.example"})
        own = await client.post("/v1/search", json={"query": "a"}, headers={"Origin": str(client.base_url).rstrip("/")})
    assert (rebound.status_code, foreign.status_code, own.status_code) == (403, 403, 200)


def test_a_public_host_without_keys_is_refused_at_start():
    with pytest.raises(VragError, match="VRAG_API_KEYS"):
        Security.from_environment(ServingConfig(host="0.0.0.0"), {})
    Security.from_environment(ServingConfig(host="0.0.0.0"), {"VRAG_API_KEYS": "k"})
    Security.from_environment(ServingConfig(host="0.0.0.0", auth=Auth.OPEN), {})
    for host in ("127.0.0.1", "::1", "localhost"):
        Security.from_environment(ServingConfig(host=host), {})


@pytest.mark.parametrize("auth", [None, Auth.OPEN, Auth.LOOPBACK])
def test_a_variable_of_keys_without_a_key_is_refused_on_any_host(auth: Auth | None):
    with pytest.raises(VragError, match="VRAG_API_KEYS is set and has no key in it"):
        Security.from_environment(ServingConfig(auth=auth), {"VRAG_API_KEYS": " , "})
    assert not Security.from_environment(ServingConfig(auth=auth), {"VRAG_API_KEYS": ""}).key_digests


def test_a_service_without_keys_is_refused_behind_a_haproxy_that_others_can_reach():
    """HAProxy hands every request on from a loopback address, whatever it came from."""
    keyless = Security.from_environment(ServingConfig(), {})
    with pytest.raises(VragError, match=r"HAProxy listens on 0\.0\.0\.0.*VRAG_API_KEYS.*RAY_SERVE_ENABLE_HA_PROXY=0"):
        keyless.check_proxy("0.0.0.0")
    keyless.check_proxy("127.0.0.1")
    Security.from_environment(ServingConfig(), {"VRAG_API_KEYS": "k"}).check_proxy("0.0.0.0")
    Security.from_environment(ServingConfig(auth=Auth.OPEN), {}).check_proxy("0.0.0.0")


def test_keys_that_may_have_been_lost_on_the_way_to_a_cluster_do_not_open_the_service():
    with pytest.raises(VragError, match=r"VRAG_API_KEYS is not set.*runtime_env: env_vars.*loopback"):
        Security.from_environment(ServingConfig(), {}, callers_own=False)
    with pytest.raises(VragError, match=r"serving\.auth is keys"):
        Security.from_environment(ServingConfig(auth=Auth.KEYS), {})
    assert not Security.from_environment(ServingConfig(auth=Auth.LOOPBACK), {}, callers_own=False).allow_open
    with pytest.raises(VragError, match="other machines can reach"):
        Security.from_environment(ServingConfig(host="0.0.0.0", auth=Auth.LOOPBACK), {})


def test_keys_of_the_environment_are_required_whatever_the_configuration_says():
    for auth in (None, *Auth):
        security = Security.from_environment(ServingConfig(auth=auth), {"VRAG_API_KEYS": "k"}, callers_own=False)
        assert security.refuse("GET", "/v1/documents", LOCAL, "127.0.0.1") is not None


def test_the_former_name_of_an_open_service_is_still_taken(caplog: pytest.LogCaptureFixture):
    assert ServingConfig.model_validate({"allow_open": True}).auth is Auth.OPEN
    assert "serving.auth" in caplog.text


def test_without_keys_a_request_on_a_public_address_is_refused_even_if_the_port_was_opened_by_mistake():
    assert Security().refuse("GET", "/v1/documents", LOCAL, "192.0.2.7") is not None
    assert Security().refuse("GET", "/v1/documents", LOCAL, "127.0.0.1") is None
    assert Security(allow_open=True).refuse("GET", "/v1/documents", {"host": "vrag.example"}, "192.0.2.7") is None


@pytest.mark.anyio
async def test_pages_of_a_listed_origin_are_served_with_cors_headers(tmp_path: Path):
    chat, other = {"origin": "https://chat.example.org"}, {"origin": "https://other.example.org"}
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    config = ServingConfig(cors_origins=("https://chat.example.org",))
    for keys in ({}, {"VRAG_API_KEYS": "k1"}):
        security = Security.from_environment(config, keys)
        async with http(StandIn(tmp_path / f"runs{len(keys)}"), tmp_path, config, security) as client:
            key = {"authorization": "Bearer k1"} if keys else {}
            leave = await client.options("/v1/search", headers=chat | asking)
            assert leave.status_code == 200
            assert leave.headers["access-control-allow-origin"] == "https://chat.example.org"
            assert "authorization" in leave.headers["access-control-allow-headers"]
            reply = await client.post("/v1/search", json={"query": "q"}, headers=chat | key)
            assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (200, chat["origin"])
            assert reply.headers["cross-origin-resource-policy"] == "cross-origin"
            assert "access-control-allow-origin" not in (await client.get("/v1/models", headers=other | key)).headers
            if not keys:
                assert (await client.post("/v1/search", json={"query": "q"}, headers=other)).status_code == 403
            else:
                assert (await client.post("/v1/search", json={"query": "q"}, headers=chat)).status_code == 401


@pytest.mark.anyio
async def test_the_address_of_a_citation_shows_it_to_a_browser_for_a_while(tmp_path: Path, monkeypatch):
    backend = StandIn(tmp_path / "runs")
    backend.go.set()
    backend.ending = (CITED,)
    security = Security.from_environment(ServingConfig(), {"VRAG_API_KEYS": "k1"})
    async with http(backend, tmp_path, security=security) as client:
        key = {"authorization": "Bearer k1"}
        message = (await client.post(CHAT, json=ask("vimrag"), headers=key)).json()["choices"][0]["message"]
        url = message["annotations"][0]["url_citation"]["url"]
        assert url == message["evidence"][0]["url"]
        assert (await client.get(url)).content == b"\x89PNG"
        assert (await client.head(url)).status_code == 200
        # Of that page alone, with that time, and nothing else of the service.
        for other in (
            url.replace("/pages/2.png", "/pages/3.png"),
            url.replace("/pages/2.png", "/original"),
            url.replace("expires=", "expires=1"),
            url.replace("signature=", "signature=0"),
            url.partition("&expires")[0],
            f"/v1/documents?{url.partition('?')[2]}",
        ):
            assert (await client.get(other)).status_code == 401, other
        assert (await client.delete(url)).status_code == 401
        monkeypatch.setattr("vrag_ray.serving.http.security.time.time", lambda: 4e9)
        assert (await client.get(url)).status_code == 401


async def _answer(folder: Path, config: ServingConfig, body: dict[str, object]) -> dict:
    backend = StandIn(folder / "runs")
    backend.go.set()
    backend.ending = (CITED,)
    backend.reply = (Completion("{}"),)
    async with http(backend, folder, config) as client:
        return (await client.post(CHAT, json=body)).json()["choices"][0]["message"]


@pytest.mark.anyio
async def test_sources_are_links_below_the_answer_where_the_service_is_set_so(tmp_path: Path):
    plain = await _answer(tmp_path / "a", ServingConfig(), ask("vimrag"))
    assert plain["content"] == CITED.answer
    message = await _answer(tmp_path / "b", ServingConfig(footnotes=True), ask("vimrag"))
    urls = [each["url"] for each in message["evidence"]]
    assert message["content"] == (f"{CITED.answer}\n\n[1] [report, page 2]({urls[0]})  \n[2] [film, 60.0 s]({urls[1]})")
    as_json = ask("vimrag", response_format={"type": "json_object"})
    assert (await _answer(tmp_path / "c", ServingConfig(footnotes=True), as_json))["content"] == "{}"
