"""The lexical leg: BM25 by Lance's full-text index over ``terms``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.index.storage.rows import meta_from_json
from vrag_ray.index.storage.terms import index_terms
from vrag_ray.types.filters import SearchFilter

if TYPE_CHECKING:
    from lance.query import MatchQuery


def lexical_search(collection: Collection, query: str, limit: int, filter: SearchFilter | None) -> list[Scored]:
    """The best ``limit`` windows for the words of ``query``; all there are when fewer match.

    Document and kind conditions go into Lance's prefilter. Metadata is checked on what comes back, in ever larger
    helpings until enough survive, so that dense and lexical legs share one meaning of a filter.
    """
    from lance.query import MatchQuery

    terms = index_terms(query)
    if not terms or collection.record is None or limit <= 0:
        return []
    match = MatchQuery(" ".join(terms), "terms")
    fetch_k = limit
    while True:
        with storage_faults(collection.root, "searching its text"):
            rows, is_all = _matches(collection, match, fetch_k, filter)
        hits = [Scored(passage, score) for passage, document, score in rows if collection.has_document(document)]
        if len(hits) >= limit or is_all:
            return sorted(hits, key=lambda scored: scored.sort_key)[:limit]
        fetch_k *= 4


def _matches(
    collection: Collection, match: MatchQuery, limit: int, filter: SearchFilter | None
) -> tuple[list[tuple[str, str, float]], bool]:
    """Passage, document and score of those of the best ``limit`` rows that ``filter`` lets through, and whether no more
    rows match."""
    narrowed = filter if filter is not None and filter.meta is not None else None
    names = collection.passage_names() if narrowed is None else None
    table = (
        collection.table("passages")
        .scanner(
            columns=["_score"] if names is not None else ["id", "doc_id", "meta", "_score"],
            with_row_id=names is not None,
            full_text_query=match,
            filter=_where(filter),
            prefilter=True,
            limit=limit,
        )
        .to_table()
    )
    is_all = table.num_rows < limit
    if names is not None:
        named = names.of(table["_rowid"].to_numpy())
        return [(*name, score) for name, score in zip(named, table["_score"].to_pylist(), strict=True)], is_all
    return [
        (row["id"], row["doc_id"], float(row["_score"]))
        for row in table.to_pylist()
        if narrowed is None or narrowed.matches_meta(meta_from_json(row["meta"]))
    ], is_all


def _where(filter: SearchFilter | None) -> str | None:
    conditions = []
    if filter is not None and filter.doc_ids is not None:
        conditions.append(_in("doc_id", filter.doc_ids))
    if filter is not None and filter.kinds is not None:
        conditions.append(_in("kind", [str(kind) for kind in filter.kinds]))
    return " AND ".join(conditions) or None


def _in(column: str, values: list[str]) -> str:
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({quoted})" if values else "false"
