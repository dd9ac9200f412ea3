"""A terminal that shows our output and nothing of Ray's machinery, unless ``--debug`` asks for it."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial
from typing import TextIO

import typer

Echo = Callable[[str], None]
_LOGGER = "vrag_ray"
_NOISY = ("ray", "ray.data._internal.progress", "ray.serve")
_HARMLESS = re.compile(rb"core_worker\.cc:\d+: Actor with class name")
"""Ray Data makes its actors in the way that Ray's C++ part calls an error, once a process, on file descriptor 2."""


def show_debug_output() -> None:
    logging.getLogger(_LOGGER).setLevel(logging.DEBUG)


def is_debugging() -> bool:
    return logging.getLogger(_LOGGER).isEnabledFor(logging.DEBUG)


@contextmanager
def ray_behind_terminal(*, at_once: bool = True) -> Iterator[Echo]:
    """A Ray to work on (``at_once``: as ``ray_session``), and the function that prints to standard output.

    All else that is written to standard output meanwhile goes to standard error: Ray writes there by itself,
    and ``--json`` promises one JSON value. SIGTERM ends the block as Ctrl-C does; what an interruption says is printed
    before Ray is left, which takes seconds that a job may not have.
    """
    from vrag_ray.cluster import ray_session
    from vrag_ray.signals import terminated_like_interrupted

    echo: Echo = partial(typer.echo, file=sys.stdout)
    quiet = not is_debugging()
    with terminated_like_interrupted(), ExitStack() as stack:
        if quiet:
            for name in _NOISY:
                # A filter, since Ray sets the levels of its loggers anew when it starts.
                logging.getLogger(name).addFilter(_is_a_warning)
            if sys.stderr is sys.__stderr__:
                stack.enter_context(_harmless_lines_dropped())
        stack.enter_context(redirect_stdout(_WithoutRaylet(sys.stderr, quiet=quiet)))
        with interruptible():
            stack.enter_context(ray_session(at_once=at_once))
            yield echo


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does: with one line and the exit code of the signal."""
    from vrag_ray.signals import terminated_like_interrupted

    with terminated_like_interrupted():
        try:
            yield
        except KeyboardInterrupt as interrupt:
            if is_debugging():
                raise
            raise typer.Exit(report_interrupt(interrupt)) from interrupt


def report_interrupt(interrupt: KeyboardInterrupt) -> int:
    """Print the message of an interruption, in one line, and return the exit code that it stands for."""
    from vrag_ray.signals import exit_code, word_for

    # A terminal that was closed takes no line.
    with suppress(OSError):
        typer.echo(f"vrag: {' '.join(str(interrupt).split()) or word_for(interrupt)}", err=True)
    return exit_code(interrupt)


@contextmanager
def _harmless_lines_dropped() -> Iterator[None]:
    """Pass on what native code writes to file descriptor 2, line by line, but for the lines known to be harmless."""
    terminal = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)

    def pass_on() -> None:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                if not _HARMLESS.search(line):
                    os.write(terminal, line)

    reader = threading.Thread(target=pass_on, name="native-stderr", daemon=True)
    reader.start()
    # Python's own output must not wait for the end of a line: progress bars have none.
    with os.fdopen(os.dup(terminal), "w", buffering=1, errors="backslashreplace") as direct, redirect_stderr(direct):
        try:
            yield
        finally:
            os.dup2(terminal, 2)
            # A child that outlives this block holds the pipe open, hence the limit.
            reader.join(timeout=1.0)


def _is_a_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING and not record.getMessage().startswith("Progress bars disabled")


class _WithoutRaylet(io.TextIOBase):
    """Passes text on, without what Ray's node manager prints (it is in Ray's session log too)."""

    def __init__(self, target: TextIO, *, quiet: bool) -> None:
        self._target = target
        self._quiet = quiet
        self._dropped = False

    def write(self, text: str) -> int:
        # `print` writes the end of its line separately.
        drop = self._quiet and ("(raylet" in text or (self._dropped and text == "\n"))
        self._dropped = drop
        if not drop:
            self._target.write(text)
        return len(text)

    def flush(self) -> None:
        self._target.flush()
