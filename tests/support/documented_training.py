"""The commands of the training page, run as a user runs them: in a shell of his own, in the folder of his project."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.cluster import path_with_environment
from tests.support.paths import ROOT


def documented(beginning: str) -> list[str]:
    """The one command of the training page that begins so."""
    text = (ROOT / "docs/training.md").read_text()
    [line] = [line for line in text.splitlines() if line.startswith(beginning)]
    return shlex.split(line, comments=True)


def environment_of_a_user(home: Path, *before: Path) -> dict[str, str]:
    """Of this code, with an empty ``home`` and no Ray. Imports look into ``before`` first."""
    home.mkdir()
    own = {
        "PYTHONPATH": os.pathsep.join(map(str, (*before, ROOT))),
        "PATH": path_with_environment(os.environ),
        "HOME": str(home),
        "OMP_NUM_THREADS": "1",
        "RAY_AUTH_MODE": "disabled",
    }
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_")} | own


def run(command: list[str], project: Path, environment: Mapping[str, str]) -> list[str]:
    done = subprocess.run(
        command, cwd=project, env=dict(environment), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
