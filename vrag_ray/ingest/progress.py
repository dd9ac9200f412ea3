"""Progress of every stage, reported as it happens, because rows reach the driver only at the end of the graph."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from vrag_ray.ingest.report import FileProgress, Progress, StageProgress

INGEST_STAGES = ("register", "decode")
SLOW_WEIGHT = 20.0
"""Pages of text that a page of a scan, or a clip, is taken to weigh until the first was read."""
EVERY_S = 0.5
READ_WITHIN_S = 2.0
"""A board on a busy machine answers late. Nothing waits for it: its last answer is shown until the next."""
MOST_FILES_SHOWN = 256
"""Files are listed one by one for people who look on; for more files than this, only the sums are held."""


@dataclass(frozen=True, slots=True)
class Work:
    """Pages that a worker of ``stage`` has done in ``busy_s`` seconds.

    ``by_file`` has the pages of each file by its uri, from the stages that know files. ``slow`` of the pages take long
    (see ``plan.takes_long``): of decoded ones all or none.
    """

    stage: str
    worker: str
    pages: int
    busy_s: float
    by_file: Mapping[str, int] = field(default_factory=dict)
    slow: int = 0


@dataclass(frozen=True, slots=True)
class StageCount:
    """``busy_s`` adds up over ``workers``; a stage's rate is pages / busy_s * workers.

    ``slow`` are the pages among them that take long, ``slow_s`` the seconds for those.
    """

    pages: int = 0
    busy_s: float = 0.0
    workers: frozenset[str] = frozenset()
    slow: int = 0
    slow_s: float = 0.0

    def plus(self, work: Work) -> StageCount:
        return StageCount(
            self.pages + work.pages,
            self.busy_s + work.busy_s,
            self.workers | {work.worker},
            self.slow + work.slow,
            self.slow_s + (work.busy_s if work.slow else 0.0),
        )

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.busy_s * len(self.workers) if self.busy_s else 0.0


@dataclass(frozen=True, slots=True)
class Counts:
    """``ready_at``: Unix time at which the last worker of the last stage was ready.

    ``by_file`` has each file's pages that are registered and those that are decoded, by its uri.
    """

    files: int = 0
    by_file: dict[str, tuple[int, int]] = field(default_factory=dict)
    stages: dict[str, StageCount] = field(default_factory=dict)
    ready_at: float | None = None

    def stages_of(self, names: Sequence[str]) -> Iterator[StageProgress]:
        for name in names:
            yield StageProgress(name, self.stages[name].pages, self.stages[name].pages_per_s)

    def bottleneck(self, elapsed_s: float) -> str:
        """In words, the stage whose workers were busy for the largest part of ``elapsed_s``."""
        busy = {
            name: count.busy_s / len(count.workers) / elapsed_s for name, count in self.stages.items() if count.workers
        }
        if not busy or elapsed_s <= 0:
            return ""
        most = max(busy, key=lambda name: busy[name])
        count = len(self.stages[most].workers)
        workers = "1 worker" if count == 1 else f"{count} workers"
        return f"{most} ({workers}, busy {min(busy[most], 1.0):.0%} of the time)"


class Board(Protocol):
    """Where stages report their work: in this process (``ProgressBoard``), in an actor (``SharedBoard``), or first in
    this process and later in an actor (``MovingBoard``)."""

    def add(self, work: Work) -> None: ...
    def worker_ready(self) -> None: ...
    def read(self) -> Counts:
        """Never raises: progress is for people who look on, and no ingest ends for its sake."""
        ...


class ProgressBoard:
    """The counts of all stages, and those of every file with ``by_file``."""

    def __init__(self, stages: Sequence[str], by_file: bool, begun: Counts | None = None) -> None:
        self._by_file = by_file
        self._counts = begun or Counts(stages=dict.fromkeys(stages, StageCount()))

    def add(self, work: Work) -> None:
        registers = work.stage == "register"
        if self._by_file:
            by_file = dict(self._counts.by_file)
            for uri, count in work.by_file.items():
                total, done = by_file.get(uri, (0, 0))
                by_file[uri] = (count, done) if registers else (total, done + count)
            self._counts = replace(self._counts, by_file=by_file)
        files = self._counts.files + (len(work.by_file) if registers else 0)
        stages = self._counts.stages | {work.stage: self._counts.stages[work.stage].plus(work)}
        self._counts = replace(self._counts, files=files, stages=stages)

    def worker_ready(self) -> None:
        """Counts until a page has left the last stage: the actors of a second graph are no part of the start."""
        *_, last = self._counts.stages.values()
        if not last.pages:
            self._counts = replace(self._counts, ready_at=time.time())

    def read(self) -> Counts:
        return self._counts


class SharedBoard:
    """A ``ProgressBoard`` in an actor of its own, to which stages in other actors report without waiting."""

    def __init__(self, stages: Sequence[str], by_file: bool, begun: Counts | None = None) -> None:
        import ray

        self._actor = ray.remote(ProgressBoard).options(num_cpus=0).remote(tuple(stages), by_file, begun)
        self._last = begun or Counts(stages=dict.fromkeys(stages, StageCount()))

    def add(self, work: Work) -> None:
        self._actor.add.remote(work)

    def worker_ready(self) -> None:
        self._actor.worker_ready.remote()

    def read(self) -> Counts:
        """The counts of the board, or its last ones where it is late or lost."""
        import ray
        from ray.exceptions import RayError

        try:
            self._last = ray.get(self._actor.read.remote(), timeout=READ_WITHIN_S)
        except RayError as error:
            logging.getLogger(__name__).debug("the progress board did not answer: %s", error)
        return self._last


class MovingBoard:
    """In this process until actors report: few files are not worth one more process, and may turn out to be much
    work."""

    def __init__(self, stages: Sequence[str], by_file: bool) -> None:
        self._stages, self._by_file = tuple(stages), by_file
        # Threads of this process report side by side.
        self._adding = threading.Lock()
        self._board: ProgressBoard | SharedBoard = ProgressBoard(stages, by_file)

    def shared(self) -> SharedBoard:
        """For actors. It begins with the work that this process has reported."""
        if isinstance(self._board, ProgressBoard):
            self._board = SharedBoard(self._stages, self._by_file, self._board.read())
        return self._board

    def add(self, work: Work) -> None:
        with self._adding:
            self._board.add(work)

    def worker_ready(self) -> None:
        self._board.worker_ready()

    def read(self) -> Counts:
        return self._board.read()


@contextmanager
def reporting(
    read: Callable[[], Counts],
    progress: Callable[[Counts, float], Progress],
    on_progress: Callable[[Progress], None] | None,
) -> Iterator[None]:
    """Call ``on_progress`` from a thread twice a second while the block runs, and once at its end.

    ``progress`` makes the report from the counts that ``read`` gives and the seconds since the block began.
    """
    if on_progress is None:
        yield
        return
    began, stop = time.monotonic(), threading.Event()

    def report() -> None:
        on_progress(progress(read(), time.monotonic() - began))

    def loop() -> None:
        while not stop.wait(EVERY_S):
            report()

    thread = threading.Thread(target=loop, name="ingest-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    report()


def ingest_progress(counts: Counts, committed: int, total_files: int, elapsed_s: float) -> Progress:
    """Of the graph from files to passages, of which ``committed`` pages are.

    While files are still being registered, the pages of the rest are taken to be like those known so far. The remaining
    time is that of the remaining work, in which a page of a scan weighs what such pages took in this run.
    """
    # What is attached to files is only found on the way.
    total_files = max(total_files, counts.files)
    total = counts.stages["register"].pages
    decoded = counts.stages["decode"].pages
    rate = decoded / elapsed_s if elapsed_s else 0.0
    done, all_work = _work(counts, total_files)
    return Progress(
        files=counts.files,
        total_files=total_files,
        done_pages=committed,
        total_pages=total,
        pages_per_s=rate,
        eta_s=max(0.0, all_work - done) / done * elapsed_s if decoded and done else None,
        stages=(
            *counts.stages_of(INGEST_STAGES),
            StageProgress("commit", committed, committed / elapsed_s if elapsed_s else 0.0),
        ),
        by_file=tuple(FileProgress(uri, done, total) for uri, (total, done) in counts.by_file.items()),
    )


def _work(counts: Counts, total_files: int) -> tuple[float, float]:
    """What is done and what there is, in seconds of a core, as decoding took them in this run.

    A kind of which no page was read yet weighs by the other: a slow page ``SLOW_WEIGHT`` times as much.
    """
    known, decoded = (counts.stages[name] for name in INGEST_STAGES)
    plain = decoded.pages - decoded.slow
    plain_s = (decoded.busy_s - decoded.slow_s) / plain if plain else None
    slow_s = decoded.slow_s / decoded.slow if decoded.slow else None
    if slow_s is None:
        slow_s = SLOW_WEIGHT * (plain_s or 0.0)
    if plain_s is None:
        plain_s = slow_s / SLOW_WEIGHT
    # What was read of slow pages beyond expectation is known now.
    slow = max(known.slow, decoded.slow)
    there_is = (known.pages - slow) * plain_s + slow * slow_s
    done = plain * plain_s + decoded.slow * slow_s
    return done, there_is * total_files / counts.files if counts.files else 0.0
