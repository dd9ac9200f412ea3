"""Ingest of one upload in a child process: ``python -m vrag_ray.serving.ingest_jobs.child``.

Pickled messages go both ways, each behind its length: what to ingest comes on standard input, progress, then the report
or the fault, goes out on standard output. At the end of standard input the child stops: its parent has gone away.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from vrag_ray.config import Settings
from vrag_ray.types import Meta, VragError

if TYPE_CHECKING:
    from vrag_ray.ingest import IngestReport, Progress, Source

ATTEMPTS = 2
"""Ingest goes on where a killed process left it."""
ENDS_WITHIN_S = 20.0
"""A child that must stop commits what it has first, and ends its Ray where it started one."""
NICENESS = 5
"""Searches come first."""
_LENGTH = struct.Struct(">Q")


async def ingest_in_child(
    settings: Settings, sources: Sequence[Path | Source], meta: Meta
) -> AsyncGenerator[Progress | IngestReport]:
    """``IngestFiles`` of a service without a cluster; more than a few files start a Ray of their own."""
    from vrag_ray.ingest import IngestReport, Progress

    for attempt in range(1, ATTEMPTS + 1):
        # A thread of its own: it waits as long as the ingest takes.
        thread = ThreadPoolExecutor(1, thread_name_prefix="ingest-child")
        loop = asyncio.get_running_loop()
        child = await loop.run_in_executor(thread, _start)
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            # A child that was killed already has no report either.
            with suppress(BrokenPipeError):
                await loop.run_in_executor(thread, _send, child.stdin, (settings, list(sources), dict(meta)))
            while (message := await loop.run_in_executor(thread, _receive, child.stdout)) is not None:
                if isinstance(message, Exception):
                    raise message
                assert isinstance(message, Progress | IngestReport)
                yield message
                if isinstance(message, IngestReport):
                    return
            exit_code = await loop.run_in_executor(thread, child.wait)
        finally:
            await asyncio.shield(loop.run_in_executor(None, _end, child))
            thread.shutdown(wait=False)
        if attempt == ATTEMPTS:
            raise VragError(f"ingest ended twice without a report, with exit code {exit_code}: upload the files again")


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", __name__]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  our own command


def _end(child: subprocess.Popen[bytes]) -> None:
    """Blocking."""
    assert child.stdin is not None
    with suppress(BrokenPipeError):
        child.stdin.close()
    try:
        child.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _send(stream: IO[bytes], message: object) -> None:
    data = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> object:
    """The next message; None at the end of the stream, or in mid-message where the other side was killed."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    # From a process of this program alone.
    return pickle.loads(data) if len(data) == length else None  # noqa: S301


def main() -> None:
    from vrag_ray.cluster import ray_session
    from vrag_ray.ingest import ingest
    from vrag_ray.signals import terminated_like_interrupted, word_for

    # Whatever else is printed, by Ray too, goes to standard error.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    os.nice(NICENESS)
    job = _receive(sys.stdin.buffer)
    if job is None:
        return
    assert isinstance(job, tuple)
    settings, sources, meta = job
    sending = threading.Lock()

    def reply(message: object) -> None:
        with sending:
            _send(replies, message)

    def stop_with_parent() -> None:
        # Not by Python's own reader, whose lock this thread would hold when the interpreter ends.
        while os.read(sys.stdin.fileno(), 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_with_parent, name="parent", daemon=True).start()
    with terminated_like_interrupted():
        try:
            with ray_session(at_once=False):
                report = ingest(sources, settings, meta=meta, on_progress=reply)
            reply(report)
        except KeyboardInterrupt as interrupt:
            logging.getLogger(__name__).info("ingest of an upload: %s", str(interrupt) or word_for(interrupt))
        except VragError as error:
            reply(error)
        except Exception as error:  # noqa: BLE001  raised again in the parent
            traceback.print_exc()
            reply(RuntimeError(repr(error)))


if __name__ == "__main__":
    main()
