"""Which column of a Parquet file holds documents, and which of its rows one call registers.

Found out by the footer and, for names, a column of ids: contents are not read here, because this runs in the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vrag_ray.corpus.formats.text import TEXT_FIELDS
from vrag_ray.ingest.object_store import is_remote
from vrag_ray.types import VragError
from vrag_ray.types.file_names import shown_name

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

SUFFIX = ".parquet"
BYTES_COLUMNS = (
    "image", "jpg", "jpeg", "png", "pdf", "video", "mp4", "page", "bytes", "content", "document", "file", "data",
)  # fmt: skip
"""Where published data sets keep pictures, PDFs and videos; the first that a file has is taken."""
ID_COLUMNS = ("id", "uid", "_id", "doc_id", "docid", "corpus-id", "page_id", "image_id")
ROWS_TOGETHER = 64
"""Row groups of fewer rows are registered together, up to this many. A larger one is not cut: its rows could only be
reached by reading all those before them."""
_BUFFER = 1 << 20
_REMEDY = "name the column of the documents with --content-column (ingest.content_column)"


@dataclass(frozen=True, slots=True)
class RowRange:
    """Row groups ``start`` to ``stop`` of a Parquet file: ``count`` documents, the first in row ``first`` (from 1).

    ``content`` is the column of the documents, ``id`` one whose values name each; "" where there is none.
    ``size_bytes`` is what the rows take unpacked, as the file has it.
    """

    start: int
    stop: int
    first: int
    count: int
    size_bytes: int
    content: str
    id: str = ""


def row_ranges(location: Path | str, name: str, content_column: str | None) -> list[RowRange]:
    """All rows of the file at ``location``, in order. Raises VragError, naming the file by ``name``."""
    try:
        with opened(location) as file:
            content = _content_column(name, file.schema_arrow, content_column)
            unique = _id_column(file, content)
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            sizes = [(int(group.num_rows), int(group.total_byte_size)) for group in groups]
    except OSError as error:
        raise VragError(f"{name} cannot be read: {error.strerror or error}") from error
    return list(_together(sizes, content, unique))


@contextmanager
def opened(location: Path | str) -> Iterator[pq.ParquetFile]:
    """A file of this machine or of an object store, open while the block runs. Raises OSError for all that is wrong
    with it, also within the block."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import fs

    place = str(location)
    try:
        store, path = fs.FileSystem.from_uri(place) if is_remote(place) else (fs.LocalFileSystem(), place)
        # Arrow opens no local file whose name is not UTF-8.
        with store.open_input_file(path) if shown_name(path) == path else Path(path).open("rb") as stream:
            # Without a buffer of this size all bytes of a column of a row group are read at once.
            yield pq.ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False)
    except pa.ArrowException as error:
        raise OSError("it is no readable Parquet file: get the whole file again, or write it anew") from error


def is_text(kind: pa.DataType) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    from pyarrow import types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _is_struct_of_bytes(kind: pa.DataType) -> bool:
    """As the library ``datasets`` writes its pictures: a struct of ``bytes`` and ``path``."""
    from pyarrow import types

    return bool(types.is_struct(kind)) and any(field.name == "bytes" and _is_binary(field.type) for field in kind)


def _content_column(name: str, schema: pa.Schema, chosen: str | None) -> str:
    kinds = dict(zip(schema.names, schema.types, strict=True))
    described = ", ".join(f"{column} ({kind})" for column, kind in kinds.items())
    if len(kinds) < len(schema.names):
        raise VragError(f"{name} has columns of the same name: {', '.join(schema.names)}; rename them")
    structs = [column for column, kind in kinds.items() if _is_struct_of_bytes(kind)]
    binary = [column for column, kind in kinds.items() if _is_binary(kind)]
    texts = [column for column, kind in kinds.items() if is_text(kind)]
    if chosen is not None:
        if chosen in (*structs, *binary, *texts):
            return chosen
        reason = "is neither bytes nor text" if chosen in kinds else "is not there"
        raise VragError(f"{name}: the column {chosen} {reason}; found are {described}")
    if (named := _first(BYTES_COLUMNS, (*structs, *binary))) or (len(structs) == 1 and (named := structs[0])):
        return named
    if not structs and ((named := _first(TEXT_FIELDS, texts)) or (len(binary) == 1 and (named := binary[0]))):
        return named
    listed = "; a list of files is given as --manifest" if {"path", "file_path"} & kinds.keys() else ""
    problem = "several columns that may hold" if structs or binary else "no column that holds"
    raise VragError(f"{name} has {problem} documents; found are {described}: {_REMEDY}{listed}")


def _id_column(file: pq.ParquetFile, content: str) -> str:
    """The first column of ids that has one for each row, all different: others, such as those of a document for each
    of its pages, cannot name a row."""
    import pyarrow.compute as pc
    from pyarrow import types

    schema, rows = file.schema_arrow, file.metadata.num_rows
    for name in ID_COLUMNS:
        if name == content or name not in schema.names:
            continue
        kind = schema.field(name).type
        if types.is_string(kind) or types.is_large_string(kind) or types.is_integer(kind):
            ids = file.read([name]).column(0)
            if ids.null_count == 0 and pc.count_distinct(ids).as_py() == rows:
                return name
    return ""


def _together(sizes: Sequence[tuple[int, int]], content: str, unique: str) -> Iterator[RowRange]:
    start, first, count, size = 0, 1, 0, 0
    for number, (rows, size_bytes) in enumerate(sizes):
        if count and count + rows > ROWS_TOGETHER:
            yield RowRange(start, number, first, count, size, content, unique)
            start, first, count, size = number, first + count, 0, 0
        count, size = count + rows, size + size_bytes
    if count:
        yield RowRange(start, len(sizes), first, count, size, content, unique)


def _first(names: Sequence[str], present: Sequence[str]) -> str | None:
    return next((name for name in names if name in present), None)
