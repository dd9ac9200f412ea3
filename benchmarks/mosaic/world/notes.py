"""What the expert writes into its memory, and how it reads that again: as few words as carry what is needed next."""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchmarks.mosaic.world.colours import Colour
from benchmarks.mosaic.world.page import CELLS, GRID, MARK

NOTHING = "nothing"
"""The summary of a search that brought up nothing of use."""
_FINDING = re.compile(rf"(?:{MARK} (?P<mark>[a-z]+)(?P=mark))?(?P<cell>[a-d][1-4]) (?P<colour>[a-z]+)")
_NAMED = tuple(zip(CELLS[:GRID:2], CELLS[1:GRID:2], strict=True))
"""The cells of the first row that spell a name each."""
_NO_OTHER = " or " + "".join(f"{cell} {NOTHING}" for cell in _NAMED[1])
"""After the only page of a chain, in as many words as the other page of a branch."""
_NAME = r"{} ([a-z]+) {} ([a-z]+)"
_NAMES = re.compile(rf"{_NAME.format(*_NAMED[0])}(?:{_NO_OTHER}| or {_NAME.format(*_NAMED[1])})")


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer: the colour of the cell that was asked for; on a branch after the mark that tells the right page.

    The mark is written down twice, as it is seen and as it was asked for, before the two are compared: a small model
    learns to compare two neighbouring words, and neither a word with a picture nor two words far apart. What is seen
    comes first, as a colour always comes after the cell that shows it.
    """

    cell: str
    colour: Colour
    mark: Colour | None = None

    def __str__(self) -> str:
        marks = f"{MARK} {self.mark}{self.mark}" if self.mark is not None else ""
        return f"{marks}{self.cell} {self.colour}"


@dataclass(frozen=True, slots=True)
class OtherMark:
    """The page of a branch that is not meant: the mark that it has, and the one that was asked for."""

    seen: Colour
    sought: Colour

    def __str__(self) -> str:
        return f"{MARK} {self.seen}{self.sought}{NOTHING}"


@dataclass(frozen=True, slots=True)
class Leads:
    """The pages to look at next: one of a chain, two of a branch.

    Each word comes after the cell that spells it, as a colour does in ``Found``: a small model learns what stands in a
    cell that it has just named, and is often stuck where it has to know which cell comes next.

    A note of one page is as long as one of two, so that its name stands where the first of two would: with notes of
    two lengths a small model that learnt one kind of search often lost the other.
    """

    pages: tuple[str, ...]

    def __str__(self) -> str:
        cells = zip(_NAMED, self.pages, strict=False)
        named = " or ".join(
            " ".join(f"{cell} {word}" for cell, word in zip(pair, page.split(), strict=True)) for pair, page in cells
        )
        return named if len(self.pages) > 1 else named + _NO_OTHER


def read_note(summary: str) -> Finding | Leads | None:
    """None for ``NOTHING``, for another mark, and for whatever else tells nothing of the way."""
    match = _FINDING.fullmatch(summary)
    if match is not None and {match["colour"], match["mark"] or match["colour"]} <= set(Colour):
        return Finding(match["cell"], Colour(match["colour"]), Colour(match["mark"]) if match["mark"] else None)
    names = _NAMES.fullmatch(summary)
    if names is not None:
        words = [word for word in names.groups() if word is not None]
        return Leads(tuple(f"{first} {second}" for first, second in zip(words[::2], words[1::2], strict=True)))
    return None
