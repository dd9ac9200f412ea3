"""``vrag demo`` as `make demo` runs it: the corpus is made, ingested, served and asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def demo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vrag_ray.cli", "demo", "--exit", "--port", "0", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=400, check=False)


def test_the_demo_answers_a_table_a_chart_and_a_video_question_and_can_be_run_again(tmp_path: Path):
    first = demo(tmp_path, "--json")
    assert first.returncode == 0, first.stderr
    answers = json.loads(first.stdout)["answers"]
    assert len(answers) == 3
    assert all(answer["as_expected"] for answer in answers)
    table, chart, moment = (answer["run"]["citations"][0] for answer in answers)
    assert table["bbox"] is not None
    assert chart["bbox"] is not None
    assert moment["t_end"] - moment["t_start"] < 30
    assert "7 added" in first.stderr

    again = demo(tmp_path)
    assert again.returncode == 0, again.stderr
    assert "7 unchanged" in again.stderr
    for shown in ("search", "found", "read", "look", "remember", "Answer", "Sources", "Graph"):
        assert shown in again.stdout
    assert "Traceback" not in again.stderr
