"""Trajectories on disk: what comes back, and the error of a file that is not whole."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from tests.support.mosaic_runs import Groups
from vrag_ray.training.rewards.reward import Reward
from vrag_ray.training.rollout.trajectory_store import (
    images_of,
    read_calls,
    read_trajectories,
    write_calls,
    write_trajectories,
)
from vrag_ray.training.trajectory import Call, Trajectory
from vrag_ray.types import VragError

RED, BLUE = b"\x89PNG red", b"\x89PNG blue"
CALL = Call((1, 2, 2, 3), (RED, BLUE, RED), (4, 5), (-0.5, -math.inf), 'said "so" ü', "length", "7+8")


@pytest.fixture(scope="session")
def runs(groups: Groups) -> list[Trajectory]:
    """As sampled: with log-probs and a reward that no short decimal writes down."""
    numbers = iter(range(10_000))

    def spoken(call: Call) -> Call:
        return replace(call, logprobs=tuple(math.log(1 / (3 + next(numbers))) for _ in call.completion_ids))

    return [
        replace(run, calls=tuple(map(spoken, run.calls)), reward=Reward(1 / 3, 0.1, 0.2, 0.3, success=True))
        for group in groups
        for run in group
    ]


def test_trajectories_come_back_exactly(runs: list[Trajectory], tmp_path: Path):
    write_trajectories(tmp_path / "step.parquet", runs)
    assert list(read_trajectories(tmp_path / "step.parquet")) == runs


@settings(max_examples=30)
@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_floats_come_back_to_the_last_bit(tmp_path_factory: pytest.TempPathFactory, values: list[float]):
    path = tmp_path_factory.mktemp("floats") / "calls.parquet"
    write_calls(path, [replace(CALL, logprobs=tuple(values))])
    [call] = read_calls(path)
    assert [struct.pack("d", value) for value in call.logprobs] == [struct.pack("d", value) for value in values]


def test_what_one_file_has_of_a_picture_is_one_copy(runs: list[Trajectory], tmp_path: Path):
    write_trajectories(tmp_path / "step.parquet", runs)
    shown = [png for run in runs for call in run.calls for png in call.images]
    stored = parquet.read_table(images_of(tmp_path / "step.parquet"))["png"].to_pylist()
    assert len(shown) > 2 * len(set(shown))
    assert sorted(stored) == sorted(set(shown))


def test_calls_without_a_run_come_back_exactly(tmp_path: Path):
    write_calls(tmp_path / "exercises.parquet", [CALL, Call((1,), (), (2,))])
    assert list(read_calls(tmp_path / "exercises.parquet")) == [CALL, Call((1,), (), (2,))]


def test_calls_are_read_from_runs_and_from_calls_alike_in_order_of_the_files_names(
    runs: list[Trajectory], tmp_path: Path
):
    write_trajectories(tmp_path / "b.parquet", runs[:2])
    write_calls(tmp_path / "a.parquet", [CALL])
    write_trajectories(tmp_path / "c.parquet", runs[2:3])
    assert list(read_calls(tmp_path)) == [CALL, *(call for run in runs[:3] for call in run.calls)]
    assert list(read_calls(tmp_path / "c.parquet")) == list(runs[2].calls)


def test_a_folders_trajectories_come_in_order_of_the_files_names(runs: list[Trajectory], tmp_path: Path):
    write_trajectories(tmp_path / "step-2.parquet", runs[3:])
    write_trajectories(tmp_path / "step-1.parquet", runs[:3])
    assert list(read_trajectories(tmp_path)) == runs


def test_a_file_from_before_runs_had_a_source_is_read(runs: list[Trajectory], tmp_path: Path):
    named = [replace(run, data_source="slides") for run in runs[:2]]
    path = tmp_path / "step.parquet"
    write_trajectories(path, named)
    assert list(read_trajectories(path)) == named
    parquet.write_table(parquet.read_table(path).drop_columns(["data_source"]), path)
    assert list(read_trajectories(path)) == runs[:2]


def test_a_file_from_before_cited_elements_were_graded_is_read(runs: list[Trajectory], tmp_path: Path):
    path = tmp_path / "step.parquet"
    graded = [
        replace(
            run,
            reward=replace(run.reward, grounding=0.4, grounded=True, overlong=-0.7),
            cited={"s1": frozenset({0, 2})},
        )
        for run in runs[:2]
    ]
    write_trajectories(path, graded)
    assert list(read_trajectories(path)) == graded
    table = parquet.read_table(path).drop_columns(["cited"])
    rewards = [
        {name: value for name, value in reward.items() if name not in ("grounding", "grounded", "overlong")}
        for reward in table["reward"].to_pylist()
    ]
    column = table.schema.get_field_index("reward")
    parquet.write_table(table.set_column(column, "reward", pa.array(rewards)), path)
    assert list(read_trajectories(path)) == runs[:2]


def test_nothing_is_a_file_too(tmp_path: Path):
    write_trajectories(tmp_path / "none.parquet", [])
    assert list(read_trajectories(tmp_path)) == []
    assert list(read_calls(tmp_path)) == []


def test_writing_again_replaces_the_file(runs: list[Trajectory], tmp_path: Path):
    write_trajectories(tmp_path / "step.parquet", runs)
    write_trajectories(tmp_path / "step.parquet", runs[:1])
    assert list(read_trajectories(tmp_path)) == runs[:1]


def test_a_file_that_was_never_finished_is_never_read(runs: list[Trajectory], tmp_path: Path):
    write_trajectories(tmp_path / "step-1.parquet", runs[:1])
    # What a process leaves that dies at any point of writing the second step.
    (tmp_path / "step-2.images.partial").write_bytes(b"PAR1 half")
    (tmp_path / "step-2.partial").write_bytes(b"PAR1 half")
    images_of(tmp_path / "step-2.parquet").write_bytes(images_of(tmp_path / "step-1.parquet").read_bytes())
    assert list(read_trajectories(tmp_path)) == runs[:1]
    assert list(read_calls(tmp_path)) == list(runs[0].calls)


@pytest.mark.parametrize("read", [read_trajectories, read_calls])
def test_a_folder_without_files_is_named(read: Callable[[Path], object], tmp_path: Path):
    with pytest.raises(VragError, match=rf"{tmp_path.name} holds no trajectories"):
        list(read(tmp_path))  # type: ignore[call-overload]


@pytest.mark.parametrize("content", [b"", b"no parquet at all", None], ids=["empty", "other", "missing"])
@pytest.mark.parametrize("read", [read_trajectories, read_calls])
def test_a_file_that_is_none_is_named(read: Callable[[Path], object], content: bytes | None, tmp_path: Path):
    path = tmp_path / "odd.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(VragError, match=r"odd\.parquet holds no trajectories"):
        list(read(path))  # type: ignore[call-overload]


def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path):
    path = tmp_path / "table.parquet"
    parquet.write_table(pa.table({"colour": ["red"]}), path)
    images = pa.table({"sha256": pa.array([], pa.string()), "png": pa.array([], pa.binary())})
    parquet.write_table(images, images_of(path))
    for read in (read_trajectories, read_calls):
        with pytest.raises(VragError, match=r"table\.parquet holds no trajectories: it has no column"):
            list(read(path))


@pytest.mark.parametrize("read", [read_trajectories, read_calls])
def test_a_row_without_its_picture_is_named(read: Callable[[Path], object], runs: list[Trajectory], tmp_path: Path):
    path = tmp_path / "step.parquet"
    blind = [replace(run, calls=tuple(replace(call, images=()) for call in run.calls)) for run in runs]
    write_trajectories(path, [blind[0], runs[0]])
    _lose_pictures(path)
    with pytest.raises(VragError, match=r"step\.parquet, row 2: KeyError"):
        list(read(path))  # type: ignore[call-overload]


def test_a_call_without_its_picture_is_named(tmp_path: Path):
    path = tmp_path / "exercises.parquet"
    write_calls(path, [Call((1,), (), (2,)), CALL])
    _lose_pictures(path)
    with pytest.raises(VragError, match=r"exercises\.parquet, row 2: KeyError"):
        list(read_calls(path))


def test_a_record_that_is_none_is_named_by_its_row(runs: list[Trajectory], tmp_path: Path):
    path = tmp_path / "step.parquet"
    write_trajectories(path, runs[:3])
    table = parquet.read_table(path)
    records = [*table["record"].to_pylist()[:2], '{"run_id": "r1"}']
    column = table.schema.get_field_index("record")
    parquet.write_table(table.set_column(column, "record", pa.array(records)), path)
    with pytest.raises(VragError, match=r"step\.parquet, row 3: VragError: not a run record: question"):
        list(read_trajectories(path))


def _lose_pictures(path: Path) -> None:
    table = parquet.read_table(images_of(path))
    parquet.write_table(table.slice(0, 0), images_of(path))
