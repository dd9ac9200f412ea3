"""The lexical leg: BM25 by Lance's full-text index over ``terms``."""

from __future__ import annotations

from vrag_ray.index.shards.scored import Scored
from vrag_ray.index.storage.collection import Collection
from vrag_ray.index.storage.errors import storage_faults
from vrag_ray.index.storage.rows import meta_from_json
from vrag_ray.index.storage.terms import index_terms
from vrag_ray.types.filters import SearchFilter


def lexical_search(collection: Collection, query: str, limit: int, wanted: SearchFilter | None) -> list[Scored]:
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
            rows = (
                collection.table("passages")
                .scanner(
                    columns=["id", "doc_id", "meta", "_score"],
                    full_text_query=match,
                    filter=_where(wanted),
                    prefilter=True,
                    limit=fetch_k,
                )
                .to_table()
                .to_pylist()
            )
        found = [
            Scored(row["id"], float(row["_score"]))
            for row in rows
            if collection.has_document(row["doc_id"])
            and (wanted is None or wanted.meta is None or wanted.matches_meta(meta_from_json(row["meta"])))
        ]
        if len(found) >= limit or len(rows) < fetch_k:
            return sorted(found, key=lambda scored: scored.sort_key)[:limit]
        fetch_k *= 4


def _where(wanted: SearchFilter | None) -> str | None:
    conditions = []
    if wanted is not None and wanted.doc_ids is not None:
        conditions.append(_in("doc_id", wanted.doc_ids))
    if wanted is not None and wanted.kinds is not None:
        conditions.append(_in("kind", [str(kind) for kind in wanted.kinds]))
    return " AND ".join(conditions) or None


def _in(column: str, values: list[str]) -> str:
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({quoted})" if values else "false"
