"""The words of an extractive answer: spans, numbered quotes, and the plain statement that no model wrote them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten

from vrag_ray.corpus.elements import BULLET_SIGNS, DOTS
from vrag_ray.policies.extractive.matching import Match
from vrag_ray.policies.extractive.questions import AnswerKind, Part
from vrag_ray.views.words import EXTRACTIVE_NOTES

NO_MODEL, MODEL_NOT_USED = EXTRACTIVE_NOTES
MAX_QUOTE_CHARS = 800
LONGEST_QUERY = 120
"""Characters of a query in an abstention: a whole document may have been pasted into the question."""
_BULLET = re.compile(rf"(?:[{BULLET_SIGNS}{DOTS}]|[-–*](?=\s+[^\W\d]))\s+")  # noqa: RUF001
_HAS_A_VERB = re.compile(
    r"\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|may|must|should|will|would)\b"
    r"|\W*(?:who|whom|whose|when|where|why|how)\b"
    r"|\W*(?:what|which)\b(?!(?:\s+\w+)?(?:\s+(?:is|are|was|were)\b|['\u2019](?:s|re)\b))",
    re.IGNORECASE,
)
"""A question whose words without the question word name no thing: "What drove the price", "How long is the pier"."""


@dataclass(frozen=True, slots=True)
class OtherFigures:
    """A quote that has the words of an answer with other figures, in another document; its place and citation."""

    quote: str
    where: str
    number: int


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding for one part of the question; ``number`` is its citation's, 0 where it has none.

    ``unread`` is a place of the search's results in which no words could be read, with ``unread_number``.
    """

    part: Part
    match: Match | None
    where: str
    number: int
    queries: tuple[str, ...]
    unread: str = ""
    unread_number: int = 0
    others: tuple[OtherFigures, ...] = ()


def disclosure(*, has_model: bool) -> str:
    """What an answer says of how it was made."""
    return MODEL_NOT_USED if has_model else NO_MODEL


def answer_text(findings: Sequence[Finding], unanswered: Sequence[Finding], *, has_model: bool) -> str:
    """One line a part, each led by the shortest answer. Parts without evidence are named, with what was searched."""
    lines = [_line(finding, alone=len(findings) + len(unanswered) == 1) for finding in findings]
    lines.extend(f"{_label(finding.part)}: not found. {_attempts(finding)}" for finding in unanswered)
    return "\n".join([*lines, disclosure(has_model=has_model)])


def abstention_text(unanswered: Sequence[Finding], *, has_model: bool) -> str:
    """That the evidence is not sufficient, what was searched for, and the nearest pages."""
    unread = any(finding.unread for finding in unanswered)
    holds = "The words of the collection hold" if unread else "The collection holds"
    lines = [f"{holds} no sufficient evidence for an answer."]
    lines.extend(_attempts(finding) for finding in unanswered)
    return "\n".join([*lines, disclosure(has_model=has_model)])


def shown_quote(quote: str) -> str:
    """``quote`` without the bullet before it, cut at a word where it is long."""
    if (bullet := _BULLET.match(quote)) is not None:
        quote = quote[bullet.end() :]
    if len(quote) <= MAX_QUOTE_CHARS:
        return quote
    return quote[:MAX_QUOTE_CHARS].rsplit(" ", 1)[0]


def time_range(match: Match) -> str:
    return f"{match.start:.1f}-{match.end:.1f} s" if match.start is not None and match.end is not None else ""


def _line(finding: Finding, *, alone: bool) -> str:
    match = finding.match
    if match is None:
        return ""
    short = match.answer
    if finding.part.kind is AnswerKind.MOMENT:
        short = time_range(match) or finding.where
    if short and match.unit and "%" not in short:
        short = f"{short} ({match.unit})"
    quote = f"“{shown_quote(match.quote)}” [{finding.number}]"
    line = f"{short}: {quote}" if short and short != match.quote else quote
    others = (
        f"\nOther figures in {other.where}: “{shown_quote(other.quote)}” [{other.number}]" for other in finding.others
    )
    return "".join([line if alone else f"{_label(finding.part)}: {line}", *others])


def _label(part: Part) -> str:
    """What the part is about; the whole question where it is about what happens, or for yes or no."""
    label = part.text.strip(" ?.!") if _HAS_A_VERB.match(part.text) else part.label
    return label[:1].upper() + label[1:]


def _attempts(finding: Finding) -> str:
    searched = " and ".join(f"“{shorten(query, LONGEST_QUERY, placeholder=' …')}”" for query in finding.queries)
    text = f"Searched for {searched}." if searched else "Not searched: the budget of steps was used up."
    if finding.match is not None and finding.number:
        text += f" Nearest: {finding.where}, which has too few of the question's words [{finding.number}]."
    if finding.unread and finding.unread_number:
        text += f" Found {finding.unread} [{finding.unread_number}], but no words could be read there: look at it."
    return text
