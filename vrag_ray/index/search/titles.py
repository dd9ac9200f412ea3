"""What the title of a document says for its pages in hybrid search.

A question that names a report ("the cash ratio of Acme in FY2022") has few words of the page of figures that answers
it, and no page says which report it is in. A page therefore gains by how near the title of its document is to the
query. Within one document nothing changes.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Mapping, Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from vrag_ray.caching import SizedLRU
from vrag_ray.embedding.base import LEAST_READABLE, Content, Embedder, Embedding
from vrag_ray.index.search.fusion import Fused

logger = logging.getLogger(__name__)
TITLE = "title"
"""The name of a title's similarity among the scores of a hit."""
MOST_PAGES = 100
"""The first pages of a list: those behind them gain nothing."""
COMPARED_FIRST = 16
"""Titles of the best pages: their similarities show which other pages cannot be among the first."""
MOST_SIMILAR = 1.001
"""The inner product of two vectors of length 1, rounding included."""
REMEMBERED = 50_000
"""Vectors of titles in memory, at most."""
PREPARED = 10_000
"""Titles of a collection whose vectors are made before a search needs them, at most: some ten seconds of a core."""
PREPARED_AT_A_TIME = 16
"""Titles that are embedded in one call then: a query that comes meanwhile waits for one call."""


class TitleVectors:
    """Vectors of titles by an embedder of texts, made when they are first needed, or by ``prepare``. Thread-safe."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: SizedLRU[str, NDArray[np.float32]] = SizedLRU(REMEMBERED)
        self._lock = threading.Lock()

    def lacks(self, titles: Sequence[str]) -> bool:
        """Whether ``similarities`` has to embed one of these."""
        with self._lock:
            return any(self._known.get(title) is None for title in titles)

    def prepare(self, titles: Sequence[str]) -> None:
        """Make the vectors of those that have none."""
        with self._lock:
            missing = [title for title in titles if self._known.get(title) is None]
        if missing:
            self._embedded(missing)

    def similarities(self, titles: Sequence[str], query: NDArray[np.float32]) -> dict[str, float]:
        """The inner product of each title's vector with that of the query, [1, dim]; at least 0, and 0 for a title that
        the embedder cannot read."""
        with self._lock:
            vectors = {title: known for title in titles if (known := self._known.get(title)) is not None}
        missing = [title for title in dict.fromkeys(titles) if title not in vectors]
        if missing:
            vectors |= self._embedded(missing)
        if not vectors:
            return {}
        products = np.stack(list(vectors.values())) @ query[0].astype(np.float32)
        return dict(zip(vectors, np.maximum(products, 0.0).tolist(), strict=True))

    def _embedded(self, titles: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        nothing = np.zeros(self._embedder.dim, np.float32)
        shares = self._embedder.readable(titles)
        readable = [title for title, share in zip(titles, shares, strict=True) if share >= LEAST_READABLE]
        results = self._embedder.embed_passages([Content(title) for title in readable]) if readable else []
        vectors = dict.fromkeys(titles, nothing)
        for title, embedded in zip(readable, results, strict=True):
            if isinstance(embedded, Embedding):
                vectors[title] = embedded.vectors[0].astype(np.float32)
            else:
                logger.warning("pages of %r gain nothing by this title: %s", title, embedded)
        with self._lock:
            for title, vector in vectors.items():
                self._known.put(title, vector)
        return vectors


def still_needed(
    fused: Sequence[Fused], titles: Mapping[str, str], similarities: Mapping[str, float], weight: float, top_k: int
) -> list[str]:
    """The titles without which the first ``top_k`` of ``by_titles`` may be others than with all: each page gains at
    most ``weight``, and at least nothing.

    ``fused`` is ordered best first; ``titles`` are those of its pages by id, ``similarities`` those known by title.
    """
    sure = (item.score + weight * similarities.get(titles.get(item.id, ""), 0.0) for item in fused)
    least = min(heapq.nlargest(top_k, sure), default=0.0) - weight * MOST_SIMILAR
    rivals = takewhile(lambda item: item.score >= least, fused)
    needed = dict.fromkeys(titles[item.id] for item in rivals if item.id in titles)
    return [title for title in needed if title not in similarities]


def by_titles(fused: Sequence[Fused], similarities: Mapping[str, float], weight: float, top_k: int) -> list[Fused]:
    """The first ``top_k`` of ``fused`` with the similarity of its document's title, by the id of each page, as one more
    score of that weight.

    Scores stay in 0..1, and the order is by (-score, id).
    """
    scored = [(-(item.score + weight * similarities.get(item.id, 0.0)), item.id, item) for item in fused]
    return [
        Fused(page, -score / (1.0 + weight), _with_title(item, similarities.get(page)))
        for score, page, item in sorted(scored, key=lambda entry: entry[:2])[:top_k]
    ]


def _with_title(item: Fused, similarity: float | None) -> Mapping[str, float]:
    return item.by_leg if similarity is None else {**item.by_leg, TITLE: similarity}
