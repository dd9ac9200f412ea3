"""Searches of the same time travel in few calls, and each gets its own answer or its own fault."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from vrag_ray.serving.contract import ProfiledAnswer, Queries, SearchScope
from vrag_ray.serving.errors import OverloadedError
from vrag_ray.serving.joined_searches import CALLS_AT_ONCE, MOST_TOGETHER, JoinedSearches
from vrag_ray.types import HYBRID, InvalidError, Query, SearchAnswer
from vrag_ray.types.filters import SearchFilter

SCOPE = SearchScope(3, HYBRID, None)


def answer_to(queries: Queries) -> ProfiledAnswer:
    """The queries themselves as notices, so that each can be distinguished from the others."""
    return ProfiledAnswer(
        SearchAnswer((), 1, 1, HYBRID, 1, notices=tuple(Query.of(query).text for query in queries)), "lexical"
    )


class Retriever:
    """Answers when it may, and records the queries of each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[list[str]], SearchScope]] = []
        self.may_answer = asyncio.Event()
        self.fault: Exception | None = None

    async def search(self, groups: Sequence[Queries], scope: SearchScope) -> Sequence[ProfiledAnswer]:
        texts = [[Query.of(query).text for query in group] for group in groups]
        self.calls.append((texts, scope))
        await self.may_answer.wait()
        if self.fault is not None:
            raise self.fault
        if any("broken" in group for group in texts):
            raise ValueError("a query is broken")
        return [answer_to(group) for group in groups]


async def settled() -> None:
    """Until every task that can go on has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def start_searches(
    joined: JoinedSearches, *texts: str, scope: SearchScope = SCOPE
) -> list[asyncio.Task[ProfiledAnswer]]:
    tasks = []
    for text in texts:
        tasks.append(asyncio.create_task(joined.search([text], scope)))
        await settled()
    return tasks


def test_who_asks_alone_waits_for_nobody_and_who_comes_later_travels_together():
    async def check() -> None:
        retriever = Retriever()
        texts = [f"query {n}" for n in range(10)]
        tasks = await start_searches(JoinedSearches(retriever.search), *texts)
        assert [groups for groups, _ in retriever.calls] == [[[text]] for text in texts[:CALLS_AT_ONCE]]
        retriever.may_answer.set()
        answers = await asyncio.gather(*tasks)
        assert [answer.answer.notices for answer in answers] == [(text,) for text in texts]
        assert retriever.calls[CALLS_AT_ONCE][0] == [[text] for text in texts[CALLS_AT_ONCE:]]
        assert len(retriever.calls) == CALLS_AT_ONCE + 1

    asyncio.run(check())


def test_a_call_is_not_larger_than_it_may_be():
    async def check() -> None:
        retriever = Retriever()
        tasks = await start_searches(
            JoinedSearches(retriever.search), *(f"q{n}" for n in range(CALLS_AT_ONCE + MOST_TOGETHER + 1))
        )
        retriever.may_answer.set()
        await asyncio.gather(*tasks)
        assert [len(groups) for groups, _ in retriever.calls] == [1] * CALLS_AT_ONCE + [MOST_TOGETHER, 1]

    asyncio.run(check())


@pytest.mark.parametrize(
    "other",
    [
        SearchScope(5, HYBRID, None),
        SearchScope(3, "lexical", None),
        SearchScope(3, HYBRID, SearchFilter(meta={"year": 1851})),
        SearchScope(3, HYBRID, None, ("slides",)),
    ],
)
def test_searches_of_another_scope_go_by_themselves(other: SearchScope):
    async def check() -> None:
        retriever = Retriever()
        joined = JoinedSearches(retriever.search)
        tasks = await start_searches(joined, *"abcd") + await start_searches(joined, *"wxyz", scope=other)
        retriever.may_answer.set()
        await asyncio.gather(*tasks)
        assert all(len({text in "wxyz" for [text] in groups}) == 1 for groups, _ in retriever.calls)
        assert [scope for groups, scope in retriever.calls if ["w"] in groups] == [other]
        # Nothing of finished searches stays.
        assert joined._lines == {}

    asyncio.run(check())


def test_a_fault_of_a_query_reaches_its_caller_alone():
    async def check() -> None:
        retriever = Retriever()
        tasks = await start_searches(
            JoinedSearches(retriever.search), *(["first"] * CALLS_AT_ONCE), "good", "broken", "fine"
        )
        retriever.may_answer.set()
        *_, good, broken, fine = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(broken, ValueError)
        assert isinstance(good, ProfiledAnswer) and good.answer.notices == ("good",)
        assert isinstance(fine, ProfiledAnswer) and fine.answer.notices == ("fine",)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("fault", "calls"),
    [(OverloadedError("full"), CALLS_AT_ONCE + 1), (InvalidError("no such mode"), CALLS_AT_ONCE + 1 + 3)],
)
def test_a_full_retriever_is_not_called_again_for_each_query(fault: Exception, calls: int):
    async def check() -> None:
        retriever = Retriever()
        retriever.fault = fault
        tasks = await start_searches(JoinedSearches(retriever.search), *(["first"] * CALLS_AT_ONCE), "a", "b", "c")
        retriever.may_answer.set()
        assert await asyncio.gather(*tasks, return_exceptions=True) == [fault] * len(tasks)
        assert len(retriever.calls) == calls

    asyncio.run(check())


def test_who_has_gone_away_is_not_searched_for_and_keeps_nobody_waiting():
    async def check() -> None:
        retriever = Retriever()
        tasks = await start_searches(JoinedSearches(retriever.search), *(["first"] * CALLS_AT_ONCE), "gone", "stays")
        tasks[CALLS_AT_ONCE].cancel()
        await settled()
        retriever.may_answer.set()
        assert (await tasks[-1]).answer.notices == ("stays",)
        assert retriever.calls[-1][0] == [["stays"]]

    asyncio.run(check())


def test_a_picture_travels_alone():
    async def check() -> None:
        retriever = Retriever()
        joined = JoinedSearches(retriever.search)
        tasks = await start_searches(joined, "first", "second", "third")
        tasks.append(asyncio.create_task(joined.search([Query("seen", b"png")], SCOPE)))
        await settled()
        assert retriever.calls[-1][0] == [["seen"]]
        retriever.may_answer.set()
        await asyncio.gather(*tasks)

    asyncio.run(check())
