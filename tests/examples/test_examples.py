"""The programs of ``examples/``, run as their first lines say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support import material
from tests.support.paths import ROOT
from tests.support.patience import HANGS_AFTER_S


def printed(folder: Path, program: str, *arguments: str) -> str:
    command = [sys.executable, str(ROOT / "examples" / program), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=HANGS_AFTER_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_folder_is_asked(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "harbour.pdf").write_bytes(material.pdf())
    (tmp_path / "papers" / "broken.pdf").write_bytes(material.pdf()[:200])
    said = printed(tmp_path, "ask_a_folder.py", "papers", "What did dredging the northern basin cost?")
    assert "left out: broken.pdf" in said
    assert "4.7 million" in said
    assert "[1] harbour, page 2, box (0." in said


def test_the_agent_searches_a_retriever_of_ones_own(tmp_path: Path) -> None:
    said = printed(tmp_path, "own_retriever.py", "When was crane 2 inspected?")
    assert "  search_done\n" in said
    assert "17 September 2024" in said
