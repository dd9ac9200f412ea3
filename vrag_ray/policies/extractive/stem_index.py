"""Which sentences and rows of a page hold which words: looked up, where each question would go through all of them."""

from __future__ import annotations

from collections.abc import Iterable

from vrag_ray.policies.extractive.lexicon import AKIN, LEAST_AKIN, STANDS_IN, Term


class StemIndex:
    """Of ``texts``, given as stems; a text's place is its number from 0."""

    def __init__(self, texts: Iterable[frozenset[str]]) -> None:
        self._places: dict[str, list[int]] = {}
        for place, stems in enumerate(texts):
            for stem in stems:
                self._places.setdefault(stem, []).append(place)
        # Forms of one word begin with the same letters.
        self._families: dict[str, list[str]] = {}
        for stem in self._places:
            if len(stem) >= LEAST_AKIN:
                self._families.setdefault(stem[:LEAST_AKIN], []).append(stem)

    def shares(self, term: Term) -> dict[int, float]:
        """``Term.presence_in`` of every text that holds the word, by the text's place."""
        by_text: dict[int, float] = {}
        for stem in self._families.get(term.stem[:LEAST_AKIN], ()):
            if term.is_akin(stem):
                by_text.update(dict.fromkeys(self._places[stem], AKIN))
        for other in term.others:
            by_text.update(dict.fromkeys(self._places.get(other, ()), STANDS_IN))
        by_text.update(dict.fromkeys(self._places.get(term.stem, ()), 1.0))
        return by_text
