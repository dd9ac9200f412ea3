"""Looking a word up in the index of a page gives what going through its texts gives."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.policies.extractive.lexicon import Term, stems, terms
from vrag_ray.policies.extractive.stem_index import StemIndex

WORDS = st.sampled_from(
    [
        "electric",
        "electricity",
        "electron",
        "Turbine",
        "turbines",
        "turbo",
        "blade",
        "2021",
        "2,021",
        "wind",
        "winds",
        "windy",
        "café",
        "岸电",
        "岸电量",
        "max_steps",
    ]
)
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=8)


@given(texts=TEXTS, question=st.lists(WORDS, min_size=1, max_size=4).map(" ".join))
def test_shares_are_those_of_each_text(texts: list[str], question: str) -> None:
    held = [stems(text) for text in texts]
    for term in terms(question):
        shares = {place: term.presence_in(text) for place, text in enumerate(held)}
        assert StemIndex(held).shares(term) == {place: share for place, share in shares.items() if share}


def test_a_name_has_no_other_forms() -> None:
    index = StemIndex([stems("Turbines"), stems("the turbine hall")])
    word = Term("turbin", "turbine", specific=False)
    assert index.shares(word) == {0: 1.0, 1: 1.0}
    assert StemIndex([frozenset({"turbinal"})]).shares(word) == {0: 0.8}
    assert StemIndex([frozenset({"turbinal"})]).shares(Term("turbin", "Turbine", specific=True)) == {}
