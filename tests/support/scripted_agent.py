"""A policy that replies from a script, and ways to run one to its end."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence

from PIL import Image

from tests.support.agent_pages import Shelf
from vrag_ray.agent.actions import Action
from vrag_ray.agent.chat import ImagePart, Message, QuestionPicture
from vrag_ray.agent.driver import Policy, Run
from vrag_ray.agent.events import Event
from vrag_ray.agent.observation import Prompt
from vrag_ray.agent.ports import Judge, Say
from vrag_ray.agent.protocols.graph import GraphProtocol
from vrag_ray.agent.wire_protocol import WireProtocol
from vrag_ray.config import AgentConfig
from vrag_ray.types import Completion


class Script:
    """Says its lines in order, then the last one for ever; keeps the prompts it was given."""

    reads_pages = True
    sees_pictures = False

    def __init__(self, *lines: str | Action, protocol: WireProtocol | None = None) -> None:
        self.protocol = protocol or GraphProtocol()
        self.lines = [line if isinstance(line, str) else self.protocol.render(line) for line in lines]
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt, say: Say) -> Completion:
        line = self.lines[min(len(self.prompts), len(self.lines) - 1)]
        self.prompts.append(prompt)
        return Completion(text=line, usage={"completion_tokens": 2})


class Watcher(Script):
    """The same, but it is shown pictures; ``chats`` holds what it read."""

    sees_pictures = True

    def __init__(self, *lines: str | Action, protocol: WireProtocol | None = None) -> None:
        super().__init__(*lines, protocol=protocol)
        self.chats: list[tuple[Message, ...]] = []

    async def complete(self, prompt: Prompt, say: Say) -> Completion:
        self.chats.append(self.protocol.messages(prompt))
        return await super().complete(prompt, say)


def pictures_in(chat: Sequence[Message]) -> list[tuple[int, int]]:
    """Width and height of every picture of a chat, in order."""
    parts = [part for message in chat for part in message.parts if isinstance(part, ImagePart)]
    return [Image.open(io.BytesIO(part.png)).size for part in parts]


def ticking(step: float = 0.001) -> Callable[[], float]:
    """A clock that moves on by ``step`` seconds each time it is read."""
    now = [0.0]

    def read() -> float:
        now[0] += step
        return now[0]

    return read


def run_to_end(
    policy: Policy,
    shelf: Shelf,
    question: str = "What was North in 2022?",
    config: AgentConfig | None = None,
    picture: QuestionPicture | None = None,
    judge: Judge | None = None,
) -> tuple[Run, Sequence[Event]]:
    protocol = policy.protocol if isinstance(policy, Script) else None
    run = Run(
        "r1",
        question,
        policy=policy,
        protocol=protocol,
        source=shelf.source,
        config=config or AgentConfig(),
        clock=ticking(),
        picture=picture,
        judge=judge,
    )

    async def collect() -> list[Event]:
        return [event async for event in run.events()]

    return run, asyncio.run(collect())
