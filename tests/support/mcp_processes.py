"""Real ``vrag mcp`` processes, reached with the SDK's own client, and a gateway that can be shut and opened again."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from mcp import Client, StdioServerParameters
from mcp.types import CallToolResult, TextContent

from tests.support.patience import HANGS_AFTER_S

COMMAND = ["-m", "vrag_ray.cli", "mcp"]


def stdio(url: str, **env: str) -> Client:
    """A client that starts the server when entered, as a desktop application does."""
    return Client(StdioServerParameters(command=sys.executable, args=[*COMMAND, "--url", url], env=env))


@contextmanager
def listening(url: str, *options: str, **env: str) -> Iterator[str]:
    """The address of a server over HTTP. On Ctrl-C it must end well and must have printed nothing more."""
    command = [sys.executable, *COMMAND, "--url", url, "--transport", "http", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **env})
    assert process.stdout is not None
    try:
        match = re.search(r"at (http://\S+/mcp);", process.stdout.readline())
        assert match, "the server did not start"
        yield match[1]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=HANGS_AFTER_S) == 0
        assert process.stdout.read() == ""
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def text_of(result: CallToolResult) -> str:
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text


@asynccontextmanager
async def open_door(port: int, target: int) -> AsyncIterator[None]:
    """Pass connections on loopback ``port`` to ``target`` for the block; afterwards the port is dead."""
    tasks: set[asyncio.Task[None]] = set()

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError):
                while data := await source.read(1 << 16):
                    sink.write(data)
                    await sink.drain()
        finally:
            sink.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        tasks.update(asyncio.ensure_future(pumping) for pumping in (pump(reader, far_writer), pump(far_reader, writer)))

    server = await asyncio.start_server(connect, "127.0.0.1", port)
    try:
        yield
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
