"""Figures, dates and names are found in another text however they are written there, and others are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vrag_ray.agent.facts import Facts, Figure, facts_of

TABLE = """Harbour of Skagen, annual report
(in thousands of kroner)
| | 2024 | 2023 |
| Berth fees | 4,217 | 3,100 |
| Waste heat sold | 1 946 | 1 512 |
Crane T4 was inspected on 17 September 2024 by Kari Nordmann at 16:20; 38 barges, 105 crews, 12.5 % more than in FY22.
Sold to the U.S.A. in May.
"""


@pytest.mark.parametrize(
    "text",
    [
        "4.2 million",
        "4,217 thousand kroner",
        "4217",
        "$4.217 million",
        "1,946",
        "1.946",
        "1’946",  # noqa: RUF001 - as it is written in Switzerland
        "thirty-eight barges",
        "one hundred and five crews",
        "12.5%",
        "12,5 Prozent",
        "13 %",
        "September 17, 2024",
        "17.09.2024",
        "2024-09-17",
        "17 September",
        "September 2024",
        "by Kari Nordmann",
        "in Skagen, T4",
        "fiscal 2022",
        "at 16:20",
        "on page 7, in table 3",
        "1. Berth fees",
        "4,217 3,100",
        "kr 4.217M, or €4.2M",
        "the USA, one of two-thirds",
    ],
)
def test_what_a_page_says_is_found_in_it_in_any_spelling(text: str) -> None:
    facts, page = facts_of(text), Facts(TABLE)
    assert [fact.text for fact in facts if not page.has(fact)] == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("4.3 million kroner", ["4.3 million"]),
        ("4,218", ["4,218"]),
        ("forty-eight barges", ["forty-eight"]),
        ("37 barges and 105 crews", ["37"]),
        ("on 18 September 2024", ["18 September 2024"]),
        ("in September 2023", ["September 2023"]),
        ("by Ola Nordmann", ["Ola Nordmann"]),
        ("The Ola Hansen shed", ["Ola Hansen"]),
        ("crane T5 at 16:30", ["T5", "16:30"]),
        ("21.7", ["21.7"]),
        ("4,217 3,101", ["3,101"]),
        ("FY2021", ["FY2021"]),
        ("费用为288万", ["288万"]),
    ],
)
def test_what_a_page_does_not_say_is_missing_from_it(text: str, missing: list[str]) -> None:
    page = Facts(TABLE)
    assert [fact.text for fact in facts_of(text) if not page.has(fact)] == missing


def test_a_figure_of_a_table_is_of_its_scale_and_one_beside_none_is_as_it_stands() -> None:
    assert Facts(TABLE).has(facts_of("4.2 million")[0])
    assert Facts("Recettes, en milliers d'euros : 4 217").has(facts_of("4.2 million")[0])
    assert not Facts("Berth fees: 4,217 kroner").has(facts_of("4.2 million")[0])


def test_words_of_a_title_and_nouns_of_german_are_no_names() -> None:
    assert facts_of("Annual Report And Review Of The Old Harbour") == ()
    assert facts_of("Der Hafen hat die Gebühren der Liegeplätze gesenkt, sagt das Amt.") == ()


def test_places_of_facts_are_those_in_the_text() -> None:
    text = "Sales of Best Buy rose to $4.2 billion on 3 May 2024, thirty-eight stores at 9:30."
    for fact in facts_of(text):
        assert text[fact.start : fact.start + len(fact.text)] == fact.text
    assert [fact.text for fact in facts_of(text)] == [
        "Best Buy",
        "4.2 billion",
        "3 May 2024",
        "thirty-eight",
        "9:30",
    ]


@given(
    st.lists(st.sampled_from(("1", "234", "567", "890", "0", ",", ".", " ", "'", "-", "%", " million", "$", "\u00a0")))
)
def test_any_row_of_figures_is_read(pieces: list[str]) -> None:
    for fact in facts_of("".join(pieces)):
        assert not isinstance(fact, Figure) or fact.readings


def test_figures_that_stand_beside_each_other_in_a_row_are_two() -> None:
    assert [fact.text for fact in facts_of("Net sales 1,234,567 890 and 1.234.567,8 900,1")] == [
        "1,234,567", "890", "1.234.567,8", "900,1"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "page", ["The county has 340² herds.", "In 340,² of them", "It has 340²,³ herds.", "There were ²340 herds."]
)
def test_the_raised_mark_of_a_note_is_no_digit_of_the_figure_beside_it(page: str) -> None:
    assert [str(fact.value) for fact in facts_of(page) if isinstance(fact, Figure)] == ["340"]
    assert Facts(page).has(facts_of("340 herds")[0])
    assert not Facts(page).has(facts_of("3402 herds")[0])


def test_a_mark_takes_nothing_from_a_scale_a_date_or_a_name() -> None:
    page = Facts("On 4 May 1926³ Stig Åsen⁴ paid 4.2⁵ million crowns.")
    assert all(map(page.has, facts_of("4 May 1926, Stig Åsen, 4.2 million")))
