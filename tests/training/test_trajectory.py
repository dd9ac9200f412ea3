"""Which reply belongs to which node of the memory graph, from what real runs did."""

from __future__ import annotations

import asyncio

from tests.support.agent_pages import library
from tests.support.recorded_runs import ANSWER, CLOSER, KEEP, MUSEUM, SALES, record_of
from tests.support.scripted_agent import Watcher, ticking
from vrag_ray.agent.actions import Action, Crop
from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import AnswerEvent, ErrorEvent, Event, RunStatus, SearchEvent
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.ports import Say
from vrag_ray.agent.protocols.tags import TagsProtocol
from vrag_ray.agent.record import RunRecord
from vrag_ray.config import AgentConfig
from vrag_ray.training.rewards.reward import Reward
from vrag_ray.training.trajectory import Call, Trajectory, nodes_of_calls
from vrag_ray.types import Completion

NOT_GRADED = Reward(0.0, 0.0, 0.0, 0.0, success=False)


def nodes(*lines: Action | str, config: AgentConfig | None = None) -> tuple[str | None, ...]:
    record = record_of(*lines, config=config)
    return nodes_of_calls(record.events, record.steps)


def trajectory(record: RunRecord) -> Trajectory:
    """The replies differ in their single token, which is their number from 0."""
    calls = tuple(Call((7,), (), (number,)) for number in range(record.steps))
    return Trajectory("u1", 0, calls, nodes_of_calls(record.events, len(calls)), record, NOT_GRADED)


def segments(run: Trajectory) -> list[tuple[str | None, list[int]]]:
    return [
        (segment.node, [token for call in segment.calls for token in call.completion_ids]) for segment in run.segments
    ]


def test_a_search_and_what_is_memorised_of_it_are_one_segment():
    run = trajectory(record_of(SALES, KEEP, MUSEUM, KEEP, ANSWER))
    assert run.nodes == ("sales", "sales", "museum", "museum", "answer")
    assert segments(run) == [("sales", [0, 1]), ("museum", [2, 3]), ("answer", [4])]
    assert run.answer_id == "answer"
    assert run.parents == {"root": [], "sales": ["root"], "museum": ["root"], "answer": ["sales"]}


def test_a_crop_belongs_to_the_search_that_it_looks_closer_at():
    closer_still = CLOSER.model_copy(update={"bbox": (10, 10, 100, 100)})
    assert nodes(SALES, CLOSER, closer_still, KEEP, ANSWER) == ("sales", "sales", "sales", "sales", "answer")


def test_a_refused_reply_is_a_segment_of_its_own():
    run = trajectory(record_of(SALES, "what?", KEEP, "no idea", "none at all", ANSWER))
    assert run.nodes == ("sales", None, "sales", None, None, "answer")
    assert segments(run) == [("sales", [0, 2]), (None, [1]), (None, [3]), (None, [4]), ("answer", [5])]


def test_a_closer_look_at_what_is_remembered_goes_back_to_its_node():
    later = Crop(information_id="sales#1", bbox=(10, 10, 200, 200))
    run = trajectory(record_of(SALES, KEEP, MUSEUM, KEEP, later, ANSWER))
    assert segments(run) == [("sales", [0, 1, 4]), ("museum", [2, 3]), ("answer", [5])]


def test_an_answer_right_after_a_search_is_the_answers():
    assert nodes(SALES, ANSWER) == ("sales", "answer")


def test_an_answer_without_evidence_is_the_policys_own():
    assert nodes(SALES, KEEP, ANSWER.model_copy(update={"abstain": True}))[-1] == "answer"


def test_a_run_that_is_out_of_steps_has_no_answer():
    run = trajectory(record_of(SALES, KEEP, MUSEUM, config=AgentConfig(max_steps=3)))
    assert run.record.status is RunStatus.MAX_STEPS
    assert run.record.answer
    assert run.nodes == ("sales", "sales", None)
    assert run.answer_id is None


def test_the_last_step_may_still_answer():
    assert nodes(SALES, KEEP, ANSWER, config=AgentConfig(max_steps=3)) == ("sales", "sales", "answer")


class Late(Watcher):
    """Its reply number ``last`` comes after the deadline."""

    def __init__(self, now: list[float], last: int, *lines: Action | str) -> None:
        super().__init__(*lines)
        self.now = now
        self.last = last

    async def complete(self, prompt: Prompt, say: Say) -> Completion:
        if len(self.prompts) + 1 == self.last:
            self.now[0] += 1000.0
        return await super().complete(prompt, say)


def test_what_was_done_before_the_time_was_up_keeps_its_node():
    now = [0.0]
    policy = Late(now, 3, SALES, KEEP, MUSEUM)
    run = Run("r1", "q?", policy=policy, source=library().source, config=AgentConfig(), clock=lambda: now[0])

    async def events() -> list[Event]:
        return [event async for event in run.events()]

    asyncio.run(events())
    done = trajectory(run.record())
    assert done.record.status is RunStatus.DEADLINE
    assert done.nodes == ("sales", "sales", "museum")
    assert done.answer_id is None


def test_an_answer_that_had_to_begin_anew_is_still_the_answer():
    events: list[Event] = [
        SearchEvent(step=1, node_id="sales", parent_ids=("root",), query="units"),
        ErrorEvent(step=2, message="the model went away and came back"),
        AnswerEvent(step=2, answer="15", abstained=False, status=RunStatus.ANSWERED, citations=()),
    ]
    assert nodes_of_calls(events, 2) == ("sales", "answer")


def test_a_reply_that_the_run_did_not_live_to_use_belongs_to_no_node():
    record = record_of(SALES, KEEP, ANSWER)
    assert nodes_of_calls(record.events, 4) == ("sales", "sales", "answer", None)
    assert nodes_of_calls(record.events, 1) == ("sales",)


def test_in_the_tags_form_a_search_is_of_its_own_node_and_not_of_the_one_that_it_closes():
    policy = Watcher(
        "<think>a</think><search>units sold by region</search>",
        "<think>b</think><bbox>[10, 10, 200, 200]</bbox>",
        "<think>c</think><search>visitors of the boat museum</search>",
        "<think>d</think><answer>15</answer>",
        protocol=TagsProtocol(),
    )
    run = Run(
        "r1",
        "q?",
        policy=policy,
        source=library().source,
        config=AgentConfig(),
        clock=ticking(),
        protocol=policy.protocol,
    )

    async def events() -> list[Event]:
        return [event async for event in run.events()]

    asyncio.run(events())
    assert nodes_of_calls(run.record().events, 4) == ("s1", "s1", "s2", "answer")


def test_completion_tokens_are_those_of_all_calls_of_a_segment():
    run = trajectory(record_of(SALES, KEEP, ANSWER))
    assert [segment.completion_tokens for segment in run.segments] == [2, 1]
    assert Call((1, 2, 3), (), (4, 5)).tokens == 5
