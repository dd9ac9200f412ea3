"""Both agents on a real vLLM with random weights: mechanics, not quality. Only the first reply of a run is a script,
because random words never search; every later prompt, pictures included, is read and answered by the model."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.agent_pages import library
from tests.support.scripted_agent import ticking
from tests.support.tiny_vllm import needs_vllm, served
from tests.vllm.conftest import CONTEXT, PICTURES
from vrag_ray.agent.actions import AddSearchNode
from vrag_ray.agent.chat import Delta, ImagePart
from vrag_ray.agent.driver import Run
from vrag_ray.agent.events import ContentEvent, ErrorEvent, Event, RunStatus
from vrag_ray.agent.wire_protocol import CROP_ROOM
from vrag_ray.config import AgentConfig, CorpusConfig
from vrag_ray.policies.llm.chat_model import ChatModel, ChatRequest
from vrag_ray.policies.llm.prompt_limits import ModelLimits
from vrag_ray.policies.registry import agent_spec
from vrag_ray.serving.deployments.policy import ServedModel
from vrag_ray.types import Completion, FamilyName

pytestmark = [*needs_vllm, pytest.mark.anyio]
CONFIG = {
    "max_steps": 4,
    "max_reply_tokens": 24,
    "picture_pixels": 128 * 1024,
    "frame_pixels": 16 * 1024,
    "search_top_k": 2,
    "deadline_s": 400.0,
}
LIMITS = ModelLimits(PICTURES, CONTEXT)
MEMORY = 5
"""Remembered pictures for which room is reserved (``agent.memory_top_k``)."""


class FirstScripted:
    """Replies ``first`` in each run, then lets the model reply; records requests and replies."""

    def __init__(self, model: ChatModel, first: str) -> None:
        self.model, self.first = model, first
        self.requests: list[ChatRequest] = []
        self.replies: list[Completion] = []

    async def chat(self, request: ChatRequest) -> AsyncGenerator[Delta | Completion]:
        self.requests.append(request)
        if len(self.requests) == 1:
            yield Completion(self.first)
            return
        async for piece in self.model.chat(request):
            if isinstance(piece, Completion):
                self.replies.append(piece)
            yield piece


# Quick form of the second family: its boxes and patches in ``imaging/test_coordinates`` and ``protocols/``.
@pytest.fixture(
    scope="module", params=[FamilyName.QWEN2_5_VL, pytest.param(FamilyName.QWEN3_VL, marks=pytest.mark.exhaustive)]
)
def family(request: pytest.FixtureRequest) -> FamilyName:
    return FamilyName(request.param)


@pytest.fixture(scope="module")
def model(
    family: FamilyName, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedModel]:
    if family is FamilyName.QWEN2_5_VL:
        yield request.getfixturevalue("policy")
        return
    with _own(family, request, tmp_path_factory.mktemp("agents")) as running:
        yield running


@contextmanager
def _own(family: FamilyName, request: pytest.FixtureRequest, folder: Path) -> Iterator[ServedModel]:
    from tiny_model import Family, save_tiny_model

    request.getfixturevalue("serving")
    save_tiny_model(folder / "model", Family(family.value))
    with served(folder / "model", f"agents-{family}", max_model_len=CONTEXT, max_images=PICTURES) as running:
        yield running


def new_run(model: ChatModel, agent: str, family: FamilyName) -> Run:
    config = AgentConfig.model_validate({**CONFIG, "family": family})
    made = agent_spec(agent, config, CorpusConfig(), model, limits=LIMITS, session=f"{agent}-1")
    return Run(
        f"{agent}-1",
        "How many units did North sell in 2022?",
        policy=made.policy,
        protocol=made.protocol,
        source=library().source,
        config=config,
        clock=ticking(),
        agent=agent,
    )


def opening(agent: str) -> str:
    if agent == "vrag":
        return "<think>look</think><search>units sold by region</search>"
    from vrag_ray.agent.protocols.graph import GraphProtocol

    return GraphProtocol().render(AddSearchNode(id="a", parent_ids=("root",), query="units sold, crane lifts the keel"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("agent", ["vimrag", "vrag"])
async def test_an_agent_runs_on_vllm_and_ends_within_its_budget(model: ServedModel, family: FamilyName, agent: str):
    scripted = FirstScripted(model, opening(agent))
    run = new_run(scripted, agent, family)
    events = [event async for event in run.events()]
    record = run.record()
    assert record.status in (RunStatus.MAX_STEPS, RunStatus.ANSWERED)
    assert not [event for event in events if isinstance(event, ErrorEvent)]
    assert record.steps <= 4
    seen = [
        sum(isinstance(part, ImagePart) for message in request.messages for part in message.parts)
        for request in scripted.requests
    ]
    assert seen[0] == 0 and all(0 < count <= PICTURES for count in seen[1:])
    assert agent == "vrag" or seen[1] == LIMITS.images - MEMORY - CROP_ROOM, "a film of thirty seconds fills the room"
    assert all(reply.usage["completion_tokens"] <= 24 and reply.token_ids for reply in scripted.replies)
    content = "".join(event.content for event in events if isinstance(event, ContentEvent) and event.step == 2)
    assert content == scripted.replies[0].text
    # The second prompt begins with the first whole, pictures and all: the engine reads only what is new.
    later = scripted.replies[1].usage
    assert later["cached_tokens"] > 0.8 * scripted.replies[0].usage["prompt_tokens"]


@pytest.fixture
def lone_model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServedModel]:
    """One replica that nobody else needs."""
    with _own(FamilyName.QWEN2_5_VL, request, tmp_path) as running:
        yield running


# Quick form: ``test_sticky_sessions::test_a_lost_replica_moves_its_own_sessions_and_no_others``.
@pytest.mark.exhaustive
async def test_a_run_outlives_the_replica_that_was_speaking(lone_model: ServedModel):
    scripted = FirstScripted(lone_model, opening("vimrag"))
    run = new_run(scripted, "vimrag", FamilyName.QWEN2_5_VL)
    events: list[Event] = []
    killed = False
    async with asyncio.timeout(450):
        async for event in run.events():
            events.append(event)
            if isinstance(event, ContentEvent) and not killed:
                killed = True
                [state] = await lone_model.states()
                os.kill(state.pid, signal.SIGKILL)
    assert killed
    last = events[-1]
    assert last.kind == "answer" or (isinstance(last, ErrorEvent) and last.terminal)
    assert run.record().status in (RunStatus.MAX_STEPS, RunStatus.ANSWERED, RunStatus.ERROR)
