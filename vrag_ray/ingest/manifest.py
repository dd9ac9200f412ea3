"""A list of files with the metadata of each: ``vrag ingest --manifest``."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.corpus.model import clean
from vrag_ray.ingest.object_store import is_remote, listed
from vrag_ray.ingest.sources import Source, file_source
from vrag_ray.types import MetaValue, VragError
from vrag_ray.types.documents import number_or_text
from vrag_ray.types.file_names import given_path, shown_name

if TYPE_CHECKING:
    from vrag_ray.types import Meta

PLACE = "path"
SUFFIXES = (".jsonl", ".csv", ".parquet")


def read_manifest(manifest: Path) -> list[Source]:
    """One source a row: ``path`` is a file or URI, relative to the manifest's folder; the other columns are metadata.

    A name that is not UTF-8 may stand in a text manifest as it is, and in any as a ``file:`` URI.

    Empty values are left out; those of a CSV file are texts, unless they are whole or decimal numbers. Raises VragError
    that names the manifest and the row.
    """
    sources = [_source(manifest, number, row) for number, row in enumerate(_rows(manifest), start=1)]
    if not sources:
        raise VragError(f"{manifest} has no rows")
    return sources


def _rows(manifest: Path) -> Iterator[Mapping[str, object]]:
    suffix = manifest.suffix.lower()
    try:
        if suffix == ".jsonl":
            # Only \n ends a line of JSON: str.splitlines would also cut at separators that strings may hold.
            lines = manifest.read_text(encoding="utf-8-sig", errors="surrogateescape").split("\n")
            yield from (_object(manifest, number, line) for number, line in enumerate(lines, 1) if line.strip())
        elif suffix == ".csv":
            with manifest.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as stream:
                head = stream.readline()
                stream.seek(0)
                # Spreadsheets write what their language separates by.
                for number, row in enumerate(csv.DictReader(stream, delimiter=max(",;\t", key=head.count)), 1):
                    if None in row:
                        raise VragError(f"row {number} of {manifest} has more values than there are columns")
                    yield {name: value and number_or_text(value) for name, value in row.items()}
        elif suffix == ".parquet":
            import pyarrow.parquet as pq

            # By a stream: Arrow opens no file whose name is not UTF-8.
            with manifest.open("rb") as stream:
                for batch in pq.ParquetFile(stream).iter_batches():
                    yield from batch.to_pylist()
        else:
            raise VragError(f"{manifest} is no manifest: use one of {', '.join(SUFFIXES)}")
    except (OSError, csv.Error) as error:
        raise VragError(f"the manifest {manifest} cannot be read: {error}") from error


def _source(manifest: Path, number: int, row: Mapping[str, object]) -> Source:
    place = row.get(PLACE)
    if not isinstance(place, str) or not place.strip():
        raise VragError(f"row {number} of {manifest} has no {PLACE}: a file or URI, relative to {manifest.parent}")
    meta = _meta(manifest, number, row)
    if is_remote(place):
        files, is_file = listed(place)
        if not is_file:
            raise VragError(f"row {number} of {manifest}: {place} is a folder, a row names one file")
        return Source(files[0].location, files[0].uri, files[0].name, meta)
    file = given_path(place, manifest.parent)
    if not file.is_file():
        raise VragError(f"row {number} of {manifest}: {shown_name(str(file))} is not a file")
    return file_source(file, meta)


def _meta(manifest: Path, number: int, row: Mapping[str, object]) -> Meta:
    meta: dict[str, MetaValue] = {}
    for name, value in row.items():
        if name == PLACE or value is None or value == "":
            continue
        if not isinstance(value, str | int | float | bool):
            raise VragError(f"row {number} of {manifest}: {name} is neither a text nor a number nor true or false")
        meta[clean(name)] = clean(value) if isinstance(value, str) else value
    return meta


def _object(manifest: Path, number: int, line: str) -> Mapping[str, object]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise VragError(f"line {number} of {manifest} is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise VragError(f"line {number} of {manifest} is not a JSON object")
    return row
