"""The settings with which Ray starts HAProxy. A service behind it runs in tests/serving/service."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.patience import HANGS_AFTER_S
from vrag_ray.ha_proxy import SWITCH, choose_ha_proxy, forget_ha_proxy

BINARY = "RAY_SERVE_HAPROXY_BINARY_PATH"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An environment that says nothing of HAProxy, whatever a service of this session has set."""
    for name in [name for name in os.environ if name == SWITCH or name.startswith("RAY_SERVE_HAPROXY_")]:
        monkeypatch.delenv(name)
    yield
    forget_ha_proxy()


def test_the_files_of_the_proxy_are_private_and_leave_with_it(bare: None):
    choose_ha_proxy()
    folder = Path(os.environ[BINARY]).parent
    assert os.environ[SWITCH] == "1"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {Path(os.environ[f"RAY_SERVE_HAPROXY_{name}"]).parent for name in ("SOCKET_PATH", "CONFIG_FILE_LOC")} == {
        folder
    }
    forget_ha_proxy()
    assert SWITCH not in os.environ and BINARY not in os.environ
    assert not folder.exists()


@pytest.mark.parametrize("value", ["0", "1"])
def test_an_environment_that_decides_itself_is_left_alone(bare: None, monkeypatch: pytest.MonkeyPatch, value: str):
    monkeypatch.setenv(SWITCH, value)
    before = dict(os.environ)
    choose_ha_proxy()
    forget_ha_proxy()
    assert dict(os.environ) == before


def test_a_child_process_has_files_of_its_own_and_leaves_those_of_its_parent(bare: None):
    choose_ha_proxy()
    folder = Path(os.environ[BINARY]).parent
    for_a_child = dict(os.environ)
    script = (
        "import os; from vrag_ray.ha_proxy import choose_ha_proxy, forget_ha_proxy\n"
        "forget_ha_proxy(); choose_ha_proxy(); print(os.path.dirname(os.environ['RAY_SERVE_HAPROXY_BINARY_PATH']))\n"
        "forget_ha_proxy()"
    )
    of_child = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    assert of_child != str(folder)
    assert not Path(of_child).exists()
    assert folder.is_dir()
    forget_ha_proxy()
    orphan = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=for_a_child
    ).stdout.strip()
    assert orphan and not Path(orphan).exists()


@pytest.mark.parametrize(
    ("script", "fault"), [("#!/bin/sh\necho no such library >&2; exit 127", "no such library"), ("", "")]
)
def test_a_program_that_cannot_run_here_is_reported_and_not_used(
    bare: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    script: str,
    fault: str,
):
    program = tmp_path / "haproxy"
    program.write_text(script)
    program.chmod(0o700)
    monkeypatch.setenv(BINARY, str(program))
    with caplog.at_level(logging.WARNING):
        choose_ha_proxy()
    assert SWITCH not in os.environ
    assert f"HAProxy cannot run here ({fault}" in caplog.text


def test_the_proxy_ends_with_the_process_that_started_it(bare: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    program, configuration = tmp_path / "haproxy", tmp_path / "haproxy.cfg"
    program.write_text('#!/bin/sh\n[ "$1" = -v ] || exec sleep 600')
    program.chmod(0o700)
    configuration.write_text(
        "frontend prometheus\n  bind :9101\n    no log\nfrontend http\nlisten stats\n  bind *:8404\n"
    )
    monkeypatch.setenv(BINARY, str(program))
    choose_ha_proxy()
    start = (
        f"import subprocess; print(subprocess.Popen([{os.environ[BINARY]!r}, '-db', '-f', {str(configuration)!r}]).pid)"
    )
    killed = f"{start}; import os, sys; sys.stdout.flush(); sys.stdin.read(); os.kill(os.getpid(), 9)"
    with subprocess.Popen(
        [sys.executable, "-c", killed], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None and parent.stdout is not None
        proxy = psutil.Process(int(parent.stdout.readline()))
        while proxy.name() != "sleep":
            assert proxy.is_running()
        assert configuration.read_text() == "frontend http\n"
        parent.stdin.close()
        parent.wait(timeout=HANGS_AFTER_S)
    psutil.wait_procs([proxy], timeout=HANGS_AFTER_S)
    assert not proxy.is_running()
