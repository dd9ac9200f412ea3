"""One search over one or more collections: a leg for each vector space, the lexical leg; fused, grouped by page,
hydrated, and located on their pages where the query was seen.

Several collections are searched as if they were one: each leg merges its windows before legs are fused, so that the
results are those of a single collection with all the documents. Only the lexical leg differs, see ``lexical_leg``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from vrag_ray.config import IndexConfig
from vrag_ray.embedding.base import LEAST_READABLE
from vrag_ray.index.search.fusion import Fused, Leg
from vrag_ray.index.search.leg_search import LegReply, search_leg
from vrag_ray.index.search.legs import lexical_leg, query_notices, rank
from vrag_ray.index.search.modes import common_mode, refuse_unseen
from vrag_ray.index.search.page_traits import with_page_traits
from vrag_ray.index.search.snapshot import Part, Snapshot, parts_of
from vrag_ray.index.search.titles import COMPARED_FIRST, MOST_PAGES, TitleVectors, by_titles, still_needed
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.rows import CorruptionError
from vrag_ray.types import HYBRID, LEXICAL, Document, Hit, Passage, Query, SearchAnswer
from vrag_ray.types.filters import SearchFilter

WINDOWS_OF_A_PAGE = 4
"""As a leg alone expects them among its best; where pages have more, it fetches more."""
UNSEEN = (
    "the picture of the query was not searched, its words were: that takes a vector space of pictures, which "
    "`vrag embed` makes (docs/retrieval.md)"
)


async def search_each(
    snapshots: Sequence[Snapshot],
    groups: Sequence[Sequence[str | Query]],
    *,
    top_k: int,
    mode: str,
    filter: SearchFilter | None,
    index: IndexConfig,
) -> list[SearchAnswer]:
    """The queries of several callers, searched as one; the answer of each has the notices of its own queries only.

    The documents of an earlier collection come before the same ones of a later one. A leg that is not there is refused
    by name; ``hybrid`` without any vector leg has a notice that it is lexical. Raises DisagreeingSpacesError where the
    collections have vectors that cannot be compared.
    """
    queries = [Query.of(query) for group in groups for query in group]
    # An empty collection has no spaces, and no notices.
    non_empty = [snapshot for snapshot in snapshots if not snapshot.is_empty] or list(snapshots[:1])
    used = common_mode(mode, non_empty)
    refuse_unseen(queries, used, non_empty[0].legs)
    with ExitStack() as in_use:
        for snapshot in non_empty:
            in_use.enter_context(snapshot.in_use())
        return await _search(snapshots, non_empty, queries, _numbers(groups), top_k, used, filter, index)


async def _search(
    named: Sequence[Snapshot],
    snapshots: Sequence[Snapshot],
    queries: Sequence[Query],
    groups: Sequence[range],
    top_k: int,
    mode: str,
    filter: SearchFilter | None,
    index: IndexConfig,
) -> list[SearchAnswer]:
    parts = parts_of(snapshots, filter)
    legs = [leg for leg in snapshots[0].legs.by_name.values() if mode in (HYBRID, leg.name)]
    candidates = index.candidates if mode == HYBRID else top_k * WINDOWS_OF_A_PAGE
    leg_replies, lexical = await asyncio.gather(
        asyncio.gather(
            *(search_leg(leg, parts, queries, top_k=top_k, candidates=candidates, mode=mode) for leg in legs)
        ),
        _lexical(parts, queries, top_k, candidates, comparable=len(named) > 1)
        if mode in (HYBRID, LEXICAL)
        else _nothing(),
    )
    ranked = [
        rank(
            mode,
            [leg.legs[n] for leg in leg_replies if n in leg.legs],
            lexical.get(n),
            max(top_k, MOST_PAGES if mode == HYBRID else 0),
        )
        for n in range(len(queries))
    ]
    if mode == HYBRID and index.title_weight:
        ranked = await asyncio.gather(
            *(_by_titles(items, n, leg_replies, parts, index.title_weight, top_k) for n, items in enumerate(ranked))
        )
    ranked = [items[:top_k] for items in ranked]
    passages, damaged = await asyncio.to_thread(_hydrate, parts, [item.id for items in ranked for item in items])
    hits = [[_hit(item, *passages[item.id]) for item in items if item.id in passages] for items in ranked]
    results = await with_page_traits({part.snapshot.name: part.snapshot for part in parts}, hits, leg_replies)
    problems = tuple(dict.fromkeys(problem for leg in leg_replies for problem in leg.problems))
    of_all = (*_standing_notices(named), *(problems or _shard_problems(snapshots)))

    def notices(numbers: range) -> tuple[str, ...]:
        ids = dict.fromkeys(item.id for n in numbers for item in ranked[n])
        notices = _query_notices(snapshots, queries, numbers, mode, leg_replies, lexical, filtered=filter is not None)
        return (*of_all, *(damaged[doc_id] for doc_id in ids if doc_id in damaged), *notices)

    return [
        SearchAnswer(
            results=tuple(results[n] for n in numbers),
            shards_ok=_shards_ok(snapshots, parts, leg_replies),
            shards_total=sum(snapshot.shards.total for snapshot in snapshots),
            mode=mode,
            collection_version=named[0].collection.version,
            notices=notices(numbers),
            collections=tuple(snapshot.name for snapshot in named if snapshot.name),
        )
        for numbers in groups
    ]


def _numbers(groups: Sequence[Sequence[str | Query]]) -> list[range]:
    """The numbers of each group's queries, counted through all groups."""
    starts = [0, *accumulate(map(len, groups))]
    return [range(start, stop) for start, stop in pairwise(starts)]


