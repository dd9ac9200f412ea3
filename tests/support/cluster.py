"""A Ray cluster of one node in processes of its own, as ``ray start`` makes it: it takes submitted jobs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.patience import HANGS_AFTER_S

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Cluster:
    """``address`` is for ``RAY_ADDRESS``, ``jobs`` for ``RAY_API_SERVER_ADDRESS``."""

    address: str
    jobs: str


@contextmanager
def ray_cluster(environment: Mapping[str, str]) -> Iterator[Cluster]:
    """Its processes, those of jobs and workers included, have ``environment``. It ends with the block."""
    gcs, dashboard, agent, client = _free_ports(4)
    # Unix socket paths have a length limit that pytest's own folders would break.
    folder = tempfile.mkdtemp(prefix="vrag-ray-")
    command = [str(BIN / "ray"), "start", "--head", "--block", "--disable-usage-stats", "--num-cpus=8"]
    command += ["--node-ip-address=127.0.0.1", f"--port={gcs}", f"--ray-client-server-port={client}"]
    command += ["--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}"]
    command += [f"--temp-dir={folder}", f"--object-store-memory={100 << 20}"]
    log = Path(folder, "start.log")
    with log.open("wb") as output:
        process = psutil.Popen(command, env=dict(environment), stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_for_jobs(agent, process, log)
        yield Cluster(f"127.0.0.1:{gcs}", f"http://127.0.0.1:{dashboard}")
    finally:
        started = process.children(recursive=True) if process.poll() is None else []
        # It ends what it has started, one after the other.
        process.terminate()
        _, left = psutil.wait_procs([process, *started], timeout=30)
        for child in left:
            # It may have ended since then.
            with suppress(psutil.NoSuchProcess):
                child.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def _wait_for_jobs(agent: int, process: psutil.Popen, log: Path) -> None:
    deadline = time.monotonic() + HANGS_AFTER_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{agent}/api/local_raylet_healthz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"the cluster did not start: {log.read_text(errors='replace')[-2000:]}")


def path_with_environment(environment: Mapping[str, str]) -> str:
    """``PATH`` that finds the programs of this Python first, as in an activated environment."""
    return os.pathsep.join([str(BIN), environment.get("PATH", "")])
