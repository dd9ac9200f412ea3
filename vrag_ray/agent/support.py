"""What an answer says, sentence by sentence, held against what it cites. Pure.

A figure, a date or a name of a sentence must stand in the pages that it cites, as they were read, or be computed from
figures that do. What does not is named: the sentence is unsupported, and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from itertools import permutations

from pydantic import BaseModel, ConfigDict

from vrag_ray.agent.facts import Fact, Facts, Figure, Name, facts_of, words

_NUMBERS = r"\d{1,4}(?:\s*,\s*\d{1,4})*"
MARK = re.compile(rf"\[({_NUMBERS})\]")
"""``[1]`` or ``[1, 2]`` in an answer."""
LEAST_SHARED = 0.5
"""Share of the words of a sentence, those of four letters and more, that the source has which it is taken from."""
MOST_OPERANDS = 12
"""Figures that a figure of the answer may be computed from: of more, some pair gives nearly any figure."""
LEAST_COMPUTED = 2
"""Digits of a figure that may be a ratio or a share: of fewer, too many pairs give it."""
_MARKS = rf"(?:\s*\[{_NUMBERS}\])*"
_END = re.compile(rf"[.!?\u2026]+[\"'\u201d\u2019)\]]*{_MARKS}(?=\s+[^\sa-z]|\s*$)|[\u3002\uff01\uff1f]{_MARKS}|\n+")
"""The end of a sentence, of a Chinese one too, with the marks behind it; the end of a line."""
_WORKED_OUT = re.compile(
    r"\s?[^\W\d]*\s*(?:\((?P<counted>[^();]+(?:;[^();]+)*)\)|=\s*(?P<sum>\d[^+=:;()\n]*(?:\+\s*\d[^+=:;()\n]*)+))"
)
"""Behind a figure and its unit: the things that it counts, or the sum that it is."""
_SHORT = re.compile(
    r"\b(?:[A-Z]|No|Nos|Inc|Ltd|Co|Corp|Mr|Mrs|Ms|Dr|Prof|St|vs|etc|approx|ca|p|pp|e\.g|i\.e|cf|al|Fig)\.$"
)


_LIST_NUMBER = re.compile(r"(?:\A|(?<=\n))[\s>*-]*\d{1,2}\.")
"""At the beginning of a line: it counts what follows, and ends nothing."""


class Support(StrEnum):
    """Where a sentence's sources come from, and whether they hold what it says."""

    CITED = "cited"
    """It names them by marks, and no fact of it is missing in them."""
    ALIGNED = "aligned"
    """It names none: its facts, or without facts its words, led to them among the citations."""
    UNSUPPORTED = "unsupported"
    """At least one of its facts stands in none of them, or the judging model finds that they do not say it."""
    UNCHECKED = "unchecked"
    """It says nothing that can be looked up, or the words of its sources are not known."""


class CheckedSentence(BaseModel):
    """A sentence of an answer, from ``start`` to ``end`` in characters of it, marks and all.

    ``citations`` are numbers of the answer's citations. ``missing`` are the facts that stand in none of them, and
    ``computed`` says how a figure follows from others, as "1,100 = 4,200 - 3,100". ``entailed`` is whether a language
    model finds that its sources say it, None where none has judged it (``agent.entailment``) or the reply was neither.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: int
    end: int
    support: Support
    citations: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    entailed: bool | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A citation as it was read: the words of its page or clip, its title among them, and the quote from it.

    ``cited`` are the words of the elements that it is about, "" where it is of the whole page: figures and dates must
    stand in them, names anywhere on the page.
    """

    words: str
    quote: str = ""
    cited: str = ""


def sentences(answer: str) -> Iterator[tuple[int, int]]:
    """Where each sentence of ``answer`` begins and ends. Marks behind a full stop belong to the sentence before it."""
    start = 0
    for end in _END.finditer(answer):
        if end[0][:1] == "." and (
            _SHORT.search(answer, start, end.start() + 1) or _LIST_NUMBER.fullmatch(answer, start, end.start() + 1)
        ):
            continue
        yield from _trimmed(answer, start, end.end())
        start = end.end()
    yield from _trimmed(answer, start, len(answer))


