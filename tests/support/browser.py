"""A real browser in front of the real app: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.patience import HANGS_AFTER_S
from vrag_ray.cli.commands.ui import launch_of

SCREENSHOTS = "VRAG_SCREENSHOTS"
"""Folder that the journeys' screenshots go to; without it they are taken and thrown away."""
CHROMIUM = next(
    (
        browser_path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (browser_path := shutil.which(name))
    ),
    "",
)
needs_browser = pytest.mark.skipif(
    not CHROMIUM, reason="NO BROWSER: the journeys through the web interface were NOT tested; apt install chromium"
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def app_server(gateway_url: str, log: Path) -> Iterator[str]:
    """`vrag ui` for this gateway; the address it is at."""
    launch = launch_of(gateway_url, "127.0.0.1", free_port())
    with log.open("wb") as out:
        child = subprocess.Popen(launch.command, env=launch.environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            _wait_until_up(launch.address, child, log)
            yield launch.address
        finally:
            child.terminate()
            child.wait(HANGS_AFTER_S)


def _wait_until_up(address: str, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + HANGS_AFTER_S
    while time.monotonic() < deadline:
        assert child.poll() is None, log.read_text()
        try:
            if httpx.get(f"{address}/_stcore/health", timeout=5).text == "ok":
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(f"the app did not come up: {log.read_text()}")


def kept_screenshots() -> Path | None:
    folder = os.environ.get(SCREENSHOTS)
    return Path(folder) if folder else None
