"""Copying exercises: words of the world, to be said again. An agent copies names from questions and notes all the time,
and from random weights that is the slowest thing to learn when only one or two words of a run ask for it.
"""

from __future__ import annotations

from vrag_ray.agent.chat import Message, Role
from vrag_ray.worlds.mosaic.chance import drawn_from
from vrag_ray.worlds.mosaic.colours import COLOURS, page_name
from vrag_ray.worlds.mosaic.page import CELLS

WORDS = 20
NODES = 4
_ASKED = "Question: What colour is cell "


def copying_exercise(*, seed: int, index: int) -> tuple[tuple[Message, ...], str]:
    """The chat of exercise ``index`` up to where the assistant speaks, and the reply: the words of the question."""
    chance = drawn_from("copying", seed, index)
    words: list[str] = []
    while len(words) < WORDS:
        kind = chance.randrange(5)
        if kind < 2:
            words += page_name(chance.choice(COLOURS), chance.choice(COLOURS)).split(" ")
            words[-2] += " "
        elif kind == 2:
            words.append(chance.choice(COLOURS).value)
        elif kind == 3:
            words.append(f"{chance.choice(CELLS)} ")
        else:
            words.append(f"s{chance.randrange(1, NODES + 1)}")
    text = "".join(words)
    return (Message.of(Role.USER, f"{_ASKED}{text}"),), text
