"""A judge says of each sentence of an answer whether its sources say it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.support.agent_pages import library
from tests.support.scripted_agent import Script, run_to_end
from vrag_ray.agent.actions import AddAnswerNode, AddSearchNode, MemorizeEntry, SummarizeAndMemorize
from vrag_ray.agent.driver import Run
from vrag_ray.agent.entailment import Claim, Verdict, verdict_of
from vrag_ray.agent.events import AnswerEvent, RunStatus
from vrag_ray.agent.support import Support
from vrag_ray.config import AgentConfig
from vrag_ray.types import VragError

SEARCH = AddSearchNode(id="a", parent_ids=("root",), query="units sold by region and year")
KEEP = SummarizeAndMemorize(
    summarize="", memorize=(MemorizeEntry(information_id="Picture 1", is_useful=True, priority_score=4),)
)
ANSWER_TEXT = "North sold 15 units in 2022 [1]. The keel is lifted by 36 cranes [1]. Unicorns gallop elsewhere."
ANSWER = AddAnswerNode(parent_ids=("a",), answer=ANSWER_TEXT, citations=("a#1",))
ASKS = AgentConfig(entailment=True)


class Judge:
    """Says its verdicts in order; an error is raised, None waits for ever."""

    def __init__(self, *verdicts: Verdict | VragError | None) -> None:
        self.verdicts = list(verdicts)
        self.claims: list[Claim] = []

    async def judge(self, claim: Claim) -> Verdict:
        verdict = self.verdicts[len(self.claims)]
        self.claims.append(claim)
        if verdict is None:
            await asyncio.Event().wait()
        if isinstance(verdict, VragError):
            raise verdict
        assert verdict is not None
        return verdict


def answered(judge: Judge | None, config: AgentConfig = ASKS) -> tuple[Run, AnswerEvent]:
    run, events = run_to_end(Script(SEARCH, KEEP, ANSWER), library(), config=config, judge=judge)
    answer = events[-1]
    assert isinstance(answer, AnswerEvent) and answer.status is RunStatus.ANSWERED and answer.answer == ANSWER_TEXT
    assert run.record().sentences == answer.sentences
    return run, answer


def verdicts(answer: AnswerEvent) -> Sequence[tuple[Support, bool | None]]:
    return [(sentence.support, sentence.entailed) for sentence in answer.sentences]


def test_a_sentence_that_its_sources_do_not_say_is_unsupported_and_others_are_confirmed() -> None:
    judge = Judge(Verdict(True, {"prompt_tokens": 90}), Verdict(False, {"prompt_tokens": 80}))
    run, answer = answered(judge)
    assert [claim.statement for claim in judge.claims] == [
        "North sold 15 units in 2022.",
        "The keel is lifted by 36 cranes.",
    ]
    assert all("North 12 15 18" in claim.source for claim in judge.claims)
    assert verdicts(answer) == [(Support.CITED, True), (Support.UNSUPPORTED, False), (Support.UNCHECKED, None)]
    assert run.record().usage["prompt_tokens"] == 170
    assert answer.notices == ()


def test_without_the_setting_there_is_no_judgement_and_without_a_model_a_notice_says_so() -> None:
    judge = Judge()
    _, answer = answered(judge, AgentConfig())
    assert judge.claims == [] and [entailed for _, entailed in verdicts(answer)] == [None] * 3
    _, answer = answered(None)
    assert [entailed for _, entailed in verdicts(answer)] == [None] * 3
    assert answer.notices == (
        "no model has judged whether the sources say what the answer says: no language model is loaded here",
    )


def test_a_judge_that_fails_or_outlasts_the_run_leaves_the_answer_as_it_is_and_says_so() -> None:
    _, answer = answered(Judge(VragError("the server is down"), Verdict(None)))
    assert [entailed for _, entailed in verdicts(answer)] == [None] * 3
    assert answer.notices == ("no model has judged whether the sources say what the answer says: the server is down",)
    _, answer = answered(Judge(Verdict(True), None), AgentConfig(entailment=True, deadline_s=0.3))
    assert [entailed for _, entailed in verdicts(answer)] == [None] * 3
    assert "the deadline of 0.3 s has passed" in answer.notices[0]


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("yes", True),
        ("No.", False),
        ("**Yes**, it does", True),
        ("<think>no, hm</think>\nyes", True),
        ("Perhaps", None),
        ("nothing", None),
        ("", None),
    ],
)
def test_a_reply_is_read_by_its_first_word(reply: str, verdict: bool | None) -> None:
    assert verdict_of(reply) is verdict
