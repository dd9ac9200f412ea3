"""What a run writes down, what it forgets when steps are done again, and what watchers receive."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from tests.support.object_store import Bucket
from vrag_ray.training.config import ModelConfig, SFTConfig, load_training
from vrag_ray.training.run.folder import PROGRESS, RunFolder, claim, follow_progress
from vrag_ray.training.run.storage import RunStorage, local_copy
from vrag_ray.types import VragError

CONFIG = SFTConfig(name="first", model=ModelConfig(path="some-model"), trajectories="runs", needs="two cores")


@pytest.fixture(params=["local", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> RunStorage:
    """A run on a local disk and in an object store, in turn."""
    if request.param == "local":
        return RunStorage(str(tmp_path), "run")
    bucket: Bucket = request.getfixturevalue("bucket")
    return RunStorage(bucket.uri(tmp_path.name), "run")


def open_folder(storage: RunStorage) -> RunFolder:
    storage.create()
    return RunFolder(storage, CONFIG, CONFIG.name, CONFIG.made_for)


def metrics(storage: RunStorage) -> list[dict[str, float]]:
    return [json.loads(line) for line in storage.read("metrics.jsonl").splitlines()]


def board(storage: RunStorage) -> list[tuple[int, float]]:
    """Step and value of every point that TensorBoard shows: a session's start takes later steps back."""
    from tensorboardX.proto.event_pb2 import Event, SessionLog

    with local_copy(storage.uri("tensorboard")) as folder:
        files = [file.read_bytes() for file in sorted(folder.iterdir())]
    points: list[tuple[int, float]] = []
    for data in files:
        at = 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            event = Event.FromString(data[at + 12 : at + 12 + size])
            at += 16 + size
            if event.session_log.status == SessionLog.START:
                points = [point for point in points if point[0] < event.step]
            points += [(event.step, value.simple_value) for value in event.summary.value]
    return points


def test_a_folder_explains_itself(storage: RunStorage):
    folder = open_folder(storage)
    folder.close()
    with local_copy(storage.uri("config.yaml")) as file:
        assert load_training(file, SFTConfig) == CONFIG
        assert yaml.safe_load(file.read_text())["batch"] == 32, "defaults are written too"
    readme = storage.read("README.md").decode()
    assert "first" in readme
    assert "Made for: two cores" in readme


def test_every_step_is_a_line_at_once_and_a_point_in_the_end(storage: RunStorage):
    folder = open_folder(storage)
    folder.log(1, {"loss": 0.5})
    folder.log(2, {"loss": 0.25})
    assert metrics(storage) == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}]
    folder.close()
    assert board(storage) == [(1, 0.5), (2, 0.25)]


def test_steps_that_are_done_again_replace_what_was_written_of_them(
    storage: RunStorage, monkeypatch: pytest.MonkeyPatch
):
    # A file of TensorBoard is named by the second in which it was begun, and a restart takes longer than that.
    clock = iter(range(1_000_000_000, 2_000_000_000, 1000))
    monkeypatch.setattr("tensorboardX.event_file_writer.time.time", lambda: next(clock))
    first = open_folder(storage)
    first.rewind(0)
    for step in (1, 2, 3):
        first.log(step, {"loss": float(step)})
    first.close()
    again = open_folder(storage)
    again.rewind(1)
    assert metrics(storage) == [{"step": 1, "loss": 1.0}]
    again.log(2, {"loss": 20.0})
    again.close()
    assert metrics(storage) == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 20.0}]
    assert board(storage) == [(1, 1.0), (2, 20.0)]


def test_going_on_after_the_last_step_forgets_nothing(storage: RunStorage):
    folder = open_folder(storage)
    folder.log(1, {"loss": 1.0})
    folder.rewind(1)
    folder.rewind(5)
    folder.close()
    assert metrics(storage) == [{"step": 1, "loss": 1.0}]


def test_a_validation_that_is_made_again_replaces_the_one_before(storage: RunStorage):
    folder = open_folder(storage)
    for step in (0, 1, 2):
        folder.log(step, {"validation/success": 0.5})
        folder.log(step + 1, {"loss": 1.0})
    folder.rewind(1)
    folder.close()
    assert metrics(storage) == [{"step": 0, "validation/success": 0.5}, {"step": 1, "loss": 1.0}]


def test_a_line_that_a_killed_process_half_wrote_is_forgotten(storage: RunStorage):
    folder = open_folder(storage)
    folder.log(1, {"loss": 1.0})
    storage.append("metrics.jsonl", b'{"step": 2, "lo')
    folder.rewind(1)
    folder.log(2, {"loss": 2.0})
    folder.close()
    assert metrics(storage) == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0}]


def test_a_folder_that_has_nothing_yet_can_be_rewound(storage: RunStorage):
    folder = open_folder(storage)
    folder.rewind(3)
    folder.close()
    assert storage.read("metrics.jsonl") == b""


class Scribe(threading.Event):
    """The end of a run that comes once ``pieces`` are written: one each time that the watcher waits."""

    def __init__(self, storage: RunStorage, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self.storage = storage
        self.pieces = list(pieces)

    def wait(self, timeout: float | None = None) -> bool:
        if self.pieces:
            self.storage.append(PROGRESS, self.pieces.pop(0))
        return not self.pieces


def heard(storage: RunStorage, pieces: Iterable[bytes]) -> list[str]:
    storage.create()
    lines: list[str] = []
    follow_progress(storage, lines.append, Scribe(storage, pieces))
    return lines


def test_a_watcher_receives_every_line_in_order_to_the_last(storage: RunStorage, tmp_path: Path):
    folder = open_folder(storage)
    for step in range(1, 4):
        folder.report(step, 3, f"loss {1 / step:.2f}")
    folder.close()
    pieces = storage.read(PROGRESS).splitlines(keepends=True)
    other = RunStorage(str(tmp_path), "other")
    assert heard(other, pieces) == ["step 1/3: loss 1.00", "step 2/3: loss 0.50", "step 3/3: loss 0.33"]
    assert heard(storage, [b"more\n"]) == ["more"], "lines of an earlier run are not sent again"


def test_a_watcher_receives_only_whole_lines_and_all_of_them(storage: RunStorage):
    written = "step 1/2: reward ½ größer\n\nstep 2/2: ✓\nstep 3/2: half a li".encode()
    by_byte = [bytes([byte]) for byte in written]
    assert heard(storage, by_byte) == ["step 1/2: reward ½ größer", "", "step 2/2: ✓"]


def test_a_run_that_tells_nothing_is_watched_to_its_end(storage: RunStorage):
    over = threading.Event()
    over.set()
    follow_progress(storage, pytest.fail, over)


def test_a_run_of_another_kind_is_not_continued_under_its_name(tmp_path: Path) -> None:
    storage = RunStorage(str(tmp_path), "mine")
    storage.create()
    claim(storage, "supervised fine-tuning")
    claim(storage, "supervised fine-tuning")
    with pytest.raises(VragError, match=r"mine is a run of supervised fine-tuning, and this is one of reinforcement"):
        claim(storage, "reinforcement learning")
