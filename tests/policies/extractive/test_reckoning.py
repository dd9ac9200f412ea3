"""What follows from several rows of a table or the items of a list: extremes, counts, totals, comparisons."""

from __future__ import annotations

import pytest

from tests.policies.extractive.test_matching import matches_for, matches_in, page
from tests.policies.extractive.test_policy import ask
from tests.support.agent_pages import Shelf, put, table
from vrag_ray.agent.observation import Observation, Sighting
from vrag_ray.policies.extractive.matching import Match, compares
from vrag_ray.policies.extractive.questions import part_of
from vrag_ray.types import PassageKind, Word

ROWS = (
    ("Mill", "Built", "Height (m)", "Price (EUR)", "Sails", "Owner"),
    ("Arkle", "1791", "17.5", "4.50", "yes", "Trust"),
    ("Brome", "1834", "21", "6.00", "no", "Parish"),
    ("Corley", "1812", "9.2", "3.20", "yes", "Trust"),
    ("Deben", "1870", "13", "5.10", "yes", "Parish"),
)
COLUMNS = (0, 70, 140, 230, 330, 400)
TEXT = "\n".join(
    [
        " ".join(ROWS[0]),
        *(", ".join(f"{head}: {cell}" for head, cell in zip(ROWS[0], row, strict=True)) for row in ROWS[1:]),
    ]
)


def mills(*rows: tuple[str, ...], y: float = 170) -> list[Word]:
    return [*put(50, y - 60, "Mills of the county"), *table(50, y, COLUMNS, ROWS[0], *(rows or ROWS[1:]))]


def best(question: str) -> tuple[Match, Match]:
    """Of a page with places and of a text with rows that repeat their heads."""
    return matches_for(question, mills())[0], matches_in(question, TEXT, "Mills of the county")[0]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which mill is the oldest?", "Arkle, Built 1791"),
        ("Which mill has the lowest price?", "Corley, Price (EUR) 3.20"),
        ("What is the tallest mill?", "Brome, Height (m) 21"),
        ("Which is the most expensive mill of the county?", "Brome, Price (EUR) 6.00"),
        ("Which mill with sails is the tallest?", "Arkle, Height (m) 17.5"),
        ("What is the cheapest mill of the Parish?", "Deben, Price (EUR) 5.10"),
        ("How many mills have sails?", "3 (Arkle; Corley; Deben)"),
        ("How many of the mills belong to the Trust?", "2 (Arkle; Corley)"),
        ("What do all mills cost together?", "18.80 = 4.50 + 6.00 + 3.20 + 5.10"),
        ("Which is taller, Arkle or Deben?", "Arkle, Height (m) 17.5 against 13"),
        ("Is the Corley cheaper than the Arkle?", "Yes, Price (EUR) 3.20 and 4.50"),
        ("Is the Corley older than the Arkle?", "No, Built 1812 and 1791"),
        ("What is the difference in height between Brome and Deben?", "8 (21 and 13)"),
        ("By how much is the price of Brome higher than that of Arkle?", "1.50 (6.00 and 4.50)"),
        ("How much taller is Brome than Deben?", "8 (21 and 13)"),
    ],
)
def test_what_follows_from_the_rows_of_a_table_answers(question: str, answer: str) -> None:
    shelf = Shelf()
    shelf.add("Mills of the county", mills())
    assert ask(question, shelf).answer.startswith(f"{answer}: “")


@pytest.mark.parametrize(
    ("question", "is_compared"),
    [("Which is taller, Arkle or Deben?", True), ("What do the mill and the barn cost in total?", False)],
)
def test_only_a_comparison_keeps_its_two_sides_in_one_question(question: str, is_compared: bool) -> None:
    whole = page(mills())
    seen = Sighting("s1", "d", whole.locator, PassageKind.PAGE, "", "d.pdf", 1.0, whole.text, whole)
    assert compares(part_of(question), Observation("q1", question, (seen,))) is is_compared


@pytest.mark.parametrize(
    "question",
    [
        "Which mill has the lowest rent?",
        "Which mill has the most visitors?",
        "Which mill is the fastest?",
        "Which mill is the second oldest?",
        "Which mill without sails is the tallest?",
        "What is the price of the tallest mill?",
        "What was the highest price of a mill between 1800 and 1850?",
        "Which mill was the cheapest of those built before 1830?",
        "How many mills have a museum?",
        "How many mills have no sails?",
        "How many boats have sails?",
        "How many mills are more than 15 m high?",
        "How high are all mills of the Trust together?",
        "How many visitors did all mills have together?",
        "Is the Corley cheaper than the Elmer?",
        "Which is louder, Arkle or Deben?",
    ],
)
def test_a_column_or_row_that_the_table_lacks_gives_no_result(question: str) -> None:
    for words in (
        mills(),
        [*mills(), *put(50, 300, "The museum, the visitors, the rent and the boats are elsewhere.")],
    ):
        assert not any(match.density >= 2000 for match in matches_for(question, words))


