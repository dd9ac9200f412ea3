"""What the report of an ingest says of files: nothing in them, the same as another, renamed, gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pymupdf
import pytest
from PIL import Image

from tests.support.ingest_material import make_pdf, settings_for
from tests.support.office import xlsx
from vrag_ray.cli.commands.ingest import report_lines
from vrag_ray.corpus.model import DecodedUnit
from vrag_ray.index.search.lexical import lexical_search
from vrag_ray.index.storage.collection import Collection
from vrag_ray.ingest import Source, ingest, stages
from vrag_ray.ingest.committer import NOTHING_TO_READ
from vrag_ray.ingest.report import FileError, IngestReport
from vrag_ray.types import DocumentStatus, VragError
from vrag_ray.types.file_names import names_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "in"
    root.mkdir()
    (root / "ferry_times.txt").write_text("the ferry leaves at nine")
    (root / "gauge.txt").write_text("the gauge reads seventeen")
    return root


def run(folder: Path, *others: Path, prune: bool = False) -> IngestReport:
    return ingest([folder, *others], settings_for(folder.parent / "c", prune=prune))


def names(folder: Path) -> list[list[str]]:
    """The names of each document."""
    documents = Collection.open(folder.parent / "c").documents()
    return sorted(sorted(names_of([uri])[0] for uri in document.uris) for document in documents)


def report_text(report: IngestReport) -> str:
    return "\n".join(report_lines(report, "c"))


def test_errors_are_told_in_the_order_of_the_folders(folder: Path) -> None:
    report = run(folder)
    broken = [FileError(f"file:///in/{name}.pdf", f"{name}.pdf: is damaged") for name in ("b", "a", "c")]
    lines = report_lines(replace(report, failed=tuple(broken)), "c")
    assert lines[-3:] == [f"error: {name}.pdf: is damaged" for name in "abc"]


def test_files_with_nothing_to_read_are_named_and_no_search_finds_them(tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    (root / "spaces.txt").write_text(" \n\t\u200b\u3000")
    (root / "mark.txt").write_bytes(b"\xef\xbb\xbf")
    (root / "dots.md").write_text("?! ... ---\n")
    Image.new("RGB", (40, 30), "white").save(root / "white.png")
    with pymupdf.open() as document:
        document.new_page()
        document.new_page()
        document.save(root / "blank.pdf")
    report = run(root)
    assert (report.added, report.failed) == (5, ())
    collection = Collection.open(tmp_path / "c")
    for document in collection.documents():
        assert document.status is DocumentStatus.READY
        assert document.notices == ("nothing to read: it is blank",)
    rows = collection.table("passages").to_table().to_pylist()
    assert [(row["text"], row["vector"]) for row in rows] == [("", None)] * 6
    assert (
        "notice: 5 files: blank.pdf, dots.md, mark.txt, spaces.txt, white.png: nothing to read: it is blank"
        in report_text(report)
    )
    again = run(root)
    assert all(file_notice.known for file_notice in again.file_notices)
    assert "5 unchanged files have notices from before" in report_text(again)


def test_records_and_sheets_without_a_value_have_nothing_to_read(tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    (root / "keys.json").write_text('{"owner": null, "ships": [], "port": {"name": ""}}')
    (root / "tags.xml").write_text('<?xml version="1.0"?><ships><ship/><port></port></ships>')
    (root / "sheets.xlsx").write_bytes(xlsx(Sheet1=[], Sheet2=[[""]]))
    (root / "one.xlsx").write_bytes(xlsx(Sheet1=[], Sheet2=[["Odin"]]))
    report = run(root)
    assert (report.added, report.failed) == (4, ())
    blank = {"keys.json", "tags.xml", "sheets.xlsx"}
    files = {Path(entry.uri).name for entry in report.file_notices if entry.notice == NOTHING_TO_READ}
    assert files == blank
    rows = Collection.open(tmp_path / "c").table("passages").to_table().to_pylist()
    assert sorted(row["text"] for row in rows if row["text"]) == ["Sheet2\nOdin"]


def test_a_document_with_some_blank_pages_has_no_notice(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    make_pdf(tmp_path / "in" / "whales.pdf", 1, "whale")
    with pymupdf.open(tmp_path / "in" / "whales.pdf") as document:
        document.new_page()
        document.saveIncr()
    assert run(tmp_path / "in").file_notices == ()


def test_notices_of_pages_become_notices_of_the_document_with_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode = stages.decode_isolating

    def noticing(*arguments: object, **options: object) -> list[DecodedUnit]:
        units = decode(*arguments, **options)  # type: ignore[arg-type]
        return [replace(unit, notices=("hidden words",) if unit.unit % 2 else ()) for unit in units]

    monkeypatch.setattr(stages, "decode_isolating", noticing)
    (tmp_path / "in").mkdir()
    make_pdf(tmp_path / "in" / "whales.pdf", 6, "whale")
    report = run(tmp_path / "in")
    assert [file_notice.notice for file_notice in report.file_notices] == ["pages 2, 4, 6: hidden words"]
    [document] = Collection.open(tmp_path / "c").documents()
    assert (document.status, document.notices) == (DocumentStatus.READY, ("pages 2, 4, 6: hidden words",))
    assert "vrag.notices" not in document.meta


def test_a_file_that_is_the_same_as_another_is_named_with_it(folder: Path) -> None:
    (folder / "sub").mkdir()
    for copy in ("sub/gauge.txt", "copy.txt"):
        (folder / copy).write_text("the gauge reads seventeen")
    report = run(folder)
    assert (report.added, report.skipped, report.duplicates) == (2, 0, 2)
    assert sorted(file_notice.notice.split(";")[0] for file_notice in report.file_notices) == [
        "the same as copy.txt",
        "the same as copy.txt",
    ]
    assert names(folder) == [["copy.txt", "gauge.txt", "gauge.txt"], ["ferry_times.txt"]]
    assert run(folder).skipped == 4


def test_two_files_of_the_same_name_are_distinguished_by_their_folders(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "gauge.txt").write_text("the gauge reads seventeen")
    [line] = [line for line in report_text(run(folder)).splitlines() if line.startswith("notice: ")]
    assert sorted(line.removeprefix("notice: ").split(";")[0].split(": the same as ")) == [
        "in/gauge.txt",
        "sub/gauge.txt",
    ]


def test_a_file_that_is_given_itself_has_its_new_name_alone(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "part").write_text("a letter of the keeper")
    part = Source(tmp_path / "part", f"{(folder / 'gauge.txt').as_uri()}#letter.txt", "letter.txt")
    ingest([folder / "gauge.txt", folder / "ferry_times.txt", part], settings_for(tmp_path / "c"))
    (folder / "gauge.txt").rename(folder / "scale.txt")
    (folder / "ferry_times.txt").unlink()
    report = ingest([folder / "scale.txt"], settings_for(tmp_path / "c", prune=True))
    assert (report.renamed, report.duplicates, report.gone) == (1, 0, ())
    assert names(folder) == [["ferry_times.txt"], ["scale.txt"], ["scale.txt#letter.txt"]]
    titles = {document.title for document in Collection.open(tmp_path / "c").documents()}
    assert "scale" in titles and "gauge" not in titles


def test_a_file_keeps_a_former_name_where_a_disk_may_be_missing(folder: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    folder = folder.rename(disk / "in")
    ingest([folder], settings_for(tmp_path / "c"))
    (tmp_path / "copy.txt").write_bytes((folder / "gauge.txt").read_bytes())
    folder.rename(tmp_path / "away")
    ingest([tmp_path / "copy.txt"], settings_for(tmp_path / "c"))
    assert names(disk) == [["copy.txt", "gauge.txt"], ["ferry_times.txt"]]


def test_the_files_of_a_renamed_folder_have_their_new_names_alone(folder: Path, tmp_path: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "tide.txt").write_text("the tide turns at noon")
    run(folder)
    folder = folder.rename(tmp_path / "out")
    report = run(folder)
    assert (report.added, report.renamed, report.duplicates) == (0, 3, 0)
    assert {Path(document.uri).parts[-2] for document in Collection.open(tmp_path / "c").documents()} == {"out", "sub"}
    (folder / "gauge.txt").unlink()
    assert [document.removed for document in run(folder, prune=True).gone] == [True]
    assert names(folder) == [["ferry_times.txt"], ["tide.txt"]]


def test_a_renamed_file_has_its_new_name_and_title_and_not_the_old(folder: Path) -> None:
    run(folder)
    (folder / "ferry_times.txt").rename(folder / "summer_table.txt")
    report = run(folder)
    assert (report.added, report.renamed, report.duplicates, report.gone) == (0, 1, 0, ())
    assert names(folder) == [["gauge.txt"], ["summer_table.txt"]]
    collection = Collection.open(folder.parent / "c")
    [hit] = lexical_search(collection, "ferry", 5, None)
    assert collection.document(collection.passage(hit.id).doc_id).title == "summer table"


def test_files_that_exchange_their_names_exchange_their_titles(folder: Path) -> None:
    run(folder)
    (folder / "gauge.txt").rename(folder / "waiting")
    (folder / "ferry_times.txt").rename(folder / "gauge.txt")
    (folder / "waiting").rename(folder / "ferry_times.txt")
    assert run(folder).renamed == 2
    collection = Collection.open(folder.parent / "c")
    titles = {words: lexical_search(collection, words, 1, None)[0].id for words in ("nine", "seventeen")}
    documents = {
        words: collection.document(collection.passage(passage_id).doc_id) for words, passage_id in titles.items()
    }
    assert {words: document.title for words, document in documents.items()} == {
        "nine": "gauge",
        "seventeen": "ferry times",
    }


def test_a_file_that_moved_to_another_folder_of_the_run_is_renamed(folder: Path, tmp_path: Path) -> None:
    run(folder)
    (tmp_path / "archive").mkdir()
    (folder / "gauge.txt").rename(tmp_path / "archive" / "gauge.txt")
    report = ingest([tmp_path / "archive"], settings_for(tmp_path / "c"))
    assert (report.renamed, report.gone) == (1, ())
    documents = Collection.open(tmp_path / "c").documents()
    assert sorted(document.uris for document in documents) == [
        ((tmp_path / "archive" / "gauge.txt").as_uri(),),
        ((folder / "ferry_times.txt").as_uri(),),
    ]


def test_what_is_a_part_of_a_renamed_file_is_renamed_with_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "part").write_text("a letter of the keeper")
    part = Source(tmp_path / "part", f"{(folder / 'gauge.txt').as_uri()}#letter.txt", "letter.txt")
    ingest([folder, part], settings_for(tmp_path / "c"))
    (folder / "gauge.txt").rename(folder / "scale.txt")
    assert run(folder).gone == ()
    assert names(folder) == [["ferry_times.txt"], ["scale.txt"], ["scale.txt#letter.txt"]]
    (folder / "scale.txt").unlink()
    assert sorted(names_of([document.uri])[0] for document in run(folder).gone) == ["scale.txt", "scale.txt#letter.txt"]


def test_a_copy_that_is_removed_leaves_the_other_name(folder: Path) -> None:
    (folder / "copy.txt").write_text("the gauge reads seventeen")
    run(folder)
    (folder / "gauge.txt").unlink()
    report = run(folder, prune=True)
    assert (report.gone, report.renamed) == ((), 0)
    assert names(folder) == [["copy.txt"], ["ferry_times.txt"]]


def test_a_removed_file_is_reported_and_removed_only_on_request(folder: Path) -> None:
    run(folder)
    (folder / "gauge.txt").unlink()
    report = run(folder)
    [gone] = report.gone
    assert (names_of([gone.uri]), gone.removed) == (["gauge.txt"], False)
    assert f"`vrag delete {gone.doc_id[:12]} -c c` removes it" in report_text(report)
    assert len(names(folder)) == 2
    pruned = run(folder, prune=True)
    assert [document.removed for document in pruned.gone] == [True]
    assert "removed: gauge.txt" in report_text(pruned)
    assert names(folder) == [["ferry_times.txt"]]
    assert lexical_search(Collection.open(folder.parent / "c"), "gauge", 5, None) == []


def test_a_folder_that_is_empty_of_a_sudden_is_never_pruned(folder: Path, tmp_path: Path) -> None:
    run(folder)
    for file in folder.iterdir():
        file.unlink()
    report = run(folder, prune=True)
    assert [document.removed for document in report.gone] == [False, False]
    assert "is it mounted?" in report_text(report)
    assert len(names(folder)) == 2
    (tmp_path / "new").mkdir()
    with pytest.raises(VragError, match="nothing to ingest in"):
        ingest([tmp_path / "new"], settings_for(tmp_path / "c"))


def test_a_row_that_its_file_has_no_longer_is_gone(tmp_path: Path) -> None:
    root = tmp_path / "in"
    root.mkdir()
    rows = [{"id": name, "content": f"the {name} is white"} for name in ("mole", "pier", "quay")]
    pq.write_table(pa.Table.from_pylist(rows), root / "notes.parquet")
    run(root)
    pq.write_table(pa.Table.from_pylist(rows[:2]), root / "notes.parquet")
    assert [names_of([document.uri]) for document in run(root, prune=True).gone] == [["notes.parquet#quay"]]
    assert names(root) == [["notes.parquet#mole"], ["notes.parquet#pier"]]
