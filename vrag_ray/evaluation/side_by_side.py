"""Questions put to systems side by side, several at a time, each recorded when it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from vrag_ray.evaluation.folder import EvaluationFolder, Row
from vrag_ray.types import VragError


class SuiteQuestion(Protocol):
    """A question of a suite."""

    @property
    def uid(self) -> str: ...


Question = TypeVar("Question", bound=SuiteQuestion)
OnDone = Callable[[int, int], None]
"""Called with the number of answered questions and of all."""


async def ask_all(
    questions: Sequence[Question],
    folder: EvaluationFolder,
    ask: Callable[[Question, str, int], Awaitable[Row]],
    *,
    concurrency: int,
    on_done: OnDone | None,
) -> None:
    """Every question to every system of ``folder``, as often as its header says, that it has no row of.

    Raises VragError at the end where ``ask`` did; the other rows stay, and the same call asks what is missing.
    """
    total = folder.header.row_total
    done = len(folder.rows)
    problems: list[VragError] = []
    # One iterator for all: who is free takes the next.
    waiting = iter(
        [
            (system, question, sample)
            for system in folder.header.systems
            for sample in range(folder.header.samples)
            for question in questions
            if not folder.has(system, question.uid, sample)
        ]
    )

    async def work() -> None:
        nonlocal done
        for system, question, sample in waiting:
            try:
                folder.add(await ask(question, system, sample))
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
        raise VragError(f"{len(problems)} of {total} have no result, the first: {problems[0]}; do the same again")
