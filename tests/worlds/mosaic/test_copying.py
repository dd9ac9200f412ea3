"""Copying exercises: what is to be said stands in the chat, word by word."""

from __future__ import annotations

import re

from vrag_ray.agent.chat import ImagePart
from vrag_ray.worlds.mosaic.colours import FIRST_WORDS
from vrag_ray.worlds.mosaic.copying import copying_exercise
from vrag_ray.worlds.mosaic.page import CELLS

CELL_KEYS = [f"{cell} " for cell in CELLS]
KEY = "|".join(["[a-d][1-4] ", r"s\d+", *(f"{word} " for word in FIRST_WORDS)])
NOTE = re.compile(r"([a-d][1-4] |s\d+)([a-z ]+?)(?=[a-d][1-4] |s\d|$)")


def test_every_third_exercise_says_the_words_of_the_question_again() -> None:
    for index in range(0, 30, 3):
        [message], reply = copying_exercise(seed=1, index=index)
        assert message.text.endswith(f"cell {reply}")
        assert len(reply) > 40


def test_one_of_three_says_words_on_from_any_of_them() -> None:
    starts = set()
    for index in range(2, 120, 3):
        [message], reply = copying_exercise(seed=1, index=index)
        told, _, word = message.text.removeprefix("Notes: ").partition("\n")
        before, _, after = told.partition(word)
        assert after == reply
        assert word not in reply
        starts.add(len(before))
    assert len(starts) > 30


def test_one_of_three_tells_notes_in_the_order_that_is_asked_for() -> None:
    kinds = set()
    reordered = 0
    for index in range(1, 180, 3):
        [message], reply = copying_exercise(seed=1, index=index)
        notes, _, order = message.text.removeprefix("Notes: ").partition("\n")
        keys = re.findall(KEY, order)
        told = (
            dict(re.findall(rf"({KEY})(.+?)(?= or |{KEY}|$)", notes)) if " or " in notes else dict(NOTE.findall(notes))
        )
        assert sorted(told) == sorted(keys)
        assert reply == "".join(key + told[key] for key in keys)
        reordered += list(told) != keys
        kinds.add("cell" if keys[0] in CELL_KEYS else "node" if keys[0][1:].isdigit() else "name")
    assert kinds == {"cell", "node", "name"}
    assert reordered > 35


def test_an_exercise_is_the_same_each_time_and_shows_nothing() -> None:
    exercises = [copying_exercise(seed=2, index=index) for index in range(20)]
    assert exercises == [copying_exercise(seed=2, index=index) for index in range(20)]
    assert len({reply for _, reply in exercises}) == 20
    assert not any(isinstance(part, ImagePart) for chat, _ in exercises for one in chat for part in one.parts)
