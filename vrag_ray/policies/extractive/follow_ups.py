"""A question that goes on from the one before it, read as a question of its own. What the rules miss stays as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vrag_ray.policies.extractive.lexicon import AUXILIARIES, NUMBERED_NAMES, QUESTION_WORDS, terms
from vrag_ray.types.months import MONTH

MOST_EARLIER = 8
"""Questions of a conversation that are read, the newest."""
YEAR = re.compile(r"(?:\b(?:FY|CY)|\b)['\u2019]?(?:(?:1[5-9]|20)\d\d|(?<=[YyQq'\u2019])\d\d)\b", re.IGNORECASE)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
_PERIODS = (
    YEAR,
    re.compile(r"\bQ[1-4]\b", re.IGNORECASE),
    re.compile(rf"\b{_WEEKDAY}\b", re.IGNORECASE),
    re.compile(rf"\b{MONTH}\b(?! i\b)", re.IGNORECASE),
    re.compile(rf"\b(?:{NUMBERED_NAMES})\.? \d+(?:\.\d+)*\b", re.IGNORECASE),
)
"""What may take the place of another of its kind: "And in 2022?", "And Figure 3?"."""
_THING = re.compile(
    r"\b(?:it|its|(?:the|this) (?:company|firm|group|organi[sz]ation|building|ship|document))\b", re.IGNORECASE
)
_PERSON = re.compile(r"\b(?:he|him|his|she|her)\b", re.IGNORECASE)
_OWNED = frozenset({"its", "his"})
_EXPLETIVE = re.compile(
    r"it\s+(?:true|correct|possible|likely|necessary|allowed|known|clear|safe|takes?|rain\w*|snow\w*)\b", re.IGNORECASE
)
"""Stands for nothing: "Is it true that …"."""
_CAPITAL = rf"(?!(?:I|{MONTH.title()}|{_WEEKDAY.capitalize()})\b|\w*\d)[A-Z][^\W\d_][\w&.'\u2019-]*?"
_NAME = re.compile(
    rf"(?<=\s)(?P<before>(?:the|an?)\s+(?:[a-z-]+\s+)?)?"
    rf"(?P<name>{_CAPITAL}(?:\s(?:(?:of|de|van|von|der) )?{_CAPITAL})*)"
    r"(?=['\u2019]s\b|[^\w'\u2019-]|$)"
)
_NOUN = re.compile(
    r"\s+(?!\w+ed\b|built\b|sold\b|made\b|held\b|bought\b|found\b|lost\b|written\b|taken\b|(?:"
    + AUXILIARIES
    + r"|of|in|at|on|for|by|from|to|with|that|which|and|or)\b)[a-z-]+(?=\W|$)"
)
"""Behind a name with an article: "the Ravel lighthouse"."""
_BESIDE = re.compile(r"\b(?:in|at|on|from|to|many|much|since|until)\s+$", re.IGNORECASE)
_OF = re.compile(r"\b(?:the|an?)\s+(?:[a-z-]+\s+){1,3}of\s+(?:the\s+)?$")
"""Before a name that is a part of what is named: "the port of Norfell"."""
_DESCRIBED = re.compile(
    r"\b(?:the|an?)\s+(?!most|least|same|other|best|first|last)(?:[\w-]+\s+){0,2}?[\w-]+"
    r"(?=\s+(?:of|in|at|on|for|by|from|to|with|that|which|is|was|has)\b|\W*$)",
    re.IGNORECASE,
)
_PARTICIPLE = re.compile(
    r"(?<=\s)(\w+)\s+(?:\w+ed|built|sold|made|held|bought|found|lost|written|taken|given|broken|chosen|shown)$",
    re.IGNORECASE,
)
"""Ends a question: "When was the office opened"."""
_VERB_BEFORE = re.compile(r"\b(?:do|does|did)\s+$|^\W*(?:is|are|was|were)\s+$", re.IGNORECASE)
_LAST_WORD = re.compile(r"(?<=\s)(\w+)\s+\w+$")
"""A verb, where "do" stands before the noun, "How much did the berth take", or what a thing is: "Is the park open"."""
_ELLIPSIS = re.compile(
    r"^\W*(?:(?:and|but|or)\s+)?(?:(?:what|how)\s+about|and|but|or)\s+"
    r"(?:(?:in|for|of|at|on|by|from|to|with|during)\s+)?(?P<other>(?:[^\s?]+\s+){0,5}[^\s?]+?)\W*$",
    re.IGNORECASE,
)
_VERB_OR_QUESTION_WORD = re.compile(rf"\b(?:{AUXILIARIES}|{QUESTION_WORDS})\b", re.IGNORECASE)
_OF_A_PERSON = re.compile(r"^\W*(?:who|what|where|when|how\s+\w+)\s+(?:is|was)\s+$", re.IGNORECASE)


def standalone(question: str, earlier: Sequence[str]) -> str:
    """``question`` as it reads after ``earlier`` questions, oldest first: with what a pronoun stands for in its place;
    "And in 2022?" is the whole question with that year. Where that is in doubt, it stays as it is."""
    before, subject = "", ""
    for each in [*earlier[-MOST_EARLIER:], question]:
        subject = subject_of(before) or subject
        before = completed(before, each) or _with_subject(before, each, subject)
    return before


def is_follow_up(question: str) -> bool:
    """Whether ``question`` has a pronoun that may stand for something in the question before it."""
    return any(
        not _EXPLETIVE.match(question, pronoun.start())
        for kind in (_THING, _PERSON)
        for pronoun in kind.finditer(question)
    )


def subject_of(question: str) -> str:
    """The first name in ``question``, with what it names, else its last words with an article; empty where it has
    neither. A place is a subject only where there is nothing else."""
    names = [
        (_with_noun(question, name), _BESIDE.search(question, 0, name.start())) for name in _NAME.finditer(question)
    ]
    described = [
        (_LAST_WORD if _VERB_BEFORE.search(question, 0, match.start()) else _PARTICIPLE).sub(r"\1", match.group())
        for match in _DESCRIBED.finditer(question)
    ]
    ranked = [name for name, is_beside in names if not is_beside]
    ranked += described[-1:]
    ranked += [name for name, is_beside in names if is_beside]
    return next(iter(ranked), "")


def _with_noun(question: str, name: re.Match[str]) -> str:
    """A name, of one with an article and a noun behind it all of that."""
    if name["before"] is None:
        return name["name"].rstrip(".")
    noun = _NOUN.match(question, name.end())
    return question[name.start() : noun.end()] if noun is not None else name.group().rstrip(".")


def _with_subject(before: str, question: str, subject: str) -> str:
    """``question`` with ``subject``, that of ``before`` or of an earlier question, in place of its first pronoun."""
    pronouns = [match for kind in (_THING, _PERSON) if (match := kind.search(question)) is not None]
    pronoun = min(pronouns, key=re.Match.start, default=None)
    if pronoun is None or not subject or _EXPLETIVE.match(question, pronoun.start()):
        return question
    start, end = question[: pronoun.start()], question[pronoun.end() :]
    # The leading words begin no sentence here, or their capital would hide a name.
    named = any(term.specific and not term.stem.isdigit() for term in terms(f". {start}"))
    if named or _DESCRIBED.search(start):
        return question
    word = pronoun.group().casefold()
    if _PERSON.fullmatch(word):
        place = before.find(subject)
        if place < 0 or not subject[0].isupper() or " " not in subject or not _OF_A_PERSON.match(before[:place]):
            return question
    is_owned = word in _OWNED or (word == "her" and re.match(r"\s+\w", end) is not None)
    return f"{start}{subject}'s{end}" if is_owned else f"{start}{subject}{end}"


def completed(before: str, question: str) -> str:
    """The question ``before`` with what ``question`` names in the place of its like, as "And in 2022?" does; "" where
    that is not clear."""
    short = _ELLIPSIS.match(question)
    if short is None or _VERB_OR_QUESTION_WORD.search(short["other"]):
        return ""
    other = short["other"]
    for period in _PERIODS:
        if period.fullmatch(other):
            alike = list(period.finditer(before))
            return before[: alike[-1].start()] + other + before[alike[-1].end() :] if alike else ""
    named = [name for name in _NAME.finditer(f" {other}") if f" {other}".endswith(name.group())]
    if not named or not re.fullmatch(
        r"(?:(?:the|an?)\s+)?(?:[a-z-]+\s+){0,3}(?:of\s+(?:the\s+)?)?", other[: -len(named[0]["name"])]
    ):
        return ""
    of_what = _OF.search(other[: -len(named[0]["name"])])
    for name in _NAME.finditer(before):
        if _BESIDE.search(before, 0, name.start()):
            continue
        start, end = name.start(), name.start() + len(_with_noun(before, name))
        if of_what is not None and (whole := _OF.search(before, 0, name.start("name"))) is not None:
            start = whole.start()
        return before[:start] + other + before[end:]
    return ""
