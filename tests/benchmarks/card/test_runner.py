"""A part that hangs, dies or fails costs no other part its figures, and what was measured is on disk already."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.card import runner
from benchmarks.card.runner import FORK_REFUSED, Part, Row, Setup, Table, run_parts
from tests.support.patience import HANGS_AFTER_S

BEFORE = Row("before", 1.0, "s")


@pytest.fixture(autouse=True)
def _nothing_preloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "PRELOADED", ())


def works(setup: Setup) -> Iterator[Row]:
    yield Row("works", 2.0, "GB")


def hangs(setup: Setup) -> Iterator[Row]:
    yield BEFORE
    # What was yielded is on disk while the part is still under way.
    (setup.out / "seen.json").write_text((setup.out / "gpu.json").read_text() if _written(setup) else "")
    time.sleep(600)


def _written(setup: Setup) -> bool:
    until = time.monotonic() + HANGS_AFTER_S
    while time.monotonic() < until:
        file = setup.out / "gpu.json"
        if file.exists() and '"part": "hangs"' in file.read_text():
            return True
        time.sleep(0.01)
    return False


def dies(setup: Setup) -> Iterator[Row]:
    yield BEFORE
    os._exit(9)


def fails(setup: Setup) -> Iterator[Row]:
    yield BEFORE
    raise ValueError("too large\nand more")


def refuses_a_fork(setup: Setup) -> Iterator[Row]:
    """As CUDA does in a process that was forked from a process with CUDA."""
    if "multiprocessing.forkserver" in sys.modules:
        raise RuntimeError(f"{FORK_REFUSED}. To use CUDA with multiprocessing, you must use the 'spawn' start method")
    yield Row("started anew", 1.0)


def measured(out: Path, *parts: Part, seconds: float = 60.0) -> tuple[bool, Table]:
    table = Table.open(out, "test")
    whole = run_parts(parts, Setup("cpu", True, out), table, seconds=seconds, tell=lambda text: None)
    return whole, Table.open(out, "test")


def test_parts_that_hang_die_or_fail_cost_the_others_nothing(tmp_path: Path) -> None:
    parts = (Part("dies", 30, dies), Part("hangs", 5, hangs), Part("fails", 30, fails), Part("works", 30, works))
    whole, table = measured(tmp_path, *parts)
    assert not whole
    rows = {part: [row for name, row in table.rows if name == part] for part, _ in table.rows}
    assert rows["hangs"] == [BEFORE, Row("cut off", remark="after 5 s")]
    assert rows["dies"] == [BEFORE, Row("failed", remark="its process ended with exit status 9")]
    assert rows["fails"] == [BEFORE, Row("failed", remark="ValueError: too large")]
    assert rows["works"] == [Row("works", 2.0, "GB")]
    assert json.loads((tmp_path / "seen.json").read_text())["rows"][-1]["what"] == "before"
    # The same folder goes on: what ended is left out, what did not is done again and replaces its rows.
    whole, table = measured(tmp_path, Part("fails", 30, works), Part("works", 30, fails))
    assert whole
    assert [row.what for name, row in table.rows if name in ("fails", "works")] == ["works", "works"]


def test_a_part_is_not_begun_without_time(tmp_path: Path) -> None:
    whole, table = measured(tmp_path, Part("works", 30, works), seconds=5)
    assert not whole and table.done == []
    assert table.rows == [("works", Row("nothing", remark="not begun: 5 s were left"))]


def test_where_cuda_refuses_a_fork_processes_are_started_anew(tmp_path: Path) -> None:
    whole, table = measured(tmp_path, Part("cuda", 60, refuses_a_fork))
    assert whole
    assert table.rows == [("cuda", Row("started anew", 1.0))]
