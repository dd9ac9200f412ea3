"""A suite of retrieval made of questions whose gold places are known: each question is the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from vrag_ray.client.schemas import SearchHit
from vrag_ray.evaluation.suites.suite import RetrievalQuery, RetrievalSuite
from vrag_ray.questions.examples import Example
from vrag_ray.questions.gold_places import GoldPlace, Seen, region_measures
from vrag_ray.questions.named_pages import NamedDocument, file_name
from vrag_ray.types import VragError

REGIONS_AMONG = 10
"""The boxes of this many first results are compared with the gold ones."""


def question_suite(
    name: str,
    examples: Sequence[Example],
    gold: Mapping[str, Sequence[GoldPlace]],
    documents: Iterable[NamedDocument],
) -> RetrievalSuite:
    """Of those questions that have gold places. Raises VragError where none has."""
    answerable = [example for example in examples if gold.get(example.uid)]
    if not answerable:
        raise VragError(f"{name} has no question whose pages are known, so nothing says what is found right")
    names = {document.doc_id: file_name(document.uris[0]) for document in documents}

    def items_of(query: RetrievalQuery, hit: SearchHit) -> Sequence[str]:
        seen = _seen(hit)
        met = [place.name for place in gold[query.uid] if place.is_met_by(seen)]
        place = "" if hit.page is None else f"#p{hit.page}"
        place = place if hit.t_start is None else f"#t{hit.t_start:g}-{hit.t_end or hit.t_start:g}"
        return met or [f"{names.get(hit.doc_id, hit.title)}{place}"]

    def regions(query: RetrievalQuery, hits: Sequence[SearchHit]) -> Mapping[str, float]:
        return region_measures(gold[query.uid], [_seen(hit) for hit in hits[:REGIONS_AMONG]])

    return RetrievalSuite(
        name, [_query(example, gold[example.uid]) for example in answerable], items_of, regions_of=regions
    )


def _query(example: Example, gold: Sequence[GoldPlace]) -> RetrievalQuery:
    named = {"kind": example.kind, "source": example.data_source}
    groups = {name: (value,) for name, value in named.items() if value} | dict(example.groups)
    return RetrievalQuery(example.uid, example.question, {place.name: 1 for place in gold}, groups)


def _seen(hit: SearchHit) -> Seen:
    """Where a vector leg saw the query, else where the words stand."""
    return Seen(hit.doc_id, hit.page, hit.t_start, hit.t_end, hit.region or hit.bbox)
