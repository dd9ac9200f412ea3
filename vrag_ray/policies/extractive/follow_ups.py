"""A question that goes on from the one before it, read as a question of its own. What the rules miss stays as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from vrag_ray.policies.extractive.lexicon import AUXILIARIES, QUESTION_WORDS, terms

MOST_EARLIER = 8
"""Questions of a conversation that are read, the newest."""
YEAR = re.compile(r"(?:\b(?:FY|CY)|\b)['\u2019]?(?:(?:1[5-9]|20)\d\d|(?<=[YyQq'\u2019])\d\d)\b", re.IGNORECASE)
_PRONOUN = re.compile(
    r"\b(?:it|its|they|them|their|he|him|his|she|her|(?:the|this) (?:company|firm|group|organi[sz]ation|author))\b",
    re.IGNORECASE,
)
_OWNED = frozenset({"its", "their", "his"})
_EXPLETIVE = re.compile(
    r"it\s+(?:true|correct|possible|likely|necessary|allowed|known|clear|safe|takes?|rain\w*|snow\w*)\b", re.IGNORECASE
)
"""Stands for nothing: "Is it true that …"."""
_NAME = re.compile(r"(?<=\s)[A-Z][\w&.-]*(?:['\u2019](?!s\b)\w+)?(?: (?:(?:of|de|van|von|der) )?[A-Z][\w&.-]*)*")
_DESCRIBED = re.compile(
    r"\b(?:the|an?)\s+(?:[\w-]+\s+){0,2}?[\w-]+(?=\s+(?:of|in|at|on|for|by|from|to|with|that|which|is|was|has)\b|\W*$)",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"\b(?:in|at|on|from|to|many|much|since|until)\s+$", re.IGNORECASE)
_PARTICIPLE = re.compile(
    r"(?<=\s)(\w+)\s+(?:\w+ed|built|sold|made|held|bought|found|lost|written|taken|given|broken|chosen|shown)$",
    re.IGNORECASE,
)
"""Ends a question: "When was the office opened"."""
_DO = re.compile(r"\b(?:do|does|did)\s+$", re.IGNORECASE)
_LAST_WORD = re.compile(r"(?<=\s)(\w+)\s+\w+$")
"""A verb, where "do" stands before the noun: "How much did the berth take"."""
_ELLIPSIS = re.compile(
    r"^\W*(?:(?:and|but|or)\s+)?(?:(?:what|how)\s+about|and|but|or)\s+"
    r"(?:(?:in|for|of|at|on|by|from|to|with)\s+)?(?P<other>(?:[^\s?]+\s+){0,5}[^\s?]+?)\W*$",
    re.IGNORECASE,
)
_THING = re.compile(r"[A-Z0-9]|(?i:the|an?|its|their|our|my)\s")
"""Begins what may take the place of a subject; "And now?" names none."""
_VERB_OR_QUESTION_WORD = re.compile(rf"\b(?:{AUXILIARIES}|{QUESTION_WORDS})\b", re.IGNORECASE)


def standalone(question: str, earlier: Sequence[str]) -> str:
    """``question`` as it reads after ``earlier`` questions, oldest first: with what a pronoun stands for in its place;
    "And in 2022?" is the whole question with that year."""
    before, subject = "", ""
    for each in [*earlier[-MOST_EARLIER:], question]:
        before = read_after(before, each, subject)
        subject = _subject(before) or subject
    return before


def read_after(before: str, question: str, subject: str = "") -> str:
    """``question`` as it reads after ``before``; as it is where that adds nothing. ``subject`` is that of the questions
    before ``before``, which may have none."""
    subject = _subject(before) or subject
    short = _ELLIPSIS.match(question)
    if short is not None and not _VERB_OR_QUESTION_WORD.search(short["other"]):
        return _with_other(before, subject, short["other"]) or question
    pronoun = _PRONOUN.search(question)
    if pronoun is None or not subject or _EXPLETIVE.match(question, pronoun.start()):
        return question
    start, end = question[: pronoun.start()], question[pronoun.end() :]
    # The leading words begin no sentence here, or their capital would hide a name.
    if any(term.specific and not term.stem.isdigit() for term in terms(f". {start}")):
        return question
    word = pronoun.group().casefold()
    is_owned = word in _OWNED or (word == "her" and re.match(r"\s+\w", end) is not None)
    return f"{start}{subject}'s{end}" if is_owned else f"{start}{subject}{end}"


def _with_other(before: str, subject: str, other: str) -> str:
    """The question ``before`` with ``other`` in the place of its last year or of its subject; empty without either."""
    if YEAR.search(other):
        years = list(YEAR.finditer(before))
        return before[: years[-1].start()] + other + before[years[-1].end() :] if years else ""
    names_a_thing = _THING.match(other) is not None
    return before.replace(subject, other, 1) if names_a_thing and subject and subject in before else ""


def _subject(question: str) -> str:
    """The first name in ``question``, else its last words with an article; empty where it has neither. A place, a month
    or a unit is a subject only where there is nothing else."""
    names = [
        (match.group().rstrip("."), _BESIDE.search(question, 0, match.start())) for match in _NAME.finditer(question)
    ]
    described = [
        (_LAST_WORD if _DO.search(question, 0, match.start()) else _PARTICIPLE).sub(r"\1", match.group())
        for match in _DESCRIBED.finditer(question)
    ]
    ranked = [name for name, is_beside in names if not is_beside]
    ranked += described[-1:]
    ranked += [name for name, is_beside in names if is_beside]
    return next(iter(ranked), "")
