"""Words of questions and pages, brought to a common form: case folded, lightly stemmed, thousands commas removed."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from vrag_ray.policies.extractive.other_languages import grammar_in
from vrag_ray.policies.extractive.other_scripts import FUNCTION_WORDS, UNSPACED, without_question_words
from vrag_ray.policies.extractive.synonyms import (
    QUANTITIES,
    SYNONYMS,
    is_quantity,
    mark_of_quantity,
    marks_of_units,
    marks_of_word,
    unit_of,
)
from vrag_ray.types.months import ENGLISH
from vrag_ray.types.superscripts import without_note_marks

if TYPE_CHECKING:
    import Stemmer

_TOKEN = re.compile(rf"\d+(?:[.,]\d+)*|[{UNSPACED}]+|[^\W\d_{UNSPACED}]+\d*")
_FISCAL_YEAR = re.compile(r"[fc]y((?:19|20)?\d\d)")
_FISCAL_BLANK = re.compile(r"\b([fc]y)\s+(?=(?:19|20)\d\d\b)")
NUMBERED_NAMES = "fig|figure|table|chart|exhibit|section|chapter|unit|appendix|annex|schedule|box|equation|scheme|plate"
"""What has a number of its own in a document: alternatives of a regular expression."""
QUESTION_WORDS = "what|which|who|whom|whose|when|where|why|how"
AUXILIARIES = "is|are|was|were|do|does|did|has|have|had|can|could|will|would"
"""What questions begin with: alternatives of a regular expression."""
_NUMBERED = re.compile(rf"\b({NUMBERED_NAMES})s?\.?[\s-]{{0,2}}(\d+(?:[.-]\d+)*)(?![\w,]*\d)", re.IGNORECASE)
_SAME_NAMES = {"fig": "figure", "chapter": "section"}
_NUMBERED_HEADING = re.compile(r"\W*(\d+(?:\.\d+)*)\.?\s+[^\W\d_]")
_IDENTIFIER = re.compile(r"\w+(?:_\w+)+")
_UNSPACED_RUN = re.compile(rf"[{UNSPACED}]{{2,}}")
_LABEL = re.compile(r"(?<=\w )[A-HJ-Z](?=[\s?,;:!)\"'’]|$)")  # noqa: RUF001
"""A capital of its own names a thing: ``hall B``. Not "I", nor an initial before its point."""
_PHRASE = re.compile(r"[\"“”«»]([^\"“”«»]{2,80})[\"“”«»]")

_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about all also am an and any are as at be been being between both but by can could did do does doing each "
        "for from had has have having he her here his how i if in into is it its itself just many may me might more "
        "most much must my no non nor not of off on one only or other our out over own per please she should so some "
        "such than that the their them then there these they this those through to too under until up us very was we "
        "were what when where which while who whom whose why will with within would you your",
    )
).union(FUNCTION_WORDS)
"""Carry grammar, not content."""

_TASK_WORDS = frozenset(
    re.findall(
        r"\w+",
        "according answer chart clip compare compared describe diagram document documents explain figure film find "
        "footage give image list mention mentioned page pages pdf photo photograph picture recording report say says "
        "seen show shown shows slide slides table take takes tell vs versus video moment timestamp",
    )
)
"""Speak of the documents or the task rather than of its subject."""


_IRREGULAR = """
ate eaten eat, beat beaten beat, became become, began begun begin, bent bend, bled bleed, blew blown blow, bred breed,
broke broken break, brought bring, built build, burnt burn, bought buy, came come, caught catch, chose chosen choose,
dealt deal, dug dig, drew drawn draw, drank drunk drink, drove driven drive, fed feed, fell fallen fall, fled flee,
flew flown fly, fought fight, found find, froze frozen freeze, gave given give, grew grown grow, heard hear, held hold,
hid hidden hide, hung hang, kept keep, knew known know, laid lay, led lead, lent lend, lit light, lost lose, made make,
meant mean, met meet, paid pay, ran run, rang rung ring, rode ridden ride, rose risen rise, sang sung sing, sank sunk
sink, sent send, shone shine, shot shoot, shrank shrunk shrink, slept sleep, slid slide, sold sell, sought seek, spent
spend, spoke spoken speak, sprang sprung spring, spun spin, stole stolen steal, stood stand, struck strike, swam swum
swim, swept sweep, swore sworn swear, swung swing, taught teach, threw thrown throw, thought think, told tell, took
taken take, tore torn tear, undertook undertaken undertake, understood understand, went gone go, withdrew withdrawn
withdraw, woke woken wake, won win, wore worn wear, wrote written write, children child, feet foot, geese goose,
men man, mice mouse, teeth tooth, women woman
"""
"""Forms that no stemmer leads back to the last of their group. Not what is a common noun too, as "left" and "saw"."""
_BASE_FORMS = {form: forms[-1] for forms in (group.split() for group in _IRREGULAR.split(",")) for form in forms[:-1]}


_MONTHS = frozenset(name for names in ENGLISH for name in names if len(name) > 3)


AKIN = 0.8
"""How well a longer or shorter form of a word stands for it."""
LEAST_AKIN = 5
"""Letters that both forms have at least."""
STANDS_IN = 0.8
"""How well a synonym, or a figure with a unit of the quantity, stands for a word."""


@dataclass(frozen=True, slots=True)
class Term:
    """An informative word of a question. ``specific`` marks names and numbers: what lacks them answers another one.

    ``others`` stand for it: stems of synonyms, and the marks of units (``synonyms.py``).
    """

    stem: str
    surface: str
    specific: bool
    others: frozenset[str] = frozenset()

    @property
    def is_numbered(self) -> bool:
        """Whether it is a name with its number, as ``figure 2``."""
        return " " in self.stem

    def presence_in(self, stems: frozenset[str]) -> float:
        """1 where the word stands in ``stems``, less where a longer or shorter form of it or a synonym does, else 0."""
        if self.stem in stems:
            return 1.0
        if not self.others.isdisjoint(stems):
            return STANDS_IN
        return AKIN if any(map(self.is_akin, stems)) else 0.0

    def is_akin(self, stem: str) -> bool:
        """Whether ``stem`` is a longer or shorter form of this word, or the word. Names and numbers have none."""
        if self.specific or min(len(self.stem), len(stem)) < LEAST_AKIN:
            return False
        return stem.startswith(self.stem) or self.stem.startswith(stem)


def is_misspelled(word: str, other: str) -> bool:
    """Whether one letter too many, too few or wrong, or two in the wrong order, part the words. The first is right."""
    if word[0] != other[:1] or abs(len(word) - len(other)) > 1:
        return False
    at = next((at for at, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    a, b = word[at:], other[at:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def tokens(text: str) -> list[str]:
    """Words in order, case folded; unspaced scripts as pairs of characters, apart from what stands against them.

    ``FY2022``, ``FY 2022`` and ``FY22`` are the year alone.
    """
    words: list[str] = []
    folded = unicodedata.normalize("NFKC", without_note_marks(text)).casefold()
    for token in _TOKEN.findall(_FISCAL_BLANK.sub(r"\1", folded)):
        if token[0].isdigit():
            words.append(token.replace(",", ""))
        elif fiscal := _FISCAL_YEAR.fullmatch(token):
            words.append(fiscal[1] if len(fiscal[1]) == 4 else f"20{fiscal[1]}")
        elif _UNSPACED_RUN.fullmatch(token):
            words.extend(token[place : place + 2] for place in range(len(token) - 1))
        else:
            words.append(token)
    return words


@lru_cache(maxsize=1 << 16)
def stem(token: str) -> str:
    """Snowball's English stem, of irregular forms that of their base form; months become three letters. What is no
    plain word stays as it is."""
    if token in _MONTHS:
        return token[:3]
    token = _BASE_FORMS.get(token, token)
    if len(token) < 4 or not token.isalpha():
        return token
    return str(_stemmer().stemWord(token))


@lru_cache(maxsize=1)
def _stemmer() -> Stemmer.Stemmer:
    import Stemmer

    return Stemmer.Stemmer("english")


def stems(text: str) -> frozenset[str]:
    return frozenset().union(*map(_stems_of_word, text.split()), numbered(text), marks_of_units(text))


def numbered(text: str) -> Iterator[str]:
    """``figure 2`` of ``Fig. 2``, ``section 3.1`` of ``Section 3.1`` and of a heading that begins with its number."""
    if heading := _NUMBERED_HEADING.match(text):
        yield f"section {heading[1]}"
    for match in _NUMBERED.finditer(text):
        yield _numbered(match)


def leading_number(text: str) -> tuple[str, bool]:
    """``figure 2`` of a text that begins with ``Fig. 2``, ``section 2`` of ``2 Methods``; else empty. And whether it is
    set off from what follows, as in ``Figure 2: Masts``."""
    if match := _NUMBERED.match(text):
        return _numbered(match), text[match.end() :].lstrip()[:1] in tuple(":.|\u2013\u2014-")
    heading = _NUMBERED_HEADING.match(text)
    return (f"section {heading[1]}", True) if heading else ("", False)


def _numbered(match: re.Match[str]) -> str:
    name = match[1].casefold()
    return f"{_SAME_NAMES.get(name, name)} {match[2]}"


@lru_cache(maxsize=1 << 16)
def word_stems(word: str) -> frozenset[str]:
    """Of what stands between two spaces, without marks: no token goes across one, and the same words return on every
    page."""
    return frozenset(map(stem, tokens(word)))


@lru_cache(maxsize=1 << 16)
def _stems_of_word(word: str) -> frozenset[str]:
    return word_stems(word).union(*map(marks_of_word, tokens(word)))


@lru_cache(maxsize=1)
def _stand_ins() -> Mapping[str, frozenset[str]]:
    """What stands for a word of a question, by its stem."""
    groups = [frozenset(map(stem, group.split())) for group in SYNONYMS]
    others = {
        name: frozenset().union(*(group for group in groups if name in group)) - {name}
        for group in groups
        for name in group
    }
    for quantity, names in QUANTITIES.items():
        for name in map(stem, names.split()):
            others[name] = others.get(name, frozenset()) | {mark_of_quantity(quantity)}
    return others


def terms(question: str) -> tuple[Term, ...]:
    """The informative words, in order and once each, and names with their number; all words where there are neither."""
    numbers = [_numbered(match) for match in _NUMBERED.finditer(question)]
    question = _NUMBERED.sub(" ", question) if numbers else question
    names = _names(question)
    months = names & {"may"}  # the month, not the verb
    every = tokens(without_question_words(question)) or tokens(question)
    grammar = grammar_in(frozenset(every), _FUNCTION_WORDS)
    named = months | frozenset(label.casefold() for label in _LABEL.findall(question))
    chosen = [token for token in every if (is_informative(token) and token not in grammar) or token in named]
    chosen = chosen or ([] if numbers else every)
    words = (_term(token, specific=token in names or any(map(str.isdigit, token))) for token in chosen)
    named_with_number = (Term(name, name, specific=True) for name in numbers)
    return tuple({term.stem: term for term in (*words, *named_with_number)}.values())


def _term(token: str, *, specific: bool) -> Term:
    name = stem(token)
    others = frozenset() if specific else _stand_ins().get(name, frozenset()) | unit_of(token)
    return Term(name, token, specific, others)


def quantities(name: str) -> frozenset[str]:
    """The marks of the quantities that ``name`` is a word for, as "price" or "long"."""
    return frozenset(filter(is_quantity, _stand_ins().get(stem(name.casefold()), ())))


def is_informative(token: str) -> bool:
    return token not in _FUNCTION_WORDS and token not in _TASK_WORDS and (len(token) > 1 or token.isdigit())


def is_function_word(token: str) -> bool:
    return token.casefold() in _FUNCTION_WORDS


def phrases(question: str) -> tuple[str, ...]:
    """What has to be found as it stands: what is in quotation marks, and identifiers such as ``max_steps``."""
    quoted = [" ".join(phrase.split()) for phrase in _PHRASE.findall(question)]
    return tuple(dict.fromkeys([*quoted, *_IDENTIFIER.findall(question)]))


def _names(question: str) -> frozenset[str]:
    """Capitalised words that do not begin a sentence; none of a question in capitals alone."""
    if question.isupper():
        return frozenset()
    words = re.findall(r"\S+", question)
    inner = [word for before, word in itertools.pairwise(words) if not before.endswith((".", "?", "!", ":"))]
    return frozenset(token for word in inner if word.lstrip("\"'“(")[:1].isupper() for token in tokens(word))
