"""``vrag up``: one command from a folder to a running system, and back to nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support import material
from tests.support.signals import heeding_interrupts
from vrag_ray.cli.commands.up import collection_beside, free_port, with_model
from vrag_ray.config import Settings
from vrag_ray.types import VragError

TIMEOUT_S = 240


def _lines_until(process: subprocess.Popen[str], said: str) -> Iterator[str]:
    assert process.stderr is not None
    for line in process.stderr:
        yield line
        if said in line:
            return
    raise AssertionError(f"it ended with {process.wait()} before it said {said!r}")


def test_a_folder_becomes_a_running_system_and_ctrl_c_leaves_nothing_behind(tmp_path: Path):
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "report.pdf").write_bytes(material.pdf())
    (folder / "broken.pdf").write_bytes(material.pdf()[:200])
    interface = free_port()
    command = heeding_interrupts(
        sys.executable, "-m", "vrag_ray.cli", "up", "papers", "--port", "0", "--ui-port", str(interface)
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VRAG_")}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = "".join(_lines_until(process, "Ctrl-C stops everything"))
            assert "1 added" in said
            assert "error: broken.pdf" in said
            [address] = re.findall(r"serving .*papers-collection at (http\S+)", said)
            assert httpx.get(f"{address}/readyz").json()["collection"]["name"] == "papers-collection"
            assert httpx.get(f"http://127.0.0.1:{interface}/_stcore/health").status_code == 200
            assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
            started = psutil.Process(process.pid).children(recursive=True)
            assert started
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert psutil.wait_procs(started, timeout=30)[1] == []


@pytest.mark.parametrize(
    ("openai", "model", "vllm", "said"),
    [
        ("http://127.0.0.1:9/v1", None, None, "needs --model"),
        (None, "m", None, "needs --openai"),
        ("http://127.0.0.1:9/v1", "m", "org/name", "give one of them"),
        (None, None, "./nowhere", "is no folder"),
    ],
)
def test_options_that_do_not_name_one_model_are_refused(
    openai: str | None, model: str | None, vllm: str | None, said: str
):
    with pytest.raises(VragError, match=said):
        with_model(Settings(), openai, model, vllm)


def test_the_named_model_replaces_that_of_the_configuration_and_keeps_its_other_settings():
    base = Settings.model_validate({"openai": {"base_url": "http://a/v1", "model": "a", "api_key_env": "HARBOUR_KEY"}})
    endpoint = with_model(base, "http://b/v1", "b", None).openai
    assert endpoint is not None
    assert (endpoint.base_url, endpoint.model, endpoint.api_key_env) == ("http://b/v1", "b", "HARBOUR_KEY")
    loaded = with_model(base, None, None, "org/name")
    assert loaded.openai is None
    assert loaded.vllm is not None and loaded.vllm.model == "org/name"


def test_each_folder_has_a_collection_of_its_own(tmp_path: Path):
    assert collection_beside(tmp_path / "papers") == str(tmp_path / "papers-collection")
    (tmp_path / "one.pdf").touch()
    assert collection_beside(tmp_path / "one.pdf") == str(tmp_path / "one-collection")
