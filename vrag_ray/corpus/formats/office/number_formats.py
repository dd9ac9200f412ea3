"""Numbers of a sheet in the words of their formats: dates, durations, percentages, codes with zeros, units.

No figure is rounded and no digits are put into groups: the values are searched for and compared.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

BUILT_IN = {
    9: "0%",
    10: "0.00%",
    **dict.fromkeys((*range(14, 18), *range(27, 32), 36, *range(50, 59)), "yyyy-mm-dd"),
    22: "yyyy-mm-dd h:mm",
    **dict.fromkeys((*range(18, 22), *range(32, 36)), "h:mm:ss"),
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
}
"""By their numbers the formats that every office program has built in and that change what a number means."""
_SECONDS_OF_A_DAY = 86_400
_PIECE = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_.|(?P<fill>\*.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]'
    r"|\[(?P<elapsed>h+|m+|s+)\]|\[(?P<relation>[<>=]+)(?P<limit>-?[\d.]+)\]|\[[^\]]*\]"
    r"|(?P<digits>General|E[+-]|[0#?.,/%@])|(?P<clock>[ymdhs](?:\.0+)?)|(?P<end>;)|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
"""A piece of a format's code. What is not named, as room of the width of a letter and colours, is left out."""
_RELATIONS = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "<>": operator.ne,
}


@dataclass(frozen=True, slots=True)
class _Section:
    """How a format shows some numbers: texts and places of digits in their order, and letters of times and dates."""

    pieces: tuple[tuple[str, bool], ...]
    """Each with whether it is a place of digits."""
    clock: str = ""
    elapsed: str = ""
    """The unit in which a duration begins."""
    relation: str = ""
    limit: float = 0.0

    @property
    def digits(self) -> str:
        return "".join(text for text, is_place in self.pieces if is_place)

    @property
    def has_groups(self) -> bool:
        """Whether blanks between the digits put them into groups."""
        return bool(re.search(r"\d \d", "".join("0" if is_place else text for text, is_place in self.pieces)))

    @property
    def around(self) -> tuple[str, str]:
        """The texts before and behind the digits."""
        places = [number for number, (_, is_place) in enumerate(self.pieces) if is_place]
        first, last = (places[0], places[-1]) if places else (len(self.pieces), len(self.pieces))
        before = "".join(text for text, _ in self.pieces[:first])
        return before.lstrip(), "".join(text for text, _ in self.pieces[last + 1 :]).rstrip()


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """A format of numbers, by its code."""

    sections: tuple[_Section, ...]

    @property
    def shows_nothing(self) -> bool:
        return len(self.sections) > 2 and not any(
            section.clock or any(text.strip() for text, _ in section.pieces) for section in self.sections
        )

    def shown(self, number: float, epoch: datetime) -> str:
        """``number`` as an office program shows it, but for rounding, groups of digits and the order of a date, which
        is that of ISO 8601.

        Raises ValueError and OverflowError for a date that there is not.
        """
        section = self._section(number)
        if section.elapsed:
            return _duration(number, section)
        if section.clock:
            return _moment(number, section.clock, epoch)
        before, behind = section.around
        if not section.digits and any(letter.isalnum() for letter in before):
            return before.strip()
        if not section.digits.strip("?"):
            # A dash for nothing, or no text at all.
            section = self.sections[0]
            before, behind = section.around
        if number < 0 and section is not self.sections[0]:
            if "(" in before and ")" in behind:
                before, behind = before.replace("(", ""), behind.replace(")", "")
            before = before.lstrip(" -").removesuffix("-")
        return f"{before}{_digits(number, section)}{behind}"

    def _section(self, number: float) -> _Section:
        sections = self.sections[:3]
        if any(section.relation for section in sections):
            fits = (
                section
                for section in sections
                if not section.relation or _RELATIONS[section.relation](number, section.limit)
            )
            return next(fits, sections[0])
        at = 1 if number < 0 else 2 if number == 0 else 0
        return sections[at] if at < len(sections) else sections[0]


