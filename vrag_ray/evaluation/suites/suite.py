"""Questions of known gold: what an evaluation of retrieval asks, and when a result is right."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from vrag_ray.client.schemas import SearchHit


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """``grades`` has the relevance of each item that was judged, by its name; ``doc_id`` is the one document that is
    searched, all where it is ""; ``groups`` are what the query is counted under."""

    uid: str
    text: str
    grades: Mapping[str, int]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    doc_id: str = ""


@dataclass(frozen=True)
class RetrievalSuite:
    """``items_of`` names what a hit stands for: documents or pages, as ``grades`` name them; none for a hit that does
    not count, such as a page of contents. ``depth`` results are looked at. ``regions_of`` measures where on their pages
    the hits are, where gold boxes are known."""

    name: str
    queries: Sequence[RetrievalQuery]
    items_of: Callable[[RetrievalQuery, SearchHit], Sequence[str]]
    depth: int = 100
    regions_of: Callable[[RetrievalQuery, Sequence[SearchHit]], Mapping[str, float]] | None = None

    @property
    def digest(self) -> str:
        """Of questions and gold."""
        rows = [[query.uid, query.text, dict(query.grades), dict(query.groups)] for query in self.queries]
        return hashlib.sha256(json.dumps([rows, self.depth], sort_keys=True).encode()).hexdigest()
