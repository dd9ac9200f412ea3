"""Streams share their messages, and no text is lost or late at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from vrag_ray.agent.chat import Delta
from vrag_ray.policies.llm.chat_model import TokenDelta
from vrag_ray.serving.deployments.stream_throttle import StreamThrottle, joined_tokens, joined_words
from vrag_ray.types import Completion

pytestmark = pytest.mark.anyio


class Clock:
    """Stands still until it is moved."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def words(clock: Clock, count: int, every_s: float) -> AsyncIterator[Delta | Completion]:
    for number in range(count):
        yield Delta(content=f"{number} ")
        clock.now += every_s
    yield Completion("whole")


async def test_a_stream_alone_gets_every_word_as_it_comes():
    clock = Clock()
    pieces = [piece async for piece in StreamThrottle(10, clock).apply(words(clock, 5, 0.1), joined_words)]
    assert pieces == [*(Delta(content=f"{number} ") for number in range(5)), Completion("whole")]


async def test_words_that_come_too_fast_come_together_and_none_is_lost():
    clock = Clock()
    *deltas, last = [piece async for piece in StreamThrottle(10, clock).apply(words(clock, 100, 0.01), joined_words)]
    assert last == Completion("whole")
    assert len(deltas) == 11
    assert deltas[0] == Delta(content="0 ")
    assert "".join(delta.content for delta in deltas if isinstance(delta, Delta)) == "".join(
        f"{n} " for n in range(100)
    )


async def test_streams_under_way_share_the_messages():
    clock = Clock()
    throttle = StreamThrottle(10, clock)
    async with aclosing(throttle.apply(words(clock, 1000, 0.01), joined_words)) as other:
        await anext(other)
        together = [piece async for piece in throttle.apply(words(clock, 100, 0.01), joined_words)]
    alone = [piece async for piece in throttle.apply(words(clock, 100, 0.01), joined_words)]
    assert len(together) == pytest.approx(len(alone) / 2, abs=2)


def test_tokens_joined_keep_their_order_log_probs_and_prompt():
    first = TokenDelta((1, 2), (-0.1, -0.2), (7, 8, 9))
    assert joined_tokens(first, TokenDelta((3,), (-0.3,))) == TokenDelta((1, 2, 3), (-0.1, -0.2, -0.3), (7, 8, 9))
