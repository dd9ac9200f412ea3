"""Numbers of lines are no words of the text beside them; numbers of rows, items and notes are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from vrag_ray.corpus.line_numbers import without_line_numbers
from vrag_ray.types import Box, Word

ASPECT = 0.7
PROSE = (
    "The committee resolved that the slipway be",
    "closed until the spring. Councillor Marl",
    "objected, since the lifeboat would have to",
    "be launched from Tidewell. The motion was",
    "carried by seven votes to two after a long",
    "debate, and the clerk was instructed to",
    "write to the county. The cost of the works",
    "is put at 64,000 pounds, of which the county",
    "bears half. The minutes were then read and",
    "signed, and the meeting ended at nine.",
)
LONG = PROSE + tuple(text.lower() for text in PROSE) + PROSE[3:8]
"""As many lines as a page has that numbers each."""
TABLE = ("Oslo 41 72", "Bergen 38 70", "Tromso 12 61", "Vardo 5 22", "Bodo 17 48", "Molde 9 33")
YEARS = (
    "the cellar was flooded to the third step",
    "a new copper was bought",
    "the brewer left, and his brother followed him to the coast",
    "no beer was brewed",
    "the chimney fell in the gale of March",
    "the well ran dry in the summer",
    "a cooper was hired",
)
ITEMS = ("Boats that are", "Masts and spars", "Ropes", "Sails of hemp", "Oars", "Tar")


def line(text: str, x: float, y: float) -> list[Word]:
    words = []
    for word in text.split():
        width = 0.009 * len(word)
        words.append(Word(word, Box(x, y, x + width, y + 0.014)))
        x += width + 0.006
    return words


def numbered(lines: Sequence[str], step: int, at: float, text_at: float, lines_each: int = 1) -> list[Word]:
    """Each ``step``-th of ``lines`` with its number, whose right edge is ``at``."""
    words: list[Word] = []
    for place, text in enumerate(lines):
        y = 0.05 + 0.022 * place
        number, rest = divmod(place, lines_each)
        if rest == 0 and (number + 1) % step == 0:
            label = str(number + 1)
            words.append(Word(label, Box(at - 0.009 * len(label), y, at, y + 0.014)))
        words += line(text, text_at, y)
    return words


def texts(words: Sequence[Word]) -> list[str]:
    return [word.text for word in words]


@pytest.mark.parametrize(("step", "at", "text_at"), [(1, 0.1, 0.14), (5, 0.1, 0.14), (1, 0.95, 0.14)])
def test_numbers_of_lines_are_left_out(step: int, at: float, text_at: float) -> None:
    words = numbered(LONG, step, at, text_at)
    assert texts(without_line_numbers(words, ASPECT)) == " ".join(LONG).split()


@pytest.mark.parametrize("lines", [TABLE * 4, ITEMS * 4])
def test_numbers_of_rows_and_items_stay(lines: Sequence[str]) -> None:
    words = numbered(lines, 1, 0.1, 0.14)
    assert texts(without_line_numbers(words, ASPECT)) == texts(words)


@pytest.mark.parametrize("first", [1, 1921])
def test_numbers_of_entries_that_begin_small_stay(first: int) -> None:
    words: list[Word] = []
    for place, text in enumerate(YEARS * 4):
        words += [*line(str(first + place), 0.08, 0.1 + 0.02 * place), *line(text, 0.16, 0.1 + 0.02 * place)]
    assert texts(without_line_numbers(words, ASPECT)) == texts(words)


def test_numbers_of_notes_of_several_lines_stay() -> None:
    words = numbered(PROSE * 4, 1, 0.1, 0.14, lines_each=2)
    assert texts(without_line_numbers(words, ASPECT)) == texts(words)


def test_a_figure_at_the_end_of_a_line_is_no_number_of_it() -> None:
    words = [
        word for place, text in enumerate(PROSE) for word in line(f"{text} {place + 1}", 0.14, 0.1 + 0.022 * place)
    ]
    assert texts(without_line_numbers(words, ASPECT)) == texts(words)


def test_figures_below_each_other_within_lines_stay() -> None:
    words = [
        word for n in range(1, 12) for word in line(f"whale line {n:02} of the page goes on", 0.14, 0.1 + 0.022 * n)
    ]
    words += [word for n in range(1, 12) for word in line(f"{n:02} sails of hemp", 0.6, 0.1 + 0.022 * n)]
    assert texts(without_line_numbers(words, ASPECT)) == texts(words)
