"""Trajectories as Parquet: one row a run with its calls nested, and beside it the pictures, each once.

A file holds all that credit, masks and loss are computed from, so an update can be audited or made again without engine
or collection.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

from vrag_ray.agent.record import RunRecord
from vrag_ray.training.rewards.reward import Reward
from vrag_ray.training.trajectory import Call, Trajectory
from vrag_ray.types import VragError

if TYPE_CHECKING:
    import pyarrow as pa

IMAGES = ".images.parquet"
ABSENT: Mapping[str, object] = {"data_source": "", "cited": []}
"""What runs have in columns that files of earlier versions lack."""
R = TypeVar("R")
T = TypeVar("T")


class _CallRow(TypedDict):
    prompt_ids: list[int]
    images: list[str]
    completion_ids: list[int]
    logprobs: list[float]
    text: str
    finish: str
    weights: str


class _GoldRow(TypedDict):
    node: str
    pages: list[int]


class _RewardRow(TypedDict):
    """``grounding``, ``grounded`` and ``overlong`` are None in files of versions that did not know them."""

    total: float
    answer: float
    retrieval: float
    format: float
    grounding: float | None
    grounded: bool | None
    overlong: float | None
    success: bool


class _RunRow(TypedDict):
    uid: str
    sample: int
    calls: list[_CallRow]
    nodes: list[str | None]
    found: list[_GoldRow]
    gold: int
    reward: _RewardRow
    record: str
    kind: str
    data_source: str
    cited: list[_GoldRow]


def write_trajectories(path: Path, trajectories: Iterable[Trajectory]) -> None:
    """Write ``path`` (``….parquet``) and, beside it, ``….images.parquet``. Both appear whole or not at all."""
    pngs: dict[str, bytes] = {}
    rows = [_row(trajectory, pngs) for trajectory in trajectories]
    _write(path, rows, _schema(), pngs)


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """All of a file, or of a folder's files in order of their names. Raises VragError that names file and row."""
    for file in recorded_files(path):
        yield from _read(file, _schema(), _trajectory)


def write_calls(path: Path, calls: Iterable[Call]) -> None:
    """Calls that belong to no run, for example reading exercises, in the same form; ``read_calls`` reads both."""
    pngs: dict[str, bytes] = {}
    rows = [_call_row(call, pngs) for call in calls]
    _write(path, rows, _call_schema(), pngs)


def read_calls(path: Path) -> Iterator[Call]:
    """Every call of a file, or of a folder's files, that ``write_trajectories`` or ``write_calls`` wrote.

    Raises VragError that names file and row.
    """
    return (call for _, call in read_calls_by_question(path))


def read_calls_by_question(path: Path) -> Iterator[tuple[str, Call]]:
    """The same, each with the question of its run; a call that belongs to no run has its prompt instead."""
    for file in recorded_files(path):
        if _holds_runs(file):
            for run in _read(file, _schema(), _trajectory):
                yield from ((run.record.question, call) for call in run.calls)
        else:
            yield from _read(file, _call_schema(), _call_by_prompt)


def images_of(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".parquet") + IMAGES)


def recorded_files(path: Path) -> list[Path]:
    """``path``, or the files of a folder in order of their names. Raises VragError for a folder without any."""
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.glob("*.parquet") if not file.name.endswith(IMAGES))
    if not files:
        raise VragError(f"{path} holds no trajectories (*.parquet)")
    return files


