"""Which checkpoints of a run are whole: those that hold every file that their lists name, in its size.

A full disk, or a process that is killed, leaves half a checkpoint. Ray Train writes its record of them in place, so
that this may be lost as well, although the checkpoints are there: it is written anew from what is whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.training.run.storage import RunStorage

RECORD = "checkpoint_manager_snapshot.json"
PREFIX = "checkpoint_"
LIST = "files-{rank}-of-{ranks}.json"


class _Entry(BaseModel):
    model_config = ConfigDict(extra="allow")

    checkpoint_dir_name: str
    metrics: dict[str, object] = {}


class _Record(BaseModel):
    """Ray Train's own, the oldest checkpoint first. Other fields of a later version stay as they are."""

    model_config = ConfigDict(extra="allow")

    checkpoint_results: list[_Entry] = []
    checkpoint_report_indices: list[int] = []
    latest_checkpoint_result: _Entry | None = None
    pending_training_results: list[_Entry] = []
    pending_validation_specs: list[bool] = []
    current_report_index: int = 0
    validated_checkpoint_dir_names: list[str] = []
    timed_out_validation_checkpoint_dir_names: list[str] = []
    failed_validation_checkpoint_dir_names: list[str] = []


def new_name() -> str:
    """Of a folder, as Ray Train names them: they sort by their age."""
    return f"{PREFIX}{datetime.now().astimezone():%Y-%m-%d_%H-%M-%S.%f}"


def list_files(folder: Path, rank: int, ranks: int) -> None:
    """Leave in ``folder``, the part of a checkpoint that rank ``rank`` of ``ranks`` writes, the list of its files."""
    sizes = {file.name: file.stat().st_size for file in folder.iterdir()}
    (folder / LIST.format(rank=rank, ranks=ranks)).write_text(json.dumps(sizes))


def checkpoints(storage: RunStorage) -> list[str]:
    """The names of the whole ones, oldest first: a run goes on from the last.

    Those of earlier versions have no lists: Ray Train's record counts.
    """
    recorded = {entry.checkpoint_dir_name for entry in (_read(storage) or _Record()).checkpoint_results}
    return [name for name in _folders(storage) if _is_whole(storage, name, recorded=name in recorded)]


def mend_record(storage: RunStorage) -> list[str]:
    """Before Ray Train reads its record: have it name the whole checkpoints. What the user should know, in lines."""
    own, whole = _read(storage), checkpoints(storage)
    known = {entry.checkpoint_dir_name: entry for entry in (own or _Record()).checkpoint_results}
    if list(known) != whole or (own is None and RECORD in storage.listing()):
        entries = [known.get(name) or _Entry(checkpoint_dir_name=name) for name in whole]
        record = _Record(
            checkpoint_results=entries,
            checkpoint_report_indices=list(range(len(entries))),
            latest_checkpoint_result=entries[-1] if entries else None,
            current_report_index=len(entries),
        )
        storage.write(RECORD, record.model_dump_json().encode())
    there = _folders(storage)
    then = f"this run goes on from {whole[-1]}" if whole else "this run begins anew"
    gone = [f"notice: {storage.uri(name)} was removed: {then}" for name in known if name not in there]
    return gone + [
        f"notice: {storage.uri(name)} does not count, because it is not whole: the disk was full, or a process was "
        f"killed, while it was written. It takes space and may be removed; {then}"
        for name in there
        if name not in whole
    ]


def _folders(storage: RunStorage) -> list[str]:
    return sorted(name for name, size in storage.listing().items() if name.startswith(PREFIX) and size is None)


def _is_whole(storage: RunStorage, name: str, *, recorded: bool) -> bool:
    sizes = storage.listing(name)
    lists = [file for file in sizes if file.startswith("files-") and file.endswith(".json")]
    if not lists:
        return recorded
    ranks = int(lists[0].removesuffix(".json").rpartition("-")[2])
    parts = [_listed(storage, f"{name}/{LIST.format(rank=rank, ranks=ranks)}") for rank in range(ranks)]
    return all(part and all(sizes.get(file) == size for file, size in part.items()) for part in parts)


def _listed(storage: RunStorage, name: str) -> Mapping[str, object]:
    """Empty for a list that is not there, or not whole."""
    try:
        sizes: object = json.loads(storage.read(name))
    except ValueError:
        return {}
    return sizes if isinstance(sizes, dict) else {}


def _read(storage: RunStorage) -> _Record | None:
    """Ray Train's record; None where there is none, or half of it."""
    try:
        return _Record.model_validate_json(storage.read(RECORD))
    except ValidationError:
        return None
