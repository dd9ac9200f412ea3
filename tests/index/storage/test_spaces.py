"""Vector spaces on disk: added, filled, rebuilt, dropped on their own; versioned, verified, deleted with documents."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

from tests.support.planted import doc_id_of, plant
from tests.support.planted_spaces import plant_space, stored_vectors, vectors_table
from vrag_ray.config import Settings
from vrag_ray.index.shards import row_loader
from vrag_ray.index.shards.row_loader import load_space_rows
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.rows import CorruptionError
from vrag_ray.index.storage.verify import verify
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest import ingest
from vrag_ray.types import NotFoundError, VragError

DATA = Path(__file__).parent / "data"
"""Collections written by the program as it was before there were spaces, and before texts were one."""
ROWS = [
    stored_vectors("a", 1, np.eye(2, 4, dtype=np.float32), grid=(1, 2), phash=7),
    stored_vectors("b", 1, np.eye(3, 4, dtype=np.float32)),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    plant(tmp_path / "c", {"a": ["one"], "b": ["two"]}, embedded=False)
    return tmp_path / "c"


def unembedded(root: Path, space: str) -> list[str]:
    with CollectionWriter(root) as writer:
        return [
            text for batch in writer.unembedded(space, {"text": "text"}) for text in batch.column("text").to_pylist()
        ]


def test_a_space_holds_what_was_put_in_bit_for_bit(root: Path) -> None:
    plant_space(root, "late", ROWS, dim=4)
    collection = Collection.open(root)
    [record] = collection.spaces
    assert (record.name, record.embedder_id, record.dim, record.multi_vector) == ("late", "late/1", 4, True)
    assert (record.passages, record.failed, record.vectors, record.config) == (2, 0, 5, {"model": "m"})
    assert record.bytes_per_passage == 5 * 4 * 2 / 2
    loaded = load_space_rows(collection, "late")
    by_id = dict(zip(loaded.rows.ids.to_pylist(), range(2), strict=True))
    for row in ROWS:
        n = by_id[row.passage_id]
        np.testing.assert_array_equal(loaded.vectors[loaded.bounds[n] : loaded.bounds[n + 1]], row.vectors)
        assert (tuple(loaded.grids[n]), loaded.phashes[n].as_py()) == (row.grid or (0, 0), row.phash)
    assert verify(root).is_sound


def test_what_a_space_lacks_is_listed_until_it_is_embedded_or_has_failed(root: Path) -> None:
    plant_space(root, "late", [], dim=4)
    assert sorted(unembedded(root, "late")) == ["one", "two"]
    broken = stored_vectors("b", 1, np.empty((0, 4), np.float32), error="no picture")
    with CollectionWriter(root) as writer:
        writer.spaces.add("late", vectors_table([ROWS[0], broken]))
        writer.publish("one of two")
    assert unembedded(root, "late") == []
    [record] = Collection.open(root).spaces
    assert (record.passages, record.failed) == (1, 1)
    assert len(load_space_rows(Collection.open(root), "late").rows.ids) == 1
    with CollectionWriter(root) as writer:
        writer.spaces.forget_failed("late")
        writer.publish("again")
    assert unembedded(root, "late") == ["two"]


def test_what_a_killed_writer_committed_is_kept_and_seen_by_the_next(root: Path) -> None:
    plant_space(root, "late", [], dim=4)
    with CollectionWriter(root) as writer:
        writer.spaces.add("late", vectors_table(ROWS[:1]))
    assert Collection.open(root).spaces[0].passages == 0
    assert unembedded(root, "late") == ["two"]
    with CollectionWriter(root) as writer:
        writer.publish("the next")
    assert Collection.open(root).spaces[0].passages == 1


def test_older_versions_keep_their_spaces_when_one_is_rebuilt_or_dropped(root: Path) -> None:
    plant_space(root, "late", ROWS, dim=4)
    full = Collection.open(root).version
    plant_space(root, "late", [stored_vectors("a", 1, np.eye(1, 8, dtype=np.float32))], dim=8)
    rebuilt = Collection.open(root).version
    with CollectionWriter(root) as writer:
        writer.spaces.drop("late")
        writer.publish("dropped")
    assert Collection.open(root).spaces == ()
    with pytest.raises(NotFoundError, match=r"no vector space late \(there are: none\).*vrag embed --space late"):
        Collection.open(root).space("late")
    assert load_space_rows(Collection.open(root, rebuilt), "late").vectors.shape == (1, 8)
    assert load_space_rows(Collection.open(root, full), "late").vectors.shape == (
        5,
        4,
    )
    assert verify(root).is_sound


def test_a_deleted_document_leaves_every_space_and_older_versions_keep_it(root: Path) -> None:
    plant_space(root, "late", ROWS, dim=4)
    plant_space(root, "other", ROWS, dim=4)
    before = Collection.open(root).version
    with CollectionWriter(root) as writer:
        writer.delete(doc_id_of("a"))
        writer.publish("deleted")
    for name in ("late", "other"):
        assert len(load_space_rows(Collection.open(root), name).rows.ids) == 1
        assert len(load_space_rows(Collection.open(root, before), name).rows.ids) == 2
    assert [space.passages for space in Collection.open(root).spaces] == [1, 1]


def test_vectors_of_another_dimension_are_refused_before_anything_is_written(root: Path) -> None:
    plant_space(root, "late", ROWS, dim=4)
    with CollectionWriter(root) as writer, pytest.raises(VragError, match="have 3 dimensions, the space late has 4"):
        writer.spaces.add("late", vectors_table([stored_vectors("a", 1, np.eye(2, 3, dtype=np.float32))]))
    assert Collection.open(root).spaces[0].vectors == 5


def test_a_flipped_byte_of_any_vector_is_found_at_load_and_by_verify(root: Path) -> None:
    rows = [stored_vectors("a", 1, np.full((400, 4), 0.5, np.float32))]
    plant_space(root, "late", rows, dim=4)
    [file] = [path for path in (root / "spaces").rglob("*.lance") if path.is_file() and path.stat().st_size > 3000]
    data = bytearray(file.read_bytes())
    at = data.index(np.full(4, 0.5, np.float16).tobytes())
    data[at + 101] ^= 0x10
    file.write_bytes(bytes(data))
    report = verify(root)
    assert not report.is_sound
    assert any(name.startswith("spaces/late-1.lance/") for name in report.damaged)
    with pytest.raises(CorruptionError, match="damaged on disk"):
        load_space_rows(Collection.open(root), "late")


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        # Python 3.11.2 knows no filter, and the archive is our own.
        archive.extractall(folder)
    return folder / name


def test_a_collection_from_before_spaces_is_read_written_and_given_one(tmp_path: Path) -> None:
    root = unpacked("before-spaces", tmp_path)
    old = Collection.open(root)
    [texts] = old.spaces
    assert ([document.title for document in old.documents()], texts.name) == (["a", "b"], "text")
    assert verify(root).is_sound
    plant_space(root, "late", ROWS, dim=4)
    assert [(space.name, space.passages) for space in Collection.open(root).spaces] == [("text", 3), ("late", 2)]
    assert [space.name for space in Collection.open(root, old.version).spaces] == ["text"]
    assert verify(root).is_sound


def test_vectors_of_texts_from_before_they_were_a_space_are_searched_and_copied_bit_for_bit(tmp_path: Path) -> None:
    root = unpacked("before-text-space", tmp_path)
    [old] = Collection.open(root).spaces
    assert (old.name, old.table, old.passages, old.config) == ("text", "passages.lance", 2, {"model": "minilm"})
    before = load_space_rows(Collection.open(root), "text")
    (tmp_path / "whales.txt").write_text("A third note, about whales.")
    report = ingest([tmp_path / "whales.txt"], Settings(collection=str(root)))
    assert [(space.embedded, space.passages) for space in report.spaces] == [(1, 3)]
    [new] = Collection.open(root).spaces
    assert (new.table, new.embedder_id, new.dim, new.passages) == ("spaces/text-1.lance", old.embedder_id, 384, 3)
    after = load_space_rows(Collection.open(root), "text")
    places = [after.rows.ids.to_pylist().index(passage_id) for passage_id in before.rows.ids.to_pylist()]
    np.testing.assert_array_equal(after.vectors[places], before.vectors)
    [first] = Collection.open(root, 1).spaces
    assert (first.table, first.passages) == ("passages.lance", 2)
    assert verify(root).is_sound


def test_a_damaged_vector_from_before_texts_were_a_space_is_neither_searched_nor_copied(tmp_path: Path) -> None:
    root = unpacked("before-text-space", tmp_path)
    vector = load_space_rows(Collection.open(root), "text").vectors[0].tobytes()
    [file] = (root / "passages.lance/data").iterdir()
    data = bytearray(file.read_bytes())
    data[data.index(vector) + 101] ^= 0x10
    file.write_bytes(bytes(data))
    with pytest.raises(CorruptionError, match="damaged on disk"):
        load_space_rows(Collection.open(root), "text")
    with pytest.raises(CorruptionError, match="damaged on disk"):
        CollectionWriter(root)


def test_vectors_of_texts_that_were_dropped_do_not_come_back_from_the_passages(tmp_path: Path) -> None:
    root = unpacked("before-text-space", tmp_path)
    with CollectionWriter(root) as writer:
        writer.spaces.drop("text")
        writer.publish("dropped")
    assert Collection.open(root).spaces == ()
    assert len(Collection.open(root, 1).spaces) == 1
    with CollectionWriter(root) as writer:
        assert writer.spaces.records == ()


def test_rows_are_loaded_in_the_order_of_their_ids_however_many_batches_they_are_read_in(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = np.random.default_rng(7)
    rows = [
        stored_vectors("ab"[n % 2], n, chance.standard_normal((n % 5 + 1, 4)).astype(np.float32), grid=(1, n % 5 + 1))
        for n in chance.permutation(np.arange(1, 60)).tolist()
    ]
    plant_space(root, "late", rows[:20], dim=4)
    with CollectionWriter(root) as writer:
        writer.spaces.add("late", vectors_table(rows[20:]))
        writer.publish("more")
    monkeypatch.setattr(row_loader, "BYTES_AT_ONCE", 200)
    loaded = load_space_rows(Collection.open(root), "late")
    expected = sorted(rows, key=lambda row: row.passage_id)
    assert loaded.rows.ids.to_pylist() == [row.passage_id for row in expected]
    np.testing.assert_array_equal(loaded.vectors, np.concatenate([row.vectors for row in expected]))
    np.testing.assert_array_equal(np.diff(loaded.bounds), [len(row.vectors) for row in expected])
    assert [tuple(grid) for grid in loaded.grids.tolist()] == [row.grid for row in expected]
