"""What a run writes down, what it forgets when steps are done again, and what is told to who watches."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from vrag_ray.training.config import ModelConfig, SFTConfig, load_training
from vrag_ray.training.run_folder import TOLD, RunFolder, told

CONFIG = SFTConfig(name="first", model=ModelConfig(path="some-model"), trajectories="runs", needs="two cores")


def open_folder(path: Path) -> RunFolder:
    return RunFolder(path, CONFIG, CONFIG.name, CONFIG.needs)


def metrics(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def board(path: Path) -> list[tuple[int, float]]:
    """Step and value of every point that TensorBoard shows: a session's start takes later steps back."""
    from tensorboardX.proto.event_pb2 import Event, SessionLog

    points: list[tuple[int, float]] = []
    for file in sorted((path / "tensorboard").iterdir()):
        data = file.read_bytes()
        at = 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            event = Event.FromString(data[at + 12 : at + 12 + size])
            at += 16 + size
            if event.session_log.status == SessionLog.START:
                points = [point for point in points if point[0] < event.step]
            points += [(event.step, value.simple_value) for value in event.summary.value]
    return points


def test_a_folder_explains_itself(tmp_path: Path):
    folder = open_folder(tmp_path / "run")
    folder.close()
    assert load_training(tmp_path / "run/config.yaml", SFTConfig) == CONFIG
    assert yaml.safe_load((tmp_path / "run/config.yaml").read_text())["batch"] == 32, "defaults are written too"
    readme = (tmp_path / "run/README.md").read_text()
    assert "first" in readme
    assert "Made for: two cores" in readme


def test_every_step_is_a_line_and_a_point(tmp_path: Path):
    folder = open_folder(tmp_path)
    folder.log(1, {"loss": 0.5})
    folder.log(2, {"loss": 0.25})
    folder.close()
    assert metrics(tmp_path) == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}]
    assert board(tmp_path) == [(1, 0.5), (2, 0.25)]


def test_steps_that_are_done_again_replace_what_was_written_of_them(tmp_path: Path):
    first = open_folder(tmp_path)
    first.rewind(0)
    for step in (1, 2, 3):
        first.log(step, {"loss": float(step)})
    first.close()
    [points] = (tmp_path / "tensorboard").iterdir()
    # Its name is the second in which it was begun, and a restart takes longer than that.
    points.rename(points.with_name("events.out.tfevents.1000000000.here"))
    again = open_folder(tmp_path)
    again.rewind(1)
    assert metrics(tmp_path) == [{"step": 1, "loss": 1.0}]
    again.log(2, {"loss": 20.0})
    again.close()
    assert metrics(tmp_path) == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 20.0}]
    assert board(tmp_path) == [(1, 1.0), (2, 20.0)]


def test_going_on_after_the_last_step_forgets_nothing(tmp_path: Path):
    folder = open_folder(tmp_path)
    folder.log(1, {"loss": 1.0})
    folder.rewind(1)
    folder.rewind(5)
    folder.close()
    assert metrics(tmp_path) == [{"step": 1, "loss": 1.0}]


def test_a_validation_that_is_made_again_replaces_the_one_before(tmp_path: Path):
    folder = open_folder(tmp_path)
    for step in (0, 1, 2):
        folder.log(step, {"validation/success": 0.5})
        folder.log(step + 1, {"loss": 1.0})
    folder.rewind(1)
    folder.close()
    assert metrics(tmp_path) == [{"step": 0, "validation/success": 0.5}, {"step": 1, "loss": 1.0}]


def test_a_line_that_a_killed_process_half_wrote_is_forgotten(tmp_path: Path):
    folder = open_folder(tmp_path)
    folder.log(1, {"loss": 1.0})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "lo')
    folder.rewind(1)
    folder.log(2, {"loss": 2.0})
    folder.close()
    assert metrics(tmp_path) == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0}]


def test_a_folder_that_has_nothing_yet_can_be_rewound(tmp_path: Path):
    folder = open_folder(tmp_path)
    folder.rewind(3)
    folder.close()
    assert not (tmp_path / "metrics.jsonl").exists()


class Scribe(threading.Event):
    """The end of a run that comes once ``pieces`` are written: one each time that the watcher waits."""

    def __init__(self, path: Path, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self.path = path
        self.pieces = list(pieces)

    def wait(self, timeout: float | None = None) -> bool:
        if self.pieces:
            with self.path.open("ab") as file:
                file.write(self.pieces.pop(0))
        return not self.pieces


def heard(folder: Path, pieces: Iterable[bytes]) -> list[str]:
    lines: list[str] = []
    told(folder, lines.append, Scribe(folder / TOLD, pieces))
    return lines


def test_who_watches_is_told_every_line_in_order_to_the_last(tmp_path: Path):
    said = tmp_path / "said"
    folder = open_folder(said)
    for step in range(1, 4):
        folder.tell(step, 3, f"loss {1 / step:.2f}")
    folder.close()
    pieces = (said / TOLD).read_bytes().splitlines(keepends=True)
    assert heard(tmp_path, pieces) == ["step 1/3: loss 1.00", "step 2/3: loss 0.50", "step 3/3: loss 0.33"]
    assert heard(said, [b"more\n"]) == ["more"], "what an earlier run told is not told again"


def test_only_whole_lines_are_told_and_none_is_lost(tmp_path: Path):
    written = "step 1/2: reward ½ größer\n\nstep 2/2: ✓\nstep 3/2: half a li".encode()
    by_byte = [bytes([byte]) for byte in written]
    assert heard(tmp_path, by_byte) == ["step 1/2: reward ½ größer", "", "step 2/2: ✓"]


def test_a_run_that_tells_nothing_is_watched_to_its_end(tmp_path: Path):
    over = threading.Event()
    over.set()
    told(tmp_path / "nowhere", pytest.fail, over)