def _write(path: Path, rows: Sequence[_CallRow | _RunRow], schema: pa.Schema, pngs: dict[str, bytes]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    images = pa.table({"sha256": list(pngs), "png": pa.array(list(pngs.values()), pa.binary())})
    for target, table in ((images_of(path), images), (path, pa.Table.from_pylist(list(rows), schema=schema))):
        partial = target.with_suffix(".partial")
        parquet.write_table(table, partial, compression="zstd")
        partial.replace(target)


def _holds_runs(file: Path) -> bool:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return "calls" in parquet.read_schema(file).names
    except (OSError, pa.ArrowException) as error:
        raise VragError(f"{file} holds no trajectories: {error}") from error


def _table(file: Path, schema: pa.Schema) -> tuple[pa.Table, dict[str, bytes]]:
    """The rows of a file, and the pictures beside it by their names."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        images = parquet.read_table(images_of(file))
        pngs = dict(zip(images["sha256"].to_pylist(), images["png"].to_pylist(), strict=True))
        table = parquet.read_table(file)
        for name, value in ABSENT.items():
            if name in schema.names and name not in table.column_names:
                table = table.append_column(name, pa.array([value] * len(table), schema.field(name).type))
        missing = [name for name in schema.names if name not in table.column_names]
        if not missing:
            return table.select(schema.names).cast(schema), pngs
    except (OSError, pa.ArrowException, KeyError) as error:
        raise VragError(f"{file} holds no trajectories: {error}") from error
    raise VragError(
        f"{file} holds no trajectories: it has no column {', '.join(missing)}; "
        "if an older version wrote it, its runs must be sampled again"
    )


def _read(file: Path, schema: pa.Schema, made_of: Callable[[R, dict[str, bytes]], T]) -> Iterator[T]:
    table, pngs = _table(file, schema)
    rows: list[R] = table.to_pylist()
    for number, row in enumerate(rows, start=1):
        try:
            made = made_of(row, pngs)
        except (KeyError, TypeError, ValueError, VragError) as error:
            raise VragError(f"{file}, row {number}: {type(error).__name__}: {error}") from error
        yield made


def _row(run: Trajectory, pngs: dict[str, bytes]) -> _RunRow:
    return {
        "uid": run.uid,
        "sample": run.sample,
        "calls": [_call_row(call, pngs) for call in run.calls],
        "nodes": list(run.nodes),
        "found": _gold_rows(run.found),
        "gold": run.gold,
        "reward": {
            "total": run.reward.total,
            "answer": run.reward.answer,
            "retrieval": run.reward.retrieval,
            "format": run.reward.format,
            "grounding": run.reward.grounding,
            "grounded": run.reward.grounded,
            "overlong": run.reward.overlong,
            "success": run.reward.success,
        },
        "record": run.record.to_json(),
        "kind": run.kind,
        "data_source": run.data_source,
        "cited": _gold_rows(run.cited),
    }


def _gold_rows(by_node: Mapping[str, frozenset[int]]) -> list[_GoldRow]:
    return [{"node": node, "pages": sorted(pages)} for node, pages in by_node.items()]


def _call_row(call: Call, pngs: dict[str, bytes]) -> _CallRow:
    names = [hashlib.sha256(png).hexdigest() for png in call.images]
    pngs.update(zip(names, call.images, strict=True))
    return {
        "prompt_ids": list(call.prompt_ids),
        "images": names,
        "completion_ids": list(call.completion_ids),
        "logprobs": list(call.logprobs),
        "text": call.text,
        "finish": call.finish,
        "weights": call.weights,
    }


def _trajectory(row: _RunRow, pngs: dict[str, bytes]) -> Trajectory:
    reward = row["reward"]
    return Trajectory(
        uid=row["uid"],
        sample=row["sample"],
        calls=tuple(_call(call, pngs) for call in row["calls"]),
        nodes=tuple(row["nodes"]),
        record=RunRecord.from_json(row["record"]),
        reward=Reward(
            reward["total"],
            reward["answer"],
            reward["retrieval"],
            reward["format"],
            success=bool(reward["success"]),
            grounding=0.0 if reward["grounding"] is None else reward["grounding"],
            grounded=bool(reward["grounded"]),
            overlong=reward["overlong"] or 0.0,
        ),
        found={gold["node"]: frozenset(gold["pages"]) for gold in row["found"]},
        gold=row["gold"],
        kind=row["kind"],
        data_source=row["data_source"],
        cited={gold["node"]: frozenset(gold["pages"]) for gold in row["cited"]},
    )


def _call(row: _CallRow, pngs: dict[str, bytes]) -> Call:
    return Call(
        prompt_ids=tuple(row["prompt_ids"]),
        images=tuple(pngs[name] for name in row["images"]),
        completion_ids=tuple(row["completion_ids"]),
        logprobs=tuple(row["logprobs"]),
        text=row["text"],
        finish=row["finish"],
        weights=row["weights"],
    )


def _call_by_prompt(row: _CallRow, pngs: dict[str, bytes]) -> tuple[str, Call]:
    return f"{row['prompt_ids']} {row['images']}", _call(row, pngs)


def _call_schema() -> pa.Schema:
    import pyarrow as pa

    tokens = pa.list_(pa.int32())
    return pa.schema(
        {
            "prompt_ids": tokens,
            "images": pa.list_(pa.string()),
            "completion_ids": tokens,
            "logprobs": pa.list_(pa.float64()),
            "text": pa.string(),
            "finish": pa.string(),
            "weights": pa.string(),
        }
    )


def _schema() -> pa.Schema:
    import pyarrow as pa

    parts = dict.fromkeys(("total", "answer", "retrieval", "format", "grounding", "overlong"), pa.float64())
    verdicts = dict.fromkeys(("grounded", "success"), pa.bool_())
    by_node = pa.list_(pa.struct({"node": pa.string(), "pages": pa.list_(pa.int32())}))
    return pa.schema(
        {
            "uid": pa.string(),
            "sample": pa.int32(),
            "calls": pa.list_(pa.struct(list(_call_schema()))),
            "nodes": pa.list_(pa.string()),
            "found": by_node,
            "gold": pa.int32(),
            "reward": pa.struct({**parts, **verdicts}),
            "record": pa.string(),
            "kind": pa.string(),
            "data_source": pa.string(),
            "cited": by_node,
        }
    )
