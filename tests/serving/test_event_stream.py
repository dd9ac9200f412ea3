import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from vrag_ray.agent.events import EVENT, ErrorEvent
from vrag_ray.serving.event_stream import HEARTBEAT, LoggedEvent, encode_event, encode_stream

pytestmark = pytest.mark.anyio


async def test_a_stream_whose_source_breaks_ends_with_an_error_event_and_keeps_the_readers_last_id():
    async def broken() -> AsyncIterator[LoggedEvent]:
        yield LoggedEvent(4, "think", "{}")
        raise RuntimeError("replica died at /srv/secret")

    first, last = [block async for block in encode_stream(broken(), 1.0)]
    assert first.startswith(b"id: 4\n")
    assert b"id:" not in last
    assert b"secret" not in last
    event = EVENT.validate_json(last.split(b"data: ")[1])
    assert isinstance(event, ErrorEvent)
    assert (event.seq, event.terminal) == (5, True)


async def test_a_heartbeat_does_not_lose_the_event_it_waited_for():
    release = asyncio.Event()

    async def slow() -> AsyncIterator[LoggedEvent]:
        await release.wait()
        yield LoggedEvent(0, "start", "{}")

    blocks = []
    async for block in encode_stream(slow(), 0.01):
        blocks.append(block)
        if len(blocks) == 3:
            release.set()
    assert set(blocks[:-1]) == {HEARTBEAT}
    assert blocks[-1] == b"id: 0\nevent: start\ndata: {}\n\n"


def test_any_text_survives_the_wire():
    text = "".join(map(chr, [*range(0x20), 0x7F, 0x85, 0x2028, 0x2029])) + "é漢"
    wire = encode_event(LoggedEvent(1, "think", json.dumps({"content": text}, ensure_ascii=False))).decode()
    id_line, kind_line, data_line, *rest = wire.splitlines()
    assert (id_line, kind_line, rest) == ("id: 1", "event: think", [""])
    assert json.loads(data_line.removeprefix("data: ")) == {"content": text}
