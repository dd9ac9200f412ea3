"""Boxes, in one frame of reference for the whole package, and words that stand in them.

Every ``Box`` is in fractions of the upright page, picture or video frame: origin at the top left, x to the right, y
down. So one box fits any resolution of the same page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from vrag_ray.types.errors import VragError


@dataclass(frozen=True, slots=True)
class Box:
    """An axis-aligned rectangle in page fractions (see the module docstring)."""

    x0: float
    y0: float
    x1: float
    y1: float

    def __post_init__(self) -> None:
        if not (0.0 <= self.x0 < self.x1 <= 1.0 and 0.0 <= self.y0 < self.y1 <= 1.0):
            raise VragError(
                f"box ({self.x0}, {self.y0}, {self.x1}, {self.y1}) is not inside 0..1 with x0 < x1 and y0 < y1"
            )

    def as_tuple(self) -> tuple[float, float, float, float]:
        return (self.x0, self.y0, self.x1, self.y1)

    @property
    def area(self) -> float:
        """Share of the page."""
        return (self.x1 - self.x0) * (self.y1 - self.y0)

    def shared(self, other: Box) -> float:
        """The area of the intersection, 0 where there is none."""
        wide = min(self.x1, other.x1) - max(self.x0, other.x0)
        high = min(self.y1, other.y1) - max(self.y0, other.y0)
        return max(0.0, wide) * max(0.0, high)

    def union(self, other: Box) -> Box:
        return Box(min(self.x0, other.x0), min(self.y0, other.y0), max(self.x1, other.x1), max(self.y1, other.y1))

    def padded(self, dx: float, dy: float) -> Box:
        """Grown by ``dx`` and ``dy`` (page fractions) on each side and clamped to the page."""
        return Box(max(0.0, self.x0 - dx), max(0.0, self.y0 - dy), min(1.0, self.x1 + dx), min(1.0, self.y1 + dy))

    def rounded(self) -> Box:
        """The smallest box of five decimals around this one: a hundredth of a pixel on a 1,000-pixel page."""
        down = (math.floor(edge * _DECIMALS) / _DECIMALS for edge in (self.x0, self.y0))
        up = (math.ceil(edge * _DECIMALS) / _DECIMALS for edge in (self.x1, self.y1))
        return Box(*down, *up)


def around(boxes: Sequence[Box]) -> Box | None:
    """The smallest box that holds all of ``boxes``; None where there are none."""
    if not boxes:
        return None
    x0s, y0s, x1s, y1s = zip(*map(Box.as_tuple, boxes), strict=True)
    return Box(min(x0s), min(y0s), max(x1s), max(y1s))


_DECIMALS = 100_000
FULL_PAGE = Box(0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Word:
    """One word and where it stands.

    ``turn`` is its direction of reading on the upright page, in whole degrees clockwise from left to right: 90 is read
    downwards, 180 upside down, 270 upwards.
    """

    text: str
    box: Box
    turn: int = 0

    def __reduce__(self) -> tuple[Callable[..., Word], tuple[str, float, float, float, float, int]]:
        """Pickled by its values. A page has hundreds of words, and a state as dataclasses write it takes as long to
        read as an answer to find."""
        box = self.box
        return _word, (self.text, box.x0, box.y0, box.x1, box.y1, self.turn)


def _word(text: str, x0: float, y0: float, x1: float, y1: float, turn: int = 0) -> Word:
    return Word(text, Box(x0, y0, x1, y1), turn)


def upright(word: Word, aspect: float) -> tuple[float, float, float, float]:
    """The word's box (u0, v0, u1, v1) once the page is turned so that the word reads from left to right.

    ``aspect`` is the page's width over its height; the unit of ``u`` and ``v`` is the height of the page.
    """
    box = word.box
    if word.turn == 0:
        return box.x0 * aspect, box.y0, box.x1 * aspect, box.y1
    angle = math.radians(word.turn)
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = (box.x0 + box.x1) / 2 * aspect, (box.y0 + box.y1) / 2
    wide, high = (box.x1 - box.x0) * aspect, box.y1 - box.y0
    length, height = _turned_back(wide, high, abs(cos), abs(sin))
    u, v = x * cos + y * sin, y * cos - x * sin
    return u - length / 2, v - height / 2, u + length / 2, v + height / 2


def _turned_back(wide: float, high: float, cos: float, sin: float) -> tuple[float, float]:
    """Length and height of a rectangle whose surrounding box, once it is turned, measures ``wide`` by ``high``."""
    spread = cos * cos - sin * sin
    if abs(spread) < _DIAGONAL:
        # Near 45 degrees the two cannot be distinguished.
        side = min(wide, high) / (cos + sin)
        return side, side
    length, height = (wide * cos - high * sin) / spread, (high * cos - wide * sin) / spread
    least = min(wide, high) * _THINNEST
    return max(length, least), max(height, least)


def joined(words: Sequence[Word], line_end: str = " ") -> str:
    """Words in reading order as text: blanks between them, ``line_end`` between lines.

    The halves of a word that a line end divides are one word; a compound, such as ``well-known``, keeps its hyphen.
    Where a line divides several words, as the head of a table does, each goes on with the word right below it.
    """
    text: list[str] = []
    above: dict[int, Word] = {}
    halves: dict[int, Word] = {}
    """The divided words of the line above and of this line, by their places in ``text``."""
    before: Word | None = None
    begins, has_columns = False, False
    for word in words:
        if before is not None and not _is_level(before, word):
            above, halves, begins, has_columns = halves, {}, True, len(halves) > 1
        elif halves and before is not None and not _is_apart(before, word):
            # As in "pre- and post-war": the end of no cell.
            halves.pop(len(text) - 1, None)
        place = next((at for at, half in above.items() if _is_below(word, half)), None) if has_columns else None
        if before is None:
            text.append(word.text)
        elif place is not None and (whole := undivided(above[place].text, word.text)) is not None:
            text[place] = text[place].removesuffix(above[place].text) + whole
            before = word
            continue
        elif not begins:
            text += " ", word.text
        elif not has_columns and (whole := undivided(before.text, word.text)) is not None:
            text[-1] = text[-1].removesuffix(before.text) + whole
        elif _SPACELESS.match(before.text[-1:]) and _SPACELESS.match(word.text[:1]):
            text[-1] += word.text
        else:
            text += line_end, word.text
        if word.text[-1:] in _HYPHENS:
            halves[len(text) - 1] = word
        before, begins = word, False
    return "".join(text)


def undivided(before: str, after: str, written: Container[str] = frozenset()) -> str | None:
    """The word whose halves a line end, or a column's end, parts; None for two words, as in "pre- and post-war".

    A compound keeps its hyphen. ``written`` are the words of the document within its lines, in small letters: they
    decide where they hold either form alone, or both halves.
    """
    if _ENDS_DIVIDED.search(before) is None or after in _CONJUNCTIONS:
        return None
    letters = before[:-1].lstrip(_OPENING)
    # Fewer are those of an abbreviation, whose hyphen stays: "EU-".
    in_capitals = len(letters) >= LEAST_CAPITALS and all(map(str.isupper, (*letters, *after[:3]))) and len(after) > 2
    if not (after[:1].islower() or in_capitals):
        return None
    compound, closed = before + after, before[:-1] + after
    in_compound, in_closed, in_before, in_after = (
        _AROUND_WORD.sub("", form).lower() in written for form in (compound, closed, before, after)
    )
    if in_compound == in_closed:
        in_compound = (in_before and in_after) or (not in_capitals and _is_compound(before, after))
    return compound if in_compound else closed


def _is_compound(before: str, after: str) -> bool:
    """Whether the hyphen at the end of ``before`` belongs to the word, by the words alone: of a number in letters, of
    ``well-known``, ``up-to-date`` and the like, and of an address."""
    if before.endswith("\u00ad"):
        return False
    bare = before[:-1].lstrip(_OPENING)
    *_, last = parts = re.split(r"[-\u2010]", bare)
    between, hyphen, _ = after.partition("-")
    return (
        "@" in bare
        or bare.startswith(("http", "www."))
        or (len(last) > 1 and last.isupper())
        or (len(parts) > 1 and last.lower() in _BETWEEN)
        or (bool(hyphen) and between in _BETWEEN)
        or _COMPOUND.match(f"{last}-{after}".lower()) is not None
    )


def _is_below(word: Word, half: Word) -> bool:
    """Whether two words of different lines stand in one column."""
    u0, _, u1, _ = upright(half, 1.0)
    next_u0, _, next_u1, _ = upright(word, 1.0)
    return next_u0 < u1 and u0 < next_u1


def _is_apart(before: Word, word: Word) -> bool:
    """Whether more than a blank parts two words of one line."""
    _, top, u1, bottom = upright(before, 1.0)
    return upright(word, 1.0)[0] - u1 > bottom - top


def _is_level(before: Word, word: Word) -> bool:
    """Whether two words of one direction stand on one line, whatever the shape of the page."""
    if before.turn != word.turn:
        return False
    _, top, _, bottom = upright(before, 1.0)
    _, v0, _, v1 = upright(word, 1.0)
    return abs(top + bottom - v0 - v1) < min(bottom - top, v1 - v0)


_HYPHENS = ("-", "\u2010", "\u00ad")
_ENDS_DIVIDED = re.compile(r"[^\W\d_][-\u2010\u00ad]$")
LEAST_CAPITALS = 4
_OPENING = "(\"'“‘["  # noqa: RUF001
_AROUND_WORD = re.compile(r"^\W+|\W+$")
_CONJUNCTIONS = frozenset(["and", "or", "und", "oder", "bzw.", "och", "og", "eller"])
_COMPOUND = re.compile(
    r"""
      [b-hj-np-tv-z]-                    # e-mail, x-ray
    | anti-(?!bio|bod|[cgk]\w\b|cip|gen|gu[ao]|oxid|que|trust)
    | cross-(?!ing|over|road|word)
    | half-(?!way)
    | high-(?!er|est|land|light|ly|ness|way)
    | long-(?!er|est|evity|hand|ing|itud)
    | multi-(?!media|nation|pl|tud)
    | non-(?!chal|n[aeio]\b|sens)
    | open-(?!ba|er|ing|ly|ness)
    | self-(?!ish|less|same)
    | short-(?!age|com|cut|en|er|est|fall|hand|ly)
    | third-(?!ly)
    | well-(?!ington|ness)
    | (?:one|two|three|four|five|six|seven|eight|nine)-(?!een|fold|ness|rous|self|some|teen|ths?\b|ties|ty\b)
    | (?:twen|thir|for|fif|six|seven|eigh|nine)ty-
      (?:one|two|three|four|five|six|seven|eight|nin|first|second|third|fifth)
    | (?!inter|over)\w{3,}-(?:based|driven|looking|oriented|owned|related|specific|term)\b
    """,
    re.VERBOSE,
)
"""First parts of compounds, but for words that are written closed, and last parts of compounds. Of 966 words at line
ends of public reports and papers that are written elsewhere in them, 203 have a hyphen: 111 of these and 5 of the
others are compounds by this rule."""
_BETWEEN = frozenset(["a", "and", "at", "by", "for", "in", "of", "on", "or", "the", "to", "up"])
"""Stand between the hyphens of compounds; no word is divided beside them a second time."""
_SPACELESS = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_DIAGONAL = 0.1
_THINNEST = 0.02
