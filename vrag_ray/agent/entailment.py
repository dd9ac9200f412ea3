"""Whether a language model finds that the sources of a sentence say it: one short question a sentence. Pure.

The check of facts (``support``) knows figures, dates and names. A sentence may have all of them right and still say
something else: that sales fell where they rose, or that one firm did what another did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vrag_ray.agent.chat import Message, Role
from vrag_ray.agent.protocols.page_words import FENCE_RULE, excerpt, fenced, harmless
from vrag_ray.agent.reply_form import ReplyForm
from vrag_ray.agent.support import MARK, CheckedSentence, Source, Support
from vrag_ray.types.copies import with_changes

MOST_CLAIMS = 24
"""Sentences of one answer that are judged, the first ones."""
INSTRUCTION = (
    f"You check answers against their sources. {FENCE_RULE} Reply with one word: yes, if the source says the statement "
    "or it follows from the source; no, if the source says something else, or nothing about it."
)
FORM = ReplyForm('reply ::= "yes" | "no"')
_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_BEFORE_SIGN = re.compile(r"\s+(?=[.,;:!?])")
_WORD = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer, by its place among the sentences, and the words that it rests on."""

    place: int
    question: str
    statement: str
    source: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a model finds of a claim: None where its reply is neither yes nor no. ``usage`` as in ``Completion``."""

    entailed: bool | None
    usage: Mapping[str, int] = field(default_factory=dict)


def claims(
    question: str, answer: str, sentences: Sequence[CheckedSentence], sources: Mapping[int, Source], room: int
) -> tuple[Claim, ...]:
    """The sentences of ``answer`` whose facts stand in sources of known words, each with at most ``room`` characters of
    these. What a fact check has refused already is no claim."""
    checkable: list[Claim] = []
    for place, sentence in enumerate(sentences):
        cited = [sources[number] for number in sentence.citations if sources[number].words.strip()]
        if sentence.support not in (Support.CITED, Support.ALIGNED) or not cited:
            continue
        share = room // len(cited)
        words = [excerpt(harmless(source.cited or source.words), share, source.quote) for source in cited]
        statement = _BEFORE_SIGN.sub("", " ".join(MARK.sub(" ", answer[sentence.start : sentence.end]).split()))
        checkable.append(Claim(place, question, statement, "\n\n".join(words)))
    return tuple(checkable[:MOST_CLAIMS])


def messages(claim: Claim) -> tuple[Message, ...]:
    """The question about ``claim`` as a chat."""
    question = (
        f"Source:\n{fenced(claim.source)}\n\nQuestion: {claim.question}\nStatement: {claim.statement}\n\n"
        "Does the source say this? Reply with yes or no."
    )
    return Message.of(Role.SYSTEM, INSTRUCTION), Message.of(Role.USER, question)


def verdict_of(reply: str) -> bool | None:
    """Yes or no, with which a reply begins behind its thoughts; None for anything else."""
    match = _WORD.match(_THOUGHT.sub("", reply))
    return None if match is None else match[1].lower() == "yes"


def judged(
    sentences: Sequence[CheckedSentence], claims: Sequence[Claim], verdicts: Sequence[bool | None]
) -> tuple[CheckedSentence, ...]:
    """``sentences`` with the model's verdicts: a sentence that its sources do not state is unsupported."""
    results = list(sentences)
    for claim, entailed in zip(claims, verdicts, strict=True):
        support = Support.UNSUPPORTED if entailed is False else results[claim.place].support
        results[claim.place] = with_changes(results[claim.place], {"entailed": entailed, "support": support})
    return tuple(results)