async def _by_titles(
    fused: list[Fused], number: int, legs: Sequence[LegReply], parts: Sequence[Part], weight: float, top_k: int
) -> list[Fused]:
    """The first ``top_k`` by the titles of their documents; all as they are where the embedder of texts does not read
    the query, or where there is one title."""
    text = next((leg for leg in legs if leg.leg.titles is not None and number in leg.vectors), None)
    if text is None or text.leg.titles is None:
        return fused
    titles: dict[str, str] = {}
    for part in reversed(parts):
        titles |= part.collection.titles_of([item.id for item in fused[:MOST_PAGES]])
    names = list(dict.fromkeys(titles[item.id] for item in fused[:MOST_PAGES] if item.id in titles))
    if len(names) < 2:
        return fused
    near = await _near(text.leg.titles, names[:COMPARED_FIRST], text.vectors[number])
    if needed := still_needed(fused, titles, near, weight, top_k):
        near |= await _near(text.leg.titles, needed, text.vectors[number])
    return by_titles(fused, {page: near[title] for page, title in titles.items() if title in near}, weight, top_k)


async def _near(vectors: TitleVectors, titles: Sequence[str], query: NDArray[np.float32]) -> dict[str, float]:
    """The similarity of each title; in a thread where one has to be embedded."""
    if vectors.lacks(titles):
        return await asyncio.to_thread(vectors.similarities, titles, query)
    return vectors.similarities(titles, query)


async def _lexical(
    parts: Sequence[Part], queries: Sequence[Query], top_k: int, candidates: int, *, comparable: bool
) -> dict[int, Leg]:
    narrowed = [(part.collection, part.filter) for part in parts]
    numbers = [n for n, query in enumerate(queries) if query.text.strip()]
    legs = await asyncio.gather(
        *(
            asyncio.to_thread(
                lexical_leg, narrowed, queries[n].text, top_k=top_k, candidates=candidates, comparable=comparable
            )
            for n in numbers
        )
    )
    return dict(zip(numbers, legs, strict=True))


async def _nothing() -> dict[int, Leg]:
    return {}


