"""Which legs contribute, with what weight, and with which notices; and the measure of a BM25 score."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.planted import plant
from vrag_ray.embedding.base import LEAST_READABLE
from vrag_ray.index.search.fusion import Leg
from vrag_ray.index.search.legs import (
    MOST_LEXICAL_WEIGHT,
    lexical_leg,
    lexical_weight,
    query_notices,
    rank,
)
from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.terms import index_terms
from vrag_ray.types import HYBRID, LEXICAL, TEXT, Query

WORDS = Leg(LEXICAL, [Scored("d:p1:w0", 8.0), Scored("d:p2:w0", 2.0)], complete=True, weight=0.25)
MEANING = Leg(TEXT, [Scored("d:p2:w0", 0.5), Scored("d:p1:w0", 0.1)], complete=True)
WORDLESS = Leg(LEXICAL, [], complete=True, weight=0.0)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    root: Path = tmp_path_factory.mktemp("legs") / "c"
    plant(root, {"a": ["sparse matrices", "dense matrices"], "b": ["the plot of a matrix", "plots and axes"]})
    return Collection.open(root)


def leg(collection: Collection, query: str) -> Leg:
    return lexical_leg([(collection, None)], query, top_k=3, candidates=100)


def test_hybrid_gives_the_meaning_what_weight_the_words_leave() -> None:
    fused = rank(HYBRID, [MEANING], WORDS)
    assert [(item.id, item.score) for item in fused] == [
        ("d:p2:w0", pytest.approx(0.25 * 0.25 + 0.75 * 1.0)),
        ("d:p1:w0", pytest.approx(0.25 * 1.0 + 0.75 * 0.2)),
    ]


@pytest.mark.parametrize(("dense", "lexical", "first"), [(None, WORDS, "d:p1:w0"), (MEANING, WORDLESS, "d:p2:w0")])
def test_hybrid_with_one_leg_that_speaks_is_that_legs_order(dense: Leg | None, lexical: Leg, first: str) -> None:
    fused = rank(HYBRID, [] if dense is None else [dense], lexical)
    assert (fused[0].id, fused[0].score) == (first, 1.0)


def test_vector_legs_share_by_their_weights_what_the_words_leave() -> None:
    seen = Leg("visual", [Scored("d:p3:w0", 0.9)], complete=True, weight=3.0)
    fused = {item.id: item.score for item in rank(HYBRID, [MEANING, seen], WORDS)}
    assert fused["d:p3:w0"] == pytest.approx(0.75 * 3 / 4)
    assert fused["d:p2:w0"] == pytest.approx(0.25 * 0.25 + 0.75 / 4)


def test_a_leg_of_weight_0_is_left_out_unless_it_is_named() -> None:
    mute = Leg("visual", [Scored("d:p3:w0", 0.9)], complete=True, weight=0.0)
    assert [item.id for item in rank(HYBRID, [MEANING, mute], None)][:2] == ["d:p2:w0", "d:p1:w0"]
    assert [item.score for item in rank("visual", [mute], None)] == [0.9]


def test_of_several_embedders_only_those_that_cannot_read_are_named() -> None:
    unreadable = {"model/1": 0.0}
    query = Query("云企业网")
    both = query_notices(
        query, HYBRID, unread=unreadable | {"model/2": 0.1}, embedders=2, lexical=WORDS, filtered=False
    )
    assert [notice.rpartition(": ")[2] for notice in both] == ["it was searched by words only"] * 2
    [notice] = query_notices(query, HYBRID, unread=unreadable, embedders=2, lexical=WORDS, filtered=False)
    assert notice == 'the embedder model/1 knows 0% of the query "云企业网": it was left out'


def test_a_picture_without_words_gets_no_notice_about_words() -> None:
    assert query_notices(Query(picture=b"png"), HYBRID, unread={}, embedders=1, lexical=None, filtered=False) == ()


def test_a_single_mode_keeps_cosines_and_bm25_scores() -> None:
    assert [item.score for item in rank(TEXT, [MEANING], None)] == [0.5, 0.1]
    assert [item.score for item in rank(LEXICAL, [], WORDS)] == [8.0, 2.0]


def test_words_are_trusted_as_far_as_they_cover_the_query_and_never_wholly() -> None:
    assert lexical_weight(3.0, 12.0) == 0.25
    assert lexical_weight(12.0, 12.0) == MOST_LEXICAL_WEIGHT
    assert lexical_weight(0.0, 0.0) == 0.0


def test_a_passage_with_all_words_covers_a_query_and_unknown_words_lower_the_weight(collection: Collection) -> None:
    whole, partly, hardly = (leg(collection, query) for query in ("sparse", "sparse axes", "sparse zebra giraffe"))
    assert whole.weight == MOST_LEXICAL_WEIGHT
    assert MOST_LEXICAL_WEIGHT > partly.weight > hardly.weight > 0.0


@pytest.mark.parametrize("query", ["sparse", "the plot", "matrices matrices", "plots of sparse matrices and zebras"])
def test_no_passage_scores_above_the_ceiling_of_a_query(collection: Collection, query: str) -> None:
    ceiling = collection.term_scores.ceiling(index_terms(query))
    assert 0.0 < leg(collection, query).pages[0].score <= ceiling * (1 + 1e-6)


def test_a_query_without_a_known_word_leaves_the_lexical_leg_empty(collection: Collection) -> None:
    assert leg(collection, "zebra") == leg(collection, "?!") == WORDLESS


def notice_text(query: str, mode: str, readable: float, lexical: Leg | None, *, filtered: bool = False) -> str:
    unread = {"model/1": readable} if readable < LEAST_READABLE else {}
    parsed = Query(query)
    notices = query_notices(parsed, mode, unread=unread, embedders=1, lexical=lexical, filtered=filtered)
    return "; ".join(notices)


def test_no_notice_where_both_legs_contribute_or_only_words_are_searched() -> None:
    assert notice_text("q", HYBRID, 0.5, WORDS) == ""
    assert notice_text("q", LEXICAL, 0.0, WORDLESS) == ""
    assert notice_text("q", TEXT, 1.0, None) == ""


def test_a_notice_quotes_its_query_on_one_line_and_cut_short() -> None:
    assert notice_text("a\n b", HYBRID, 0.0, WORDS) == (
        'the embedder model/1 knows 0% of the query "a b": it was searched by words only'
    )
    assert len(notice_text("word " * 1000, HYBRID, 0.4, WORDS)) < 200