@pytest.mark.parametrize(
    ("rows", "question", "answers_it"),
    [
        ((*ROWS[1:], ("Total", "", "60.7", "18.80", "", "")), "Which mill is the tallest?", True),
        ((*ROWS[1:], ("Total", "", "60.7", "18.80", "", "")), "How high are all mills together?", False),
        ((*ROWS[1:], ("Elmer", "1901", "unknown", "4", "no", "Trust")), "Which mill is the tallest?", False),
        ((*ROWS[1:], ("Elmer", "1901", "40 ft", "4", "no", "Trust")), "Which mill is the tallest?", False),
        ((*ROWS[1:], ("Elmer", "1901", "21", "4", "no", "Trust")), "Which mill is the tallest?", False),
        ((*ROWS[1:], ("Elmer", "1901", "22", "4", "perhaps", "Trust")), "How many mills have sails?", False),
    ],
)
def test_rows_of_totals_do_not_count_and_cells_of_another_kind_give_no_result(
    rows: tuple[tuple[str, ...], ...], question: str, answers_it: bool
) -> None:
    assert any(match.density >= 2000 for match in matches_for(question, mills(*rows))) is answers_it


def test_a_table_that_may_go_on_elsewhere_gives_no_result() -> None:
    question = "Which mill is the tallest?"
    low = mills(y=620)
    footer = put(50, 760, "County record office")
    assert not any(match.density >= 2000 for match in matches_for(question, [*low, *footer]))
    assert not any(match.density >= 2000 for match in matches_for(question, low))
    assert matches_for(question, [*low, *put(50, 720, "Heights are to the cap.")])[0].answer.startswith("Brome")
    long = "\n".join([TEXT, *(TEXT.splitlines()[1].replace("Arkle", f"Mill{n}") for n in range(9))])
    assert not any(match.density >= 2000 for match in matches_in(question, long))
    assert matches_in(question, f"{long}\n\nHeights are to the cap.")[0].answer.startswith("Brome")
    # A piece from the middle of a table has no line of heads.
    assert not any(match.density >= 2000 for match in matches_in(question, TEXT.partition("\n")[2]))


OFFICERS = "• Chair: Ada Wolde\n• Treasurer: Jon Ferris\n• Secretary: Mia Lund\n"
COUNT = "3 (Chair: Ada Wolde; Treasurer: Jon Ferris; Secretary: Mia Lund)"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (f"The following officers were elected:\n{OFFICERS}", COUNT),
        (f"Elected officers\n\n{OFFICERS}", COUNT),
        (f"Elected officers\n\nOn 3 May the board elected:\n{OFFICERS}", COUNT),
        (f"Twelve officers were elected, among them:\n{OFFICERS}", "Twelve"),
        (f"The following officers were elected:\n{OFFICERS}" + "• Clerk of the long and distant harbours\n" * 30, ""),
        (f"The following boats were chosen:\n{OFFICERS}", ""),
        (f"## 2. Elected officers\n\n{OFFICERS}", COUNT),
    ],
)
def test_the_items_of_a_list_are_counted_where_the_line_above_names_them(text: str, answer: str) -> None:
    answers = [match.answer for match in matches_in("How many officers were elected?", text)]
    assert (answers or [""])[0] == answer


def test_words_of_grammar_behind_the_noun_name_no_list() -> None:
    text = f"The office does the following:\n{OFFICERS}"
    assert not any(match.answer for match in matches_in("How many wins does the office have?", text))


def test_a_list_above_the_footer_of_a_page_may_go_on_on_the_next() -> None:
    def answers(y: float, *below: str) -> list[str]:
        items = ["The following officers were elected:", *OFFICERS.splitlines()]
        words = [word for at, line in enumerate([*items, *below]) for word in put(50, y + 15 * at, line)]
        footer = put(50, 770, "County record office")
        return [match.answer for match in matches_for("How many officers were elected?", [*words, *footer])]

    assert COUNT in answers(300)
    assert COUNT in answers(660, "All of them accepted.")
    assert COUNT not in answers(660)


def test_the_items_below_another_number_are_not_counted() -> None:
    text = f"UNIT 7\n\nThe following officers of the harbour club are elected:\n{OFFICERS}\n"
    text += "UNIT 8\n\n" + "Unit 8 is short.\n\nUnit 8 is held in May.\n\n" * 3
    question = "How many officers of the harbour club are elected in unit {}?"
    coverage = [
        next(match.coverage for match in matches_in(question.format(number), text) if match.answer == COUNT)
        for number in (7, 8)
    ]
    assert coverage[0] > 0.5 > coverage[1]
