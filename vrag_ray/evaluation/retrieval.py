"""Ask every query of a suite in every mode, and write down what was found."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from vrag_ray.client.schemas import SearchRequest
from vrag_ray.evaluation.folder import EvaluationFolder, Row
from vrag_ray.evaluation.ranking import rank_measures
from vrag_ray.evaluation.suite import RetrievalQuery, RetrievalSuite
from vrag_ray.serving.in_process import AnswerSystem
from vrag_ray.types import VragError
from vrag_ray.types.filters import SearchFilter


async def evaluate_retrieval(
    system: AnswerSystem,
    suite: RetrievalSuite,
    folder: EvaluationFolder,
    *,
    concurrency: int = 4,
    on_done: Callable[[int, int], None] | None = None,
) -> None:
    """Queries that ``folder`` has are not asked again. ``on_done`` is told how many of how many there are.

    Raises VragError at the end where searches failed; what was found is kept, and the same call asks the others again.
    """
    total = len(suite.queries) * len(folder.header.systems)
    done = len(folder.rows)
    problems: list[VragError] = []
    # One iterator for all: who is free takes the next.
    waiting = iter(
        [(mode, query) for mode in folder.header.systems for query in suite.queries if not folder.has(mode, query.uid)]
    )

    async def work() -> None:
        nonlocal done
        for mode, query in waiting:
            try:
                folder.add(await _asked(system, suite, query, mode))
            except VragError as error:
                problems.append(error)
                continue
            done += 1
            if on_done is not None:
                on_done(done, total)

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())
    if problems:
        raise VragError(f"{len(problems)} of {total} searches failed, the first with: {problems[0]}; do the same again")


async def _asked(system: AnswerSystem, suite: RetrievalSuite, query: RetrievalQuery, mode: str) -> Row:
    narrowed = SearchFilter(doc_ids=[query.doc_id]) if query.doc_id else None
    began = time.perf_counter()
    reply = await system.search(
        SearchRequest(queries=[query.text], top_k=min(100, suite.depth), mode=mode, filter=narrowed)
    )
    seconds = time.perf_counter() - began
    found = ranked_items(suite, [suite.items_of(hit) for hit in reply.results[0]])
    return Row(
        system=mode,
        uid=query.uid,
        question=query.text,
        measures=rank_measures(found, query.grades),
        seconds=seconds,
        groups=query.groups,
        found=tuple(found),
        gold=tuple(item for item, grade in query.grades.items() if grade > 0),
        notes=tuple(reply.notices),
    )


def ranked_items(suite: RetrievalSuite, hits: Sequence[Sequence[str]]) -> list[str]:
    """Each item where it was found first, of the first ``depth``."""
    return list(dict.fromkeys(item for items in hits for item in items))[: suite.depth]
