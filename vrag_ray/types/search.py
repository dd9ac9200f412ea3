"""What a search is asked to do, and what it answers with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from vrag_ray.types.documents import Passage


class SearchMode(StrEnum):
    """Which legs of the retriever answer a query."""

    HYBRID = "hybrid"
    DENSE = "dense"
    LEXICAL = "lexical"


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: a passage with its document's title and uri, best first by ``score``.

    ``score`` is the cosine in ``dense`` mode and BM25 in ``lexical`` mode. In ``hybrid`` mode it is in 0..1: the mean
    of the legs' scores as shares of each leg's best for this query, by the legs' weights, so it does not compare
    across queries. ``dense_score`` (cosine) and ``lexical_score`` (BM25) are None where the leg did not list the page.
    """

    passage: Passage
    title: str
    uri: str
    score: float
    dense_score: float | None = None
    lexical_score: float | None = None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Results per query, and how complete they are. ``notices`` says in words what was degraded.

    A notice about one query of several quotes it.
    """

    results: tuple[tuple[Hit, ...], ...]
    shards_ok: int
    shards_total: int
    mode: SearchMode
    collection_version: int
    notices: tuple[str, ...] = ()
