"""What a policy says while it speaks, gathered into events a reader can keep up with."""

from __future__ import annotations

import asyncio

from vrag_ray.agent.chat import Delta
from vrag_ray.agent.events import ContentEvent, ErrorEvent, Event, ThinkEvent, storable
from vrag_ray.types.copies import with_changes

GATHER_S = 0.1
"""Pieces that come within this time share an event: a reply of 2,000 tokens need not be 2,000 events."""


class DeltaBuffer:
    """Takes deltas at any pace and gives them out as few events. Belongs to one run on one event loop."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._think = self._content = ""
        self._word = asyncio.Event()
        self.thoughts_sent = False

    def say(self, delta: Delta) -> None:
        """Matches ``ports.Say``."""
        if delta.trouble:
            self._flush(0)
            self._events.append(ErrorEvent(message=delta.trouble))
            self.thoughts_sent = False
        self._think += delta.think
        self._content += delta.content
        self.thoughts_sent = self.thoughts_sent or bool(delta.think)
        self._word.set()

    async def gathered(self, work: asyncio.Task[None]) -> None:
        """Wait for a first word, and then as long as is worth gathering; never longer than ``work`` goes on."""
        await self._word.wait()
        if not work.done():
            await asyncio.wait({work}, timeout=GATHER_S)

    def over(self, _: asyncio.Task[None]) -> None:
        """No more deltas will come: wake the callers that wait for one."""
        self._word.set()

    def take(self, step: int) -> list[Event]:
        """All output since the last call, as events of ``step``."""
        self._flush(step)
        events = [with_changes(event, {"step": step}) for event in self._events]
        self._events.clear()
        self._word.clear()
        return events

    def _flush(self, step: int) -> None:
        if self._think:
            self._events.append(ThinkEvent(step=step, content=storable(self._think)))
        if self._content:
            self._events.append(ContentEvent(step=step, content=storable(self._content)))
        self._think = self._content = ""
