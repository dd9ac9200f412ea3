"""Which legs of a hybrid search have something to say about a query, how far each is trusted, and the notices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vrag_ray.index.search.fusion import Fused, Leg, best_windows, fuse, unfused
from vrag_ray.index.search.lexical import lexical_search
from vrag_ray.index.shards.scored import Scored, merge_distinct
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.terms import index_terms
from vrag_ray.types import HYBRID, LEXICAL, Query
from vrag_ray.types.filters import SearchFilter

MOST_LEXICAL_WEIGHT = 0.8
"""Words that match wholly still leave the meaning a say: one common word is matched wholly by many pages."""
_QUOTED_CHARS = 80


def lexical_leg(
    parts: Sequence[tuple[Collection, SearchFilter | None]],
    query: str,
    *,
    top_k: int,
    candidates: int,
    comparable: bool = False,
) -> Leg:
    """The pages that have words of ``query``: of at least ``candidates`` windows, and ``top_k`` if there are as many.

    The leg's weight is how much of the query the best page covers, see ``term_scores``. BM25 weighs words by how rare
    they are in one collection, so scores of several collections do not compare: where they must, the score of a page is
    the share of the query that it covers in its own collection, 0..1.
    """
    terms = index_terms(query)
    units = [collection.term_scores.ceiling(terms) if comparable else 1.0 for collection, _ in parts]
    fetch_k = max(candidates, top_k)
    while True:
        windows = merge_distinct(
            [
                _in_units(lexical_search(collection, query, fetch_k, narrowed), unit)
                for (collection, narrowed), unit in zip(parts, units, strict=True)
            ],
            fetch_k,
        )
        pages = best_windows(windows)
        complete = len(windows) < fetch_k
        # Long pages have many windows: widen until there are enough pages or no more windows.
        if len(pages) >= top_k or complete:
            break
        fetch_k *= 4
    if not pages:
        return Leg(LEXICAL, pages, complete, 0.0)
    ceiling = 1.0 if comparable else parts[0][0].term_scores.ceiling(terms)
    return Leg(LEXICAL, pages, complete, lexical_weight(pages[0].score, ceiling))


def lexical_weight(best: float, ceiling: float) -> float:
    """The lexical leg's share of the vote: how much of the query its best page covers (see ``term_scores``)."""
    return min(MOST_LEXICAL_WEIGHT, best / ceiling) if ceiling > 0 else 0.0


def rank(mode: str, vectors: Sequence[Leg], lexical: Leg | None, limit: int | None = None) -> list[Fused]:
    """The first ``limit`` pages, best first, of the legs that were searched. A single mode has its leg's own scores.

    In hybrid search the vector legs have the weight that the lexical leg leaves, shared by their own weights.
    """
    if mode != HYBRID:
        legs = [leg for leg in (lexical, *vectors) if leg is not None]
        return unfused(legs[0])[:limit] if legs else []
    spoken = [lexical] if lexical is not None and lexical.pages else []
    rest = 1.0 - sum(leg.weight for leg in spoken)
    total = sum(leg.weight for leg in vectors)
    spoken += [Leg(leg.name, leg.pages, leg.complete, rest * leg.weight / total) for leg in vectors if total > 0]
    return fuse(spoken, limit)


def query_notices(
    query: Query,
    mode: str,
    *,
    unread: Mapping[str, float],
    embedders: int,
    lexical: Leg | None,
    filtered: bool,
) -> tuple[str, ...]:
    """What a reader of the results must know about ``query``: an embedder cannot read it, or no passage has its words.

    ``unread`` are the embedders that know too little of the query, by id, with the share that they know (see
    ``Embedder.readable``), of ``embedders`` in all that could be searched.
    """
    quoted = '"' + " ".join(query.text.split())[:_QUOTED_CHARS] + '"'
    known = [f"the embedder {embedder} knows {share:.0%} of the query {quoted}" for embedder, share in unread.items()]
    if mode == LEXICAL:
        return ()
    if mode != HYBRID:
        return tuple(f"{knows}: these results are noise, search by words" for knows in known)
    wordless = lexical is not None and not lexical.pages
    nowhere = f"no passage{' that the filter lets through' if filtered else ''} has a word of"
    silent = len(unread) == embedders
    if silent and known and wordless:
        return tuple(f"{knows}, and {nowhere} it: nothing was found" for knows in known)
    if silent and known:
        return tuple(f"{knows}: it was searched by words only" for knows in known)
    left_out = tuple(f"{knows}: it was left out" for knows in known)
    if wordless and query.text.strip() and embedders:
        return (*left_out, f"{nowhere} the query {quoted}: it was searched by meaning only")
    return left_out


def _in_units(windows: list[Scored], unit: float) -> list[Scored]:
    return windows if unit == 1.0 else [Scored(window.id, window.score / unit) for window in windows]
