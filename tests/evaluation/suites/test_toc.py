"""Queries from an outline."""

from __future__ import annotations

from vrag_ray.corpus.model import OutlineEntry
from vrag_ray.evaluation.suites.toc import TocQuery, toc_queries

OUTLINE = [
    OutlineEntry(1, "Contents", 3),
    OutlineEntry(1, "1 Whales", 10),
    OutlineEntry(2, "Blue whales", 10),
    OutlineEntry(2, "Grey whales", 14),
    OutlineEntry(1, "2 Ships", 20),
    OutlineEntry(1, "Concept Index", 30),
    OutlineEntry(1, "Function Index", 33),
]


def test_a_section_runs_to_the_page_before_the_next_of_its_level_and_indexes_are_no_queries() -> None:
    queries, body = toc_queries(OUTLINE, 40)
    assert queries == [
        TocQuery("1 Whales", 10, 19),
        TocQuery("Blue whales", 10, 13),
        TocQuery("Grey whales", 14, 19),
        TocQuery("2 Ships", 20, 29),
    ]
    assert (body.start, body.stop) == (10, 30)


def test_a_pdf_without_an_outline_has_no_queries() -> None:
    assert toc_queries([], 5)[0] == []
