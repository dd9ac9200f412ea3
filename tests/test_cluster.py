"""A Ray of this process ends wholly, and what a submitted job may not do: write where nothing outlives it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.patience import HANGS_AFTER_S
from tests.support.signals import heeding_interrupts
from vrag_ray.cli.main import main
from vrag_ray.cluster import left_running, refuse_lost_output
from vrag_ray.signals import signals_held, terminated_like_interrupted


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder and the variable of a job's entrypoint."""
    folder = tmp_path / "session" / "runtime_resources" / "working_dir_files" / "_ray_pkg_0"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    return folder


def test_a_job_does_not_ingest_into_the_copy_of_its_folder(job: Path, capsys: pytest.CaptureFixture[str]):
    (job / "notes.txt").write_text("a note", encoding="utf-8")
    assert main(["ingest", "notes.txt", "--collection", "mine"]) == 1
    assert "--collection mine lies in Ray's copy" in capsys.readouterr().err
    assert [path.name for path in job.iterdir()] == ["notes.txt"]


def test_places_that_outlive_the_job_are_taken(job: Path):
    for place in ("/shared/mine", "~/mine", "s3://bucket/mine"):
        refuse_lost_output("--collection", place)


def test_outside_of_a_job_a_relative_place_is_the_callers_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    refuse_lost_output("--collection", "mine")


STUCK = """
import atexit, json, os, time
import lance, psutil, ray
from vrag_ray.cluster import left_running, start_ray, stop_ray

start_ray()

@ray.remote(num_cpus=0.1)
class Stuck:
    def pid(self):
        atexit.register(time.sleep, 600)
        return os.getpid()

    def niceness(self):
        return os.nice(0)

stuck = Stuck.remote()
pid = ray.get(stuck.pid.remote())
nicer = ray.get(stuck.niceness.remote()) - os.nice(0)
stuck.__ray_terminate__.remote()
started = [child.pid for child in psutil.Process().children(recursive=True)]
stop_ray()
print(json.dumps({"stuck": pid, "started": started, "nicer": nicer}))
"""


@pytest.fixture(scope="module")
def stuck() -> dict[str, Any]:
    """What a process says of its Ray, which it started and stopped while a worker did not exit."""
    ended = subprocess.run(
        [sys.executable, "-c", STUCK], capture_output=True, text=True, timeout=HANGS_AFTER_S, check=True
    )
    report: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return report | {"stderr": ended.stderr}