def number_format(code: str) -> NumberFormat:
    """The format with this code."""
    sections: list[_Section] = []
    pieces: list[tuple[str, bool]] = []
    clock, elapsed, relation, limit = "", "", "", 0.0
    for piece in (*_PIECE.finditer(code), None):
        if piece is None or piece["end"]:
            sections.append(_Section(tuple(pieces), clock, elapsed, relation, limit))
            pieces = []
            clock, elapsed, relation, limit = "", "", "", 0.0
        elif piece["digits"]:
            pieces.append((piece["digits"], True))
        elif piece["clock"]:
            clock += piece["clock"].lower()
        elif piece["elapsed"]:
            elapsed = elapsed or piece["elapsed"].lower()[0]
            clock += piece["elapsed"].lower()
        elif piece["relation"] in _RELATIONS and re.fullmatch(r"-?\d+(?:\.\d+)?", piece["limit"]):
            relation, limit = piece["relation"], float(piece["limit"])
        elif piece["fill"]:
            # Between a name of a currency and its amount; a sign of one stands before a figure as it is.
            pieces += [(" ", False)] if pieces and pieces[-1][0][-1:].isalpha() else []
        elif text := piece["quoted"] or piece["escaped"] or piece["currency"] or piece["other"]:
            pieces.append((text, False))
    return NumberFormat(tuple(sections))


def plain(number: float) -> str:
    """``number`` without what binary fractions add in the last places, which is no figure of the author's."""
    if number.is_integer():
        return f"{number:.0f}"
    return f"{number:.12g}" if abs(number) < 1e9 else f"{number:.15g}"


def _digits(number: float, section: _Section) -> str:
    places = section.digits
    if "%" in places:
        decimals = re.search(r"\.(0+)", places)
        return f"{100 * number:.{len(decimals[1]) if decimals else 0}f}%"
    if scale := re.search(r"[0#?](,+)(?:\.|$)", places):
        number /= 1_000 ** len(scale[1])
    text = plain(number)
    if number.is_integer() and re.fullmatch(r"[0#?]+", places) and not section.has_groups:
        return _filled(text, section.pieces)
    whole = places.partition(".")[0]
    sign, figures = ("-", text[1:]) if text.startswith("-") else ("", text)
    if re.fullmatch(r"0{2,}", whole) and "E" not in places.upper():
        before, dot, behind = figures.partition(".")
        figures = before.zfill(len(whole)) + dot + behind
    return sign + figures


def _filled(text: str, pieces: Sequence[tuple[str, bool]]) -> str:
    """Digits in their places, from the last, with the texts that stand between them."""
    places = [number for number, (_, is_place) in enumerate(pieces) if is_place]
    sign, figures = ("-", text[1:]) if text.startswith("-") else ("", text)
    left, shown = list(figures), ""
    for number in range(places[-1], places[0] - 1, -1):
        piece, is_place = pieces[number]
        if not is_place:
            # Nothing stands between places that have no digit.
            shown = piece + shown if left or "0" in "".join(text for text, _ in pieces[places[0] : number]) else shown
        elif left:
            shown = left.pop() + shown
        elif piece == "0":
            shown = "0" + shown
    return sign + "".join(left) + shown


def _duration(number: float, section: _Section) -> str:
    seconds = round(abs(number) * _SECONDS_OF_A_DAY)
    sign = "-" if number < 0 else ""
    rest = section.clock.replace("[", "").lstrip(section.elapsed)
    parts = [seconds // 3_600, seconds // 60 % 60, seconds % 60]
    if section.elapsed == "m":
        parts = [seconds // 60, seconds % 60]
    elif section.elapsed == "s":
        parts = [seconds]
    if section.elapsed == "h" and "s" not in rest:
        parts.pop()
    return sign + ":".join([str(parts[0]), *(f"{part:02}" for part in parts[1:])])


def _moment(number: float, clock: str, epoch: datetime) -> str:
    if number < 0:
        raise ValueError(f"no date has the number {number}")
    if epoch.year < 1900 and 1 <= number < 60:
        # Office programs take 1900 for a leap year.
        number += 1
    decimals = clock.partition(".")[2]
    seconds = round(number * _SECONDS_OF_A_DAY, len(decimals))
    moment = epoch + timedelta(seconds=seconds)
    time = f"{moment:%H:%M:%S}" + (f".{moment:%f}"[: len(decimals) + 1] if decimals else "")
    if number < 1 or not re.search("[yd]", clock):
        return time
    return f"{moment:%Y-%m-%d}" if seconds % _SECONDS_OF_A_DAY == 0 else f"{moment:%Y-%m-%d} {time}"
