"""Superscript marks of notes change no figure and no word; powers of units stay."""

import pytest

from vrag_ray.types.superscripts import superscript, without_note_marks


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("340² herds", "340\u2060 herds"),
        ("in 1926,³ it", "in 1926,\u2060 it"),
        ("The drummer² is", "The drummer\u2060 is"),
        ("²340 herds", "\u2060340 herds"),
        ("10⁻⁶", "10\u2060\u2060"),
        ("77 m² and 5 km²/h", "77 m² and 5 km²/h"),
        ("¹⁴C", "¹⁴C"),
        ("² Estimate", "² Estimate"),
    ],
)
def test_marks_are_taken_from_figures_and_words_and_units_keep_their_powers(text: str, plain: str) -> None:
    assert without_note_marks(text) == plain
    assert len(plain) == len(text)


def test_raised_digits_keep_the_letters_beside_them() -> None:
    assert superscript("2nd 10") == "²nd ¹⁰"
