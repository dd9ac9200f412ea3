"""The rows of a range as documents, one after the other: never more of them in memory than a small batch and what the
file has in one page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from vrag_ray.corpus.formats.text import TITLE_CHARS
from vrag_ray.corpus.model import clean
from vrag_ray.corpus.sniff import HEAD_BYTES, fitting_name
from vrag_ray.ingest.parquet.layout import ROWS_TOGETHER, RowRange, is_text, opened
from vrag_ray.types import Document, Meta, MetaValue

if TYPE_CHECKING:
    import pyarrow as pa

TITLE_COLUMNS = ("title", "name")
FILE_COLUMNS = ("path", "file_path", "file_name", "filename", "image_filename")
MOST_CHARS_OF_META = 1000
"""Longer texts are no metadata to filter by: each passage of a document carries them, in the memory of every shard."""
_BATCH_BYTES = 8_000_000


@dataclass(frozen=True, slots=True)
class RowDocument:
    """A row on its way to become a document. ``content`` is its bytes, or why there are none."""

    uri: str
    name: str
    content: bytes | OSError
    title: str = ""
    meta: Meta = field(default_factory=dict)


def row_documents(location: str, uri: str, name: str, rows: RowRange) -> Iterator[RowDocument]:
    """Every row of the range in order, named ``uri#<id>`` or ``uri#row=<number from 1>``.

    A row that cannot be read has the reason; where the file itself cannot be read on, one reason stands for the rest.
    """
    number, last = rows.first, rows.first + rows.count - 1
    try:
        with opened(location) as file:
            columns = _columns(file.schema_arrow, rows)
            batches = file.iter_batches(
                _rows_of_a_batch(rows), row_groups=range(rows.start, rows.stop), columns=columns, use_threads=False
            )
            for batch in batches:
                for place in range(batch.num_rows):
                    yield _document(batch, place, number, uri, name, rows)
                    number += 1
    except OSError as error:
        yield RowDocument(f"{uri}#rows={number}-{last}", f"{name}, rows {number} to {last},", error)


def row_names(documents: Iterable[Document]) -> dict[str, list[str]]:
    """By document id, the ids (or ``row=<number>``) of the rows that it was made of: rows of one content are one
    document."""
    return {document.doc_id: [unquote(uri.rpartition("#")[2]) for uri in document.uris] for document in documents}


def _rows_of_a_batch(rows: RowRange) -> int:
    return max(1, min(ROWS_TOGETHER, _BATCH_BYTES * rows.count // max(1, rows.size_bytes)))


def _columns(schema: pa.Schema, rows: RowRange) -> list[str]:
    """The content and the columns that can be metadata. Vectors and other lists are not even read."""
    from pyarrow import types

    if rows.content not in schema.names:
        raise OSError("the file was changed while it was being read: do the same again")
    scalar = (types.is_boolean, types.is_integer, types.is_floating, types.is_date, types.is_timestamp, is_text)
    return [
        column.name for column in schema if column.name == rows.content or any(test(column.type) for test in scalar)
    ]


def _document(batch: pa.RecordBatch, place: int, number: int, uri: str, file: str, rows: RowRange) -> RowDocument:
    place_of_row = f"{uri}#row={number}"
    stem = PurePath(file).stem
    try:
        # Arrow checks neither the encoding of texts nor the range of dates before they are read.
        values = {name: batch.column(name)[place].as_py() for name in batch.schema.names}
    except (ValueError, OverflowError):
        return RowDocument(place_of_row, f"{stem} row {number}", OSError("a value of it is damaged: write it anew"))
    value = values.pop(rows.content)
    texts = {name: clean(text).strip() for name, text in values.items() if isinstance(text, str)}
    title = next((texts[name] for name in TITLE_COLUMNS if texts.get(name)), "")[:TITLE_CHARS]
    path = _path_in(value) or next((texts[name] for name in FILE_COLUMNS if texts.get(name)), "")
    own = str(values[rows.id]) if rows.id else f"row {number}"
    base = PurePath(path).name or title.replace("/", " ") or f"{stem} {own}".replace("/", " ")
    content = _content(value, rows.content)
    head = content[:HEAD_BYTES] if isinstance(content, bytes) else b""
    return RowDocument(
        uri=f"{uri}#{quote(own, safe='/:')}" if rows.id else place_of_row,
        name=fitting_name(base, head, is_text=isinstance(value, str)),
        content=content,
        title=title,
        meta={clean(name): stored for name, value in values.items() if (stored := _stored(value)) is not None},
    )


def _path_in(value: object) -> str:
    path = value.get("path") if isinstance(value, dict) else None
    return clean(path).strip() if isinstance(path, str) else ""


def _content(value: object, column: str) -> bytes | OSError:
    data = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, bytes):
        return data
    if path := _path_in(value):
        return OSError(f"its {column} has no bytes, only the path {path}: a list of files is given as --manifest")
    return OSError(f"it has no {column}")


def _stored(value: object) -> MetaValue | None:
    """As metadata; None for what is not, or is too long to be."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        text = clean(value)
        return text if 0 < len(text) <= MOST_CHARS_OF_META else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) else None
