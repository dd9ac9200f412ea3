"""Who is alive, and who sits: seen from other processes that are killed, leave, or pause."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from vrag_ray.serving import owners
from vrag_ray.serving.owners import Owners, Seat

OTHER = """
import sys
from pathlib import Path
from vrag_ray.serving.owners import Owners, Seat
owners = Owners(Path(sys.argv[1]))
print(owners.me, Seat(Path(sys.argv[1]), owners).take(), flush=True)
sys.stdin.readline()
owners.close()
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process, which has taken the seat."""
    command = [sys.executable, "-c", OTHER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def lines_of(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Owners]:
    mine = Owners(tmp_path)
    yield mine
    mine.close()


def test_a_killed_process_is_dead_at_once_and_its_seat_is_free(
    tmp_path: Path, here: Owners, other: subprocess.Popen[str]
):
    name, took = lines_of(other)
    seat = Seat(tmp_path, here)
    assert took == "True"
    assert here.is_alive(name)
    assert not seat.take()
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    assert not here.is_alive(name)
    assert seat.take() and seat.take()


def test_one_that_leaves_is_dead_although_its_process_lives(tmp_path: Path, here: Owners):
    second = Owners(tmp_path)
    assert here.is_alive(second.me)
    second.close()
    assert not here.is_alive(second.me)
    assert not second.is_alive(second.me)


def test_an_owner_on_another_machine_is_alive_as_long_as_its_file_is_renewed(
    tmp_path: Path, here: Owners, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = tmp_path / "far.owner"
    elsewhere.write_text(json.dumps({"host": "another", "pids": "pid:[1]", "pid": 1, "started": 1}))
    now = 1000.0
    monkeypatch.setattr(owners.time, "monotonic", lambda: now)
    # Whatever its clock says.
    os.utime(elsewhere, (5.0, 5.0))
    assert here.is_alive("far")
    now += owners.LEASE_S - 1
    assert here.is_alive("far")
    os.utime(elsewhere, (3.0, 3.0))
    now += 2
    assert here.is_alive("far")
    now += owners.LEASE_S + 1
    assert not here.is_alive("far")
    assert not elsewhere.exists()


def test_of_many_that_want_a_dead_ones_seat_one_gets_it(tmp_path: Path, other: subprocess.Popen[str]):
    lines_of(other)
    other.kill()
    other.wait()
    everyone = [Owners(tmp_path) for _ in range(16)]
    try:
        with ThreadPoolExecutor(16) as threads:
            seats = [Seat(tmp_path, owner) for owner in everyone]
            assert sum(threads.map(Seat.take, seats)) == 1
            assert sum(threads.map(Seat.take, seats)) == 1
    finally:
        for owner in everyone:
            owner.close()