def checked(answer: str, sources: Mapping[int, Source], question: str = "") -> tuple[CheckedSentence, ...]:
    """Each sentence of ``answer`` held against ``sources``, by the numbers of their citations.

    What the question says itself needs no source. A source without words says nothing against a sentence.
    """
    known = {number: _Held.of(source) for number, source in sources.items()}
    own = Facts(question)
    given = [figure for source in sources.values() for figure in facts_of(source.quote) if isinstance(figure, Figure)]
    results: list[CheckedSentence] = []
    for start, end in sentences(answer):
        text = MARK.sub(lambda mark: " " * len(mark[0]), answer[start:end])
        facts = [fact for fact in facts_of(text) if not own.has(fact)]
        named = [number for number in _marks(answer[start:end]) if number in sources]
        numbers = tuple(named or _aligned(text, facts, known))
        held = [known[number] for number in numbers] if numbers else list(known.values())
        missing = [fact for fact in facts if not any(source.has(fact) for source in held)]
        operands = [fact for fact in facts if isinstance(fact, Figure) and fact not in missing]
        scales = {scale for source in held for scale in source.scales}
        computed = {
            fact: derivation
            for fact in missing
            if (derivation := _worked_out(fact, text, held) or _computed(fact, [*operands, *given], scales))
        }
        missing = [fact for fact in missing if fact not in computed]
        unknown = not sources or any(not sources[number].words for number in numbers or sources)
        support = Support.CITED if named else Support.ALIGNED
        if unknown or (not facts and not numbers):
            support, missing = Support.UNCHECKED, []
        elif missing:
            support = Support.UNSUPPORTED
        results.append(
            CheckedSentence(
                start=start,
                end=end,
                support=support,
                citations=numbers,
                missing=tuple(dict.fromkeys(fact.text for fact in missing)),
                computed=tuple(computed.values()),
            )
        )
    return tuple(results)


@dataclass(frozen=True, slots=True)
class _Held:
    """A source to hold facts against: ``part`` is what is cited of ``page``."""

    page: Facts
    part: Facts

    @classmethod
    def of(cls, source: Source) -> _Held:
        page = Facts(source.words)
        # The scale of a table stands above it, often in an element of its own.
        return cls(page, Facts(source.cited, page.scales) if source.cited else page)

    @property
    def scales(self) -> frozenset[int]:
        return self.page.scales

    @property
    def words(self) -> frozenset[str]:
        return self.part.words

    def has(self, fact: Fact) -> bool:
        return self.page.has(fact) if isinstance(fact, Name) else self.part.has(fact)


def holding(text: str, parts: Mapping[int, str]) -> tuple[int, ...]:
    """The numbers of the ``parts`` that state the facts of ``text``, as few as hold the most; none where no fact is
    held.

    The part with the most facts first, a year being half a fact; of several with as many, the part that shares the most
    words with ``text``.
    """
    left = list(dict.fromkeys(facts_of(text)))
    own_words = words(text)
    known = {number: Facts(part) for number, part in parts.items()}
    numbers: list[int] = []
    while left and known:
        held = {number: sum(_weight(fact) for fact in left if part.has(fact)) for number, part in known.items()}
        best = max(held, key=lambda number: (held[number], len(own_words & known[number].words)))
        if not held[best]:
            break
        numbers.append(best)
        left = [fact for fact in left if not known[best].has(fact)]
    return tuple(numbers)


def _weight(fact: Fact) -> int:
    """A year stands in headings and running heads too, and says less about where the rest stands."""
    return 1 if isinstance(fact, Figure) and re.fullmatch(r"(?:1[5-9]|20)\d\d", fact.text.strip()) else 2


def facts_held(text: str, part: str) -> tuple[int, int]:
    """How many facts of ``text`` stand in ``part``, and how many it has."""
    facts = dict.fromkeys(facts_of(text))
    return sum(map(Facts(part).has, facts)), len(facts)


