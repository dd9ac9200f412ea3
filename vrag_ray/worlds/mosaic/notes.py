"""What the expert writes into its memory, and how it reads that again: as few words as carry what is needed next."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vrag_ray.worlds.mosaic.colours import Colour
from vrag_ray.worlds.mosaic.page import MARK

NOTHING = "nothing"
"""The summary of a search that brought up nothing of use."""
_FOUND = re.compile(rf"(?:{MARK} (?P<mark>[a-z]+)(?P=mark))?(?P<cell>[a-d][1-4]) (?P<colour>[a-z]+)")
_NAMES = re.compile(r"(?P<first>[a-z]+ [a-z]+)(?: or (?P<second>[a-z]+ [a-z]+))?")


@dataclass(frozen=True, slots=True)
class Found:
    """The answer: the colour of the cell that was asked for; on a branch after the mark that tells the right page.

    The mark is written down twice, as it was asked for and as it was seen, before the two are compared: a small model
    learns to compare two neighbouring words, and neither a word with a picture nor two words far apart.
    """

    cell: str
    colour: Colour
    mark: Colour | None = None

    def __str__(self) -> str:
        marks = f"{MARK} {self.mark}{self.mark}" if self.mark is not None else ""
        return f"{marks}{self.cell} {self.colour}"


@dataclass(frozen=True, slots=True)
class OtherMark:
    """The page of a branch that is not meant: the mark that was asked for, and the one that it has."""

    asked: Colour
    seen: Colour

    def __str__(self) -> str:
        return f"{MARK} {self.asked}{self.seen}{NOTHING}"


@dataclass(frozen=True, slots=True)
class Leads:
    """The pages to look at next: one of a chain, two of a branch."""

    pages: tuple[str, ...]

    def __str__(self) -> str:
        return " or ".join(self.pages)


def read_note(summary: str) -> Found | Leads | None:
    """None for ``NOTHING``, for another mark, and for whatever else tells nothing of the way."""
    found = _FOUND.fullmatch(summary)
    if found is not None and {found["colour"], found["mark"] or found["colour"]} <= set(Colour):
        return Found(found["cell"], Colour(found["colour"]), Colour(found["mark"]) if found["mark"] else None)
    names = _NAMES.fullmatch(summary)
    if names is not None:
        return Leads(tuple(name for name in names.groups() if name is not None))
    return None
