"""Rows of a file as typed values: whatever does not fit is an error that names file, row and field."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.types import VragError
from vrag_ray.types.errors import validation_message

Row = TypeVar("Row", bound=BaseModel)
OTHER_FORM = ("missing", "extra_forbidden")
"""The faults, by pydantic's names, of rows in another form than the one that is read."""


class DataError(VragError):
    """A file of examples that cannot be read, or examples that a file of that form cannot hold."""


class Strict(BaseModel):
    """Unknown fields are refused: what is not understood must not be lost on the way."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def checked(rows: Iterable[object], model: type[Row], path: Path) -> list[Row]:
    """Each row, counted from 1, as a ``model``. Raises ``DataError`` for the first that is none."""
    models: list[Row] = []
    for number, row in enumerate(rows, start=1):
        try:
            models.append(model.model_validate(row))
        except ValidationError as error:
            raise DataError(f"{path}: row {number}: {_faults(error)}") from error
    return models


def _faults(error: ValidationError) -> str:
    """The first fault of a row, or all fields that it lacks or has too many: a row of another form has several."""
    faults = error.errors(include_url=False, include_input=False)
    fields: dict[str, list[str]] = {}
    for fault in faults if faults[0]["type"] in OTHER_FORM else faults[:1]:
        if fault is faults[0] or fault["type"] in OTHER_FORM:
            where = ".".join(str(part) for part in fault["loc"])
            fields.setdefault(validation_message(fault), []).append(where)
    return "; ".join(f"{', '.join(names)}: {message}" if any(names) else message for message, names in fields.items())


def unique(uids: Iterable[str], path: Path) -> None:
    """Raise ``DataError`` where two rows have the same uid: all that is made of an example is named by it."""
    seen: dict[str, int] = {}
    for number, uid in enumerate(uids, start=1):
        if uid in seen:
            raise DataError(f"{path}: row {number}: uid: {uid!r} is the uid of row {seen[uid]} already")
        seen[uid] = number


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def read_text(path: Path) -> str:
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: byte {error.start} cannot be read") from error


def json_lines(path: Path) -> list[object]:
    """A value a line. Raises ``DataError`` that names the row (from 1) that is none; empty lines may end the file."""
    # Only \n ends a line of JSON: str.splitlines would also cut at separators that strings may hold.
    lines = read_text(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    rows: list[object] = []
    for number, line in enumerate(lines, start=1):
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: row {number}: not JSON: {error}") from error
    return rows


def write_bytes(path: Path, data: bytes) -> None:
    """All or nothing: a reader never meets half a file."""
    try:
        CollectionFiles(str(path.parent)).write(path.name, data)
    except VragError as error:
        raise DataError(f"cannot write {path}: {error.__cause__ or error}") from error
