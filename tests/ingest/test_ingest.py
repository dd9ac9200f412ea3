"""Ingest on real Ray Data: what it commits, what it skips, what it reports, and what a kill leaves."""

from __future__ import annotations

import itertools
import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.support import hostile_files as hostile
from tests.support.documents import picture_of, scanned_pdf
from tests.support.ingest_material import content, make_pdf, settings_for
from vrag_ray.config import Settings, SpaceConfig
from vrag_ray.corpus.model import DecodedUnit, DecodeOptions, KilledError, KillReason, WorkItem
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.index.search.lexical import lexical_search
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.verify import verify
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.ingest import Progress, Source, ingest, small_jobs
from vrag_ray.ingest.committer import EMPTIED, Committer
from vrag_ray.ingest.graph import Rows
from vrag_ray.ingest.stages import Decode
from vrag_ray.types import DocumentStatus, VragError

pytestmark = pytest.mark.usefixtures("local_ray")
RUN_LIMIT_S = 120
NOTES = 200
WHALES = 6
"""Windows of three pages."""


def with_limits(settings: Settings, **limits: float) -> Settings:
    changed = settings.corpus.limits.model_copy(update=limits)
    return settings.model_copy(update={"corpus": settings.corpus.model_copy(update={"limits": changed})})


@pytest.mark.parametrize("actors", [{}, {"concurrency": 2}], ids=["in this process", "by actors"])
def test_a_folder_becomes_searchable_documents_with_their_places(tmp_path: Path, actors: dict[str, int]) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    make_pdf(folder / "whales.pdf", 10, "whale")
    (folder / "notes.md").write_text("# Notes\n\nThe lighthouse was painted white.\n")
    (folder / "rows.jsonl").write_text('{"uid": "r1", "text": "first harbour"}\n{"uid": "r2", "text": "second pier"}\n')
    (folder / "tool.exe").write_bytes(b"MZ")
    progress: list[Progress] = []
    settings = settings_for(tmp_path / "c", **actors)
    report = ingest([folder], settings, meta={"year": 2024}, on_progress=progress.append)
    assert (report.added, report.skipped, report.failed) == (3, 0, ())
    assert any("tool.exe" in notice for notice in report.notices)
    collection = Collection.open(tmp_path / "c")
    by_title = {document.uri.rsplit("/", 1)[-1]: document for document in collection.documents()}
    assert by_title["whales.pdf"].units == 10
    hit = collection.passage(lexical_search(collection, "lighthouse", 1, None)[0].id)
    assert hit.doc_id == by_title["notes.md"].doc_id and hit.meta["year"] == 2024
    row = collection.passage(lexical_search(collection, "pier", 1, None)[0].id)
    assert row.meta["uid"] == "r2"
    read = [seen for seen in progress if not seen.spaces]
    last = read[-1]
    assert last.done_pages == last.total_pages == report.pages == 13
    assert [stage.name for stage in last.stages] == ["register", "decode", "commit"]
    filled = progress[-1]
    assert filled.done_pages == filled.total_pages == report.windows and filled.spaces == ("text",)
    assert [stage.name for stage in filled.stages] == ["embed text", "commit"]
    by_file = {file.uri.rsplit("/", 1)[-1]: (file.done_pages, file.total_pages) for file in last.by_file}
    assert by_file == {"whales.pdf": (10, 10), "notes.md": (1, 1), "rows.jsonl": (2, 2)}
    assert verify(tmp_path / "c").is_sound


def test_a_page_is_found_by_the_title_and_the_file_name_of_its_document(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "Harbour_2022_report.txt").write_text("Berth fees rose by half.")
    (folder / "Harbour_2023_report.txt").write_text("Berth fees rose by a third.")
    (folder / "letter.txt").write_text("Berth fees of another port fell.")
    ingest([folder], settings_for(tmp_path / "c"))
    collection = Collection.open(tmp_path / "c")
    best = lexical_search(collection, "berth fees of the harbour in FY2023", 1, None)[0]
    assert collection.passage(best.id).text == "Berth fees rose by a third."


