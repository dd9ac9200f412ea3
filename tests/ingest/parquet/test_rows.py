"""What a row of a Parquet file becomes: its bytes, a name that fits them, a title, metadata, or why it is none."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vrag_ray.ingest.parquet.layout import row_ranges
from vrag_ray.ingest.parquet.rows import MOST_CHARS_OF_META, RowDocument, row_documents

PNG = b"\x89PNG\r\n\x1a\nrest"
PDF = b"%PDF-1.7 rest"
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def documents(folder: Path, columns: dict[str, object], rows_of_a_group: int = 1_000_000) -> list[RowDocument]:
    path = folder / "deck.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=rows_of_a_group)
    ranges = row_ranges(path, path.name, None)
    return [
        document for rows in ranges for document in row_documents(str(path), "file:///deck.parquet", path.name, rows)
    ]


def reason(document: RowDocument) -> str:
    assert isinstance(document.content, OSError)
    return str(document.content)


def test_every_row_comes_in_order_across_row_groups_with_its_number(tmp_path: Path) -> None:
    loaded = documents(tmp_path, {"text": [f"text {n}" for n in range(1, 151)]}, rows_of_a_group=20)
    assert [document.content for document in loaded] == [f"text {n}".encode() for n in range(1, 151)]
    assert [document.uri for document in loaded] == [f"file:///deck.parquet#row={n}" for n in range(1, 151)]
    assert loaded[6].name == "deck row 7.txt"


def test_ids_name_rows_and_are_quoted_where_a_uri_needs_it(tmp_path: Path) -> None:
    loaded = documents(tmp_path, {"id": ["a/1", "two words#"], "text": ["x", "y"]})
    assert [document.uri.partition("#")[2] for document in loaded] == ["a/1", "two%20words%23"]
    assert [document.name for document in loaded] == ["deck a 1.txt", "deck two words#.txt"]


@pytest.mark.parametrize(
    ("content", "path", "name"),
    [
        (PNG, None, "deck row 1.png"),
        (PNG, "slides/one.png", "one.png"),
        (PNG, "slides/one.jpg", "one.png"),
        (PNG, "slides/v1.2", "v1.2.png"),
        (PDF, None, "deck row 1.pdf"),
    ],
)
def test_a_name_fits_the_bytes(tmp_path: Path, content: bytes, path: str | None, name: str) -> None:
    [document] = documents(tmp_path, {"image": pa.array([{"bytes": content, "path": path}], PICTURE)})
    assert (document.name, document.content) == (name, content)


def test_the_title_and_the_name_of_a_file_come_from_their_columns(tmp_path: Path) -> None:
    columns: dict[str, object] = {"title": [" Harbour/plan "], "file_name": ["plans/h.pdf"], "content": [PDF]}
    [document] = documents(tmp_path, columns)
    assert (document.title, document.name) == ("Harbour/plan", "h.pdf")


def test_numbers_dates_and_short_texts_become_metadata_and_nothing_else_does(tmp_path: Path) -> None:
    columns: dict[str, object] = {
        "text": ["x"],
        "year": [1851],
        "share": [0.5],
        "draft": [True],
        "day": pa.array([dt.date(2026, 11, 25)], pa.date32()),
        "author": ["Herman"],
        "empty": [""],
        "none": pa.array([None], pa.string()),
        "nan": [float("nan")],
        "long": ["x" * (MOST_CHARS_OF_META + 1)],
        "vector": [[0.1, 0.2]],
        "raw": [b"bytes"],
    }
    [document] = documents(tmp_path, columns)
    assert dict(document.meta) == {"year": 1851, "share": 0.5, "draft": True, "day": "2026-11-25", "author": "Herman"}


def test_a_row_without_content_says_so_and_the_others_stay(tmp_path: Path) -> None:
    rows = [{"bytes": PNG, "path": "a.png"}, {"bytes": None, "path": "b.png"}, {"bytes": None, "path": None}, None]
    first, path_only, nothing, null = documents(tmp_path, {"image": pa.array(rows, PICTURE)})
    assert first.content == PNG
    assert "only the path b.png: a list of files is given as --manifest" in reason(path_only)
    assert reason(nothing) == reason(null) == "it has no image"
    assert null.uri.endswith("#row=4")


def test_a_value_that_is_damaged_is_an_error_of_its_row(tmp_path: Path) -> None:
    broken = pa.StringArray.from_buffers(
        2, pa.py_buffer(bytes([0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0])), pa.py_buffer(b"\xffa")
    )
    bad, good = documents(tmp_path, {"text": broken})
    assert "a value of it is damaged" in reason(bad)
    assert good.content == b"a"


def test_a_file_that_is_torn_in_its_middle_gives_the_rest_one_error(tmp_path: Path) -> None:
    path = tmp_path / "deck.parquet"
    table = pa.table({"text": [f"{n} " * 2000 for n in range(128)]})
    pq.write_table(table, path, row_group_size=32, compression="none", use_dictionary=False)
    ranges = row_ranges(path, path.name, None)
    data = bytearray(path.read_bytes())
    start = pq.ParquetFile(path).metadata.row_group(3).column(0).data_page_offset
    data[start : start + 64] = b"\xff" * 64
    path.write_bytes(data)
    loaded = [
        document for rows in ranges for document in row_documents(str(path), "file:///deck.parquet", path.name, rows)
    ]
    whole = [document for document in loaded if isinstance(document.content, bytes)]
    assert len(whole) >= 64
    assert reason(loaded[-1])
    assert loaded[-1].uri == f"file:///deck.parquet#rows={len(whole) + 1}-128"


def test_a_file_that_was_replaced_in_between_says_so(tmp_path: Path) -> None:
    path = tmp_path / "deck.parquet"
    pq.write_table(pa.table({"text": ["x"]}), path)
    [rows] = row_ranges(path, path.name, None)
    pq.write_table(pa.table({"year": [1851]}), path)
    [document] = row_documents(str(path), "file:///deck.parquet", path.name, rows)
    assert "changed while it was being read" in reason(document)
