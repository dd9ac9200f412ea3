"""The engine that lives in a training worker, in a process of its own. Whole runs are in ``tests/e2e/learning``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.vllm.test_tiny_vllm import VLLM_ENVIRONMENT
from tests.vllm.tiny import needs_vllm

pytestmark = needs_vllm
ROOT = Path(__file__).parents[2]


def test_the_pictures_of_a_refused_prompt_are_seen_in_the_next_one(tmp_path: Path) -> None:
    from tiny_model import save_tiny_model

    save_tiny_model(tmp_path, seed=0)
    script = Path(__file__).with_name("run_colocated.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env=os.environ | VLLM_ENVIRONMENT | {"PYTHONPATH": os.pathsep.join((str(ROOT), *sys.path))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert "252 text tokens and 2 pictures" in told["refused"]
    seen, again, swapped = told["replies"]
    assert seen == pytest.approx(again, abs=1e-4)
    assert seen[0] != pytest.approx(swapped[0], abs=1e-3)
