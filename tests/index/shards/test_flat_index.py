"""Exact search in one shard and over several, ties and filters included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.planted import DIM, add_embedded, doc_id_of, document, stored
from vrag_ray.index.shards import flat_index
from vrag_ray.index.shards.flat_index import FlatIndex
from vrag_ray.index.shards.row_loader import load_space_rows, rows_of
from vrag_ray.index.shards.scored import Scored, merge
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.writer import CollectionWriter
from vrag_ray.types import TEXT, PassageKind, VragError
from vrag_ray.types.filters import MetaRange, SearchFilter

SHARDINGS = (1, 2, 3, 7)
IN_PARTS = 0


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """60 documents whose pages repeat the same six texts, so that most scores tie across documents and shards."""
    root = tmp_path_factory.mktemp("shard") / "c"
    words = ("red", "green", "blue", "red green", "green blue", "blue red")
    with CollectionWriter(root) as writer:
        for number in range(60):
            name = f"doc{number}"
            texts = [words[(number + page) % 6] for page in range(1, 5)]
            add_embedded(
                writer, [stored(name, p, t, meta={"year": 1990 + number}) for p, t in enumerate(texts, start=1)]
            )
            writer.commit_documents([document(name, units=4)])
        writer.publish("ties")
    return Collection.open(root)


@pytest.fixture(scope="module")
def sharded(collection: Collection) -> dict[int, list[FlatIndex]]:
    """By number of shards; under ``IN_PARTS`` a single shard that five threads scan."""
    shards = {
        n: [FlatIndex(load_space_rows(collection, TEXT, rows_of(collection, i, n))) for i in range(n)]
        for n in SHARDINGS
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flat_index, "LEAST_ROWS_OF_A_PART", 40)
        shards[IN_PARTS] = [FlatIndex(load_space_rows(collection, TEXT), threads=5)]
    assert len(shards[IN_PARTS][0]._cpu) == 5
    return shards


def test_every_row_lives_in_exactly_one_shard(sharded: dict[int, list[FlatIndex]]) -> None:
    for shards in sharded.values():
        ids = [row_id for shard in shards for row_id in shard.rows.ids.to_pylist()]
        assert len(ids) == len(set(ids)) == 240


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 240))
def test_sharded_result_equals_unsharded_exactly_ties_included(
    sharded: dict[int, list[FlatIndex]], seed: int, k: int
) -> None:
    chance = np.random.default_rng(seed)
    # Queries along planted texts make hundreds of exact ties; random ones make none.
    base = sharded[1][0]
    query = (
        chance.standard_normal((1, DIM)).astype(np.float32)
        if seed % 2
        else base._cpu[0].reconstruct(int(chance.integers(base.size))).reshape(1, DIM)
    )
    whole = base.nearest(query, k)[0]
    assert whole == sorted(whole, key=lambda scored: scored.sort_key)
    everything = base.nearest(query, base.size)[0]
    assert whole == everything[:k]
    for shards in sharded.values():
        assert merge((shard.nearest(query, k)[0] for shard in shards), k) == whole


@pytest.mark.parametrize(
    ("doc_filter", "expected_docs"),
    [
        (SearchFilter(doc_ids=[doc_id_of("doc3"), doc_id_of("doc9")]), {"doc3", "doc9"}),
        (SearchFilter(meta={"year": 1995}), {"doc5"}),
        (SearchFilter(meta={"year": MetaRange(gte=2000, lt=2003)}), {"doc10", "doc11", "doc12"}),
        (SearchFilter(meta={"year": MetaRange(any_of=[1990, 1991])}), {"doc0", "doc1"}),
        (SearchFilter(kinds=[PassageKind.CLIP]), set()),
        (SearchFilter(meta={"colour": "red"}), set()),
        (SearchFilter(doc_ids=[]), set()),
    ],
)
def test_a_filter_is_applied_in_the_shard_and_finds_all_that_fit(
    sharded: dict[int, list[FlatIndex]], doc_filter: SearchFilter, expected_docs: set[str]
) -> None:
    query = np.ones((1, DIM), dtype=np.float32)
    expected = {doc_id_of(name)[:24] for name in expected_docs}
    for shards in sharded.values():
        hits = merge((shard.nearest(query, 100, doc_filter)[0] for shard in shards), 100)
        assert {scored.id.split(":")[0] for scored in hits} == expected
        assert len(hits) == 4 * len(expected)


def test_scores_are_cosines_to_fp16_accuracy(sharded: dict[int, list[FlatIndex]]) -> None:
    index = sharded[1][0]
    query = index._cpu[0].reconstruct(0).reshape(1, DIM)
    assert index.nearest(query, 1)[0][0].score == pytest.approx(1.0, abs=2e-3)


def test_queries_of_another_dimension_are_refused(sharded: dict[int, list[FlatIndex]]) -> None:
    with pytest.raises(VragError, match="16 dimensions"):
        sharded[1][0].nearest(np.ones((1, 8), dtype=np.float32), 3)


def test_an_empty_shard_answers_with_nothing() -> None:
    empty = Collection.__new__(Collection)
    empty.record = None
    index = FlatIndex(load_space_rows(empty, TEXT))
    assert index.nearest(np.ones((2, DIM), dtype=np.float32), 5) == [[], []]


def test_merge_orders_by_score_then_id() -> None:
    parts = [[Scored("b", 1.0), Scored("d", 0.5)], [Scored("a", 1.0), Scored("c", 0.7)]]
    assert [scored.id for scored in merge(parts, 3)] == ["a", "b", "c"]
