"""A hit crosses HTTP and is the same hit on the other side."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.client.hits import hit_of, search_hit
from vrag_ray.client.schemas import SearchHit
from vrag_ray.types import SECTION, Box, Hit, Locator, Passage, PassageKind

FRACTION = st.floats(0, 1)
WORDS = st.text(max_size=20)
SECONDS = st.floats(0, 1e6)


def locators(kind: PassageKind) -> st.SearchStrategy[Locator]:
    number = st.integers(0, 10**6)
    if kind is PassageKind.TEXT:
        return st.builds(Locator, span_start=number, span_end=number)
    if kind is PassageKind.CLIP:
        return st.builds(Locator, t_start=SECONDS, t_end=SECONDS)
    return st.builds(Locator, page=st.integers(1, 10**6), label=WORDS, pages=number)


@st.composite
def hits(draw: st.DrawFn) -> Hit:
    kind = draw(st.sampled_from(PassageKind))
    meta = draw(st.sampled_from([{}, {SECTION: "Costs > Dredging"}]))
    box = draw(st.none() | st.just(Box(0.25, 0.5, 0.75, 0.875)))
    region = draw(st.none() | st.just(Box(0.0, 0.0, 0.5, 0.5)))
    passage = Passage("ab:w0", "ab" * 32, kind, draw(locators(kind)), 0, draw(WORDS), box, meta=meta)
    scores = draw(st.dictionaries(st.sampled_from(["lexical", "text", "late"]), FRACTION))
    return Hit(passage, draw(WORDS), "harbour.pdf", draw(FRACTION), scores, region, draw(WORDS), draw(WORDS))


@given(hits())
def test_a_hit_that_is_sent_and_read_is_the_same(hit: Hit) -> None:
    sent = SearchHit.model_validate_json(search_hit(hit).model_dump_json())
    read = hit_of(sent)
    assert read == hit
    # Equality of locators leaves their labels out.
    assert (read.passage.locator.label, read.passage.locator.pages) == (
        hit.passage.locator.label,
        hit.passage.locator.pages,
    )
    assert search_hit(read) == sent
