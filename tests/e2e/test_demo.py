"""``vrag demo`` as `make demo` runs it: the corpus is made, ingested and served, and questions are answered."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vrag_ray.cli", "demo", "--exit", "--port", "0", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400, check=False)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The folder of a first run, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    done = demo(folder, "--json")
    assert done.returncode == 0, done.stderr
    return folder, done


def test_the_demo_answers_a_table_a_chart_and_a_video_question(
    first: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, done = first
    answers = json.loads(done.stdout)["answers"]
    assert len(answers) == 3
    assert all(answer["as_expected"] for answer in answers)
    table, chart, moment = (answer["run"]["citations"][0] for answer in answers)
    assert table["bbox"] is not None
    assert chart["bbox"] is not None
    assert moment["t_end"] - moment["t_start"] < 30
    assert "7 added" in done.stderr


# Quick forms: the test above; ``demo/test_corpus`` (a filled folder is left alone) and ``cli/test_commands`` (a second
# ingest changes nothing; `vrag ask` shows sources and graph).
@pytest.mark.exhaustive
def test_the_demo_can_be_run_again_and_shows_what_happens(
    first: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, _ = first
    again = demo(folder)
    assert again.returncode == 0, again.stderr
    assert "7 unchanged" in again.stderr
    for shown in ("search", "found", "read", "look", "remember", "Answer", "Sources", "Graph"):
        assert shown in again.stdout
    assert "Traceback" not in again.stderr
