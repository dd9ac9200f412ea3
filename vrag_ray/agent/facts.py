"""The facts of a text that can be looked up in another: figures, dates and names, however they are written. Pure.

Figures are compared by value: "38", "thirty-eight", "1,946" and "1 946", "4.2 million" and "4,217" in a table in
thousands. Number words, names of months and words of scale are English, with the commonest of other languages.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from vrag_ray.types.months import MONTH, MONTHS
from vrag_ray.types.superscripts import without_note_marks

LEAST_ROUNDED = 100
"""From here on a whole figure may be the rounding of one with decimals."""
_SCALES = {
    **dict.fromkeys(("thousand", "thousands", "k", "tausend", "mille", "milliers"), 3),
    **dict.fromkeys(("million", "millions", "mn", "mio", "millionen", "m"), 6),
    **dict.fromkeys(("billion", "billions", "bn", "mrd", "milliarden", "milliards", "b"), 9),
    **dict.fromkeys(("trillion", "trillions", "tn"), 12),
    "万": 4,
    "亿": 8,
}
"""Words after a figure, as powers of ten."""
_SHORT_SCALES = frozenset({"k", "m", "b"})
"""They are words of scale only where they stand close to a currency's sign: ``5 m`` are metres."""
_OF_A_TABLE = re.compile(
    r"\b(?:in|en)\s+(?:[$€£¥]\s?|\w+\s+(?:of\s+)?){0,2}?(thousands?|milliers|millions?|billions?|tausend|mio|mrd)\b"
    r"|[$€£¥]\s?(millions?|thousands?|billions?|mn|bn)\b|\((?:\w{3}\s)?(thousands?|millions?|billions?)\)",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"(?<![0-9A-Za-z\u00c0-\u024f_.,])(?P<currency>[$€£¥]\s?)?"
    # One sign parts all groups: "1,234,567 890" are two figures of a row.
    r"(?P<digits>\d{1,3}(?P<by>[,'’\u00a0\u202f ])\d{3}(?:(?P=by)\d{3})*(?:\.\d+)?"  # noqa: RUF001
    r"|\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+(?:[.,]\d+)?)\u2060{0,3}"
    r"(?:\s?(?P<percent>%|percent|per cent|Prozent)|(?:\s|-)?(?P<scale>"
    r"thousand|million|billion|trillion|[kKmMbB](?![\w/])|bn|mn|[Mm]io|[Mm]rd|tn|万|亿|Tausend|Millionen|Milliarden)s?)?"
)
_PARTS = re.compile("[,.]")
_GROUPED = re.compile(r"\d{1,3}(?:[,.]\d{3})+$")
_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORD_VALUES = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
}
_NUMBER_WORDS = re.compile(
    rf"\b(?:(?:{'|'.join((*_TENS, *_UNITS[1:]))}|hundred|thousand|million)(?:[- ](?:and )?|\b))+", re.IGNORECASE
)
_MONTH = rf"(?P<month>{MONTH})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_YEAR = r"(?P<year>(?:1[5-9]|20)\d\d)"
_DIGIT = re.compile(r"\d")
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>(?:1[5-9]|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b",
        r"\b(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>(?:1[5-9]|20)\d\d)\b",
        r"(?P<year>(?:1[5-9]|20)\d\d)年(?P<month>\d{1,2})月(?:(?P<day>\d{1,2})日)?",
        rf"\b{_DAY} (?:of |de )?{_MONTH},?(?: (?:de )?{_YEAR})?\b",
        rf"\b{_MONTH} {_DAY}(?:,? {_YEAR})?\b",
        rf"\b{_MONTH},? {_YEAR}\b",
    )
)
_CLOCK = re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b")
_CODE = re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{2,}(?:-\w+)*\b")
_FISCAL = re.compile(r"\b(?:FY|CY|fiscal(?: year)? ?|fy ?)'?(\d{2}|\d{4})\b", re.IGNORECASE)
PLACE_NUMBERS = re.compile(
    r"^[\s>*-]*\d{1,3}[.)](?=\s)|\b(?:pages?|slides?|sections?|tables?|figures?|fig|steps?|notes?|chapters?)\.? \d+",
    re.IGNORECASE,
)
"""Numbers that say where something stands: of a list, of a page."""
_CAPITAL = r"[A-Z\u00c0-\u00de][\w'’.&-]*"  # noqa: RUF001
_LINK = r"(?:of(?: the)?|de|van(?: der)?|von(?: der)?|and|&)"
_NAME = re.compile(rf"\b{_CAPITAL}(?:\s+(?:{_LINK}\s+)?{_CAPITAL})+|\b[A-Z]{{2,}}\b")
_BEGINNING = re.compile(rf"\W*(?P<word>\w+)\s+{_LINK}\s+")
"""Of a sentence: a noun with a capital that is none of a name, as in "Sales of Best Buy"."""
_LEADING_WORDS = """
the a an in on at by for from of to and but with as its this that these if when while after before since
der die das den dem des ein eine im am le la les un une el los las il lo
"""
_LEADING = frozenset(_LEADING_WORDS.split())
"""Words that begin a sentence with a capital and belong to no name."""
_WORD = re.compile(r"[^\W_]+")
_POINTED = re.compile(r"\b(?:[A-Za-z]\.){2,}")
"""``U.S.``"""
LEAST_OF_A_TITLE, MOST_CAPITALS = 6, 0.5
"""Words of a text, and the share of them that begin with a capital, above which capitals make no names: a title."""


