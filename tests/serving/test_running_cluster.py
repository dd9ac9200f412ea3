"""`serve run CONFIG` against a cluster that runs already, which sees neither the caller's variables nor its folder."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import yaml

from tests.support.paths import ROOT
from tests.support.patience import HANGS_AFTER_S
from tests.support.planted import plant
from vrag_ray.config import Settings
from vrag_ray.serving.app import build
from vrag_ray.types import NotFoundError, VragError

SHIPPED = ROOT / "serve_configs" / "embedded.yaml"
KEY = "a-key-of-the-test"


@dataclass(frozen=True)
class Cluster:
    address: str
    folder: Path
    process: subprocess.Popen[str]

    def application(self) -> tuple[str, str] | None:
        """Serve's own state of the application, and its message; None where there is none."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("vrag\n")
        self.process.stdin.flush()
        state = json.loads(self.process.stdout.readline())
        return None if state is None else (state[0], state[1])


def _environment(**more: str) -> dict[str, str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("VRAG_", "RAY_SERVE_"))}
    path = os.pathsep.join(filter(None, (str(ROOT), bare.get("PYTHONPATH"))))
    return bare | {"RAY_AUTH_MODE": "disabled", "PYTHONPATH": path} | more


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("head")
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.bare_cluster"],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield Cluster(process.stdout.readline().strip(), folder, process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=HANGS_AFTER_S)


@contextmanager
def serve_run(cluster: Cluster, config: Path, caller: Path, **variables: str) -> Iterator[None]:
    """`serve run` as documented, from the caller's folder and with the caller's variables, until the block ends."""
    command = [str(Path(sys.executable).with_name("serve")), "run", "--address", cluster.address, str(config)]
    with subprocess.Popen(
        command, cwd=caller, env=_environment(**variables), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _config(target: Path, port: int, env_vars: Mapping[str, str] | None = None) -> Path:
    """The shipped configuration on a free port, and with what its comment says of a running cluster."""
    values = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    values["http_options"]["port"] = port
    values["applications"][0]["args"]["embedder"] = {"name": "none"}
    if env_vars is not None:
        values["applications"][0]["runtime_env"] = {"env_vars": dict(env_vars)}
    target.write_text(yaml.safe_dump(values), encoding="utf-8")
    return target


def _until(what: str, cluster: Cluster, *states: str) -> str:
    """Serve's message once the application is in one of the ``wanted`` states."""
    deadline = time.monotonic() + HANGS_AFTER_S
    state = None
    while time.monotonic() < deadline:
        state = cluster.application()
        if state is not None and state[0] in states:
            return state[1]
        time.sleep(0.2)
    raise AssertionError(f"{what}: {state}")


# Quick forms: the tests below (what is refused, and what travels), and ``serving/service`` for a service that answers.
@pytest.mark.exhaustive
def test_a_deployment_without_the_callers_variables_is_refused_and_starts_nothing(cluster: Cluster, tmp_path: Path):
    plant(tmp_path / "mine", {"a": ["red apple"], "b": ["blue plum"]})
    port = _free_port()
    lost = _config(tmp_path / "lost.yaml", port)
    with serve_run(cluster, lost, tmp_path, VRAG_COLLECTION="mine", VRAG_API_KEYS=KEY):
        message = _until("the deployment was not refused", cluster, "DEPLOY_FAILED")
    assert "no collection is named" in message
    assert "runtime_env: env_vars" in message
    assert [path.name for path in cluster.folder.iterdir()] == []

    passed = {"VRAG_COLLECTION": str(tmp_path / "mine"), "VRAG_API_KEYS": KEY}
    with serve_run(cluster, _config(tmp_path / "passed.yaml", port, passed), tmp_path):
        _until("the service did not start", cluster, "RUNNING")
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as http:
            deadline = time.monotonic() + HANGS_AFTER_S
            while (reply := http.get("/readyz")).status_code != 200:
                assert time.monotonic() < deadline, reply.text
                time.sleep(0.2)
            served = {
                "name": "mine",
                "ready": True,
                "version": 1,
                "documents": 2,
                "legs": ["lexical"],
                "heatmaps": False,
                "embedder_id": "",
            }
            assert reply.json()["collection"] == served
            assert reply.json()["collections"] == [served]
            assert http.get("/v1/documents").status_code == 401
            documents = http.get("/v1/documents", headers={"Authorization": f"Bearer {KEY}"})
            assert documents.json()["total"] == 2


def test_a_config_that_names_its_collection_still_asks_for_the_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plant(tmp_path / "c", {"a": ["red apple"]})
    monkeypatch.delenv("VRAG_API_KEYS", raising=False)
    with pytest.raises(VragError, match="VRAG_API_KEYS is not set"):
        build(Settings.model_validate({"collection": str(tmp_path / "c")}))


def test_a_service_is_refused_where_there_is_no_collection_and_makes_none(tmp_path: Path):
    values = {"collection": str(tmp_path / "typo"), "serving": {"auth": "loopback"}}
    with pytest.raises(NotFoundError, match="typo is not a collection: `vrag ingest"):
        build(Settings.model_validate(values))
    assert list(tmp_path.iterdir()) == []


def test_the_endpoints_key_travels_with_the_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from vrag_ray.serving.portable_settings import with_endpoint_key

    monkeypatch.setenv("HARBOUR_KEY", "secret")
    endpoint = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key_env": "HARBOUR_KEY"}
    settings = with_endpoint_key(Settings.model_validate({"openai": endpoint}))
    assert settings.openai is not None and settings.openai.api_key == "secret"
    assert "secret" not in repr(settings)
