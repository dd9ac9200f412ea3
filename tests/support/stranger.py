"""Somebody who follows the documentation: a folder, a shell, and the servers that were started on the way."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.cluster import ray_cluster
from tests.support.signals import heeding_interrupts

STARTS_WITHIN_S = 180.0
COMMAND_WITHIN_S = 400.0
STOPS_WITHIN_S = 120.0
_SERVER = re.compile(r"(?:\w+=\S+ +)*(?:\.venv/bin/)?(vrag (?:serve|up|ui|mcp --transport http)\b|serve run\b)")
_PORTS = {"vrag serve": 8000, "serve run": 8000, "vrag up": 8000, "vrag ui": 8501, "vrag mcp --transport http": 8765}
INTERFACE_PORT = 8501
_READY = {8000: "/readyz", 8501: "/_stcore/health", 8765: "/mcp"}


@dataclass
class Stranger:
    """Runs commands in ``folder`` as they are written. A server runs on in the background until its port is needed by
    another one, or until ``leave``."""

    folder: Path
    environment: dict[str, str]
    servers: dict[int, tuple[str, subprocess.Popen[bytes]]] = field(default_factory=dict)

    def run(self, command: str) -> str:
        """What it printed. Raises AssertionError, with all of that, where it does not succeed."""
        server = _SERVER.match(command)
        if server:
            self._serve(command, _PORTS[server[1]])
            return ""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_WITHIN_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}\nexit code {done.returncode}\n{done.stdout}"
        # curl is content with a refusal.
        assert not done.stdout.lstrip().startswith('{"error"'), f"{command}\n{done.stdout}"
        return done.stdout

    @contextmanager
    def cluster(self) -> Iterator[None]:
        """A cluster that runs already, and that Ray finds here as it does after `ray start --head`."""
        known = Path(self.environment["RAY_TMPDIR"], "ray", "ray_current_cluster")
        known.parent.mkdir(exist_ok=True)
        with ray_cluster(self.environment) as cluster:
            known.write_text(cluster.address, encoding="utf-8")
            self.environment["RAY_API_SERVER_ADDRESS"] = cluster.jobs
            try:
                yield
            finally:
                del self.environment["RAY_API_SERVER_ADDRESS"]
                known.unlink()

    def run_python(self, program: str) -> str:
        return self.run(f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}")

    def leave(self) -> None:
        """Stop every server as a person does, and see each end well."""
        for port in list(self.servers):
            self._stop(port)

    def _serve(self, command: str, port: int) -> None:
        if port in self.servers:
            known, process = self.servers[port]
            if known == command and process.poll() is None:
                return
            self._stop(port)
        assert not _listens(port), f"port {port}, which the documentation uses, is taken on this machine"
        # A group of its own, which Ctrl-C reaches as a whole, as in a terminal.
        log = self.folder / f"server-{port}.log"
        plain = "=" not in command.split(maxsplit=1)[0]
        with log.open("wb") as out:
            process = subprocess.Popen(
                heeding_interrupts("bash", "-c", f"exec {command}" if plain else command),
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.servers[port] = (command, process)
        deadline = time.monotonic() + STARTS_WITHIN_S
        awaited = (port, INTERFACE_PORT) if "vrag up" in command else (port,)
        while not all(map(_is_ready, awaited)):
            output = log.read_text(encoding="utf-8", errors="replace")
            assert process.poll() is None, f"{command}\nended with {process.returncode}\n{output}"
            assert time.monotonic() < deadline, f"{command}\nwas not ready in {STARTS_WITHIN_S:g} s\n{output}"
            time.sleep(0.2)

    def _stop(self, port: int) -> None:
        command, process = self.servers.pop(port)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        deadline = time.monotonic() + STOPS_WITHIN_S
        while _listens(port):
            assert time.monotonic() < deadline, f"{command}\nwas stopped, and port {port} is still taken"
            time.sleep(0.1)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _is_ready(port: int) -> bool:
    try:
        status = httpx.get(f"http://127.0.0.1:{port}{_READY[port]}", timeout=10).status_code
    except httpx.HTTPError:
        return False
    # An MCP endpoint refuses a bare GET, and is there.
    return status < 500 if port == 8765 else status == 200
