"""The progress of an ingest is for people who look on: a board that is late or lost ends nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from tests.support.ingest_material import make_pdf, settings_for
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.ingest import Progress, ingest
from vrag_ray.ingest import progress as progress_module
from vrag_ray.ingest.progress import INGEST_STAGES, SharedBoard, ingest_progress, reporting

pytestmark = pytest.mark.usefixtures("local_ray")


@pytest.fixture
def stopped_board(monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedBoard]:
    """A board that has counted five pages, and whose process stands still since it was read."""
    board = SharedBoard(INGEST_STAGES, by_file=False)
    board.add("register", "r", 5, 1.0, {"a.pdf": 5})
    with monkeypatch.context() as patient:
        # The board's process starts with its first call, which takes long on a busy machine.
        patient.setattr(progress_module, "READ_WITHIN_S", HANGS_AFTER_S)
        assert board.read().stages["register"].pages == 5
    pid: int = ray.get(board._actor.__ray_call__.remote(lambda _: os.getpid()))
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(progress_module, "READ_WITHIN_S", 0.1)
    yield board
    os.kill(pid, signal.SIGKILL)


def test_progress_goes_on_with_what_a_late_board_said_last(
    stopped_board: SharedBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "EVERY_S", 0.01)
    told: list[Progress] = []
    several = threading.Event()

    def on_progress(progress: Progress) -> None:
        told.append(progress)
        if len(told) == 3:
            several.set()

    with reporting(stopped_board.read, lambda counts, s: ingest_progress(counts, 0, 1, s), on_progress):
        assert several.wait(HANGS_AFTER_S)
    assert {progress.total_pages for progress in told} == {5}


def test_an_ingest_whose_board_is_lost_ends_with_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_pdf(tmp_path / "whales.pdf", 3, "whale")
    boards: list[SharedBoard] = []
    made = SharedBoard.__init__

    def lost(self: SharedBoard, *arguments: object) -> None:
        made(self, *arguments)  # type: ignore[arg-type]
        boards.append(self)
        ray.kill(self._actor)

    monkeypatch.setattr(SharedBoard, "__init__", lost)
    told: list[Progress] = []
    report = ingest([tmp_path / "whales.pdf"], settings_for(tmp_path / "c", concurrency=1), on_progress=told.append)
    assert boards
    assert (report.added, report.pages) == (1, 3)
    assert told[-1].done_pages == 3
