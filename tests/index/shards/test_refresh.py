"""A shard that goes on from an earlier version answers as one that reads everything, whatever happened in between."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.planted import DIM, EMBEDDER, add_embedded, doc_id_of, document, stored
from vrag_ray.config import IndexConfig
from vrag_ray.index.shards import shard_index
from vrag_ray.index.shards.shard_index import ShardIndex, SpaceSpec, load_shard
from vrag_ray.index.storage.files import CollectionFiles
from vrag_ray.index.storage.rows import CorruptionError
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import TEXT
from vrag_ray.types.filters import SearchFilter

SPEC = SpaceSpec(TEXT, EMBEDDER)
WORDS = ("red", "green", "blue", "red green", "green blue", "blue red")
BASE = 40
"""Documents of the first version, of two pages each."""


def put(writer: CollectionWriter, name: str, texts: list[str], *, first: int = 1, finished: bool = True) -> None:
    add_embedded(writer, [stored(name, page, text) for page, text in enumerate(texts, start=first)])
    if finished:
        writer.commit_documents([document(name, units=first - 1 + len(texts))])


@pytest.fixture(scope="module")
def first_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refresh") / "c"
    with CollectionWriter(folder) as writer:
        for number in range(BASE):
            put(writer, f"doc{number}", [WORDS[number % 6], WORDS[(number + 1) % 6]])
        put(writer, "half", ["red"], finished=False)
        writer.publish("base")
    return folder


@pytest.fixture
def root(first_version: Path, tmp_path: Path) -> Path:
    return shutil.copytree(first_version, tmp_path / "c")


def load(root: Path, version: int, earlier: ShardIndex | None = None, *, shard: int = 0, shards: int = 1) -> ShardIndex:
    files = CollectionFiles(str(root))
    return load_shard(files, version, [SPEC], IndexConfig(threads=1), shard=shard, shards=shards, earlier=earlier)


def answers(index: ShardIndex, doc_filter: SearchFilter | None = None) -> list[list[tuple[str, float]]]:
    queries = np.random.default_rng(7).standard_normal((6, 1, DIM)).astype(np.float32)
    results = index.nearest(TEXT, list(queries), 200, doc_filter)
    return [[(window.id, window.score) for window in windows] for windows in results]


def shares_its_base(index: ShardIndex, earlier: ShardIndex) -> bool:
    now, before = index.loaded(SPEC), earlier.loaded(SPEC)
    return now is not None and before is not None and now.base is before.base


def deleted(writer: CollectionWriter) -> None:
    writer.delete(doc_id_of("doc3"))


def read_again(writer: CollectionWriter) -> None:
    again = replace(document("doc4", units=2), added_at="2030-01-01T00:00:00+00:00")
    writer.commit_documents([replace(again, read_again=True)])
    writer.drop_passages([again.doc_id])
    add_embedded(writer, [stored("doc4", 1, "blue"), stored("doc4", 2, "green")])
    writer.commit_documents([again])


def same_row_other_pages(writer: CollectionWriter) -> None:
    writer.drop_passages([doc_id_of("doc5")])
    add_embedded(writer, [stored("doc5", 1, "blue red")])


CHANGES: dict[str, Callable[[CollectionWriter], None]] = {
    "added": lambda writer: put(writer, "new", ["green", "red"]),
    "deleted": deleted,
    "finished": lambda writer: put(writer, "half", ["blue"], first=2),
    "read again": read_again,
    "replaced": lambda writer: (
        add_embedded(writer, [stored("newer", 1, "blue")]),
        writer.commit_documents([replace(document("newer", units=1), uris=document("doc6", units=2).uris)]),
    )[1],
    "under another name": lambda writer: writer.commit_documents(
        [replace(document("doc7", units=2), uris=("one.pdf", "two.pdf"))]
    ),
    "half done": lambda writer: put(writer, "unfinished", ["red"], finished=False),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("shards", [1, 3])
def test_it_answers_as_one_that_reads_everything(root: Path, change: str, shards: int) -> None:
    before = [load(root, 1, shard=shard, shards=shards) for shard in range(shards)]
    old = [answers(index) for index in before]
    with CollectionWriter(root) as writer:
        CHANGES[change](writer)
        writer.publish(change)
    for shard in range(shards):
        grown = load(root, 2, before[shard], shard=shard, shards=shards)
        assert shares_its_base(grown, before[shard])
        whole = load(root, 2, shard=shard, shards=shards)
        assert answers(grown) == answers(whole)
        assert [status.size for status in grown.statuses] == [status.size for status in whole.statuses]
        chosen = SearchFilter(doc_ids=[doc_id_of(name) for name in ("doc3", "doc4", "new", "newer", "half")])
        assert answers(grown, chosen) == answers(whole, chosen)
        # The earlier version is served until the later one is loaded everywhere.
        assert answers(before[shard]) == old[shard]


@settings(max_examples=3, deadline=None)
@given(steps=st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=7, unique=True))
def test_version_after_version(first_version: Path, tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    root = shutil.copytree(first_version, tmp_path_factory.mktemp("steps") / "c")
    index = load(root, 1)
    for version, step in enumerate(steps, start=2):
        with CollectionWriter(root) as writer:
            CHANGES[step](writer)
            writer.publish(step)
        index = load(root, version, index)
        assert answers(index) == answers(load(root, version))


def test_rows_that_changed_behind_an_unchanged_document_are_read_anew(root: Path) -> None:
    before = load(root, 1)
    with CollectionWriter(root) as writer:
        same_row_other_pages(writer)
        writer.publish("other pages")
    grown = load(root, 2, before)
    assert not shares_its_base(grown, before)
    assert answers(grown) == answers(load(root, 2))


def test_where_much_has_changed_all_is_read_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_index, "MOST_CHANGED", 0.05)
    index = load(root, 1)
    bases = [index]
    for version in range(2, 8):
        with CollectionWriter(root) as writer:
            put(writer, f"more{version}", ["red", "blue"])
            writer.publish("more")
        index = load(root, version, index)
        if not shares_its_base(index, bases[-1]):
            bases.append(index)
        assert answers(index) == answers(load(root, version))
    # Eighty pages take four more each time.
    assert len(bases) == 3


def test_a_damaged_row_of_a_new_document_is_reported(root: Path) -> None:
    before = load(root, 1)
    with CollectionWriter(root) as writer:
        put(writer, "new", ["green", "red"])
        rows = writer._documents.to_table(filter=f"doc_id = '{doc_id_of('new')}'").to_pylist()
        writer._documents.update({"title": "'another'"}, where=f"doc_id = '{rows[0]['doc_id']}'")
        writer.publish("damaged")
    with pytest.raises(CorruptionError, match="document row"):
        load(root, 2, before)
