"""The Serve config of the RayService on a Ray cluster with the CPUs of its pods: a head without any, two workers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.deploy.pods import pod_templates
from tests.deploy.rendering import only
from tests.deploy.serve_configs import application, environment, serve_config
from tests.support.paths import ROOT
from tests.support.patience import HANGS_AFTER_S
from tests.support.planted import plant

KEY = "a-key-for-this-test"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cpus() -> list[str]:
    """As Ray sees them on the head and the workers that are there from the start."""
    head = only("service", "RayService")["spec"]["rayClusterConfig"]["headGroupSpec"]["rayStartParams"]["num-cpus"]
    [worker] = [pod for pod in pod_templates("service") if pod.role == "worker"]
    return [head, *[str(int(worker.requested("cpu")))] * worker.copies[0]]


def of_the_pods(folder: Path) -> dict[str, str]:
    """The environment of the pods, the volume being ``folder``."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("VRAG_", "RAY_"))}
    path = os.pathsep.join(filter(None, (str(ROOT), bare.get("PYTHONPATH"))))
    settings = {name: value.replace("/shared", str(folder)) for name, value in environment().items()}
    return bare | settings | {"VRAG_API_KEYS": KEY, "RAY_AUTH_MODE": "disabled", "PYTHONPATH": path}


# Quick form: ``test_capacity`` and ``test_serve_config``, by Ray's schema and arithmetic.
@pytest.mark.exhaustive
def test_the_service_runs_on_its_workers_and_asks_for_the_key_that_only_the_nodes_have(tmp_path: Path):
    plant(tmp_path / "my-collection", {f"d{n}": [f"the harbour of town {n} was dredged"] for n in range(8)})
    port = free_port()
    config = serve_config("service")
    # The nodes of this test share one machine, and so one port.
    config |= {"proxy_location": "HeadOnly", "http_options": config["http_options"] | {"port": port}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    pods = of_the_pods(tmp_path)
    command = [sys.executable, "-m", "tests.deploy.pods_as_nodes", *cpus()]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=pods, text=True, **pipes) as nodes:
        assert nodes.stdin is not None and nodes.stdout is not None

        def state() -> Any:
            assert nodes.stdin is not None and nodes.stdout is not None
            nodes.stdin.write("state\n")
            nodes.stdin.flush()
            return json.loads(nodes.stdout.readline())

        address = nodes.stdout.readline().strip()
        deploy = [str(Path(sys.executable).with_name("serve")), "run", "--non-blocking", "--address", address]
        # KubeRay's operator has neither settings nor keys.
        operator = {name: value for name, value in pods.items() if not name.startswith("VRAG_")}
        subprocess.run([*deploy, str(tmp_path / "config.yaml")], env=operator, check=True, capture_output=True)
        deadline = time.monotonic() + HANGS_AFTER_S
        while state()[0] != "RUNNING":
            assert time.monotonic() < deadline, state()
            time.sleep(0.5)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANGS_AFTER_S) as http:
            assert http.get("/-/healthz").status_code == 200
            while http.get("/readyz").status_code != 200:
                assert time.monotonic() < deadline, http.get("/readyz").text
                time.sleep(0.5)
            refused = http.post("/v1/search", json={"query": "harbour"})
            response = http.post("/v1/search", json={"query": "harbour"}, headers={"authorization": f"Bearer {KEY}"})
        _, placed = state()
        nodes.stdin.close()
        nodes.wait(timeout=HANGS_AFTER_S)
    assert refused.status_code == 401
    assert response.json()["shards_ok"] == response.json()["shards_total"] == 4
    replicas = {
        deployment["name"]: deployment["autoscaling_config"]["min_replicas"]
        for deployment in application(config)["deployments"]
    }
    shards = 4 * replicas["Retriever"]
    assert placed == {f"worker {name}": count for name, count in {**replicas, "shard": shards}.items()}