def _shards_ok(snapshots: Sequence[Snapshot], parts: Sequence[Part], legs: Sequence[LegReply]) -> int:
    """Of the leg that fewest shards answered; those of collections that the filter leaves out count as they stand."""
    searched = {part.snapshot.name for part in parts}
    unasked = sum(snapshot.shards.healthy for snapshot in snapshots if snapshot.name not in searched)
    healthy = sum(part.snapshot.shards.healthy for part in parts)
    return unasked + min((leg.shards_ok for leg in legs if leg.shards_ok is not None), default=healthy)


def _shard_problems(snapshots: Sequence[Snapshot]) -> tuple[str, ...]:
    if len(snapshots) == 1:
        return snapshots[0].shards.problems()
    return tuple(f"{snapshot.name}: {problem}" for snapshot in snapshots for problem in snapshot.shards.problems())


def _standing_notices(named: Sequence[Snapshot]) -> list[str]:
    """Of each collection; of several, those that all have once, and the others with the collection's name."""
    if len(named) == 1:
        return list(named[0].legs.notices)
    common = [text for text in named[0].legs.notices if all(text in snapshot.legs.notices for snapshot in named)]
    return common + [
        f"{snapshot.name}: {text}" for snapshot in named for text in snapshot.legs.notices if text not in common
    ]


def _query_notices(
    snapshots: Sequence[Snapshot],
    queries: Sequence[Query],
    numbers: Sequence[int],
    mode: str,
    legs: Sequence[LegReply],
    lexical: Mapping[int, Leg],
    *,
    filtered: bool,
) -> tuple[str, ...]:
    """The notices of those queries."""
    if not any(snapshot.collection.document_count for snapshot in snapshots):
        return ()
    notices: dict[str, None] = {}
    if any(queries[n].picture is not None for n in numbers) and not any(leg.leg.sees for leg in legs):
        notices[UNSEEN] = None
    if not legs:
        return tuple(notices)
    for leg in legs:
        for fault in (leg.faults[n] for n in numbers if n in leg.faults):
            notices[f"the leg {leg.leg.name} was left out: {fault}"] = None
    for n in numbers:
        shares = {leg.leg.embedder.id: leg.readable[n] for leg in legs if n in leg.readable}
        unread = {embedder: share for embedder, share in shares.items() if share < LEAST_READABLE}
        of_query = query_notices(
            queries[n], mode, unread=unread, embedders=len(shares), lexical=lexical.get(n), filtered=filtered
        )
        notices |= dict.fromkeys(of_query)
    return tuple(notices)


def _hit(item: Fused, collection: str, document: Document, passage: Passage) -> Hit:
    return Hit(passage, document.title, document.uri, item.score, item.by_leg, collection=collection)


def _hydrate(
    parts: Sequence[Part], ids: Sequence[str]
) -> tuple[dict[str, tuple[str, Document, Passage]], dict[str, str]]:
    """The passages by id, each of the first collection that has it and whose filter lets it through, with that
    collection's name and the document as readers see it; and a notice for each that is damaged on disk, by id too.
    Blocking."""
    passages_by_id: dict[str, tuple[str, Document, Passage]] = {}
    damaged: dict[str, str] = {}
    for part in parts:
        missing = [passage_id for passage_id in dict.fromkeys(ids) if passage_id not in passages_by_id]
        passages, problems = _passages(part.collection, missing)
        passages_by_id |= {
            name: (part.snapshot.name, part.collection.shown(part.collection.document(passage.doc_id)), passage)
            for name, passage in passages.items()
            if part.collection.has_document(passage.doc_id)
            and (part.filter is None or part.filter.matches_meta(passage.meta))
        }
        damaged |= problems
    return passages_by_id, damaged


def _passages(collection: Collection, ids: Sequence[str]) -> tuple[dict[str, Passage], dict[str, str]]:
    try:
        return collection.passages(ids), {}
    except CorruptionError:
        passages: dict[str, Passage] = {}
        damaged = {}
        for doc_id in ids:
            try:
                passages |= collection.passages([doc_id])
            except CorruptionError as error:
                damaged[doc_id] = str(error)
        return passages, damaged