def test_the_same_files_again_change_nothing_and_a_changed_file_replaces_its_old_self(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text("ancient text")
    settings = settings_for(tmp_path / "c")
    ingest([source], settings)
    before = content(tmp_path / "c")
    again = ingest([source], settings)
    assert (again.added, again.skipped, again.pages, again.version) == (0, 1, 0, 1)
    assert content(tmp_path / "c") == before
    source.write_text("modern text")
    changed = ingest([source], settings)
    assert (changed.added, changed.replaced) == (0, 1)
    collection = Collection.open(tmp_path / "c")
    assert len(collection.documents()) == 1
    assert lexical_search(collection, "ancient", 5, None) == []
    assert len(lexical_search(collection, "modern", 5, None)) == 1


def test_two_files_with_the_same_bytes_become_one_document_with_both_uris(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("twice the same")
    ingest([tmp_path / "a.txt", tmp_path / "b.txt"], settings_for(tmp_path / "c"))
    [document] = Collection.open(tmp_path / "c").documents()
    assert sorted(uri.rsplit("/", 1)[-1] for uri in document.uris) == ["a.txt", "b.txt"]
    assert len(content(tmp_path / "c")[0]) == 1


def test_an_upload_keeps_the_name_and_uri_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "tmp123").write_text("uploaded words")
    ingest([Source(tmp_path / "tmp123", "upload:notes.txt", "notes.txt")], settings_for(tmp_path / "c"))
    [document] = Collection.open(tmp_path / "c").documents()
    assert document.uri == "upload:notes.txt"


def test_a_path_that_does_not_exist_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(VragError, match=r"missing\.pdf does not exist"):
        ingest([tmp_path / "missing.pdf"], settings_for(tmp_path / "c"))
    assert not (tmp_path / "c").exists()


@pytest.mark.exhaustive
def test_hostile_files_get_their_errors_and_the_good_ones_are_ingested(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, make in hostile.HOSTILE.items():
        (folder / name).write_bytes(make())
    (folder / "good.txt").write_text("all is well")
    (folder / "empty.txt").write_bytes(b"")
    settings = settings_for(tmp_path / "c")
    settings = with_limits(settings, cpu_seconds=1)
    report = ingest([folder], settings)
    failed = {error.uri.rsplit("/", 1)[-1]: error.error for error in report.failed}
    collection = Collection.open(tmp_path / "c")
    status = {d.uri.rsplit("/", 1)[-1]: d.status for d in collection.documents()}
    for name in set(hostile.HOSTILE) - {"giant-page.pdf"}:
        assert name in failed, name
        assert name in failed[name], failed[name]
        assert status[name] is not DocumentStatus.READY
    assert "empty" in failed["empty.txt"]
    assert status["giant-page.pdf"] is DocumentStatus.READY
    assert status["good.txt"] is DocumentStatus.READY
    assert len(lexical_search(collection, "well", 5, None)) == 1
    again = ingest([folder], settings)
    assert again.added == 0 and again.pages == 0


def test_documents_with_errors_are_tried_again_only_on_request(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 nothing more")
    settings = settings_for(tmp_path / "c")
    assert len(ingest([broken], settings).failed) == 1
    again = ingest([broken], settings)
    assert again.skipped == 1
    assert any("--retry-errors" in notice for notice in again.notices)
    assert len(ingest([broken], settings_for(tmp_path / "c", retry_errors=True)).failed) == 1


def test_a_file_that_is_empty_now_is_not_found_by_its_former_text(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, text in (("a.txt", "the walrus swims"), ("b.txt", "the seal sleeps"), ("copy.txt", "the seal sleeps")):
        (folder / name).write_text(text)
    settings = settings_for(tmp_path / "c", embedder=SpaceConfig(model="none"))
    ingest([folder], settings)
    (folder / "a.txt").write_bytes(b"")
    (folder / "b.txt").write_bytes(b"")
    report = ingest([folder], settings)
    assert {Path(error.uri).name for error in report.failed} == {"a.txt", "b.txt"}
    assert {Path(entry.uri).name for entry in report.file_notices if entry.notice == EMPTIED} == {"a.txt", "b.txt"}
    collection = Collection.open(tmp_path / "c")
    assert [[Path(uri).name for uri in document.uris] for document in collection.documents()] == [["copy.txt"]]
    assert not lexical_search(collection, "walrus", 5, None)
    assert len(lexical_search(collection, "seal", 5, None)) == 1
    (folder / "a.txt").write_text("the walrus swims")
    assert ingest([folder], settings).added == 1


def test_a_file_that_a_busy_machine_had_no_time_for_is_read_by_the_next_run_by_itself(tmp_path: Path) -> None:
    make_pdf(tmp_path / "whales.pdf", 3, "whale")
    settings = settings_for(tmp_path / "c")
    [failed] = ingest([tmp_path / "whales.pdf"], with_limits(settings, wall_seconds=0.01)).failed
    assert "the machine was busy" in failed.error and "next ingest" in failed.error
    again = ingest([tmp_path / "whales.pdf"], settings)
    assert (again.added, again.failed, again.pages) == (1, (), 3)
    assert ingest([tmp_path / "whales.pdf"], settings).skipped == 1


def test_a_file_that_needed_more_memory_is_read_by_the_next_run_with_a_higher_limit(tmp_path: Path) -> None:
    make_pdf(tmp_path / "whales.pdf", 3, "whale")
    settings = settings_for(tmp_path / "c")
    low = with_limits(settings, memory_mb=60)
    [failed] = ingest([tmp_path / "whales.pdf"], low).failed
    assert "more than 60 MB" in failed.error and "corpus.limits.memory_mb" in failed.error
    assert ingest([tmp_path / "whales.pdf"], low).skipped == 1
    again = ingest([tmp_path / "whales.pdf"], settings)
    assert (again.added, again.failed, again.pages) == (1, (), 3)


def test_only_the_page_that_a_busy_machine_had_no_time_for_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_pdf(tmp_path / "whales.pdf", 3, "whale")
    settings, expected = settings_for(tmp_path / "c"), settings_for(tmp_path / "expected")
    ingest([tmp_path / "whales.pdf"], expected)
    stream = Sandbox.stream

    def busy_at_the_second(self: Sandbox, path: Path, item: WorkItem, options: DecodeOptions) -> Iterator[DecodedUnit]:
        for unit in stream(self, path, item, options):
            if unit.unit == 1:
                raise KilledError("whales.pdf: had no time", KillReason.WALL, transient=True)
            yield unit

    with monkeypatch.context() as patch:
        patch.setattr(Sandbox, "stream", busy_at_the_second)
        first = ingest([tmp_path / "whales.pdf"], settings)
    assert [failure.error for failure in first.failed] == [
        "whales.pdf: had no time; the next ingest reads it again by itself"
    ]
    [document] = Collection.open(tmp_path / "c").documents()
    assert document.status is DocumentStatus.PARTIAL
    assert {row["page"] for row in content(tmp_path / "c")[0]} == {1, 3}
    again = ingest([tmp_path / "whales.pdf"], settings)
    assert (again.pages, again.failed) == (1, ())
    assert content(tmp_path / "c") == content(tmp_path / "expected")
    assert verify(tmp_path / "c").is_sound


@pytest.mark.exhaustive
def test_a_retry_reads_the_pages_with_errors_and_keeps_the_others(tmp_path: Path) -> None:
    (tmp_path / "half.pdf").write_bytes(hostile.nested_forms_pdf())
    settings = with_limits(settings_for(tmp_path / "c"), cpu_seconds=1)
    first = ingest([tmp_path / "half.pdf"], settings)
    assert (first.pages, len(first.failed)) == (2, 1)
    before = content(tmp_path / "c")
    retry = with_limits(settings_for(tmp_path / "c", retry_errors=True), cpu_seconds=1)
    again = ingest([tmp_path / "half.pdf"], retry)
    assert (again.pages, again.failed) == (1, first.failed)
    assert content(tmp_path / "c") == before


def test_a_collection_made_without_an_embedder_gets_its_vectors_on_the_next_ingest(tmp_path: Path) -> None:
    make_pdf(tmp_path / "a.pdf", 6, "whale")
    ingest([tmp_path / "a.pdf"], settings_for(tmp_path / "c", embedder=SpaceConfig(model="none")))
    assert all(row["vector"] is None for row in content(tmp_path / "c")[0])
    again = ingest([tmp_path / "a.pdf"], settings_for(tmp_path / "c"))
    assert (again.skipped, again.pages) == (1, 0)
    passages, _ = content(tmp_path / "c")
    assert all(row["vector"] for row in passages)
    assert len({row["id"] for row in passages}) == len(passages) == again.spaces[0].embedded


def test_what_a_killed_run_committed_is_published_by_the_next_although_nothing_is_left_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_pdf(tmp_path / "whales.pdf", 3, "whale")
    settings = settings_for(tmp_path / "c")

    def killed(self: CollectionWriter, note: str) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(CollectionWriter, "publish", killed)
        ingest([tmp_path / "whales.pdf"], settings)
    assert Collection.open(tmp_path / "c").version == 0
    again = ingest([tmp_path / "whales.pdf"], settings)
    assert (again.added, again.skipped, again.version) == (0, 1, 1)
    assert len(lexical_search(Collection.open(tmp_path / "c"), "whale", 10, None)) == WHALES
    assert ingest([tmp_path / "whales.pdf"], settings).version == 1


def test_who_is_interrupted_while_a_batch_is_written_does_not_write_it_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_pdf(tmp_path / "whales.pdf", 3, "whale")
    settings = settings_for(tmp_path / "c")

    def interrupted(self: CollectionWriter, documents: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(CollectionWriter, "commit_documents", interrupted)
        ingest([tmp_path / "whales.pdf"], settings)
    ingest([tmp_path / "whales.pdf"], settings)
    ids = Collection.open(tmp_path / "c").table("passages").to_table(columns=["id"])["id"].to_pylist()
    assert len(ids) == len(set(ids)) == WHALES


def test_a_retry_that_is_interrupted_loses_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "whales.pdf"
    make_pdf(source, 3, "whale")
    settings = settings_for(tmp_path / "c")
    ingest([source], settings)
    with CollectionWriter(tmp_path / "c") as writer:
        [document] = writer.documents.values()
        writer.commit_documents([replace(document, status=DocumentStatus.PARTIAL, error="page 2 is broken")])
        writer.publish("a page was broken")
    retry = settings.model_copy(update={"ingest": settings.ingest.model_copy(update={"retry_errors": True})})

    def interrupted(self: CollectionWriter, stored: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(CollectionWriter, "add_passages", interrupted)
        ingest([source], retry)
    # Without the option: what was dropped for the retry is missing, and comes again all the same.
    ingest([source], settings)
    collection = Collection.open(tmp_path / "c")
    assert [document.status for document in collection.documents()] == [DocumentStatus.READY]
    assert len(lexical_search(collection, "whale", 10, None)) == WHALES


def test_many_small_files_are_committed_together_and_each_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(NOTES):
        (folder / f"note-{number}.txt").write_text(f"the lighthouse number{number} is white")
    settings = settings_for(tmp_path / "c", commit_pages=64)
    report = ingest([folder], settings)
    assert (report.added, report.pages) == (NOTES, NOTES)
    collection = Collection.open(tmp_path / "c")
    # Lance counts a version for each commit.
    assert collection.table("documents").version < 2 * NOTES / 64 + 2
    assert collection.table("passages").version < 2 * NOTES / 64 + 4
    [hit] = lexical_search(collection, "number117", 5, None)
    assert collection.document(collection.passage(hit.id).doc_id).uri.endswith("/note-117.txt")
    # Each gets other bytes: as many documents take the place of their old selves, in few commits too.
    for number in range(NOTES):
        (folder / f"note-{number}.txt").write_text(f"the harbour number{number} is wide")
    again = ingest([folder], settings_for(tmp_path / "c", commit_pages=64, concurrency=1))
    assert (again.added, again.replaced) == (0, NOTES)
    collection = Collection.open(tmp_path / "c")
    assert collection.document_count == NOTES == len(content(tmp_path / "c")[0])
    assert lexical_search(collection, "lighthouse", 5, None) == []


def test_a_text_that_the_embedder_refuses_is_found_by_its_words(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("the lighthouse is white")
    (tmp_path / "bad.txt").write_text("the refused pier")
    settings = settings_for(tmp_path / "c", embedder=SpaceConfig(model="tests.support.embedder_factories:choosy"))
    report = ingest([tmp_path / "good.txt", tmp_path / "bad.txt"], settings)
    assert report.failed == ()
    [space] = report.spaces
    assert (space.embedded, [failed.error for failed in space.failed]) == (1, ["bad: too long for this model"])
    collection = Collection.open(tmp_path / "c")
    assert {document.status for document in collection.documents()} == {DocumentStatus.READY}
    assert len(lexical_search(collection, "pier", 5, None)) == 1


def test_a_few_files_are_decoded_side_by_side_and_come_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small_jobs, "own_readers", lambda: 2)
    decode, add, numbers, second_done = Decode.__call__, Committer.add_block, itertools.count(), threading.Event()
    titles: list[str] = []

    def second_first(self: Decode, row: Mapping[str, str]) -> Iterator[dict[str, object]]:
        number = next(numbers)
        if number == 0:
            assert second_done.wait(RUN_LIMIT_S), "nothing was decoded beside the first"
        rows = list(decode(self, row))
        if number == 1:
            second_done.set()
        return iter(rows)

    def noted(self: Committer, rows: Rows) -> None:
        titles.extend(json.loads(str(row["plan"]))["name"] for row in rows)
        add(self, rows)

    monkeypatch.setattr(Decode, "__call__", second_first)
    monkeypatch.setattr(Committer, "add_block", noted)
    for name in ("a.pdf", "b.pdf"):
        make_pdf(tmp_path / name, 40, "whale")
    report = ingest([tmp_path / "a.pdf", tmp_path / "b.pdf"], settings_for(tmp_path / "c"))
    assert (report.pages, report.failed) == (80, ()) and titles == sorted(titles)
    assert verify(tmp_path / "c").is_sound


def test_an_interrupt_ends_what_decodes_a_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Committer, rows: Rows) -> None:
        raise KeyboardInterrupt

    make_pdf(tmp_path / "whales.pdf", 100, "whale")
    monkeypatch.setattr(Committer, "add_block", interrupted)
    with pytest.raises(KeyboardInterrupt, match="The same command goes on from there"):
        ingest([tmp_path / "whales.pdf"], settings_for(tmp_path / "c"))
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("decode")] == []


def test_a_few_files_that_are_much_work_are_given_to_actors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = 20
    monkeypatch.setattr(small_jobs, "MOST_PAGES", pages // 2)
    monkeypatch.setattr(small_jobs, "own_readers", lambda: 2)
    make_pdf(tmp_path / "long.pdf", pages, "whale")
    (tmp_path / "short.txt").write_text("a lighthouse")
    seen: list[Progress] = []
    report = ingest(
        [tmp_path / "long.pdf", tmp_path / "short.txt"], settings_for(tmp_path / "c"), on_progress=seen.append
    )
    assert (report.added, report.pages) == (2, pages + 1)
    # Each page is counted once, although the files were registered before there were actors.
    last = [progress for progress in seen if not progress.spaces][-1]
    assert last.total_pages == last.done_pages == report.pages
    assert {stage.name: stage.pages for stage in last.stages} == dict.fromkeys(
        ("register", "decode", "commit"), report.pages
    )
    assert all(file.done_pages == file.total_pages for file in last.by_file)
    assert last.pages_per_s > 0 and report.startup_s > 0
    assert verify(tmp_path / "c").is_sound


@pytest.mark.parametrize(
    ("points", "pages", "actors"),
    [(2, 60, {}), pytest.param(10, 150, {"concurrency": 1}, marks=pytest.mark.exhaustive)],
    ids=["in one process", "by actors"],
)
def test_killed_at_random_points_and_resumed_it_ends_with_the_content_of_an_uninterrupted_run(
    tmp_path: Path, points: int, pages: int, actors: dict[str, int]
) -> None:
    import ray

    folder = tmp_path / "in"
    folder.mkdir()
    make_pdf(folder / "long.pdf", pages, "whale")
    make_pdf(folder / "short.pdf", 7, "harbour")
    for number in range(40):
        (folder / f"note-{number}.txt").write_text(f"a lighthouse called number {number}")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing more")
    expected_root, root = tmp_path / "expected", tmp_path / "killed"
    began = time.monotonic()
    expected = ingest([folder], settings_for(expected_root, **actors))
    duration = time.monotonic() - began

    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(settings_for(root, **actors).model_dump(mode="json")))
    command = [sys.executable, "-m", "tests.support.ingest_driver", ray.get_runtime_context().gcs_address, str(config)]
    chance, kills, committed = random.Random(11), 0, 0
    while True:
        process = subprocess.Popen([*command, str(folder)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        if kills == points:
            rest, _ = process.communicate(timeout=RUN_LIMIT_S)
            assert process.returncode == 0
            break
        try:
            process.wait(timeout=chance.uniform(0.1, duration))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=RUN_LIMIT_S)
        kills += 1
        # Whatever was committed stays, and the next run starts from there.
        with CollectionWriter(root) as writer:
            table = writer._passages.to_table(columns=["doc_id", "unit"])
        units = len(set(zip(table["doc_id"].to_pylist(), table["unit"].to_pylist(), strict=True)))
        assert units >= committed
        committed = units
    # Ray may print warnings of its own around our line.
    [read] = re.findall(r"^pages (\d+)$", rest, re.MULTILINE)
    assert int(read) == expected.pages - committed
    assert content(root) == content(expected_root)
    assert verify(root).is_sound


@pytest.mark.parametrize(
    "actors", [{}, pytest.param({"concurrency": 1}, marks=pytest.mark.exhaustive)], ids=["here", "by-actors"]
)
def test_what_needs_no_ocr_can_be_searched_before_what_does(tmp_path: Path, actors: dict[str, int]) -> None:
    (tmp_path / "a-scan.pdf").write_bytes(scanned_pdf(["Invoice number 4711"]))
    picture_of(["Harbour dues"]).save(tmp_path / "b-picture.png")
    (tmp_path / "c-note.txt").write_text("the lighthouse keeper")
    report = ingest([tmp_path], settings_for(tmp_path / "c", **actors))
    assert (report.added, report.pages, report.failed) == (3, 3, ())
    titles = {document.doc_id: document.title for document in Collection.open(tmp_path / "c").documents()}
    assert titles[report.doc_ids[0]] == "c note"
    assert len(lexical_search(Collection.open(tmp_path / "c"), "4711", 5, None)) == 1
