"""How much of a question a candidate covers.

Coverage is ``sum(weight(t) * presence(t)) / sum(weight(t))`` over the question's informative words ``t``. ``weight``
is the inverse document frequency of the word over the sentences and rows of the pages of the search, and half as much
again for names and numbers. ``presence`` is 1 in the candidate itself and less around it (``Presence``). A candidate
without a name or number of the question most likely speaks of another thing: its coverage counts ``MISSING_SPECIFIC``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from vrag_ray.policies.extractive.lexicon import Term

SPECIFIC_FACTOR = 1.5
LEAST_WEIGHT = 0.2
MISSING_SPECIFIC = 0.7
MISSING_MEASURE = 0.5
"""What lacks the ratio, turnover, margin or difference that the question is for."""
MISSING_BELOW = 0.3
"""A name or number of less presence than this is missing."""


class Presence(NamedTuple):
    """How much a word counts by where it stands. For names and numbers, ``beside`` and ``page`` count half."""

    heading: float = 0.85
    beside: float = 0.6
    title: float = 0.8
    title_alone: float = 0.5
    page: float = 0.25

    def around(self, term: Term, share: float) -> float:
        """By virtue of what stands beside the candidate, which holds ``share`` of the word."""
        return (0.5 if term.specific else 1.0) * self.beside * share


PRESENCE = Presence()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Presence of each word by virtue of the document's title and the page alone. The title counts in full for what
    holds at least one word that it lacks: all else of the document is as little about the question as the next line."""

    title: frozenset[str]
    not_in_title: frozenset[str]
    full: Mapping[str, float]
    alone: Mapping[str, float]

    def of(self, held: Mapping[str, float]) -> Mapping[str, float]:
        """For a candidate that holds ``held``, itself or by its heading."""
        return self.full if any(held.get(name, 0.0) for name in self.not_in_title) else self.alone


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The informative words of a question and their weights, on one set of pages."""

    terms: tuple[Term, ...]
    weights: Mapping[str, float]

    @classmethod
    def on(cls, terms: tuple[Term, ...], holding: Mapping[str, int], texts: int) -> Yardstick:
        """Weights by how many of ``texts`` sentences and rows hold each word, by its stem."""
        weights: dict[str, float] = {}
        for term in terms:
            idf = math.log(1 + (texts - holding[term.stem] + 0.5) / (holding[term.stem] + 0.5))
            weights[term.stem] = max(LEAST_WEIGHT, idf) * (SPECIFIC_FACTOR if term.specific else 1.0)
        return cls(terms, weights)

    def coverage(self, presence: Mapping[str, float]) -> float:
        """0 to 1, from the presence of each word by its stem."""
        share = self.weight(presence) / sum(self.weights.values())
        missing = any(term.specific and presence[term.stem] < MISSING_BELOW for term in self.terms)
        return share * (MISSING_SPECIFIC if missing else 1.0)

    def weight(self, presence: Mapping[str, float]) -> float:
        return sum(self.weights[name] * share for name, share in presence.items())

    def surroundings(self, title: frozenset[str], page: frozenset[str]) -> Surroundings:
        """What the document's title and the page have of each word."""
        in_title = {term.stem: term.presence_in(title) for term in self.terms}
        on_page = {
            term.stem: (0.5 if term.specific else 1.0) * PRESENCE.page * term.presence_in(page) for term in self.terms
        }
        # A report of 2024 has figures of other years too.
        shares = {name: PRESENCE.title_alone if name.isdigit() else PRESENCE.title for name in in_title}
        return Surroundings(
            title,
            frozenset(name for name, share in in_title.items() if not share),
            {name: max(shares[name] * share, on_page[name]) for name, share in in_title.items()},
            {name: max(PRESENCE.title_alone * share, on_page[name]) for name, share in in_title.items()},
        )
