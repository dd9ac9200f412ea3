"""Which column of a Parquet file holds the documents, which one names them, and which rows go together."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vrag_ray.ingest.parquet.layout import ROWS_TOGETHER, row_ranges
from vrag_ray.types import VragError

PNG = b"\x89PNG\r\n\x1a\n"
PICTURE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def write(folder: Path, columns: dict[str, object], rows_of_a_group: int = 1_000_000) -> Path:
    path = folder / "data.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=rows_of_a_group)
    return path


def content_of(path: Path, column: str | None = None) -> str:
    return row_ranges(path, path.name, column)[0].content


def of_type(kind: pa.DataType, values: list[object]) -> pa.Array:
    return pa.array(values, kind)


@pytest.mark.parametrize(
    ("columns", "content"),
    [
        ({"query": ["a"], "image": [PNG]}, "image"),
        ({"page": [3], "image": [{"bytes": PNG, "path": "a.png"}]}, "image"),
        ({"title": ["a"], "text": ["b"]}, "text"),
        ({"scan": [PNG], "year": [1851]}, "scan"),
        ({"slide": of_type(PICTURE, [{"bytes": PNG, "path": None}]), "text": ["words of the slide"]}, "slide"),
        ({"body": of_type(pa.dictionary(pa.int32(), pa.string()), ["a"]), "year": [1851]}, "body"),
        ({"content": of_type(pa.large_string(), ["a"])}, "content"),
    ],
)
def test_the_column_of_the_documents_is_detected_by_name_and_type(
    tmp_path: Path, columns: dict[str, object], content: str
) -> None:
    assert content_of(write(tmp_path, columns)) == content


def test_a_named_column_wins(tmp_path: Path) -> None:
    path = write(tmp_path, {"image": [PNG], "ocr": ["words"]})
    assert (content_of(path), content_of(path, "ocr")) == ("image", "ocr")


@pytest.mark.parametrize(
    ("columns", "column", "problem"),
    [
        ({"front": [PNG], "back": [PNG]}, None, r"several columns .* front \(binary\), back \(binary\).*--content-col"),
        ({"year": [1851]}, None, r"no column that holds documents; found are year \(int64\)"),
        ({"path": ["a.pdf"]}, None, "a list of files is given as --manifest"),
        ({"text": ["a"]}, "txt", r"the column txt is not there; found are text \(string\)"),
        ({"text": ["a"], "year": [1]}, "year", "the column year is neither bytes nor text"),
    ],
)
def test_a_file_without_a_clear_column_is_refused_with_what_it_has(
    tmp_path: Path, columns: dict[str, object], column: str | None, problem: str
) -> None:
    with pytest.raises(VragError, match=problem):
        row_ranges(write(tmp_path, columns), "data.parquet", column)


def test_columns_of_one_name_and_files_that_are_no_parquet_are_refused_by_name(tmp_path: Path) -> None:
    twins = tmp_path / "twins.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"]), twins)
    with pytest.raises(VragError, match=r"twins\.parquet has columns of the same name"):
        row_ranges(twins, twins.name, None)
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 and no more")
    with pytest.raises(VragError, match=r"torn\.parquet cannot be read"):
        row_ranges(torn, torn.name, None)


@pytest.mark.parametrize(
    ("ids", "named"),
    [(["a", "b", "c"], "id"), ([1, 2, 3], "id"), (["a", "a", "b"], ""), (["a", None, "b"], ""), ([1.0, 2.0, 3.0], "")],
)
def test_a_column_of_ids_names_rows_where_each_has_one_of_its_own(
    tmp_path: Path, ids: list[object], named: str
) -> None:
    [rows] = row_ranges(write(tmp_path, {"id": ids, "text": ["x", "y", "z"]}), "data.parquet", None)
    assert rows.id == named


def test_the_next_column_of_ids_is_tried_where_an_id_names_several_rows(tmp_path: Path) -> None:
    columns: dict[str, object] = {"id": ["a", "a"], "page_id": ["a-1", "a-2"], "text": ["x", "y"]}
    [rows] = row_ranges(write(tmp_path, columns), "data.parquet", None)
    assert rows.id == "page_id"


@pytest.mark.parametrize(("count", "of_a_group"), [(200, 10), (200, 100), (3, 10), (64, 64), (65, 1)])
def test_ranges_hold_every_row_once_in_order_and_join_small_row_groups(
    tmp_path: Path, count: int, of_a_group: int
) -> None:
    ranges = row_ranges(write(tmp_path, {"text": [str(n) for n in range(count)]}, of_a_group), "data.parquet", None)
    assert [part.first for part in ranges] == [1 + sum(part.count for part in ranges[:n]) for n in range(len(ranges))]
    assert [part.start for part in ranges] == [0, *(part.stop for part in ranges[:-1])]
    assert sum(part.count for part in ranges) == count
    assert max(part.count for part in ranges) <= max(of_a_group, ROWS_TOGETHER)
    if of_a_group <= ROWS_TOGETHER:
        assert len(ranges) <= 1 + count // (ROWS_TOGETHER - of_a_group + 1)


def test_a_file_without_rows_has_no_ranges(tmp_path: Path) -> None:
    assert row_ranges(write(tmp_path, {"text": of_type(pa.string(), [])}), "data.parquet", None) == []
