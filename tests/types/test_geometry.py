"""Words travel between processes whole, and in few bytes."""

from __future__ import annotations

import pickle

from vrag_ray.types import Box, Word


def test_a_word_comes_back_from_a_pickle_as_it_went() -> None:
    words = [Word(f"word {n}", Box(0.1, 0.2, 0.3 + n / 100, 0.4)) for n in range(20)]
    assert pickle.loads(pickle.dumps(words)) == words


def test_words_are_their_values_in_a_pickle() -> None:
    words = [Word("harbour", Box(0.1, 0.2, 0.3, 0.4)) for _ in range(100)]
    # Four doubles and a text that is there once, without the names of their fields.
    assert len(pickle.dumps(words)) < 100 * 60
