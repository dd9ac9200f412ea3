"""How often a stream hands something over. Each message between processes costs milliseconds, whatever is in it."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TypeVar

from vrag_ray.agent.chat import Delta
from vrag_ray.policies.llm.chat_model import TokenDelta
from vrag_ray.types import Completion

D = TypeVar("D", Delta, TokenDelta)
MESSAGES_PER_CORE = 20.0
"""A second. A message passes three processes and costs 3 ms of a core: this many leave the cores to the model."""


class StreamThrottle:
    """Shares a number of messages a second out among the streams of one process: one stream alone gets every token."""

    def __init__(self, messages_per_s: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """By default ``MESSAGES_PER_CORE`` for each core of this machine."""
        self._per_s = messages_per_s or MESSAGES_PER_CORE * (os.cpu_count() or 1)
        self._clock = clock
        self._streams = 0

    async def apply(
        self, pieces: AsyncIterator[D | Completion], joined: Callable[[D, D], D]
    ) -> AsyncGenerator[D | Completion]:
        """``pieces`` with those that come too fast joined to one. The first and the last are never held back."""
        self._streams += 1
        held: D | None = None
        sent = float("-inf")
        try:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    if held is not None:
                        yield held
                    yield piece
                    return
                held = piece if held is None else joined(held, piece)
                if self._clock() - sent >= self._streams / self._per_s:
                    yield held
                    held, sent = None, self._clock()
        finally:
            self._streams -= 1


def joined_words(first: Delta, other: Delta) -> Delta:
    return Delta(first.think + other.think, first.content + other.content)


def joined_tokens(first: TokenDelta, other: TokenDelta) -> TokenDelta:
    return TokenDelta(
        first.token_ids + other.token_ids, first.logprobs + other.logprobs, first.prompt_ids + other.prompt_ids
    )
