"""The entry points of ``ray job submit``: each is its command of ``vrag``, and nothing else."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

JOBS = ROOT / "jobs"
COMMANDS = {
    "construct": ["train", "construct"],
    "embed": ["embed"],
    "evaluate": ["evaluate"],
    "ingest": ["ingest"],
    "train_retriever": ["train", "retriever"],
    "train_rl": ["train", "rl"],
    "train_sft": ["train", "sft"],
}


@pytest.mark.parametrize("path", sorted(JOBS.glob("*.py")), ids=lambda path: path.stem)
def test_a_job_is_its_command(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []

    def main(arguments: list[str]) -> int:
        called.append(arguments)
        return 7

    monkeypatch.setattr("vrag_ray.cli.main.main", main)
    monkeypatch.setattr(sys, "argv", [str(path), "--config", "run.yaml"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    assert called == [[*COMMANDS[path.stem], "--config", "run.yaml"]]
    assert ended.value.code == 7
