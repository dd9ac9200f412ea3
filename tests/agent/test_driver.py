"""The driver: time, cancellation, faults, and the record of a run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence

import pytest

from tests.support.agent_pages import Shelf, library
from tests.support.library_script import ANSWER, KEEP, SEARCH
from tests.support.scripted_agent import Script, run_to_end, ticking
from vrag_ray.agent.actions import Action
from vrag_ray.agent.chat import Delta
from vrag_ray.agent.driver import Run, RunRecord
from vrag_ray.agent.events import EVENT, ContentEvent, Event, RunStatus
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.ports import Say
from vrag_ray.agent.record import Timings
from vrag_ray.config import AgentConfig
from vrag_ray.types import HYBRID, Completion, PassageKind, Query, SearchAnswer, VragError
from vrag_ray.types.filters import SearchFilter


class Slow(Script):
    """Searches once, then waits for ever; ``left`` tells that its waiting was cancelled."""

    def __init__(self, *lines: str | Action) -> None:
        super().__init__(*lines)
        self.waiting = asyncio.Event()
        self.left = False

    async def complete(self, prompt: Prompt, say: Say) -> Completion:
        if len(self.prompts) == 1:
            self.waiting.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.left = True
        return await super().complete(prompt, say)


class Talker(Script):
    """Says two words with each reply: one at once, one when ``go`` is set."""

    def __init__(self, *lines: str | Action) -> None:
        super().__init__(*lines)
        self.go = asyncio.Event()
        self.said = asyncio.Event()

    async def complete(self, prompt: Prompt, say: Say) -> Completion:
        say(Delta(content="first"))
        await self.go.wait()
        say(Delta(content=" last"))
        self.said.set()
        return await super().complete(prompt, say)


class Faulty(Script):
    def __init__(self, error: Exception) -> None:
        super().__init__(SEARCH)
        self.error = error

    async def complete(self, prompt: Prompt, say: Say) -> Completion:
        raise self.error


async def collect(run: Run) -> list[Event]:
    return [event async for event in run.events()]


async def finish(run: Run) -> list[Event]:
    return list((await run.finish()).events)


EITHER_WAY = pytest.mark.parametrize("through", [collect, finish])
Through = Callable[[Run], Coroutine[None, None, list[Event]]]


def new_run(policy: Script, config: AgentConfig | None = None) -> Run:
    return Run("r1", "q?", policy=policy, source=library().source, config=config or AgentConfig(), clock=ticking())


@EITHER_WAY
def test_the_deadline_ends_a_run_that_waits(through: Through) -> None:
    policy = Slow(SEARCH)
    run = new_run(policy, AgentConfig(deadline_s=0.2))
    events = asyncio.run(through(run))
    assert [event.kind for event in events][-2:] == ["error", "answer"]
    assert run.record().status is RunStatus.DEADLINE
    assert "0.2 s" in run.record().answer
    assert run.record().abstained
    assert policy.left


@EITHER_WAY
def test_the_deadline_is_read_from_the_clock_that_was_given(through: Through) -> None:
    policy = Script(SEARCH, KEEP, ANSWER)
    run = Run(
        "r1", "q?", policy=policy, source=library().source, config=AgentConfig(deadline_s=60), clock=ticking(20.0)
    )
    asyncio.run(through(run))
    assert run.record().status is RunStatus.DEADLINE
    assert run.record().timings.total >= 60.0


def test_closing_the_events_cancels_what_is_under_way() -> None:
    policy = Slow(SEARCH)
    run = new_run(policy)

    async def leave() -> None:
        events = run.events()
        async for event in events:
            if event.kind == "read":
                break
        assert isinstance(events, AsyncGenerator)
        await events.aclose()

    asyncio.run(leave())
    assert run.record().status is RunStatus.CANCELLED
    assert run.record().answer == ""
    assert [node.id for node in run.record().graph.nodes] == ["root", "a"]


def test_words_that_come_while_the_reader_is_busy_belong_to_their_step() -> None:
    policy = Talker(SEARCH, KEEP, ANSWER)
    run = new_run(policy)

    async def read_slowly() -> dict[int, str]:
        words: dict[int, str] = {}
        async for event in run.events():
            if isinstance(event, ContentEvent):
                words[event.step] = words.get(event.step, "") + event.content
                policy.go.set()
                await policy.said.wait()
                for _ in range(20):  # the reply is whole, and the run still waits for its reader
                    await asyncio.sleep(0)
        return words

    assert asyncio.run(read_slowly()) == dict.fromkeys((1, 2, 3), "first last")


def test_a_run_without_a_reader_leaves_the_record_of_one_with_a_reader() -> None:
    def without_times(record: RunRecord) -> RunRecord:
        events = tuple(event.model_copy(update={"t": 0.0}) for event in record.events)
        return record.model_copy(update={"events": events, "timings": Timings()})

    def talker() -> Talker:
        policy = Talker("hm", SEARCH, KEEP, ANSWER)
        policy.go.set()
        return policy

    watched, alone = new_run(talker()), new_run(talker())
    events = asyncio.run(collect(watched))
    record = asyncio.run(alone.finish())
    assert [event.content for event in events if isinstance(event, ContentEvent)] == ["first last"] * 4
    assert record == alone.record()
    assert without_times(record) == without_times(watched.record())


@EITHER_WAY
def test_cancelling_the_task_stops_the_generation(through: Through) -> None:
    policy = Slow(SEARCH)
    run = new_run(policy)

    async def cancel() -> None:
        task = asyncio.create_task(through(run))
        await policy.waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert policy.left
    assert run.record().status is RunStatus.CANCELLED


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (VragError("no key for the endpoint"), "no key for the endpoint"),
        (ZeroDivisionError("secret"), "internal error (ZeroDivisionError)"),
        (TimeoutError("secret"), "did not reply in time"),
    ],
)
@EITHER_WAY
def test_a_policy_that_fails_ends_the_run_with_one_clear_error(error: Exception, says: str, through: Through) -> None:
    run = new_run(Faulty(error))
    events = asyncio.run(through(run))
    assert [event.kind for event in events] == ["start", "error"]
    assert says in run.record().error
    assert "secret" not in run.record().to_json()
    assert run.record().status is RunStatus.ERROR


def test_the_filter_of_a_run_narrows_each_search() -> None:
    seen: list[SearchFilter | None] = []

    class Watched(Shelf):
        async def search(
            self,
            queries: Sequence[str | Query],
            *,
            top_k: int = 3,
            mode: str = HYBRID,
            filter: SearchFilter | None = None,
        ) -> SearchAnswer:
            seen.append(filter)
            return await super().search(queries, top_k=top_k, mode=mode, filter=filter)

    only = SearchFilter(kinds=[PassageKind.PAGE])
    run = Run(
        "r1",
        "q?",
        policy=Script(SEARCH, KEEP, ANSWER),
        source=Watched(library().hits).source,
        config=AgentConfig(),
        clock=ticking(),
        filter=only,
    )
    asyncio.run(collect(run))
    assert seen == [only]


def test_a_record_and_its_events_survive_json() -> None:
    run, events = run_to_end(Script("hm", SEARCH, KEEP, ANSWER), library())
    record = run.record()
    assert RunRecord.from_json(record.to_json()) == record
    assert record.events == tuple(events)
    for event in events:
        assert EVENT.validate_json(event.model_dump_json()) == event
    assert [event.seq for event in events] == list(range(len(events)))
    assert [event.t for event in events] == sorted(event.t for event in events)
    assert [event.step for event in events] == sorted(event.step for event in events)
    with pytest.raises(VragError, match="not a run record"):
        RunRecord.from_json("{}")


def test_a_record_exists_only_after_the_end_and_a_run_is_run_once() -> None:
    run = new_run(Script(SEARCH, KEEP, ANSWER))
    with pytest.raises(VragError, match="not over"):
        run.record()
    asyncio.run(collect(run))
    with pytest.raises(VragError, match="started already"):
        asyncio.run(collect(run))
    with pytest.raises(VragError, match="started already"):
        asyncio.run(run.finish())


def test_the_agent_imports_no_ray_torch_http_or_index() -> None:
    code = (
        "import sys, vrag_ray.agent.driver, vrag_ray.agent.memory.graph_dot\n"
        "bad = {'ray', 'torch', 'vllm', 'httpx', 'fastapi', 'requests', 'openai', 'lance', 'faiss', 'pymupdf'}\n"
        "own = [m for m in sys.modules if m.startswith(('vrag_ray.index', 'vrag_ray.policies', 'vrag_ray.serving'))]\n"
        "print(sorted(bad & set(sys.modules)), own)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] []"
