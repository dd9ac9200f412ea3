"""The progress of an ingest is for people who look on: a board that is late or lost ends nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import ray

from tests.support.ingest_material import make_pdf, settings_for
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.ingest import Progress, ingest
from vrag_ray.ingest import progress as progress_module
from vrag_ray.ingest.progress import (
    INGEST_STAGES,
    Counts,
    ProgressBoard,
    SharedBoard,
    Work,
    ingest_progress,
    reporting,
)


@pytest.fixture
def stopped_board(local_ray: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[SharedBoard]:
    """A board that has counted five pages, and whose process stands still since it was read."""
    board = SharedBoard(INGEST_STAGES, by_file=False)
    board.add(Work("register", "r", 5, 1.0, {"a.pdf": 5}))
    with monkeypatch.context() as patient:
        # The board's process starts with its first call, which takes long on a busy machine.
        patient.setattr(progress_module, "READ_WITHIN_S", HANGS_AFTER_S)
        assert board.read().stages["register"].pages == 5
    pid: int = ray.get(board._actor.__ray_call__.remote(lambda _: os.getpid()))
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(progress_module, "READ_WITHIN_S", 0.1)
    yield board
    os.kill(pid, signal.SIGKILL)


def test_progress_goes_on_with_the_last_state_of_a_late_board(
    stopped_board: SharedBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_module, "EVERY_S", 0.01)
    reports: list[Progress] = []
    several = threading.Event()

    def on_progress(progress: Progress) -> None:
        reports.append(progress)
        if len(reports) == 3:
            several.set()

    with reporting(stopped_board.read, lambda counts, s: ingest_progress(counts, 0, 1, s), on_progress):
        assert several.wait(HANGS_AFTER_S)
    assert {progress.total_pages for progress in reports} == {5}


# Quick form: ``stopped_board``, which is read here.
@pytest.mark.exhaustive
@pytest.mark.usefixtures("local_ray")
def test_an_ingest_whose_board_is_lost_ends_with_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_pdf(tmp_path / "whales.pdf", 3, "whale")
    boards: list[SharedBoard] = []
    made = SharedBoard.__init__

    def lost(self: SharedBoard, stages: Sequence[str], by_file: bool, begun: Counts | None = None) -> None:
        made(self, stages, by_file, begun)
        boards.append(self)
        ray.kill(self._actor)

    monkeypatch.setattr(SharedBoard, "__init__", lost)
    reports: list[Progress] = []
    report = ingest([tmp_path / "whales.pdf"], settings_for(tmp_path / "c", concurrency=1), on_progress=reports.append)
    assert boards
    assert (report.added, report.pages) == (1, 3)
    assert {progress.done_pages for progress in reports if not progress.spaces} >= {3}


def board_of(*, text: int, scans: int, text_done: int, scans_done: int) -> Counts:
    """Pages of text take 0.5 s to decode and those of scans 4.4 s."""
    board = ProgressBoard(INGEST_STAGES, by_file=False)
    board.add(Work("register", "r", text + scans, 0.1, {"book.pdf": text, "scan.pdf": scans}, slow=scans))
    if text_done:
        board.add(Work("decode", "d", text_done, 0.5 * text_done, {"book.pdf": text_done}))
    if scans_done:
        board.add(Work("decode", "d", scans_done, 4.4 * scans_done, {"scan.pdf": scans_done}, slow=scans_done))
    return board.read()


def test_the_remaining_time_counts_the_pages_that_ocr_has_to_read() -> None:
    # 100 pages of text took 50 s: each of the 100 of the scan weighs as twenty before one was read, ...
    before = ingest_progress(board_of(text=100, scans=100, text_done=100, scans_done=0), 100, 2, 50.0)
    assert before.eta_s == pytest.approx(100 * 20 * 0.5)
    # ... and what it took, once some were: half of 440 s.
    half = ingest_progress(board_of(text=100, scans=100, text_done=100, scans_done=50), 150, 2, 270.0)
    assert half.eta_s == pytest.approx(220.0)
    alone = ingest_progress(board_of(text=0, scans=100, text_done=0, scans_done=25), 25, 2, 110.0)
    assert alone.eta_s == pytest.approx(330.0)
    done = ingest_progress(board_of(text=10, scans=10, text_done=10, scans_done=10), 20, 2, 60.0)
    assert done.eta_s == 0.0


def test_the_remaining_time_of_text_alone_is_that_of_its_pages() -> None:
    seen = ingest_progress(board_of(text=100, scans=0, text_done=25, scans_done=0), 25, 2, 30.0)
    assert seen.eta_s == pytest.approx(90.0)
    # Of four files two are known.
    more = ingest_progress(board_of(text=100, scans=0, text_done=25, scans_done=0), 25, 4, 30.0)
    assert more.eta_s == pytest.approx(210.0)


def test_the_actors_of_a_later_graph_are_no_part_of_the_start() -> None:
    board = ProgressBoard(INGEST_STAGES, by_file=False)
    board.worker_ready()
    first = board.read().ready_at
    assert first is not None
    board.add(Work("decode", "d", 1, 0.1))
    board.worker_ready()
    assert board.read().ready_at == first