@dataclass(frozen=True, slots=True)
class Figure:
    """``text`` as it is written at ``start``. ``readings`` are its values, the likeliest first, several where a comma
    or a point may part thousands or decimals; each with half of its last digit, which is what rounding may take.
    ``parts`` are the figures that it is if the blanks in it part figures, as in the row of a table.
    """

    text: str
    start: int
    readings: tuple[tuple[Decimal, Decimal], ...]
    parts: tuple[Figure, ...] = ()

    @property
    def value(self) -> Decimal:
        return self.readings[0][0]

    def agrees(self, other: Decimal) -> bool:
        return any(abs(abs(value) - abs(other)) <= slack for value, slack in self.readings)


@dataclass(frozen=True, slots=True)
class Date:
    """Parts that the text does not give are None."""

    text: str
    start: int
    year: int | None
    month: int
    day: int | None

    def agrees(self, other: Date) -> bool:
        """Whether ``other`` says at least what this says."""
        return self.month == other.month and self.year in (None, other.year) and self.day in (None, other.day)


@dataclass(frozen=True, slots=True)
class Name:
    """A name of several words, an abbreviation, a code or a time of day: what must be spelled alike."""

    text: str
    start: int


Fact = Figure | Date | Name


@dataclass(frozen=True)
class Facts:
    """What a text says, for others to be held against it.

    ``scales_around`` are those of tables that it is a part of.
    """

    text: str
    scales_around: frozenset[int] = frozenset()

    @cached_property
    def dates(self) -> tuple[Date, ...]:
        return tuple(dates(self.text))

    @cached_property
    def scales(self) -> frozenset[int]:
        """Powers of ten in which tables of the text are set, as "in millions"."""
        matches = _OF_A_TABLE.finditer(self.text)
        own = frozenset(_SCALES[next(filter(None, scale.groups())).lower()] for scale in matches)
        return own | self.scales_around

    @cached_property
    def figures(self) -> frozenset[Decimal]:
        """The values of all its figures, those of a table also as the scale of the table makes them."""
        stated = (*figures(self.text), *fiscal_years(self.text))
        every = [part for figure in stated for part in (figure, *figure.parts)]
        plain = {value for figure in every for value, _ in figure.readings}
        return frozenset(plain | {value.scaleb(scale) for scale in self.scales for value in plain})

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(words(self.text))

    def has(self, fact: Fact) -> bool:
        if isinstance(fact, Figure):
            return any(map(fact.agrees, self.figures)) or (bool(fact.parts) and all(map(self.has, fact.parts)))
        if isinstance(fact, Date):
            return any(map(fact.agrees, self.dates))
        return words(fact.text) <= self.words


def facts_of(text: str) -> tuple[Fact, ...]:
    """The facts of ``text`` in order. What is part of a date, a code or a name is no figure of its own."""
    text = PLACE_NUMBERS.sub(lambda match: " " * len(match[0]), without_note_marks(text))
    facts: list[Fact] = [*dates(text)]
    free = _without(text, facts)
    codes = [Name(str(match[0]), match.start()) for match in (*_CLOCK.finditer(free), *_codes(free))]
    fiscal = list(fiscal_years(free))
    names = [
        name
        for name in _names(free)
        if not any(name.start <= code.start < name.start + len(name.text) for code in codes)
    ]
    facts += [*codes, *names, *fiscal]
    facts += figures(_without(free, facts))
    return tuple(sorted(facts, key=lambda fact: fact.start))


def words(text: str) -> set[str]:
    """The words of ``text`` without case, forms of presentation, genitives, and the points of abbreviations."""
    text = _POINTED.sub(lambda match: match[0].replace(".", ""), without_note_marks(text))
    plain = unicodedata.normalize("NFKC", text).casefold().replace("’s ", " ").replace("'s ", " ")  # noqa: RUF001
    return {word for word in _WORD.findall(plain) if len(word) > 1 or word.isdigit()}


