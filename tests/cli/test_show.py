"""How graphs and places look in a terminal."""

from __future__ import annotations

from vrag_ray.agent.memory.graph import ANSWER_ID, ROOT_ID, MemoryGraph, MemoryItem
from vrag_ray.cli.options import parse_filter, parse_meta
from vrag_ray.cli.progress import eta_text
from vrag_ray.cli.show import graph_lines
from vrag_ray.types import Box, Locator, PassageKind


def test_a_graph_is_drawn_as_a_tree_and_a_second_parent_is_named():
    item = MemoryItem(
        doc_id="d", locator=Locator(page=4), kind=PassageKind.PAGE, box=Box(0.1, 0.2, 0.3, 0.4), priority=5, title="Y"
    )
    graph = MemoryGraph.start("how much?").add_search("a", (ROOT_ID,), "first").add_search("b", (ROOT_ID,), "second")
    graph = graph.memorize("a", "learnt this", (item,)).add_answer(("a", "b"), "42")
    assert list(graph_lines(graph)) == [
        "Graph",
        '  question "how much?"',
        '  ├─ a: search "first"',
        "  │     learnt this",
        "  │     kept: Y, page 4, box 0.10 0.20 0.30 0.40, priority 5 of 5",
        '  └─ b: search "second"',
        f"     └─ {ANSWER_ID}  (also from a)",
        "           42",
    ]


def test_metadata_values_have_the_type_they_look_like():
    assert parse_meta(["year=2024", 'code="2024"', "draft=true", "share=0.5", "note=a=b"], "--meta") == {
        "year": 2024,
        "code": "2024",
        "draft": True,
        "share": 0.5,
        "note": "a=b",
    }


def test_codes_and_what_no_number_holds_stay_texts():
    texts = ["007", "nan", "-inf", "1e999", "1_000", "\u0662", "98765432109876543210", "0x1f", ""]
    assert parse_meta([f"m{n}={text}" for n, text in enumerate(texts)], "--meta") == {
        f"m{n}": text for n, text in enumerate(texts)
    }
    assert parse_meta(["a=-7", "b=+1.50", "c=0", "d=2e3", "e=.5"], "--meta") == {
        "a": -7,
        "b": 1.5,
        "c": 0,
        "d": 2000.0,
        "e": 0.5,
    }


def test_no_filter_options_are_no_filter():
    assert parse_filter(None, [], None) is None
    narrowed = parse_filter(["ab"], ["page"], ["year=2024"])
    assert narrowed is not None
    assert (narrowed.doc_ids, narrowed.kinds) == (["ab"], [PassageKind.PAGE])


def test_remaining_time_is_in_minutes_and_seconds():
    assert eta_text(125.4) == "about 2:05 left"
    assert eta_text(None) == ""
