"""A reply in one piece, for as long as somebody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import TypeVar

from fastapi import Request

from vrag_ray.serving.openai.reasoning_parser import Piece
from vrag_ray.serving.openai.reply_sources import Ending, at_once
from vrag_ray.serving.openai.responses import ChatCompletion, Choice, Message
from vrag_ray.serving.openai.stream import Head
from vrag_ray.types.copies import with_changes

T = TypeVar("T")


async def whole_reply(head: Head, source: AsyncGenerator[Piece | Ending], request: Request) -> ChatCompletion | None:
    """The whole reply; None where the caller went away, which stops what was behind it. Raises what ``source`` does."""
    return await unless_gone(_added_up(head, at_once(source)), request)


async def unless_gone(work: Coroutine[object, object, T], request: Request) -> T | None:
    """The result of ``work``; None where the caller of ``request`` went away meanwhile, which cancels it."""
    reply = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({reply, gone}, return_when=asyncio.FIRST_COMPLETED)
        return reply.result() if reply.done() else None
    finally:
        reply.cancel()
        gone.cancel()


async def _added_up(head: Head, source: AsyncGenerator[Piece | Ending]) -> ChatCompletion:
    think, content = "", ""
    end: Ending | None = None
    async for piece in source:
        if isinstance(piece, Piece):
            think += piece.think
            content += piece.content
        else:
            end = piece
    assert end is not None, "a source ends with an Ending or raises"
    content += end.message.content or ""
    calls = tuple(with_changes(call, {"index": None}) for call in end.message.tool_calls or ())
    message = Message(
        role="assistant",
        content=None if calls and not content.strip() else content,
        reasoning_content=think + (end.message.reasoning_content or "") or None,
        tool_calls=calls or None,
        annotations=end.message.annotations,
        evidence=end.message.evidence,
        sentences=end.message.sentences,
        notices=end.message.notices,
    )
    return ChatCompletion(
        id=head.id,
        created=head.created,
        model=head.model,
        system_fingerprint=end.weights or None,
        choices=(Choice(message=message, finish_reason=end.finish),),
        usage=end.usage,
    )


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