def _trimmed(answer: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    text = answer[start:end]
    first, last = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
    if any(map(str.isalnum, MARK.sub("", answer[first:last]))):
        yield first, last


def _marks(text: str) -> list[int]:
    numbers = (int(number) for mark in MARK.finditer(text) for number in mark[1].split(","))
    return list(dict.fromkeys(numbers))


def _aligned(text: str, facts: Sequence[Fact], known: Mapping[int, _Held]) -> list[int]:
    """The sources that ``text`` may be taken from: as few as hold its facts, or without facts, the source most like
    it."""
    left = list(facts)
    numbers: list[int] = []
    while left:
        most = max(known, key=lambda number: sum(map(known[number].has, left)), default=0)
        held = [fact for fact in left if most in known and known[most].has(fact)]
        if not held:
            break
        numbers.append(most)
        left = [fact for fact in left if fact not in held]
    if facts or not known:
        return sorted(numbers)
    own_words = {word for word in words(text) if len(word) >= 4}
    shares = {
        number: len(own_words & source.words) / len(own_words) if own_words else 0.0 for number, source in known.items()
    }
    best = max(shares, key=lambda number: shares[number])
    return [best] if shares[best] >= LEAST_SHARED else []


def _worked_out(fact: Fact, text: str, held: Sequence[_Held]) -> str:
    """How ``text`` says right behind ``fact`` that it comes about, where that is so: ``9 = 2 + 3 + 4``, or the things
    that it counts, ``3 (oak; elm; ash)``. Each of these stands in ``held``. "" where it says nothing of the kind."""
    match = _WORKED_OUT.match(text, fact.start + len(fact.text)) if isinstance(fact, Figure) else None
    if match is None or not isinstance(fact, Figure):
        return ""
    if match["counted"]:
        names = re.split(r";\s*", match["counted"])
        all_held = all(any(words(name) <= source.words for source in held) for name in names)
        is_right = fact.agrees(Decimal(len(names)))
        return f"{fact.text} = the number of {match['counted']}" if all_held and is_right else ""
    terms = [figure for figure in facts_of(match["sum"]) if isinstance(figure, Figure)]
    all_held = all(any(source.has(term) for source in held) for term in terms)
    is_right = fact.agrees(sum((term.value for term in terms), Decimal(0)))
    return f"{fact.text} = {match['sum'].strip()}" if all_held and is_right else ""


def _computed(fact: Fact, operands: Sequence[Figure], scales: Collection[int]) -> str:
    """How ``fact`` follows from ``operands``, which may be of tables in ``scales``; "" where it does not."""
    if not isinstance(fact, Figure):
        return ""
    distinct = list({figure.value: figure for figure in operands}.values())[:MOST_OPERANDS]
    digits = sum(map(str.isdigit, fact.text))
    for value, formula, is_ratio in _results(distinct):
        if is_ratio and digits < LEAST_COMPUTED:
            continue
        if any(fact.agrees(value.scaleb(scale)) for scale in ((0,) if is_ratio else (0, *scales))):
            return f"{fact.text} = {formula}"
    return ""


def _results(figures: Sequence[Figure]) -> Iterator[tuple[Decimal, str, bool]]:
    """What figures give: the sum of all, differences and sums of two, and ratios, shares and changes in percent."""
    if len(figures) > 2:
        yield (
            sum((figure.value for figure in figures), Decimal(0)),
            " + ".join(figure.text for figure in figures),
            False,
        )
    for first, second in permutations(figures, 2):
        a, b = first.value, second.value
        if a > b:
            yield a - b, f"{first.text} - {second.text}", False
        yield a + b, f"{first.text} + {second.text}", False
        if b not in (0, 1):
            yield a / b, f"{first.text} / {second.text}", True
            yield 100 * a / b, f"100 * {first.text} / {second.text}", True
            yield 100 * (a - b) / b, f"100 * ({first.text} - {second.text}) / {second.text}", True
