"""The programs of ``examples/``, run as their first lines say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import material
from tests.support.browser import free_port
from tests.support.paths import ROOT
from tests.support.patience import HANGS_AFTER_S


def printed(folder: Path, program: str, *arguments: str, **variables: str) -> str:
    command = [sys.executable, str(ROOT / "examples" / program), *arguments]
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=HANGS_AFTER_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_that_asks_a_folder_answers(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "harbour.pdf").write_bytes(material.pdf())
    (tmp_path / "papers" / "broken.pdf").write_bytes(material.pdf()[:200])
    output = printed(tmp_path, "ask_a_folder.py", "papers", "What did dredging the northern basin cost?")
    assert "left out: broken.pdf" in output
    assert "4.7 million" in output
    assert "[1] harbour, page 2, box (0." in output


def test_the_agent_searches_a_retriever_of_ones_own(tmp_path: Path) -> None:
    output = printed(tmp_path, "own_retriever.py", "When was crane 2 inspected?")
    assert "  search_done\n" in output
    assert "17 September 2024" in output


def test_both_algorithms_learn_the_two_searches(tmp_path: Path) -> None:
    *_, last = printed(tmp_path, "tiny_rl.py", "60").splitlines()
    shares = re.fullmatch(r"step   60  grpo (\d\.\d\d)  ggpo (\d\.\d\d)", last)
    assert shares is not None, last
    grpo, ggpo = map(float, shares.groups())
    assert 0.5 < grpo <= ggpo


@pytest.mark.exhaustive
def test_a_collection_is_served_on_ray(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "harbour.pdf").write_bytes(material.pdf())
    printed(tmp_path, "ask_a_folder.py", "papers", "What did dredging cost?")
    question = "What did dredging the northern basin cost?"
    output = printed(tmp_path, "serve_on_ray.py", "papers-collection", question, PORT=str(free_port()))
    assert output.startswith("retriever: ready\nagent: ready\nlibrary: ready\n")
    assert "4.7 million" in output