def figures(text: str) -> Iterator[Figure]:
    """All figures of ``text``, written in digits or in English words."""
    text = without_note_marks(text)
    for match in _FIGURE.finditer(text):
        digits, scale = match["digits"], (match["scale"] or "").lower().rstrip("s")
        if scale in _SHORT_SCALES and not match["currency"]:
            scale = ""
        power = _SCALES.get(scale, 0)
        rounded = bool(scale) or match["percent"] is not None
        start, end = match.start("digits"), match.end() if rounded else match.end("digits")
        if readings := tuple(_readings(digits, power, rounded=rounded)):
            parts = tuple(figures(digits.replace(" ", "; "))) if " " in digits else ()
            yield Figure(text[start:end].strip(), start, readings, parts)
    for match in _NUMBER_WORDS.finditer(text):
        value = _value_of(match[0])
        # "One of them" counts nothing, and "two-thirds" no two.
        if value not in (None, 1) and not match[0].endswith("-"):
            yield Figure(match[0].strip(" -"), match.start(), ((Decimal(value), Decimal(0)),))


def fiscal_years(text: str) -> Iterator[Figure]:
    """The years of ``FY2022``, ``FY22`` and ``fiscal 2022``."""
    for match in _FISCAL.finditer(text):
        year = int(match[1]) if len(match[1]) == 4 else 2000 + int(match[1])
        yield Figure(match[0], match.start(), ((Decimal(year), Decimal(0)),))


def dates(text: str) -> list[Date]:
    """All dates of ``text``, each once, the fullest reading of a place first."""
    readings: list[Date] = []
    if _DIGIT.search(text) is None:
        # Each has a day or a year. Most sentences of a page have no digit, and all of them are looked at.
        return readings
    text = without_note_marks(text)
    for pattern in _DATES:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            month = parts["month"].lower()
            number = int(month) if month.isdigit() else MONTHS[month]
            day, year = parts.get("day"), parts.get("year")
            if not 1 <= number <= 12 or any(
                name.start <= match.start() < name.start + len(name.text) for name in readings
            ):
                continue
            readings.append(
                Date(match[0], match.start(), int(year) if year else None, number, int(day) if day else None)
            )
    return sorted(readings, key=lambda date: date.start)


def _names(text: str) -> Iterator[Name]:
    every = [word for word in text.split() if word[:1].isalpha()]
    if len(every) >= LEAST_OF_A_TITLE and sum(word[0].isupper() for word in every) > MOST_CAPITALS * len(every):
        return
    beginning = _BEGINNING.match(text)
    for match in _NAME.finditer(text):
        first, _, rest = match[0].partition(" ")
        start = match.start()
        if rest and first.lower() in _LEADING:
            start = match.end() - len(rest.lstrip())
        elif beginning and start == beginning.start("word"):
            start = beginning.end()
        name = text[start : match.end()].rstrip(".")
        if " " in name or name.isupper():
            yield Name(name, start)


def _codes(text: str) -> Iterator[re.Match[str]]:
    """Words of letters and digits, as "T4"; a figure with its unit, as "25m" or "1st", and a fiscal year are none."""
    for match in _CODE.finditer(text):
        if not re.fullmatch(r"\d+(?:st|nd|rd|th|[a-zµ%°]{1,3})|(?:FY|CY)\d+", match[0], re.IGNORECASE):
            yield match


def _readings(digits: str, power: int, *, rounded: bool) -> Iterator[tuple[Decimal, Decimal]]:
    """The values that ``digits`` may mean, the likeliest first, with half of the last digit of each."""
    plain = re.sub(r"['’\s]", "", digits)  # noqa: RUF001
    forms = [plain.replace(",", ".")]
    if _GROUPED.match(plain):
        # "1,946" is likelier a whole figure than one with three decimals; "1,946,000" is nothing else.
        forms = [re.sub("[,.]", "", plain), *(forms if len(_PARTS.findall(plain)) == 1 else [])]
    elif "," in plain and "." in plain:
        decimal = max(plain.rfind(","), plain.rfind("."))
        forms = [re.sub("[,.]", "", plain[:decimal]) + "." + plain[decimal + 1 :]]
    for form in forms:
        value = Decimal(form)
        decimals = len(form.partition(".")[2])
        exact = not (decimals or rounded or value >= LEAST_ROUNDED)
        yield value.scaleb(power), Decimal(0) if exact else Decimal(5).scaleb(power - decimals - 1)


def _value_of(text: str) -> int | None:
    """The value of English number words; None for a lone "hundred", which is often no figure."""
    whole, part, counted = 0, 0, False
    for word in re.split(r"[-\s]+", text.strip(" -").lower()):
        if word in _WORD_VALUES:
            part, counted = part + _WORD_VALUES[word], True
        elif word == "hundred":
            part = (part or 1) * 100
        elif word in ("thousand", "million"):
            whole, part = whole + (part or 1) * 10 ** _SCALES[word], 0
    return whole + part if counted else None


def _without(text: str, facts: Sequence[Fact]) -> str:
    """``text`` with blanks in place of ``facts``, so that places stay what they are."""
    letters = list(text)
    for fact in facts:
        letters[fact.start : fact.start + len(fact.text)] = " " * len(fact.text)
    return "".join(letters)