def test_a_worker_that_locks_up_as_it_exits_does_not_outlive_the_session(stuck: dict[str, Any]):
    assert stuck["stuck"] in stuck["started"]
    alive = [psutil.Process(pid) for pid in stuck["started"] if psutil.pid_exists(pid)]
    assert [process.cmdline() for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_a_start_of_ray_prints_no_warning_of_lance(stuck: dict[str, Any]):
    assert "fork-safe" not in stuck["stderr"]


def test_workers_have_the_priority_of_the_process_that_started_them(stuck: dict[str, Any]):
    assert stuck["nicer"] == 0


SLOW = """
import json, subprocess, sys
import psutil, ray
from ray._private import services
from vrag_ray.cluster import left_running, SLOW_START, start_ray, stop_ray
from vrag_ray.types import VragError

found = services.get_node
too_slow = int({too_slow})
abandoned = []
others = {{}}

def get_node(*arguments):
    global too_slow
    if too_slow:
        too_slow -= 1
        abandoned.extend(child for child in psutil.Process().children(recursive=True) if child.pid not in others)
        other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        others[other.pid] = other
        raise Exception("The current node " + SLOW_START)
    return found(*arguments)

services.get_node = get_node
try:
    start_ray()
    said = str(ray.get(ray.put("works")))
    stop_ray()
except VragError as error:
    said = str(error)
left = [process.name() for process in abandoned if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]
untouched = all(other.poll() is None for other in others.values())
for other in others.values():
    other.communicate(b"\\n")
print(json.dumps({{"said": said, "abandoned": len(abandoned), "left": left, "untouched": untouched}}))
"""


@pytest.mark.parametrize(
    ("too_slow", "message"),
    [
        pytest.param(1, "works", marks=pytest.mark.exhaustive),
        (2, "Ray did not start within 120 s, twice (load "),
    ],
)
def test_a_start_that_takes_too_long_is_tried_once_more(too_slow: int, message: str):
    ended = subprocess.run(
        [sys.executable, "-c", SLOW.format(too_slow=too_slow)],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=True,
    )
    report = json.loads(ended.stdout.splitlines()[-1])
    assert report["said"].startswith(message)
    assert report["abandoned"] >= 2 * too_slow
    assert report["left"] == []
    assert report["untouched"]
    assert "trying once more" in ended.stderr


@pytest.mark.exhaustive
def test_a_command_line_and_a_working_folder_that_are_not_utf8_start_no_less(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xfccher"))
    odd.mkdir()
    (odd / os.fsdecode(b"caf\xe9.txt")).write_text("seals sleep on the mole")
    command = [sys.executable, "-m", "vrag_ray.cli", "ingest", os.fsdecode(b"../b\xfccher"), "-c", "../c"]
    # From outside, and so that the package is found although the working folder is another.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, cwd=odd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "1 added" in done.stdout


PATIENT = """
import time
import ray
from ray._private import services
from vrag_ray import cluster

found, monotonic, began = services.get_node, time.monotonic, []

def get_node(*arguments):
    began.append(monotonic())
    if monotonic() - began[0] < 1:
        time.monotonic = lambda: monotonic() + 40
        raise RuntimeError("not yet")
    return found(*arguments)

services.get_node = get_node
cluster.NOTICE_EVERY_S = 0.5
cluster.start_ray()
print(ray.get(ray.put("works")))
cluster.stop_ray()
"""


def test_a_start_of_a_minute_is_waited_for_and_says_so_meanwhile():
    ended = subprocess.run(
        [sys.executable, "-c", PATIENT], capture_output=True, text=True, timeout=HANGS_AFTER_S, check=True
    )
    assert ended.stdout == "works\n"
    assert "Ray has been starting for" in ended.stderr
    assert "trying once more" not in ended.stderr


INTERRUPTED = """
import os, signal, sys
import psutil, ray
from vrag_ray import cluster
from vrag_ray.cli.main import main

start = cluster._init_local

def interrupted(temp_dir):
    os.kill(os.getpid(), signal.SIGINT)
    start(temp_dir)
    print(*(child.pid for child in psutil.Process().children(recursive=True)))

cluster._init_local = interrupted
sys.exit(main(["ingest", "note.txt", "--collection", "mine", "--concurrency", "1"]))
"""


def test_ctrl_c_while_ray_starts_ends_after_that_step_and_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / "note.txt").write_text("a note", encoding="utf-8")
    command = heeding_interrupts(sys.executable, "-c", INTERRUPTED)
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANGS_AFTER_S, check=False)
    assert "stopping once this step" in ended.stderr
    assert ended.stderr.splitlines()[-1] == "vrag: interrupted"
    assert ended.returncode == 128 + signal.SIGINT
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]
    started = [int(pid) for line in ended.stderr.splitlines() if re.fullmatch(r"[\d ]+", line) for pid in line.split()]
    assert len(started) > 2
    assert [pid for pid in started if psutil.pid_exists(pid)] == []


TERMINATED = """
import os, signal, sys, time
from vrag_ray.cli.main import main
from vrag_ray.ingest import pipeline

decoded = pipeline.decoded_few
# As in a terminal: what nohup starts ignores it.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

def terminated(sources, meta, job):
    yield from decoded(sources, meta, job)
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    time.sleep(60)

pipeline.decoded_few = terminated
sys.exit(main(["ingest", "note.txt", "--collection", "mine"]))
"""


@pytest.mark.parametrize(("number", "word"), [(signal.SIGTERM, "terminated"), (signal.SIGHUP, "hung up")])
def test_a_signal_ends_an_ingest_with_one_line_that_says_what_is_committed(
    tmp_path: Path, number: signal.Signals, word: str
):
    (tmp_path / "note.txt").write_text("a note", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-c", TERMINATED, number.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_S,
        check=False,
    )
    assert ended.returncode == 128 + number
    assert ended.stderr.splitlines()[-1] == (
        f"vrag: {word}: 1 page of this run is committed, and version 1 of {tmp_path / 'mine'} has 1 document. "
        "The same command goes on from there"
    )
    assert number.name not in ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_nohup_starts_goes_on_after_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminated_like_interrupted(), signals_held() as held:
            signal.raise_signal(signal.SIGHUP)
        assert held.received == []
    finally:
        signal.signal(signal.SIGHUP, before)


def test_processes_that_end_while_they_are_looked_for_are_no_error() -> None:
    def gone(pid: int, flags: int = 0) -> int:
        raise FileNotFoundError(2, "No such file or directory")

    ended = psutil.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.pidfd_open", gone)
        # Nobody waits for it: it stays a zombie.
        zombie = psutil.Popen([sys.executable, "-c", ""])
        sleeping = psutil.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        try:
            deadline = time.monotonic() + HANGS_AFTER_S
            while zombie.status() != psutil.STATUS_ZOMBIE:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert left_running([ended, zombie, sleeping], 0.1) == [sleeping]
        finally:
            sleeping.kill()
    assert left_running([sleeping], HANGS_AFTER_S) == []
