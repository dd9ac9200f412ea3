"""Sixteen colours in eight complementary pairs, and the words by which two colours name a page.

They are corners and edge midpoints of the RGB cube: any two differ by at least 127 in some channel.
"""

from __future__ import annotations

from enum import StrEnum

Rgb = tuple[int, int, int]

GREY: Rgb = (128, 128, 128)
"""What every complementary pair averages to."""
GREY_NAME = "grey"
"""How fine print is called where it is too small to be read. No cell is painted in it, no answer is it."""


class Colour(StrEnum):
    """A colour that a cell may have. Two neighbours in this list, counted in pairs, average to grey."""

    BLACK = "black"
    WHITE = "white"
    RED = "red"
    CYAN = "cyan"
    GREEN = "green"
    MAGENTA = "magenta"
    BLUE = "blue"
    YELLOW = "yellow"
    ORANGE = "orange"
    AZURE = "azure"
    LIME = "lime"
    VIOLET = "violet"
    MINT = "mint"
    ROSE = "rose"
    MAROON = "maroon"
    ICE = "ice"

    @property
    def rgb(self) -> Rgb:
        return _RGB[self]

    @property
    def complement(self) -> Colour:
        """The colour whose channels are 255 less this one's."""
        return COLOURS[COLOURS.index(self) ^ 1]

    @property
    def first_word(self) -> str:
        """What the colour means in the first of two cells that name a page."""
        return FIRST_WORDS[COLOURS.index(self)]

    @property
    def second_word(self) -> str:
        """What the colour means in the second of two cells that name a page."""
        return SECOND_WORDS[COLOURS.index(self)]


COLOURS: tuple[Colour, ...] = tuple(Colour)
FIRST_WORDS = (
    *("amber", "brisk", "calm", "dusty", "eager", "frosty", "gentle", "hollow"),
    *("jolly", "keen", "lively", "mellow", "noble", "quiet", "rapid", "sunny"),
)
SECOND_WORDS = (
    *("falcon", "otter", "lynx", "heron", "badger", "sturgeon", "beetle", "walrus"),
    *("pigeon", "marten", "gecko", "tapir", "urchin", "magpie", "weasel", "zebra"),
)
_LIGHT: tuple[Rgb, ...] = (
    (0, 0, 0),
    (255, 0, 0),
    (0, 255, 0),
    (0, 0, 255),
    (255, 128, 0),
    (128, 255, 0),
    (0, 255, 128),
    (128, 0, 0),
)
_RGB = {
    colour: rgb
    for index, (red, green, blue) in enumerate(_LIGHT)
    for colour, rgb in (
        (COLOURS[2 * index], (red, green, blue)),
        (COLOURS[2 * index + 1], (255 - red, 255 - green, 255 - blue)),
    )
}


def page_name(first: Colour, second: Colour) -> str:
    """The name of the page that two cells of these colours point at: ``amber falcon``."""
    return f"{first.first_word} {second.second_word}"
