"""Words travel between processes whole, and in few bytes; and they are joined as they are read."""

from __future__ import annotations

import pickle

import pytest

from vrag_ray.types import Box, Word, joined, undivided


def test_a_word_comes_back_from_a_pickle_as_it_went() -> None:
    words = [Word(f"word {n}", Box(0.1, 0.2, 0.3 + n / 100, 0.4)) for n in range(20)]
    assert pickle.loads(pickle.dumps(words)) == words


def test_words_are_their_values_in_a_pickle() -> None:
    words = [Word("harbour", Box(0.1, 0.2, 0.3, 0.4)) for _ in range(100)]
    # Four doubles and a text that is there once, without the names of their fields.
    assert len(pickle.dumps(words)) < 100 * 60


def line(y: float, *cells: tuple[float, str]) -> list[Word]:
    return [Word(text, Box(x, y, x + 0.01 * len(text), y + 0.02)) for x, text in cells]


def test_the_divided_heads_of_columns_go_on_below_themselves() -> None:
    words = [
        *line(0.1, (0.1, "Lake"), (0.3, "Concen-"), (0.5, "Tempe-"), (0.7, "Depth")),
        *line(0.13, (0.3, "tration"), (0.5, "rature"), (0.7, "(m)")),
        *line(0.16, (0.1, "North"), (0.3, "615"), (0.5, "14"), (0.7, "9")),
    ]
    assert joined(words, "\n") == "Lake Concentration Temperature Depth\n(m)\nNorth 615 14 9"


def test_a_word_that_a_line_end_divides_goes_on_at_the_beginning_of_the_next_line() -> None:
    words = [
        *line(0.1, (0.1, "pre-"), (0.15, "and"), (0.19, "post-"), (0.25, "concen-")),
        *line(0.13, (0.12, "tration")),
    ]
    assert joined(words) == "pre- and post- concentration"
    words = [*line(0.1, (0.1, "in"), (0.3, "concen-")), *line(0.13, (0.1, "tration"), (0.3, "of"))]
    assert joined(words, "\n") == "in concentration of"


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ("CONCEN-", "TRATION", "CONCENTRATION"),
        ("FÖRDER-", "MENGE", "FÖRDERMENGE"),
        ("EU-", "RICHTLINIE", None),
        ("COVID-", "19", None),
        ("NORD-", "See", None),
        ("город-", "ГЕРОЙ", None),
    ],
)
def test_a_word_in_capitals_is_whole_again(before: str, after: str, word: str | None) -> None:
    assert undivided(before, after) == word
