"""A collection on S3 through its whole life, on moto's server: ingest, search, new versions, deletion, two writers."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from pyarrow import fs

from tests.support import material
from tests.support.ingest_material import settings_for
from tests.support.object_store import Bucket
from tests.support.patience import HANGS_AFTER_S
from vrag_ray.client.schemas import RunRequest, SearchRequest
from vrag_ray.config import Settings
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.verify import verify
from vrag_ray.index.storage.writer import BusyError, CollectionWriter
from vrag_ray.ingest import ingest
from vrag_ray.system.here import local_system


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "harbour.pdf").write_bytes(material.pdf())
    (folder / "notes.txt").write_text("the lighthouse is white", encoding="utf-8")
    return folder


def titles(settings: Settings, query: str) -> list[str]:
    async def search() -> list[str]:
        async with local_system(settings) as system:
            answer = await system.search(SearchRequest(query=query, top_k=3))
            assert answer.shards_ok == answer.shards_total
            return [str(hit.title) for hit in answer.results[0]]

    return asyncio.run(search())


def test_a_collection_lives_on_s3_from_its_first_document_to_the_deletion_of_one(papers: Path, bucket: Bucket):
    root = bucket.uri("lives/c")
    settings = settings_for(root)
    report = ingest([papers], settings)
    assert (report.added, report.failed) == (2, ())
    assert titles(settings, "dredging cost of the northern basin")[0] == "harbour"
    assert verify(root).is_sound

    async def ask() -> str:
        async with local_system(settings) as system:
            events = [event async for event in system.ask(RunRequest(question="Is the lighthouse white?"))]
            return str(getattr(events[-1], "answer", ""))

    assert "white" in asyncio.run(ask())
    again = ingest([papers], settings)
    assert (again.added, again.skipped) == (0, 2)
    (papers / "notes.txt").write_text("the lighthouse is red", encoding="utf-8")
    assert ingest([papers], settings).replaced == 1
    [first, *later] = Collection.open(root).versions()
    with CollectionWriter(root) as writer:
        [note] = [document.doc_id for document in Collection.open(root).documents() if document.title == "notes"]
        writer.delete(note)
        writer.publish("delete")
    assert "notes" not in titles(settings, "lighthouse")
    assert len(Collection.open(root).versions()) == len(later) + 2
    assert Collection.open(root, first.number).document_count == 2
    report_of_all = verify(root)
    assert report_of_all.is_sound and report_of_all.blobs == 3
    assert not [name for name in bucket.files("lives/c") if name.startswith("writing/")]


@pytest.mark.exhaustive
def test_of_two_writers_at_once_one_is_refused_and_nothing_of_either_is_lost(papers: Path, bucket: Bucket):
    root = bucket.uri("two/c")
    settings = settings_for(root)
    refused = {name: threading.Event() for name in ("harbour.pdf", "notes.txt")}

    def write(name: str) -> None:
        while True:
            try:
                ingest([papers / name], settings)
            except BusyError as error:
                assert "another process is writing" in str(error)
                refused[name].set()
            else:
                return

    threads = [threading.Thread(target=write, args=(name,)) for name in refused]
    with CollectionWriter(root):
        with pytest.raises(BusyError, match="another process is writing"):
            CollectionWriter(root)
        for thread in threads:
            thread.start()
        assert all(event.wait(HANGS_AFTER_S) for event in refused.values())
    for thread in threads:
        thread.join()
    assert sorted(document.title for document in Collection.open(root).documents()) == ["harbour", "notes"]
    assert verify(root).is_sound


def test_a_flipped_byte_on_s3_is_found(papers: Path, bucket: Bucket):
    root = bucket.uri("flipped/c")
    ingest([papers / "notes.txt"], settings_for(root))
    store, base = fs.FileSystem.from_uri(root)
    [blob] = [name for name in bucket.files("flipped/c") if name.startswith("blobs/")]
    with store.open_output_stream(f"{base}/{blob}") as stream:
        stream.write(b"the lighthouse is whitf")
    assert verify(root).damaged == (blob,)
