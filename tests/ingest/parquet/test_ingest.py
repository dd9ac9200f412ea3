"""Rows of Parquet files as documents of a collection, from this machine and from an object store."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.support.ingest_material import content, make_pdf, settings_for
from tests.support.object_store import Bucket
from vrag_ray.cli.main import make_app
from vrag_ray.config import CorpusConfig
from vrag_ray.index.search.lexical import lexical_search
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.verify import verify
from vrag_ray.ingest import ingest
from vrag_ray.types import DocumentKind, DocumentStatus, VragError

pytestmark = pytest.mark.usefixtures("local_ray")
BIRDS = ("albatross", "bittern", "cormorant", "dunlin", "eider", "fulmar")


def write(path: Path, columns: dict[str, object], rows_of_a_group: int = 1_000_000) -> Path:
    pq.write_table(pa.table(columns), path, row_group_size=rows_of_a_group)
    return path


def notes(folder: Path, birds: tuple[str, ...] = BIRDS, **columns: object) -> Path:
    return write(folder / "birds.parquet", {"text": [f"the {bird} nests here" for bird in birds], **columns})


def names(root: Path) -> dict[str, str]:
    """By bird, the row that its document is named by."""
    collection = Collection.open(root)
    by_bird = {}
    for bird in BIRDS:
        for hit in lexical_search(collection, bird, 5, None):
            by_bird[bird] = collection.document(collection.passage(hit.id).doc_id).uri.partition("#")[2]
    return by_bird


def picture(colour: str) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize(
    "actors",
    [{}, pytest.param({"concurrency": 1}, marks=pytest.mark.exhaustive)],
    ids=["in this process", "by actors"],
)
def test_rows_of_every_kind_become_documents_and_a_broken_one_does_not_stop_them(
    tmp_path: Path, actors: dict[str, int]
) -> None:
    pdf = make_pdf(tmp_path / "made.pdf", 3, "whale").read_bytes()
    contents = [pdf, picture("red"), b"plain words of a harbour", b"%PDF-1.7 torn", None]
    path = write(
        tmp_path / "mixed.parquet",
        {"doc_id": [f"d{n}" for n in range(5)], "content": pa.array(contents, pa.binary()), "year": list(range(5))},
    )
    # Reading a picture by OCR takes long where much else is going on: with the limits that users have.
    settings = settings_for(tmp_path / "c", **actors).model_copy(update={"corpus": CorpusConfig()})
    report = ingest([path], settings, meta={"shelf": "north"})
    failed = {document.uri.partition("#")[2]: document.error for document in report.failed}
    assert sorted(failed) == ["d3", "d4"], failed
    assert report.added == 3
    collection = Collection.open(tmp_path / "c")
    by_row = {document.uri.partition("#")[2]: document for document in collection.documents()}
    kinds = {row: document.kind for row, document in by_row.items() if document.status is DocumentStatus.READY}
    assert kinds == {"d0": DocumentKind.PDF, "d1": DocumentKind.IMAGE, "d2": DocumentKind.TEXT}
    assert (by_row["d0"].units, dict(by_row["d2"].meta)) == (3, {"doc_id": "d2", "year": 2, "shelf": "north"})
    assert collection.blob_path(by_row["d1"].doc_id).read_bytes() == picture("red")
    assert verify(tmp_path / "c").is_sound
    again = ingest([path], settings)
    assert (again.added, again.replaced) == (0, 0)


# Quick form: the rows of one group above.
@pytest.mark.exhaustive
def test_many_rows_of_several_groups_are_all_found_and_named(tmp_path: Path) -> None:
    count = 64
    texts = [f"the lighthouse number{n} is white" for n in range(count)]
    path = write(tmp_path / "many.parquet", {"text": texts}, rows_of_a_group=10)
    report = ingest([path], settings_for(tmp_path / "c", concurrency=1))
    assert (report.added, report.failed) == (count, ())
    collection = Collection.open(tmp_path / "c")
    [hit] = lexical_search(collection, "number37", 5, None)
    assert collection.document(collection.passage(hit.id).doc_id).uri == f"{path.as_uri()}#row=38"


def test_rows_that_move_up_keep_their_content_and_take_their_new_names(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "c")
    ingest([notes(tmp_path)], settings)
    assert names(tmp_path / "c") == {bird: f"row={n}" for n, bird in enumerate(BIRDS, 1)}
    passages, _ = content(tmp_path / "c")
    moved = ingest([notes(tmp_path, BIRDS[1:])], settings)
    # The albatross is gone: its name is the bittern's. No row is named 6 now, and none was read again.
    assert (moved.added, moved.pages) == (0, 0)
    assert names(tmp_path / "c") == {bird: f"row={n}" for n, bird in enumerate(BIRDS[1:], 1)} | {"fulmar": "row=6"}
    gone = [row for row in passages if "albatross" in str(row["text"])]
    assert content(tmp_path / "c")[0] == [row for row in passages if row not in gone]


def test_rows_in_another_order_are_the_same_documents(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "c")
    ingest([notes(tmp_path)], settings)
    before, _ = content(tmp_path / "c")
    again = ingest([notes(tmp_path, tuple(reversed(BIRDS)))], settings)
    assert (again.added, again.pages, again.failed) == (0, 0, ())
    assert names(tmp_path / "c") == {bird: f"row={n}" for n, bird in enumerate(reversed(BIRDS), 1)}
    assert content(tmp_path / "c")[0] == before


def test_files_that_exchange_their_names_keep_both_documents(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("the albatross nests here")
    (folder / "b.txt").write_text("the bittern nests here")
    settings = settings_for(tmp_path / "c")
    ingest([folder], settings)
    (folder / "a.txt").write_text("the bittern nests here")
    (folder / "b.txt").write_text("the albatross nests here")
    report = ingest([folder], settings)
    assert (report.added, report.pages) == (0, 0)
    collection = Collection.open(tmp_path / "c")
    for bird, name in (("albatross", "b.txt"), ("bittern", "a.txt")):
        [hit] = lexical_search(collection, bird, 5, None)
        assert collection.document(collection.passage(hit.id).doc_id).uri.endswith(name)


def test_a_folder_is_searched_for_parquet_and_a_file_of_something_else_is_its_own_error(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    notes(folder)
    write(folder / "numbers.parquet", {"year": [1851]})
    report = ingest([folder], settings_for(tmp_path / "c"))
    assert report.added == len(BIRDS)
    [failed] = report.failed
    assert failed.uri.endswith("/numbers.parquet") and "name the column of the documents" in failed.error


def test_where_nothing_can_be_read_the_reason_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "numbers.parquet", {"year": [1851]})
    with pytest.raises(VragError, match=r"nothing to ingest in .*numbers\.parquet: .*no column that holds documents"):
        ingest([path], settings_for(tmp_path / "c"))


def test_an_object_store_has_them_too(tmp_path: Path, bucket: Bucket) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    notes(folder, id=list(BIRDS))
    report = ingest([bucket.upload(folder, "tables")], settings_for(tmp_path / "c"))
    assert (report.added, report.failed) == (len(BIRDS), ())
    uris = {document.uri for document in Collection.open(tmp_path / "c").documents()}
    assert uris == {f"s3://{bucket.name}/tables/birds.parquet#{bird}" for bird in BIRDS}


def test_the_command_line_names_the_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "two.parquet", {"front": [b"the albatross"], "back": [b"the bittern"]})
    command = ["ingest", "two.parquet", "-c", "c", "--json"]
    refused = CliRunner().invoke(make_app(), command)
    assert refused.exit_code != 0
    assert "--content-column" in str(refused.exception)
    done = CliRunner().invoke(make_app(), [*command, "--content-column", "back"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["added"] == 1
    assert names(tmp_path / "c") == {"bittern": "row=1"}


def test_a_parquet_file_that_is_given_as_one_document_is_refused_with_the_way_to_its_rows(tmp_path: Path) -> None:
    from vrag_ray.ingest import Source

    path = notes(tmp_path)
    report = ingest([Source(path, "upload/birds.parquet", path.name)], settings_for(tmp_path / "c"))
    [failed] = report.failed
    assert "is a Parquet file: its rows become documents where" in failed.error
