"""The most that a passage of a collection can score for a query, term by term: the measure of a BM25 score.

A BM25 score has no scale of its own. Set against the sum of each term's best score anywhere in the collection it says
how much of the query the best passage covers: near 1 for the words of a heading, a quarter for a question in other
words. Fusion trusts the lexical leg by that (``docs/retrieval.md``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import lance

LANCE_K1 = 1.2
CACHED_TERMS = 1 << 14


class TermScores:
    """Best BM25 score of single terms over a ``passages`` table at one version. Thread-safe; remembers what it saw."""

    def __init__(self, passages: lance.LanceDataset) -> None:
        self._passages = passages
        # The inverse document frequency of a term in no passage, times what an endless repetition would give.
        self._unknown = math.log(1 + (passages.count_rows() + 0.5) / 0.5) * (LANCE_K1 + 1)
        self._best = lru_cache(maxsize=CACHED_TERMS)(self._look_up)

    def ceiling(self, terms: Sequence[str]) -> float:
        """Above or equal to the score of any passage for ``terms``; a term in no passage counts as the rarest would."""
        return sum(map(self._best, terms))

    def _look_up(self, term: str) -> float:
        from lance.query import MatchQuery

        best = self._passages.scanner(columns=["_score"], full_text_query=MatchQuery(term, "terms"), limit=1).to_table()
        return float(best["_score"][0].as_py()) if best.num_rows else self._unknown
