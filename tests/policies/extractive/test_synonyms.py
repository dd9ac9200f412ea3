"""Words, units and titles that stand for words of the question: what answers, and what is another quantity."""

from __future__ import annotations

import pytest

from vrag_ray.agent.observation import Observation, Sighting
from vrag_ray.policies.extractive.lexicon import stems, terms
from vrag_ray.policies.extractive.matching import Match, matches
from vrag_ray.policies.extractive.questions import parts
from vrag_ray.types import Locator, PageText, PassageKind

PUMP = """Data sheet: garden pump GP-7
Power 0.8 kW
Mass 5.2 kg
Sold by Osric Tools since 2019.
1. Faults
The hose is 12 m long.
Lift the pump by its handle."""


def best_match(question: str, text: str, title: str = "notes") -> Match:
    (part,) = parts(question, limit=3)
    page = PageText("d", Locator(span_start=0, span_end=len(text)), text, (), 0, 0)
    seen = Sighting("s1", "d", page.locator, PassageKind.TEXT, title, "d.txt", 1.0, text, page)
    return matches(part, Observation("q1", question, (seen,)))[0]


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("How many children does the kindergarten look after?", "The kindergarten looks after 23 kids.", "23 kids"),
        ("How many employees does the brewery have?", "The brewery has 5 lorries and a staff of 77.", "77"),
        ("How many kilometres is the crossing?", "The crossing takes 25 minutes for 11 km.", "11 km"),
        ("What is the length of the hall?", "The hall measures 64 m and holds 300 people.", "64 m"),
        ("What is the price of a shower?", "A shower lasts 5 minutes. A shower takes € 1.50.", "1.50"),
    ],
)
def test_a_synonym_or_a_unit_stands_for_a_word_of_the_question(question: str, text: str, answer: str) -> None:
    best = best_match(question, text)
    assert answer in (best.answer or best.quote)
    assert best.coverage >= 0.5


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("Weight (kg)", "mass"), ("EUR", "money"), ("Area km2: 6.4", "area"), ("8 to 12 m", "length"),
        ("23.5 %", "share"), ("62 dB(A)", "sound"), ("$5m", "money"), ("40 hectares", "area"),
    ],
)  # fmt: skip
def test_a_text_has_the_quantity_of_its_units(text: str, quantity: str) -> None:
    assert [stem for stem in stems(text) if stem.startswith("quantity:")] == [f"quantity:{quantity}"]


@pytest.mark.parametrize("text", ["I'm m", "section m", "kg and m", "Room 5 mainly"])
def test_letters_that_are_no_unit_have_no_quantity(text: str) -> None:
    assert not any(":" in stem for stem in stems(text))


def test_the_word_itself_is_worth_more_than_its_synonym_and_names_have_none() -> None:
    (fee,) = terms("the fee")
    assert fee.presence_in(stems("a fee")) == 1 > fee.presence_in(stems("a charge")) > 0
    (pool, pay) = terms("the pool of Pay")
    assert not pay.others
    assert not pool.presence_in(stems("the price is 5 euros"))


def test_a_figure_with_the_unit_of_another_quantity_is_no_answer() -> None:
    assert best_match("What is the mass of the pump GP-7?", PUMP, "Data sheet: garden pump GP-7").answer == "5.2 kg"
    assert best_match("What is the price of the pump GP-7?", PUMP, "Data sheet: garden pump GP-7").answer == ""


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("What is the power of the garden pump GP-7?", "Power 0.8 kW"),
        ("Who sells the garden pump GP-7?", "Sold by Osric Tools since 2019."),
        ("How long is the hose of the garden pump GP-7?", "The hose is 12 m long."),
    ],
)
def test_a_title_says_what_its_document_is_about_and_does_not_answer(question: str, quote: str) -> None:
    best = best_match(question, PUMP, "Data sheet: garden pump GP-7")
    assert best.quote == quote
    assert best.coverage >= 0.5


def test_a_title_answers_where_it_holds_the_question() -> None:
    best = best_match("What is the GP-7?", PUMP, "Data sheet: garden pump GP-7")
    assert best.quote == "Data sheet: garden pump GP-7"


def test_sales_are_no_stock_turnover_and_are_a_turnover() -> None:
    text = "Harbour shop: figures. Sales were 81,950 euros in 2024."
    assert best_match("What was the turnover of the harbour shop in 2024?", text).coverage >= 0.5
    assert best_match("What was the stock turnover of the harbour shop in 2024?", text).coverage < 0.5


@pytest.mark.parametrize("quote", ["3. Lower the pump.", "• If the pump leaks, stop.", "a) Keep the pump dry."])
def test_the_first_word_of_an_item_is_no_name(quote: str) -> None:
    best = best_match("Who repairs the pump?", quote)
    assert best.answer == ""


def test_a_heading_without_a_name_does_not_answer_who() -> None:
    assert (
        best_match(
            "Who services the pump GP-7?", "Service and repair of the pump GP-7\n\nAsk for it at the desk."
        ).coverage
        < 0.5
    )
