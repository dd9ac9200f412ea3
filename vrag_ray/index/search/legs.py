"""Which legs of a hybrid search have something to say about a query, how far each is trusted, and what is told."""

from __future__ import annotations

from vrag_ray.index.search.fusion import Fused, Leg, best_windows, fuse, unfused
from vrag_ray.index.search.lexical import lexical_search
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.terms import index_terms
from vrag_ray.types import HYBRID, LEXICAL, TEXT
from vrag_ray.types.filters import SearchFilter

LEAST_READABLE = 0.5
"""An embedder that knows less of a query than this share of its pieces stays out of hybrid search."""
MOST_LEXICAL_WEIGHT = 0.8
"""Words that match wholly still leave the meaning a say: one common word is matched wholly by many pages."""
_QUOTED_CHARS = 80


def lexical_leg(collection: Collection, query: str, *, top_k: int, candidates: int, wanted: SearchFilter | None) -> Leg:
    """The pages that have words of ``query``: of at least ``candidates`` windows, and ``top_k`` if there are so many.

    Its weight is how much of the query the best page covers, see ``term_scores``.
    """
    fetch_k = max(candidates, top_k)
    while True:
        windows = lexical_search(collection, query, fetch_k, wanted)
        pages = best_windows(windows)
        complete = len(windows) < fetch_k
        # Long pages have many windows: widen until there are enough pages or no more windows.
        if len(pages) >= top_k or complete:
            break
        fetch_k *= 4
    weight = lexical_weight(pages[0].score, collection.term_scores.ceiling(index_terms(query))) if pages else 0.0
    return Leg(LEXICAL, pages, complete, weight)


def lexical_weight(best: float, ceiling: float) -> float:
    """The lexical leg's share of the vote: how much of the query its best page covers (see ``term_scores``)."""
    return min(MOST_LEXICAL_WEIGHT, best / ceiling) if ceiling > 0 else 0.0


def rank(mode: str, dense: Leg | None, lexical: Leg | None) -> list[Fused]:
    """One list of pages, best first. None is a leg that was not asked; a single mode keeps its leg's own scores.

    In hybrid search the dense leg has the weight that the lexical leg leaves.
    """
    if mode == HYBRID:
        spoken = [lexical] if lexical is not None and lexical.pages else []
        rest = 1.0 - sum(leg.weight for leg in spoken)
        if dense is not None:
            spoken.append(Leg(dense.name, dense.pages, dense.complete, rest))
        return fuse(spoken)
    leg = dense if mode == TEXT else lexical
    return [] if leg is None else unfused(leg)


def query_notices(
    query: str, mode: str, *, readable: float, embedder_id: str, lexical: Leg | None, filtered: bool
) -> tuple[str, ...]:
    """What a reader of the results must know about ``query``: the embedder cannot read it, or no passage has its words.

    ``readable`` is the share of the query that the embedder knows, see ``Embedder.readable``.
    """
    quoted = '"' + " ".join(query.split())[:_QUOTED_CHARS] + '"'
    unreadable = mode != LEXICAL and readable < LEAST_READABLE
    knows = f"the embedder {embedder_id} knows {readable:.0%} of the query {quoted}"
    if mode == TEXT:
        return (f"{knows}: these results are noise, search by words",) if unreadable else ()
    if mode == LEXICAL:
        return ()
    wordless = lexical is not None and not lexical.pages
    nowhere = f"no passage{' that the filter lets through' if filtered else ''} has a word of"
    if unreadable and wordless:
        return (f"{knows}, and {nowhere} it: nothing was found",)
    if unreadable:
        return (f"{knows}: it was searched by words only",)
    return (f"{nowhere} the query {quoted}: it was searched by meaning only",) if wordless else ()
