"""The shortest part of a quote that answers: a number with its unit, a date or a name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vrag_ray.agent.facts import PLACE_NUMBERS, dates
from vrag_ray.policies.extractive.lexicon import Term, is_function_word, stems, tokens, word_stems
from vrag_ray.policies.extractive.other_scripts import UNSPACED
from vrag_ray.policies.extractive.questions import AnswerKind, Part, abbreviation_in
from vrag_ray.policies.extractive.synonyms import is_quantity, mark_of_quantity
from vrag_ray.types.months import MONTHS
from vrag_ray.types.superscripts import SUPERSCRIPTS, without_note_marks

_APART = rf"(?<![^\W{UNSPACED}])"
"""No letter or digit before it, other than of a script without blanks: ``28`` of ``高度是28米``."""
_NUMBER = re.compile(
    rf"{_APART}(?<![.])(?<!\w[-/])"
    r"(?:\+\d{1,3}(?: \d{2,4}){2,}"  # a telephone number
    r"|[-−–]?[€$£¥]?(?:\d{1,3}(?:[ \u00a0\u202f'’]\d{3})+(?!\d)|\d+)"  # noqa: RUF001  blanks between thousands
    rf"(?:[.,:]\d+)*[{SUPERSCRIPTS}]*(?:[eE][-+]?\d+)?(?:[½¼¾⅓⅔⅛⅜⅝⅞]|/\d+(?![\d/]))?(?:\s?[×x]\s?\d+(?:[.,]\d+)*)*(?:\s?%)?"  # noqa: RUF001
    r"|[½¼¾⅓⅔⅛⅜⅝⅞])"
)
"""A sign counts where no word or figure stands before it: ``C-19`` and ``3-5`` have none."""
_YEAR = re.compile(rf"(?:1[5-9]|20)\d\d(?:/\d\d)?[{SUPERSCRIPTS}]*$")
"""Where the question is for a quantity, a bare year is a date beside it, and so is ``2024/25``."""
_AGE = re.compile(r"\W*how old\b", re.IGNORECASE)
_TIME_OF_DAY = re.compile(r"\d{1,2}(?:[.:]\d\d)?\s?[ap]\.?m\b", re.IGNORECASE)
_OF_A_SECTION = re.compile(r"§\s?$")
_CALL = re.compile(r"\+\d+ \d")
"""A telephone number, which may be "the number of" something, and is no weight or price."""
_UNIT = re.compile(r"\s?([A-Za-zµ°€$£][\w°/²³·]*)")
_CLOCK_OR_YEAR = re.compile(
    rf"{_APART}(?:\d{{1,2}}:\d\d|(?:1[5-9]|20)\d\d(?![-/](?!(?:1[5-9]|20)?\d\d\b)\d)(?:\s?[年년](?:\s?\d{{1,2}}\s?[月월](?:\s?\d{{1,2}}\s?[日일])?)?)?)"
    rf"(?![^\W{UNSPACED}])"
)
_CAPITAL = "[A-Z\u0386-\u03ab\u0400-\u042f]"
_NAME = re.compile(rf"\b{_CAPITAL}[\w'’.-]*(?: (?:(?:of|de|van|von|der|the|and) )?{_CAPITAL}[\w'’.-]*)*")  # noqa: RUF001
_LIST_MARK = re.compile(r"\W*(?:(?:\d{1,3}(?:\.\d+)*|[A-Za-z])[.)]\s+)?[\W_]*")
"""Before the first word of an item: a capital there makes no name."""
_DURATION = mark_of_quantity("duration")
_EXTENTS = {
    **dict.fromkeys(("long", "length", "lang", "länge"), "length"),
    **dict.fromkeys(("wide", "width", "broad", "breit", "breite"), "width"),
    **dict.fromkeys(("deep", "depth", "tief", "tiefe"), "depth"),
    **dict.fromkeys(("high", "tall", "height", "hoch", "höhe"), "height"),
    **dict.fromkeys(("thick", "thickness", "dick", "dicke"), "thickness"),
}
_EXTENT = re.compile(
    rf"^\W*(?:and\s+)?(?:how|wie|what(?:\s+(?:is|was|are|were)|['\u2019]s)\s+the(?:\s+\w+)??)\s+({'|'.join(_EXTENTS)})\b",
    re.IGNORECASE,
)
_EXTENT_BEHIND = re.compile(rf"[\s-]?[^\W\d]+[\s-]({'|'.join(_EXTENTS)})\b", re.IGNORECASE)
"""``25 m long``"""
_CLAUSE_END = re.compile(r";\s|,\s+(?:and|but|while|whereas)\b")
"""Between figures of different things: "74% of seniors go online, and 65% have broadband"."""
_ROLE = re.compile(r"\s?\(([^()]+)\)")
_OF_TIME = frozenset(MONTHS) | frozenset(["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"])
"""Written as names are, and of nobody."""
_GERMAN = re.compile(r"\b(?:der|das|dem|des|ein|eine|einem|einer|ist|sind|wurde|wurden|wird|und|im|vom|zum|zur|seit)\b")
"""Words of a language that writes all its nouns as names are written; two of them tell it from others."""
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@\w[\w-]*(?:\.[\w-]+)+")
_CONTACT_PATTERNS = {
    AnswerKind.TELEPHONE: re.compile(r"(?<![\w.,/@-])[+(]?\d(?:[ ()./\u00a0-]{0,3}\d){2,14}(?![\w@])"),
    AnswerKind.EMAIL: EMAIL,
    AnswerKind.WEBSITE: re.compile(
        r"(?:https?://|www\.)[^\s<>\"'()]+[^\s<>\"'().,;:!?]"
        r"|(?<![\w.@/-])[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|info|io|eu)(?:/[^\s<>\"'()]*[\w/])?(?![\w@.-])"
    ),
}
_CALLED = re.compile(
    r"\b(?:tel|telephone|telefon|phone|fax|mobile|mob|cell|call|ring)\b|[\u260e\u2706\U0001f4de]", re.IGNORECASE
)
_DIALLED = re.compile(r"(?=[+(0]|\d+-)(?:\D*\d){7}")
"""A telephone number without a word such as "phone" before it."""
_AROUND = ".,;:\"'“”‘’() "  # noqa: RUF001
_DAY_OR_YEARS = re.compile(
    r"\d{1,2}([/.-])\d{1,2}\1(?:\d\d)?\d\d$|(?:1[5-9]|20)\d\d\s?[-/]\s?(?:1[5-9]|20)\d\d$|(?:1[5-9]|20)\d\d-\d\d-\d\d$"
)
_MAGNITUDES = frozenset(
    [
        "million",
        "billion",
        "thousand",
        "trillion",
        "m",
        "bn",
        "percent",
        "millionen",
        "mio",
        "milliarden",
        "mrd",
        "prozent",
    ]
)


LONGEST_LABEL = 12
"""Characters before a number that name its kind: ``Fax (home): ``."""


def shortest_answer(part: Part, quote: str) -> str:
    """A part of ``quote``, or empty where only the whole of it answers."""
    if part.kind is AnswerKind.NUMBER:
        others = [range(date.start, date.start + len(date.text)) for date in dates(quote)]
        # "Pages 312" counts where the question is for pages.
        question = stems(part.text)
        others += [range(*place.span()) for place in PLACE_NUMBERS.finditer(quote) if not stems(place[0]) & question]
        # A year says how old a thing is.
        is_for_an_age = _AGE.match(part.text) is not None
        extent = match[1].lower() if (match := _EXTENT.match(part.text)) is not None else ""
        numbers = [
            _with_unit(quote, number)
            for number in _NUMBER.finditer(quote)
            if not any(number.start() in span for span in others)
            and not _TIME_OF_DAY.match(quote, number.start())
            and not _OF_A_SECTION.search(quote, 0, number.start())
            and not _is_of_other_extent(extent, quote, number.end())
        ]
        return _nearest(
            part,
            quote,
            [
                (at, text)
                for at, text in numbers
                if (is_for_an_age or not _YEAR.match(text))
                and not (part.quantities and _CALL.match(text))
                and not (part.is_count and _is_measured(text))
            ],
        )
    if part.kind in _CONTACT_PATTERNS:
        return _nearest(part, quote, _contacts(part, quote))
    if part.kind is AnswerKind.EXPANSION:
        return _expansion(abbreviation_in(part.text), quote)
    if part.kind is AnswerKind.DATE:
        return _nearest(part, quote, _dates(quote))
    if part.kind is AnswerKind.NAME:
        names = [_without_time(match) for match in _NAME.finditer(without_note_marks(quote))]
        begin = match.end() if (match := _LIST_MARK.match(quote)) is not None else 0
        alone = [(at, name) for at, name in names if at > begin and len(name) > 1 and not is_function_word(name)]
        several = [(at, name) for at, name in names if " " in name]
        if len({word[0] for word in _GERMAN.finditer(quote)}) > 1:
            # Those of two words are names of persons and firms, but "Leiterin der Brauerei".
            alone, several = [], [(at, name) for at, name in several if " der " not in name]
        named = [(at, name) for at, name in sorted({*alone, *several}) if name.casefold() not in _OF_TIME]
        return _in_role(part, quote, named) or _nearest(part, quote, named)
    return ""


def _without_time(name: re.Match[str]) -> tuple[int, str]:
    """``name`` and where it begins, without the month or day before it: ``seit Mai Herr Ole Brandt``."""
    first, blank, rest = name[0].partition(" ")
    if blank and first.casefold() in _OF_TIME:
        return name.start() + len(first) + 1, rest.rstrip(".")
    return name.start(), name[0].rstrip(".")


def _is_measured(text: str) -> bool:
    """Whether a figure with its unit counts nothing: ``18 euros``, ``11:00``. Days and weeks may be what is counted."""
    return ":" in text or any(is_quantity(mark) and mark != _DURATION for mark in stems(text))


def _is_of_other_extent(extent: str, quote: str, end: int) -> bool:
    """Whether the figure that ends at ``end`` is the length of a thing where the question is for its depth, as the word
    ``extent`` says; "" for other questions."""
    own = _EXTENT_BEHIND.match(quote, end) if extent else None
    return own is not None and _EXTENTS[extent] != _EXTENTS[own[1].lower()]


def _in_role(part: Part, quote: str, names: Sequence[tuple[int, str]]) -> str:
    """The name behind which the question's word for a person stands in brackets: ``Lea Kern (secretary)``. "" where
    none is."""
    held = [
        name
        for at, name in names
        if (role := _ROLE.match(quote, at + len(name))) is not None
        and any(term.presence_in(stems(role[1])) for term in part.terms if not term.specific)
    ]
    return held[0] if len(held) == 1 else ""


def _contacts(part: Part, quote: str) -> list[tuple[int, str]]:
    """Telephone numbers, those of a fax where the question is for one, or addresses of mail or the web, in order."""
    matches = list(_CONTACT_PATTERNS[part.kind].finditer(quote))
    if part.kind is AnswerKind.TELEPHONE:
        of_dates = [range(date.start, date.start + len(date.text)) for date in dates(quote)]
        is_fax = "fax" in part.text.casefold()
        matches = [
            number
            for number in matches
            if (_DIALLED.match(number[0]) or _CALLED.search(quote, 0, number.start()))
            and not _DAY_OR_YEARS.match(number[0])
            and not any(number.start() in span for span in of_dates)
            and ("fax" in quote[max(0, number.start() - LONGEST_LABEL) : number.start()].casefold()) is is_fax
        ]
    return [(match.start(), match[0]) for match in matches]


def _expansion(abbreviation: str, quote: str) -> str:
    """The words for ``abbreviation``, which stand before it in brackets, or behind it: ``TEU (twenty-foot unit)``."""
    name = re.escape(abbreviation)
    before = re.search(rf"(.+?)\s*[(\[][\"'\u201c]?{name}\b", quote, re.DOTALL)
    behind = re.search(rf"\b{name}\b[\"'\u201d]?\s*(?:stands for|means|is short for|[(:=\u2013\u2014-])\s*(.+)", quote)
    longest = 2 * len(abbreviation)
    ends = before[1].split()[-longest:] if before else []
    begins = re.split(r"[).;]", behind[1])[0].split()[:longest] if behind else []
    candidates = [ends[place:] for place in reversed(range(len(ends)))]
    candidates += [begins[:count] for count in range(1, len(begins) + 1)]
    letters = [letter for letter in abbreviation.casefold() if letter.isalnum()]
    words = next((words for words in candidates if _begin_with(letters, _words_and_parts(words))), [])
    return " ".join(words).strip(_AROUND)


def _words_and_parts(words: Sequence[str]) -> list[tuple[str, bool]]:
    """The words, the parts of a compound by themselves, and whether an abbreviation may leave them out."""
    return [
        (part, place > 0 or is_function_word(part))
        for word in words
        for place, part in enumerate(re.findall(r"\w+", word.casefold()))
    ]


def _begin_with(letters: Sequence[str], words: Sequence[tuple[str, bool]]) -> bool:
    """Whether ``letters`` are the initials of ``words``, but for some that may be left out and do not come first."""
    if not letters or not words:
        return not letters and all(may_lack for _, may_lack in words)
    (word, _), others = words[0], words[1:]
    if not word.startswith(letters[0]):
        return False
    rests = [others, *(others[count:] for count in range(1, len(others)) if all(lack for _, lack in others[:count]))]
    return any(_begin_with(letters[1:], rest) for rest in rests)


def _dates(quote: str) -> list[tuple[int, str]]:
    """Dates, years and times of day, in order; a year or time within a date is none of its own."""
    spans = [(date.start, date.text) for date in dates(quote)]
    alone = [(match.start(), match[0]) for match in _CLOCK_OR_YEAR.finditer(without_note_marks(quote))]
    return sorted([*spans, *(part for part in alone if not any(at <= part[0] < at + len(text) for at, text in spans))])


def _nearest(part: Part, quote: str, candidates: list[tuple[int, str]]) -> str:
    """The candidate closest to the question's words, after them before in front; none that the question has, but for
    addresses, which have names in them.

    Words that stand once in the quote tell its values apart: of the night train and the day train, "night". Names and
    numbers do so from twice as far: of 2019 and 2021, the year of the question.
    """
    question_stems = stems(part.text)
    words = [(match.start(), word_stems(match.group())) for match in re.finditer(r"\w+", quote)]
    places = [(term, [at for at, word in words if term.presence_in(word)]) for term in part.terms]
    at = [(term, positions[0]) for term, positions in places if len(positions) == 1]
    at = at or [(term, place) for term, positions in places for place in positions]
    fresh = [
        (place, text)
        for place, text in candidates
        if part.is_contact or not (set(tokens(text)[:1]) <= question_stems or stems(text) <= question_stems)
    ]
    if not fresh:
        return ""
    if part.is_count:
        # "1,950 animals of 210 species"
        fresh = [pair for pair in fresh if any(term.presence_in(stems(pair[1])) for term in part.terms)] or fresh
    fresh = [(place, text) for place, text in fresh if not part.quantities.isdisjoint(stems(text))] or fresh
    if not at:
        return fresh[0][1]

    def distance(place: int, term: Term, word: int) -> float:
        apart = place - word if place > word else 2 * (word - place)
        if _CLAUSE_END.search(quote, min(place, word), max(place, word)):
            apart *= 2
        return apart / 2 if term.specific else apart

    return min(fresh, key=lambda span: min(distance(span[0], term, word) for term, word in at))[1]


def _with_unit(quote: str, number: re.Match[str]) -> tuple[int, str]:
    """The figure with the unit after it: ``1.5 million euros``, ``412 MWh``; ordinary words are no units."""
    end = number.end()
    # What stands behind a percentage is no unit: "90% go online".
    for _ in range(0 if number[0].endswith("%") else 2):
        unit = _UNIT.match(quote, end)
        if unit is None or is_function_word(unit.group(1)) or ":" in number.group():
            break
        end = unit.end()
        if unit.group(1).casefold() not in _MAGNITUDES:
            break
    return number.start(), quote[number.start() : end].rstrip(".,;")
