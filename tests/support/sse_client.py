"""A plain reader of server-sent events, written from the specification and not from the encoder under test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx


@dataclass(frozen=True)
class Received:
    id: int | None
    kind: str
    body: dict[str, object]


async def events_of(response: httpx.Response) -> AsyncIterator[Received]:
    """Every event; comments are left out."""
    buffer = ""
    async for text in response.aiter_text():
        buffer += text
        while "\n\n" in buffer:
            block, buffer = buffer.split("\n\n", 1)
            fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
            if fields:
                number = int(fields["id"]) if "id" in fields else None
                yield Received(number, fields["event"], json.loads(fields["data"]))
