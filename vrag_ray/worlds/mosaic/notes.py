"""What the expert writes into its memory, and how it reads that again: as few words as carry what is needed next."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vrag_ray.worlds.mosaic.colours import Colour

NOTHING = "nothing"
"""The summary of a search that brought up nothing of use."""
_FOUND = re.compile(r"(?P<cell>[a-d][1-4]) (?P<colour>[a-z]+)")
_NAMES = re.compile(r"(?P<first>[a-z]+ [a-z]+)(?: or (?P<second>[a-z]+ [a-z]+))?")


@dataclass(frozen=True, slots=True)
class Found:
    """The answer: the colour of the cell that was asked for."""

    cell: str
    colour: Colour

    def __str__(self) -> str:
        return f"{self.cell} {self.colour}"


@dataclass(frozen=True, slots=True)
class Leads:
    """The pages to look at next: one of a chain, two of a branch."""

    pages: tuple[str, ...]

    def __str__(self) -> str:
        return " or ".join(self.pages)


def read_note(summary: str) -> Found | Leads | None:
    """None for ``NOTHING`` and whatever else is no note."""
    found = _FOUND.fullmatch(summary)
    if found is not None and found["colour"] in set(Colour):
        return Found(found["cell"], Colour(found["colour"]))
    names = _NAMES.fullmatch(summary)
    if names is not None:
        return Leads(tuple(name for name in names.groups() if name is not None))
    return None
