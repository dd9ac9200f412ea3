"""Copying exercises: words of the world to be said again, and notes to be told in another order.

An agent copies names from questions and colours from notes all the time, and from random weights that is the slowest
thing to learn when only one or two words of a run ask for it.
"""

from __future__ import annotations

import random

from vrag_ray.agent.chat import Message, Role
from vrag_ray.worlds.mosaic.chance import drawn_from
from vrag_ray.worlds.mosaic.colours import COLOURS, FIRST_WORDS, SECOND_WORDS, page_name
from vrag_ray.worlds.mosaic.page import CELLS

WORDS = 20
MAX_NODES, MAX_NAMES = 12, 6
_REPEAT = "Question: What colour is cell "
_RECALL = "Notes: "

Chat = tuple[Message, ...]


def copying_exercise(*, seed: int, index: int) -> tuple[Chat, str]:
    """The chat of exercise ``index`` up to where the assistant speaks, and the reply. There are three in turn.

    One says the words of the question again. In another the chat tells what was noted and asks for it in another
    order. In the third it names one word of many, from which they are to be said on.
    """
    chance = drawn_from("copying", seed, index)
    match index % 3:
        case 0:
            text = _words(chance)
            return (Message.of(Role.USER, f"{_REPEAT}{text}"),), text
        case 1:
            return _recall(chance)
        case _:
            return _continuation(chance)


def _continuation(chance: random.Random) -> tuple[Chat, str]:
    """Wherever the reply begins, each of its words is found behind the one before: none stands in the chat twice."""
    words: list[str] = []
    while len(words) < WORDS:
        more = _some_words(chance)
        if not set(more) & set(words):
            words += more
    at = chance.randrange(len(words) - 2)
    return (Message.of(Role.USER, f"{_RECALL}{''.join(words)}\n{words[at]}"),), "".join(words[at + 1 :])


def _recall(chance: random.Random) -> tuple[Chat, str]:
    """Noted are colours of cells, names of pages below nodes of a memory graph, or names alone by their first words."""
    kind = chance.randrange(3)
    if kind == 0:
        keys = [f"{cell} " for cell in chance.sample(CELLS, chance.randrange(1, len(CELLS) + 1))]
        notes = {key: f"{key}{chance.choice(COLOURS).value}" for key in keys}
    elif kind == 1:
        keys = [f"s{node}" for node in chance.sample(range(1, MAX_NODES + 1), chance.randrange(1, MAX_NODES + 1))]
        notes = {key: f"{key}{page_name(chance.choice(COLOURS), chance.choice(COLOURS))}" for key in keys}
    else:
        keys = [f"{word} " for word in chance.sample(FIRST_WORDS, chance.randrange(2, MAX_NAMES + 1))]
        notes = {key: f"{key}{chance.choice(SECOND_WORDS)}" for key in keys}
    order = chance.sample(keys, len(keys))
    told, asked = (" or " if kind == 2 else "").join(notes.values()), "".join(order)
    return (Message.of(Role.USER, f"{_RECALL}{told}\n{asked}"),), "".join(notes[key] for key in order)


def _words(chance: random.Random) -> str:
    words: list[str] = []
    while len(words) < WORDS:
        words += _some_words(chance)
    return "".join(words)


def _some_words(chance: random.Random) -> list[str]:
    """A page's name, in two words; or a colour, a cell, or a node."""
    kind = chance.randrange(5)
    if kind < 2:
        first, second = page_name(chance.choice(COLOURS), chance.choice(COLOURS)).split(" ")
        return [f"{first} ", second]
    if kind == 2:
        return [chance.choice(COLOURS).value]
    return [f"{chance.choice(CELLS)} " if kind == 3 else f"s{chance.randrange(1, MAX_NODES + 1)}"]
