"""What set-up does with uv and pip, with an environment that only records; nothing is downloaded."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import setup_env
from setup_env import Environment, SetupError, install_embedding_model, install_project, offer_browser, set_up
from setup_plan import CPU_WHEEL_INDEX, Stamp, fingerprint

MISSING = "ERROR: No matching distribution found for torch==2.13.0+cpu"


class RecordingEnvironment(Environment):
    """Answers each pip call with the next of ``results`` (then success) and installs nothing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir()
        self.results: list[tuple[bool, str]] = []
        self.installed: tuple[str, ...] = ()
        self.calls: list[tuple[str, ...]] = []
        self.created = 0

    def install(self, *arguments: str) -> tuple[bool, str]:
        return self.pip("install", *arguments)

    def pip(self, *arguments: str) -> tuple[bool, str]:
        self.calls.append(arguments)
        return self.results.pop(0) if self.results else (True, "")

    def output(self, code: str) -> str | None:
        return ""

    def distributions(self) -> list[str]:
        return list(self.installed)

    def create(self) -> None:
        self.created += 1


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RecordingEnvironment:
    monkeypatch.setattr(setup_env, "ROOT", tmp_path)
    return RecordingEnvironment(tmp_path / ".venv")


def finished(environment: RecordingEnvironment, *extras: str) -> None:
    Stamp(fingerprint(setup_env.SOURCES, setup_env.ROOT), frozenset(extras)).write(environment.stamp)


def test_the_second_run_installs_nothing(environment: RecordingEnvironment) -> None:
    set_up(environment, "test", "cpu")
    assert environment.calls
    environment.calls.clear()
    set_up(environment, "test", "cpu")
    assert environment.calls == []


def test_the_demo_after_the_tests_installs_nothing(environment: RecordingEnvironment) -> None:
    finished(environment, "cpu", "dev", "ui")
    set_up(environment, "demo", "cpu")
    assert environment.calls == []


def test_the_tests_after_the_demo_add_the_extras_to_what_is_there(environment: RecordingEnvironment) -> None:
    finished(environment)
    set_up(environment, "test", "cpu")
    assert environment.calls[0][-1] == ".[cpu,dev,ui]"
    assert environment.created == 0


def test_an_accelerators_faiss_replaces_that_of_the_demo(environment: RecordingEnvironment) -> None:
    finished(environment, "embedded", "ui")
    set_up(environment, "test", "cpu")
    assert environment.calls[0][-1] == ".[cpu,dev,ui]"
    environment.calls.clear()
    set_up(environment, "demo", "cpu")
    assert environment.calls == []


def test_the_demo_after_a_change_of_the_project_keeps_the_extras(environment: RecordingEnvironment) -> None:
    Stamp("older", frozenset({"cpu", "dev", "ui"})).write(environment.stamp)
    set_up(environment, "demo", "cpu")
    assert environment.calls[0][-1] == ".[cpu,dev,ui]"


def test_a_failed_install_leaves_no_stamp(environment: RecordingEnvironment) -> None:
    finished(environment)
    environment.results = [(False, "ERROR: no space left on device")]
    with pytest.raises(SetupError, match="could not install"):
        set_up(environment, "test", "cpu")
    assert not environment.stamp.exists()


def test_an_environment_of_the_other_accelerator_is_made_anew(environment: RecordingEnvironment) -> None:
    environment.installed = ("vllm",)
    set_up(environment, "test", "cpu")
    assert environment.created == 1


def test_the_vendors_index_is_used_only_after_the_first_one_lacked_torch(
    environment: RecordingEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.results = [(False, MISSING)]
    install_project(environment, frozenset({"cpu"}))
    first, second = environment.calls
    assert CPU_WHEEL_INDEX not in first
    assert second[-2:] == ("--extra-index-url", CPU_WHEEL_INDEX)
    assert CPU_WHEEL_INDEX in capsys.readouterr().out


def test_another_failure_is_not_tried_again(environment: RecordingEnvironment) -> None:
    environment.results = [(False, "ERROR: Connection refused")]
    with pytest.raises(SetupError):
        install_project(environment, frozenset({"cpu"}))
    assert len(environment.calls) == 1


def test_without_the_embedding_model_set_up_goes_on_and_says_lexical_only(
    environment: RecordingEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.results = [(False, "ERROR: No matching distribution found")]
    install_embedding_model(environment)
    assert "lexical only" in capsys.readouterr().out


class Installers(Environment):
    """Runs nothing: pip lists ``config``, and uv and pip print what ``outputs`` has for them, or succeed."""

    def __init__(self, folder: Path, outputs: dict[str, str]) -> None:
        super().__init__(folder)
        self.outputs = outputs
        self.used: list[str] = []

    def run(self, command: list[str], variables: dict[str, str]) -> tuple[bool, str]:
        name = "uv" if Path(command[0]).name == "uv" else "pip"
        if command[-1] != "uv":
            self.used.append(name)
        return name not in self.outputs, self.outputs.get(name, "")


@pytest.mark.parametrize(
    ("config", "outputs", "used"),
    [
        ("", {}, ["uv"]),
        ("global.proxy='http://127.0.0.1:3128'", {}, ["pip"]),
        ("", {"uv": "error: not enough space"}, ["uv", "pip"]),
        ("", {"uv": "there is no version of torch==2.13.0+cpu"}, ["uv"]),
    ],
)
def test_pip_installs_where_uv_cannot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, config: str, outputs: dict[str, str], used: list[str]
) -> None:
    listed = subprocess.CompletedProcess([], 0, stdout=config)
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: listed)
    environment = Installers(tmp_path, outputs)
    assert environment.install("--no-deps", "six")[0] == (used[-1] not in outputs)
    assert environment.used == used


def test_an_environment_that_does_not_exist_answers_nothing(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "absent")
    assert environment.output("print(1)") is None
    assert environment.distributions() == []


def test_where_there_is_a_browser_or_no_way_to_one_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[object] = []
    monkeypatch.setattr(setup_env.subprocess, "run", lambda command, **_: ran.append(command))
    monkeypatch.setattr(setup_env.shutil, "which", lambda name: "/usr/bin/chromium" if name == "chromium" else None)
    offer_browser()
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(setup_env.shutil, "which", lambda _: None)
    offer_browser()
    assert "NOT be tested" in capsys.readouterr().out
    assert ran == []


def test_the_package_lists_are_fetched_where_the_first_attempt_found_no_chromium(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []
    codes = [100, 0, 0]

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, codes[len(ran) - 1], "", "E: no package chromium")

    monkeypatch.setattr(setup_env.subprocess, "run", run)
    monkeypatch.setattr(setup_env.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(setup_env.os, "geteuid", lambda: 0)
    offer_browser()
    assert [command[1] for command in ran] == ["install", "update", "install"]
    assert "NOTICE" not in capsys.readouterr().out
