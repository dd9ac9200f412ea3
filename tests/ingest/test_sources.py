"""What can be given to ingest: folders, patterns, manifests, and folders of an object store."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.ingest_material import settings_for
from tests.support.object_store import Bucket
from tests.support.planted import plant
from vrag_ray.corpus.model import Probe
from vrag_ray.corpus.sandbox.sandbox import Sandbox
from vrag_ray.index.search.lexical import lexical_search
from vrag_ray.index.storage.collection import Collection
from vrag_ray.ingest import ingest
from vrag_ray.ingest.manifest import read_manifest
from vrag_ray.ingest.sources import LeftOut, is_missing, list_sources
from vrag_ray.types import VragError
from vrag_ray.types.redaction import public_uri


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two notes, one of them deeper, a hidden one and a file of another kind."""
    root = tmp_path / "in"
    (root / "deep").mkdir(parents=True)
    (root / ".hidden").mkdir()
    (root / "a.md").write_text("the lighthouse is white")
    (root / "deep" / "b.md").write_text("the harbour is wide")
    (root / ".hidden" / "c.md").write_text("not to be found")
    (root / "tool.exe").write_bytes(b"MZ")
    return root


def test_a_pattern_takes_what_it_matches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [source.name for source in list_sources([f"{folder}/**/*.md"]).sources][-2:] == ["a.md", "b.md"]
    monkeypatch.chdir(folder)
    [deep] = list_sources(["deep/*.md"]).sources
    assert deep.uri == (folder / "deep" / "b.md").as_uri()
    with pytest.raises(VragError, match=r"no file matches .*\.pdf"):
        list_sources([f"{folder}/*.pdf"])


def test_a_style_sheet_is_of_its_page_and_not_left_out(folder: Path) -> None:
    (folder / "deep" / "page.css").write_text("p{color:red}")
    assert (LeftOut.KIND, "deep/page.css") not in list_sources([folder]).left_out


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_manifest_says_something_of_each_file(folder: Path, suffix: str) -> None:
    rows = [
        {"path": "a.md", "year": 1851, "author": "Herman"},
        {"path": str(folder / "deep" / "b.md"), "year": 1921, "author": None},
    ]
    manifest = folder / f"list{suffix}"
    if suffix == ".jsonl":
        manifest.write_text("\n".join(map(json.dumps, rows)) + "\n")
    elif suffix == ".csv":
        manifest.write_text(f"path,year,author\na.md,1851,Herman\n{rows[1]['path']},1921,\n")
    else:
        pq.write_table(pa.Table.from_pylist(rows), manifest)
    first, second = read_manifest(manifest)
    assert (first.name, dict(first.meta)) == ("a.md", {"year": 1851, "author": "Herman"})
    assert (second.name, dict(second.meta)) == ("b.md", {"year": 1921})


def test_a_manifest_of_a_spreadsheet_keeps_its_codes(folder: Path) -> None:
    manifest = folder / "list.csv"
    manifest.write_text("\ufeffpath;shelf;share;volume\na.md;0042;nan;3\n")
    [source] = read_manifest(manifest)
    assert dict(source.meta) == {"shelf": "0042", "share": "nan", "volume": 3}


