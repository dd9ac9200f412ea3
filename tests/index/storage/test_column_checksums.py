"""Sums over whole columns are those that are written row by row, wherever a batch was cut."""

from __future__ import annotations

import json

import pyarrow as pa
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.index.storage.column_checksums import SPACE_HEAD, space_checksums, text_checksums
from vrag_ray.index.storage.rows import SHARD_COLUMNS, passage_schema, shard_checksum
from vrag_ray.index.storage.spaces import SPACE_COLUMNS, space_schema

ROWS = st.lists(
    st.tuples(
        st.text(max_size=8),
        st.sampled_from(["a" * 64, "b" * 64, "ü"]),
        st.sampled_from(["page", "clip"]),
        st.sampled_from(["", "minilm/1"]),
        st.sampled_from(["{}", '{"year":1851}']),
        st.binary(max_size=12),
    ),
    min_size=1,
    max_size=20,
)


@given(rows=ROWS, cut=st.integers(0, 19), flags=st.lists(st.booleans(), min_size=20, max_size=20))
def test_they_equal_those_of_single_rows(
    rows: list[tuple[str, str, str, str, str, bytes]], cut: int, flags: list[bool]
) -> None:
    columns = {name: list(values) for name, values in zip(SHARD_COLUMNS, zip(*rows, strict=True), strict=True)}
    schema = pa.schema([passage_schema().field(name) for name in SHARD_COLUMNS])
    whole = pa.RecordBatch.from_pydict(columns, schema=schema)
    sums = [shard_checksum(*row) for row in rows]
    assert text_checksums(whole).tolist() == sums
    assert text_checksums(whole.slice(cut)).tolist() == sums[cut:]
    mask = flags[: len(rows)]
    assert text_checksums(whole.filter(pa.array(mask))).tolist() == [
        s for s, keep in zip(sums, mask, strict=True) if keep
    ]


SMALL = st.none() | st.integers(0, 3)
SPACE_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a:p1:w0", "b:p1:w0", 'quoted "', "back\\slash", "line\n", "ü\x7f", ""]),
        st.sampled_from(["a" * 64, "b" * 64]),
        st.sampled_from(["page", "clip"]),
        st.sampled_from(["{}", '{"title":"\\"ü"}']),
        st.integers(0, 2),
        SMALL,
        SMALL,
        st.none() | st.integers(0, 2**64 - 1),
        st.sampled_from(["", "no picture"]),
        st.binary(max_size=12) | st.just(bytes(9000)),
    ),
    min_size=1,
    max_size=12,
)


@given(rows=SPACE_ROWS, cut=st.integers(0, 11))
def test_sums_of_a_space_are_those_of_its_rows_as_json(rows: list[tuple[object, ...]], cut: int) -> None:
    columns = {name: list(values) for name, values in zip(SPACE_COLUMNS, zip(*rows, strict=True), strict=True)}
    schema = pa.schema([space_schema().field(name) for name in SPACE_COLUMNS])
    whole = pa.RecordBatch.from_pydict(columns, schema=schema)
    sums = []
    for *head, vectors in rows:
        assert len(head) == len(SPACE_HEAD) and isinstance(vectors, bytes)
        data = json.dumps(head, ensure_ascii=False).encode() + b"\x1f" + vectors
        sums.append(xxhash.xxh3_64_intdigest(data))
    assert space_checksums(whole).tolist() == sums
    assert space_checksums(whole.slice(cut)).tolist() == sums[cut:]
