"""Queries and the answer of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from vrag_ray.types.documents import Passage
from vrag_ray.types.errors import VragError
from vrag_ray.types.geometry import Box

HYBRID = "hybrid"
"""The mode in which all legs answer and are fused."""
LEXICAL = "lexical"
"""The leg that counts words (BM25), and its mode."""
TEXT = "text"
"""The leg of the vectors of passage texts, and its mode. Further legs have the names of the collection's spaces."""
DENSE = "dense"
"""What ``TEXT`` was called: accepted as a mode, never answered with."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: words, a picture (a PNG made by the decoding sandbox of what came from outside), or both."""

    text: str = ""
    picture: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.text.strip() and self.picture is None:
            raise VragError("the query is empty: give words, a picture, or both")

    @classmethod
    def of(cls, query: str | Query) -> Query:
        """A plain text as a query."""
        return cls(query) if isinstance(query, str) else query


@dataclass(frozen=True, slots=True)
class Hit:
    """One result: a passage with its document's title and uri, best first by ``score``. Where several
    documents of a collection have the same title, the folder or the file name that differs stands behind it:
    ``report (2023)``.

    ``scores`` has what each leg that lists the page gave it: BM25 of ``lexical``, cosine of a space of single vectors,
    mean MaxSim of one of several. In a search of several collections ``lexical`` is the share of the query's words that
    the page covers, 0..1, since BM25 compares within one collection only. ``score`` is that of the leg in the mode of a
    single leg. In ``hybrid`` mode it is in 0..1: the mean of the legs' scores as shares of each leg's best for this
    query, by the legs' weights, and the cosine of query and title (``title``, see ``index.title_weight``), so it does
    not compare across queries; with a reranker it is the reranker's, 0..1.
    ``region`` is where on the page the query was seen, as far as a leg can tell. ``duplicate_of`` is the passage id of
    an earlier hit that looks the same. ``collection`` is the name of its collection, of several that are
    served side by side.
    """

    passage: Passage
    title: str
    uri: str
    score: float
    scores: Mapping[str, float] = field(default_factory=dict)
    region: Box | None = None
    duplicate_of: str = ""
    collection: str = ""


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """Results per query, and how complete they are. ``notices`` says in words what was degraded.

    ``collections`` are the names of those that were searched, of several that are served side by side;
    ``collection_version`` is the first one's.

    ``mode`` is ``hybrid`` or the name of the leg that answered alone. A notice about one query of several quotes it.
    """

    results: tuple[tuple[Hit, ...], ...]
    shards_ok: int
    shards_total: int
    mode: str
    collection_version: int
    notices: tuple[str, ...] = ()
    collections: tuple[str, ...] = ()
