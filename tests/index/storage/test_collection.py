"""The collection on disk: commits, replacement, deletion, versions, and damage."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.planted import PlantedEmbedder, add_embedded, doc_id_of, document, plant, stored
from vrag_ray.index.search.lexical import lexical_search
from vrag_ray.index.shards.row_loader import load_space_rows
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.rows import CorruptionError
from vrag_ray.index.storage.verify import verify
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import NotFoundError, VragError


def texts_found(collection: Collection, query: str) -> list[str]:
    ids = [scored.id for scored in lexical_search(collection, query, 10, None)]
    passages = collection.passages(ids)
    return [passages[passage_id].text for passage_id in ids]


def test_a_folder_that_is_no_collection_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="vrag ingest"):
        Collection.open(tmp_path)


def test_a_folder_with_other_files_is_not_taken_for_a_collection(tmp_path: Path) -> None:
    (tmp_path / "thesis.docx").write_text("precious")
    with pytest.raises(VragError, match="choose an empty or new folder"):
        CollectionWriter(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.docx"]


def test_a_passage_counts_only_once_its_document_has_a_row(tmp_path: Path) -> None:
    root = tmp_path / "c"
    with CollectionWriter(root) as writer:
        add_embedded(writer, [stored("whale", 1, "harpoon")])
        writer.publish("half")
        assert texts_found(Collection.open(root), "harpoon") == []
        writer.commit_documents([document("whale")])
        writer.publish("whole")
    assert texts_found(Collection.open(root), "harpoon") == ["harpoon"]


def test_words_are_found_by_stem_and_exact_forms_rank_first(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["plotting lines"], "b": ["plot of land"], "c": ["unrelated words"]})
    assert texts_found(Collection.open(tmp_path / "c"), "plot") == ["plot of land", "plotting lines"]


def test_a_changed_file_under_the_same_uri_replaces_the_old_one(tmp_path: Path) -> None:
    root = tmp_path / "c"
    plant(root, {"old": ["ancient wisdom"]})
    with CollectionWriter(root) as writer:
        add_embedded(writer, [stored("new", 1, "modern wisdom")])
        writer.commit_documents([document("new", uri="old.pdf")])
        writer.publish("replaced")
    newest = Collection.open(root)
    assert [d.title for d in newest.documents()] == ["new"]
    assert texts_found(newest, "wisdom") == ["modern wisdom"]


def test_one_document_under_two_uris_survives_the_change_of_one(tmp_path: Path) -> None:
    root = tmp_path / "c"
    with CollectionWriter(root) as writer:
        add_embedded(writer, [stored("same", 1, "shared text")])
        two = document("same", uri="a.pdf")
        writer.commit_documents([type(two)(**{**_fields(two), "uris": ("a.pdf", "b.pdf")})])
        add_embedded(writer, [stored("new", 1, "fresh text")])
        writer.commit_documents([document("new", uri="a.pdf")])
        writer.publish("changed")
    by_title = {d.title: d.uris for d in Collection.open(root).documents()}
    assert by_title == {"same": ("b.pdf",), "new": ("a.pdf",)}


def test_a_title_is_shown_with_its_folder_from_the_version_on_in_which_another_document_has_it(tmp_path: Path) -> None:
    root = tmp_path / "c"
    first = replace(document("a", uri="file:///in/2023/report.pdf"), title="report")
    second = replace(document("b", uri="file:///in/2024/report.pdf"), title="report")
    with CollectionWriter(root) as writer:
        for documents in ([first, document("other")], [second]):
            writer.commit_documents(documents)
            writer.publish("added")
    alone, both = Collection.open(root, version=1), Collection.open(root)
    assert alone.shown(alone.document(first.doc_id)) == first
    assert [both.shown(each).title for each in (first, second)] == ["report (2023)", "report (2024)"]
    assert [both.shown(each).title for each in both.documents()][-1] == "other"
    assert {each.title for each in both.documents()} == {"report", "other"}, "stored titles stay"


def test_delete_removes_a_document_from_every_later_search_and_older_versions_keep_it(tmp_path: Path) -> None:
    root = tmp_path / "c"
    plant(root, {"gone": ["secret harbour"], "kept": ["public harbour"]})
    with CollectionWriter(root) as writer:
        writer.delete(doc_id_of("gone"))
        writer.publish("deleted")
    newest, first = Collection.open(root), Collection.open(root, version=1)
    assert texts_found(newest, "harbour") == ["public harbour"]
    assert load_space_rows(newest, "text").rows.ids.to_pylist() == [stored("kept", 1, "").passage.id]
    with pytest.raises(NotFoundError):
        newest.document(doc_id_of("gone"))
    assert sorted(texts_found(first, "harbour")) == ["public harbour", "secret harbour"]
    assert [record.note for record in newest.versions()] == ["planted", "deleted"]


def test_an_unknown_version_is_named(tmp_path: Path) -> None:
    plant(tmp_path / "c", {"a": ["x"]})
    with pytest.raises(VragError, match="no version 7"):
        Collection.open(tmp_path / "c", version=7)


def test_a_second_writer_is_refused_and_admitted_after_the_first_is_gone(tmp_path: Path) -> None:
    with CollectionWriter(tmp_path / "c"), pytest.raises(VragError, match="another process is writing"):
        CollectionWriter(tmp_path / "c")
    with CollectionWriter(tmp_path / "c"):
        pass


def test_adding_the_same_blob_twice_writes_it_once_and_repairs_a_damaged_one(tmp_path: Path) -> None:
    source = tmp_path / "a.bin"
    source.write_bytes(b"content" * 1000)
    with CollectionWriter(tmp_path / "c") as writer:
        doc_id, size = writer.files.add_blob(source)
        blob = tmp_path / "c/blobs" / doc_id
        stamp = blob.stat().st_mtime_ns
        assert writer.files.add_blob(source) == (doc_id, size)
        assert blob.stat().st_mtime_ns == stamp
        blob.write_bytes(b"rotten" * 1000)
        writer.files.add_blob(source)
    assert blob.read_bytes() == source.read_bytes()


def test_a_flipped_byte_in_any_file_is_found_by_name(tmp_path: Path) -> None:
    root = tmp_path / "c"
    plant(root, {f"doc{i}": [f"text {i} page {p}" for p in range(3)] for i in range(4)})
    with CollectionWriter(root) as writer:
        writer.delete(doc_id_of("doc0"))
        writer.publish("deleted")
    report = verify(root)
    assert report.is_sound and report.unsealed == ()
    chance = random.Random(7)
    files = [p for p in sorted(root.rglob("*")) if p.is_file() and p.name != ".writer.lock"]
    assert len(files) > 20
    for path in files:
        sound = path.read_bytes()
        for _ in range(3):
            damaged = bytearray(sound)
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            path.write_bytes(damaged)
            report = verify(root)
            assert str(path.relative_to(root)) in report.damaged, path
        path.write_bytes(sound)
    assert verify(root).is_sound


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    root = tmp_path / "c"
    plant(root, {"a": ["x"]})
    victim = next((root / "passages.lance/data").iterdir())
    victim.unlink()
    assert verify(root).missing == (str(victim.relative_to(root)),)


def test_a_row_whose_vector_does_not_fit_its_sum_never_reaches_a_shard(tmp_path: Path) -> None:
    root = tmp_path / "c"
    plant(root, {"a": ["one", "two"]})
    with CollectionWriter(root) as writer:
        other = PlantedEmbedder().vectors(["three"])[0].astype(np.float16).tobytes()
        space = writer.spaces._open["text"]
        space.table.update({"vectors": f"X'{other.hex()}'"}, where="id LIKE '%:p2:%'")
        writer.publish("rotten")
    with pytest.raises(CorruptionError, match="damaged on disk"):
        load_space_rows(Collection.open(root), "text")
    assert len(verify(root).damaged_rows) == 1


def _fields(value: object) -> dict[str, object]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}  # type: ignore[attr-defined]
