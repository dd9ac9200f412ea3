"""Words, units and titles that stand for words of the question: what answers, and what is another quantity."""

from __future__ import annotations

import pytest

from tests.support.agent_pages import HEIGHT, WIDTH, table
from vrag_ray.agent.observation import Observation, Sighting
from vrag_ray.policies.extractive.coverage import PRESENCE, Yardstick
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
        ("When was Ilse Dorn born?", "Ilse Dorn, date of birth 7 June 1986", "7 June 1986"),
        ("What is the length of the hall?", "The hall measures 64 m and holds 300 people.", "64 m"),
        ("Was kostet die Überfahrt?", "Preis der Überfahrt: 12 Euro, Dauer: 25 Minuten", "12 Euro"),
        ("Wer leitet die Brauerei?", "Leiterin der Brauerei ist Frau Ida Moos, gebraut wird seit 1901.", "Ida Moos"),
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


LAPTOPS = table(
    50, 170, (0, 150, 280), ("Feature", "Kestrel 13", "Kestrel 15"), ("Weight", "1.1 kg", "1.6 kg"),
    ("Battery", "9 h", "12 h"), ("Memory", "8 GB", "16 GB"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the weight of the Kestrel 15?", "1.6 kg"),
        ("How much memory does the Kestrel 13 have?", "8 GB"),
        ("How long does the battery of the Kestrel 15 last?", "12 h"),
    ],
)
def test_a_value_with_its_unit_is_no_label_of_its_row(question: str, answer: str) -> None:
    (part,) = parts(question, limit=3)
    text = " ".join(word.text for word in LAPTOPS)
    page = PageText("d", Locator(page=1), text, tuple(LAPTOPS), WIDTH, HEIGHT)
    seen = Sighting("s1", "d", page.locator, PassageKind.PAGE, "laptops", "d.pdf", 1.0, text, page)
    assert matches(part, Observation("q1", question, (seen,)))[0].answer == answer


@pytest.mark.parametrize(
    ("question", "quote", "answer"),
    [
        ("How tall is the clock?", "The clock weighs 1.4 tonnes and is 3.6 m tall.", "3.6 m tall"),
        ("What is the fare of bus 33?", "Bus 33 needs 25 minutes and costs 7 euros.", "7 euros"),
        ("How long is the beach of the hotel?", "The hotel by the beach has the number +41 33 555 12 00.", ""),
        ("What is the fee for the tower?", "The tower was begun in 1702.", ""),
    ],
)
def test_of_several_figures_that_of_the_quantity_answers(question: str, quote: str, answer: str) -> None:
    assert best_match(question, quote).answer == answer


def test_a_title_counts_less_for_what_holds_none_of_the_other_words_of_the_question() -> None:
    text = "Hotel Rowan: guide\nThe hotel has 40 rooms.\nA sauna is in the cellar.\nBreakfast is served from seven."
    assert best_match("Who built the jetty of Hotel Rowan?", text, "Hotel Rowan: guide").coverage < 0.5
    assert best_match("Where is the sauna of Hotel Rowan?", text, "Hotel Rowan: guide").coverage >= 0.5


def test_a_year_of_a_title_is_not_that_of_all_figures() -> None:
    (term,) = [term for term in terms("in 2024") if term.stem == "2024"]
    surroundings = Yardstick.on((term,), {"2024": 1}, 9).surroundings(stems("Yearbook 2024"), stems(""))
    assert surroundings.full["2024"] == surroundings.alone["2024"] == PRESENCE.title_alone


@pytest.mark.parametrize("question", ["What was the turnover of staff?", "What was the asset turnover?"])
def test_a_turnover_of_staff_or_assets_is_a_ratio(question: str) -> None:
    (part,) = parts(question, limit=3)
    assert part.measure == "turnov"
    assert not next(term for term in part.terms if term.stem == "turnov").others
