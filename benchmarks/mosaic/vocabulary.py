"""Which stretches of text are one token each: everything that varies in this world, and all fixed text between.

A prompt of nine thousand characters is then about a hundred tokens. The fixed text is not written down here: it is
gathered from chats of scripted runs and exercises, cut where something varies, so that it follows the protocol when
that changes. What none of them holds is still spelt, in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from benchmarks.mosaic.world.agent import mosaic_protocol
from benchmarks.mosaic.world.colours import COLOURS, FIRST_WORDS, GREY_NAME, SECOND_WORDS
from benchmarks.mosaic.world.expert import print_crop
from benchmarks.mosaic.world.notes import NOTHING
from benchmarks.mosaic.world.page import BODY, CELLS
from benchmarks.mosaic.world.trail import AGAIN
from vrag_ray.agent.memory.graph import ROOT_ID
from vrag_ray.types import FamilyName

MAX_NODES = 16
"""Node ids ``s1`` to this number are one token."""
MAX_PICTURES = 4
"""Verdicts on pictures up to this number are one token."""
_SPACED = rf"(?:{'|'.join(FIRST_WORDS)}|[a-d][1-4]) "
"""Cells and first words take the space with them that always follows."""
_WORD = rf"(?:{'|'.join((*COLOURS, GREY_NAME, NOTHING, *SECOND_WORDS))}|s\d\d?(?!\d))"
_ATOM = re.compile(rf"{_SPACED}|{_WORD}")
_VARIES = re.compile(
    # Kept whole, although they hold what varies elsewhere: the head of a graph, and one verdict on a picture.
    r'\[\{"id": "root", "kind": "root"\}'
    r'|(?:, )?\{"information_id": "Picture \d+", "is_useful": (?:true|false)(?:, "priority_score": \d)?\}'
    # Words of the world, which exercises run together; never a part of another word.
    rf"|(?<![a-z\d])(?:{_SPACED}|{_WORD}(?={_SPACED}|{_WORD}|[^a-z]|\Z))+"
    rf"|\d+\.0|(?<=page number )\d"
    rf'|(?<=[\[ ]")root(?="[\],])|(?<=[a-z]) or (?=[a-z])|{AGAIN}'
)
_SPECIAL = re.compile(r"<\|[a-z_]+\|>")
_SPEAKER = "assistant\n"


def cut(text: str) -> Iterator[str]:
    """A chat, or a reply, as the stretches that are to be one token each. Joined they are the text."""
    at = 0
    for mark in _SPECIAL.finditer(text):
        yield from _cut_message(text[at : mark.start()])
        yield mark[0]
        at = mark.end()
    yield from _cut_message(text[at:])


def _cut_message(text: str) -> Iterator[str]:
    if text.startswith("system\n"):
        yield text
        return
    if text.startswith(_SPEAKER):
        yield _SPEAKER
        text = text.removeprefix(_SPEAKER)
    at = 0
    for match in _VARIES.finditer(text):
        if match.start() > at:
            yield text[at : match.start()]
        atoms = _ATOM.findall(match[0])
        yield from atoms if "".join(atoms) == match[0] else [match[0]]
        at = match.end()
    if at < len(text):
        yield text[at:]


def vocabulary(family: FamilyName, chats: Iterable[str]) -> tuple[str, ...]:
    """All tokens of more than one character, in an order that only depends on what ``chats`` are made of."""
    pieces = {piece for chat in chats for piece in cut(chat) if not _SPECIAL.fullmatch(piece)}
    return tuple(sorted(piece for piece in pieces.union(_varying(family)) if len(piece) > 1))


def _varying(family: FamilyName) -> Iterator[str]:
    yield from (f"{word} " for word in FIRST_WORDS)
    yield from (*SECOND_WORDS, *COLOURS, GREY_NAME, ROOT_ID, NOTHING, " or ", AGAIN)
    yield from (f"{cell} " for cell in CELLS)
    yield from (f"s{number}" for number in range(1, MAX_NODES + 1))
    for number in range(1, MAX_PICTURES + 1):
        for verdict in ("false", 'true, "priority_score": 5'):
            entry = f'{{"information_id": "Picture {number}", "is_useful": {verdict}}}'
            yield from (entry, f", {entry}")
    for cell in BODY:
        yield from (str(number) for number in print_crop(cell, mosaic_protocol(family).family))