def test_lines_of_a_manifest_end_at_line_feeds_alone(folder: Path) -> None:
    manifest = folder / "list.jsonl"
    row = json.dumps({"path": "a.md", "author": "Ida\u2028Brook\u0085Lane"}, ensure_ascii=False)
    manifest.write_text(f"\ufeff{row}\r\n", newline="")
    [source] = read_manifest(manifest)
    assert str(source.meta["author"]).startswith("Ida")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("m.jsonl", '{"path": "a.md"}\n{"file": "b.md"}\n', r"row 2 of .*m\.jsonl has no path"),
        ("m.jsonl", '{"path": "missing.md"}\n', r"row 1 of .*missing\.md is not a file"),
        ("m.jsonl", '{"path": "a.md", "tags": ["x"]}\n', "tags is neither a text nor a number"),
        ("m.jsonl", "{\n", r"line 1 of .*m\.jsonl is not JSON"),
        ("m.csv", "path\n", "has no rows"),
        ("m.csv", "path,year\na.md,2020,north\n", r"row 1 of .*m\.csv has more values than there are columns"),
        ("m.txt", "a.md\n", r"is no manifest: use one of \.jsonl, \.csv, \.parquet"),
    ],
)
def test_a_wrong_manifest_is_named_with_its_row(folder: Path, name: str, text: str, problem: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(VragError, match=problem):
        read_manifest(folder / name)


def test_metadata_of_a_manifest_can_be_searched_and_wins_over_those_of_all_files(folder: Path, tmp_path: Path) -> None:
    manifest = folder / "list.jsonl"
    manifest.write_text('{"path": "a.md", "year": 1851}\n{"path": "deep/b.md"}\n')
    ingest(read_manifest(manifest), settings_for(tmp_path / "c"), meta={"year": 2000, "shelf": "north"})
    collection = Collection.open(tmp_path / "c")
    metadata = {document.title: dict(document.meta) for document in collection.documents()}
    common = {"shelf": "north", "format": "Markdown"}
    assert metadata == {"a": {"year": 1851, **common}, "b": {"year": 2000, **common}}


def test_a_folder_of_an_object_store_is_ingested_and_named_without_its_options(
    folder: Path, tmp_path: Path, bucket: Bucket
) -> None:
    where = bucket.upload(folder, "papers")
    listing = list_sources([where])
    assert [source.uri for source in listing.sources] == [
        f"s3://{bucket.name}/papers/a.md",
        f"s3://{bucket.name}/papers/deep/b.md",
    ]
    assert listing.left_out == [(LeftOut.HIDDEN, ".hidden/c.md"), (LeftOut.KIND, "tool.exe")]
    report = ingest([where], settings_for(tmp_path / "c"))
    assert (report.added, report.failed) == (2, ())
    collection = Collection.open(tmp_path / "c")
    [hit] = lexical_search(collection, "harbour", 5, None)
    document = collection.document(collection.passage(hit.id).doc_id)
    assert (document.uri, document.title) == (f"s3://{bucket.name}/papers/deep/b.md", "b")
    assert collection.blob_path(document.doc_id).read_text() == "the harbour is wide"
    assert ingest([where], settings_for(tmp_path / "c")).skipped == 2
    with pytest.raises(VragError, match=r"missing.* does not exist"):
        list_sources([bucket.uri("missing")])


@pytest.fixture
def latin(tmp_path: Path) -> Path:
    """A folder whose name is not UTF-8, with two files whose names are not either, and one with a line end in it."""
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/b\xfccher"))
    root.mkdir()
    (root / os.fsdecode(b"caf\xe9.txt")).write_text("seals sleep on the mole")
    (root / os.fsdecode(b"photo\xe9.exe")).write_bytes(b"MZ")
    (root / "two\nlines.txt").write_text("terns nest on the pier")
    return root


def test_a_name_that_is_not_utf8_is_percent_encoded(latin: Path) -> None:
    listing = list_sources([latin])
    sources = listing.sources
    assert [source.name for source in sources] == ["caf%E9.txt", "two%0Alines.txt"]
    assert sources[0].uri.endswith("/b%FCcher/caf%E9.txt")
    assert listing.left_out == [(LeftOut.KIND, "photo%E9.exe")]
    # The uri that is shown names the file.
    [again] = list_sources([sources[0].uri]).sources
    assert (again.path, again.uri) == (sources[0].path, sources[0].uri)
    with pytest.raises(VragError, match=r"b%FCcher/none does not exist"):
        list_sources([latin / "none"])


def test_the_name_that_is_shown_names_the_file(latin: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(latin.parent)
    for given in ("b%FCcher/caf%E9.txt", f"{latin.parent}/b%FCcher/caf%E9.txt", "b%FCcher/two%0Alines.txt"):
        [source] = list_sources([given]).sources
        assert isinstance(source.path, Path) and source.path.is_file()
        assert not is_missing(given)
    assert len(list_sources(["b%FCcher"]).sources) == 2
    (latin / "list.csv").write_text("path,author\ncaf%E9.txt,Ida\n")
    [of_manifest] = read_manifest(latin / "list.csv")
    assert of_manifest.path == latin / os.fsdecode(b"caf\xe9.txt")
    # A file that is called so itself comes first.
    (latin / "caf%E9.txt").write_text("the harbour is wide")
    [own] = list_sources([latin / "caf%E9.txt"]).sources
    assert own.path == latin / "caf%E9.txt"
    assert is_missing("b%FCcher/th%E9.txt")


def test_what_is_neither_a_file_nor_a_folder_is_called_so(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(VragError, match=r"pipe\.txt is neither a file nor a folder"):
        list_sources([tmp_path / "pipe.txt"])


def test_what_a_folder_holds_and_is_not_taken_is_named_with_the_reason(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (folder / "linked").symlink_to(tmp_path / "other")
    (folder / "nowhere.md").symlink_to(tmp_path / "nothing.md")
    os.mkfifo(folder / "pipe.md")
    listing = list_sources([folder])
    assert [source.name for source in listing.sources] == ["a.md", "b.md"]
    assert {name: reason for reason, name in listing.left_out} == {
        ".hidden": LeftOut.HIDDEN,
        "tool.exe": LeftOut.KIND,
        "linked": LeftOut.LINKED,
        "nowhere.md": LeftOut.DANGLING,
        "pipe.md": LeftOut.SPECIAL,
    }
    for number in range(5):
        (folder / f"{number}.exe").write_bytes(b"MZ")
    notices = list_sources([folder]).notices()
    assert "left out 0.exe, 1.exe, 2.exe and 3 more: each is of a kind that is not read" in notices


def test_a_folder_with_nothing_but_links_says_so(tmp_path: Path) -> None:
    for name in ("real", "links"):
        (tmp_path / name).mkdir()
    (tmp_path / "links" / "linked").symlink_to(tmp_path / "real")
    with pytest.raises(
        VragError, match=r"nothing to ingest in .*links: left out linked: it is a link to a folder"
    ) as e:
        ingest([tmp_path / "links"], settings_for(tmp_path / "c"))
    assert "known are" not in str(e.value)
    (tmp_path / "links" / "tool.exe").write_bytes(b"MZ")
    with pytest.raises(VragError, match=r"left out tool\.exe: it is of a kind .*; known are .*\.pdf"):
        ingest([tmp_path / "links"], settings_for(tmp_path / "c"))


def test_links_and_pipes_that_a_pattern_matches_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    (folder.parent / "other").mkdir()
    (folder / "linked").symlink_to(folder.parent / "other")
    (folder / "nowhere.md").symlink_to(folder.parent / "nothing.md")
    os.mkfifo(folder / "pipe.md")
    listing = list_sources([f"{folder.name}/*"])
    assert listing.sources
    assert {name.rpartition("/")[2]: reason for reason, name in listing.left_out} == {
        "linked": LeftOut.LINKED,
        "nowhere.md": LeftOut.DANGLING,
        "pipe.md": LeftOut.SPECIAL,
    }
    with pytest.raises(VragError, match=r"no file matches .*/l\*; left out .*/linked: it is a link to a folder"):
        list_sources([f"{folder.name}/l*"])


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_manifest_names_such_a_file_by_its_uri_and_as_text_also_by_its_bytes(latin: Path, suffix: str) -> None:
    file = latin / os.fsdecode(b"caf\xe9.txt")
    places = [file.as_uri()] if suffix == ".parquet" else [file.as_uri(), file.name]
    manifest = latin / f"list{suffix}"
    if suffix == ".parquet":
        with manifest.open("wb") as stream:
            pq.write_table(pa.Table.from_pylist([{"path": place} for place in places]), stream)
    else:
        header = "path,author\n" if suffix == ".csv" else ""
        row = "{},Andr\udce9\n" if suffix == ".csv" else '{{"path": "{}", "author": "Andr\udce9"}}\n'
        manifest.write_text(header + "".join(map(row.format, places)), errors="surrogateescape")
    for source in read_manifest(manifest):
        assert (source.name, source.uri) == ("caf%E9.txt", file.as_uri())
        json.dumps(dict(source.meta), ensure_ascii=False).encode()


def test_files_with_such_names_are_taken_in_and_found(latin: Path, tmp_path: Path) -> None:
    with (latin / "rows.parquet").open("wb") as stream:
        pq.write_table(pa.Table.from_pylist([{"content": "gulls follow the plough"}]), stream)
    report = ingest([latin], settings_for(tmp_path / "c"))
    assert (report.added, report.failed) == (3, ())
    collection = Collection.open(tmp_path / "c")
    [hit] = lexical_search(collection, "seals", 5, None)
    document = collection.document(collection.passage(hit.id).doc_id)
    assert (document.title, public_uri(document.uri)) == ("caf%E9", "caf%E9.txt")


def test_a_fault_of_the_program_costs_one_file_and_is_tried_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = Sandbox.probe

    def faulty(self: Sandbox, path: Path, name: str, *more: object) -> Probe:
        if name == "a.md":
            raise RuntimeError("nobody thought of this")
        return probe(self, path, name, *more)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Sandbox, "probe", faulty)
        report = ingest([folder], settings_for(tmp_path / "c"))
    assert (report.added, [failure.error[:4] for failure in report.failed]) == (1, ["a.md"])
    assert "fault in vrag_ray (RuntimeError)" in report.failed[0].error
    assert ingest([folder], settings_for(tmp_path / "c")).added == 1


def test_a_collection_is_not_made_where_the_path_is_not_utf8(latin: Path) -> None:
    with pytest.raises(VragError, match=r"cannot be in .*/b%FCcher/c: that path is not UTF-8.* --collection"):
        Collection.open(latin / "c")


def test_a_collection_that_is_given_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    root = tmp_path / "c"
    plant(root, {"a": ["alpha"]}, embedded=False)
    listing = list_sources([tmp_path / "a.txt", root])
    assert [source.name for source in listing.sources] == ["a.txt"]
    assert listing.left_out == [(LeftOut.COLLECTION, str(root))]
    assert list_sources([root]).sources == []
