"""Search with every query of a suite in every mode, and write down the results."""

from __future__ import annotations

import time
from collections.abc import Sequence

from vrag_ray.client.schemas import SearchRequest
from vrag_ray.evaluation.folder import EvaluationFolder, Row
from vrag_ray.evaluation.measures.ranking import rank_measures
from vrag_ray.evaluation.service import Systems
from vrag_ray.evaluation.side_by_side import OnDone, ask_all
from vrag_ray.evaluation.suites.suite import RetrievalQuery, RetrievalSuite
from vrag_ray.types.filters import SearchFilter


async def evaluate_retrieval(
    systems: Systems,
    suite: RetrievalSuite,
    folder: EvaluationFolder,
    *,
    concurrency: int = 4,
    collection: str = "",
    on_done: OnDone | None = None,
) -> None:
    """See ``ask_all``. Raises VragError at the end where searches failed."""

    async def ask(query: RetrievalQuery, mode: str, _sample: int) -> Row:
        return await _searched(systems, suite, query, mode, collection)

    await ask_all(suite.queries, folder, ask, concurrency=concurrency, on_done=on_done)


async def _searched(systems: Systems, suite: RetrievalSuite, query: RetrievalQuery, mode: str, collection: str) -> Row:
    narrowed = SearchFilter(doc_ids=[query.doc_id]) if query.doc_id else None
    request = SearchRequest(
        queries=[query.text], top_k=min(100, suite.depth), mode=mode, filter=narrowed, collection=collection or None
    )
    began = time.perf_counter()
    reply = await systems.execute(lambda system: system.search(request))
    seconds = time.perf_counter() - began
    ranked = ranked_items(suite, [suite.items_of(query, hit) for hit in reply.results[0]])
    regions = {} if suite.regions_of is None else suite.regions_of(query, reply.results[0])
    return Row(
        system=mode,
        uid=query.uid,
        question=query.text,
        measures={**rank_measures(ranked, query.grades), **regions},
        seconds=seconds,
        groups=query.groups,
        found=tuple(ranked),
        gold=tuple(item for item, grade in query.grades.items() if grade > 0),
        notes=tuple(reply.notices),
    )


def ranked_items(suite: RetrievalSuite, hits: Sequence[Sequence[str]]) -> list[str]:
    """Each item at its first rank, of the first ``depth``."""
    return list(dict.fromkeys(item for items in hits for item in items))[: suite.depth]
