"""SIGINT, SIGTERM and SIGHUP: where they may end what is under way, and where they wait for the end of a step."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SIGNALLED = 128
"""The exit code of a process that a signal ended is this and the signal's number."""


class Terminated(KeyboardInterrupt):
    """SIGTERM: what is under way ends as it does after Ctrl-C."""


class HungUp(Terminated):
    """SIGHUP: the same, as the terminal was closed."""


@dataclass
class HeldSignals:
    """The signals that came during a block of ``signals_held``, in their order."""

    received: list[int] = field(default_factory=list)


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
    if isinstance(interrupt, HungUp):
        return SIGNALLED + signal.SIGHUP
    return SIGNALLED + (signal.SIGTERM if isinstance(interrupt, Terminated) else signal.SIGINT)


def word_for(interrupt: KeyboardInterrupt) -> str:
    """What happened, in a word."""
    if isinstance(interrupt, HungUp):
        return "hung up"
    return "terminated" if isinstance(interrupt, Terminated) else "interrupted"


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM raises Terminated in the block, and SIGHUP HungUp, as Ctrl-C raises KeyboardInterrupt: what was started
    is stopped. Where SIGHUP is ignored, as under nohup, it stays so.

    Only the main thread can be interrupted; a block of any other one is left as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends = {signal.SIGTERM: _terminate, signal.SIGHUP: _hang_up}
    before = {number: signal.signal(number, end) for number, end in ends.items() if not is_ignored(number)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def signals_held(until: str = "") -> Iterator[HeldSignals]:
    """SIGINT, SIGTERM and SIGHUP that come during the block take effect at its end, by the handlers set before it.

    For steps that must not be cut off in the middle: an exception that is raised inside Ray's native code ends the
    process without its clean-up, or leaves processes that nobody knows of. Handlers that the block sets (Ray's own for
    SIGTERM) are replaced at its end. ``until`` names that end for a notice to the person who waits; "" gives none.
    """
    held = HeldSignals()
    if threading.current_thread() is not threading.main_thread():
        yield held
        return

    def hold(number: int, _: FrameType | None) -> None:
        held.received.append(number)
        if until and len(held.received) == 1:
            logging.getLogger(__name__).warning("stopping once %s", until)

    before = {number: signal.signal(number, hold) for number in SIGNALS if not is_ignored(number)}
    try:
        yield held
    finally:
        for number, handler in before.items():
            # None stands for a handler of native code, which Python cannot set again.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if held.received:
            signal.raise_signal(held.received[0])


def is_ignored(number: signal.Signals) -> bool:
    """Whether the caller of this program wants it to go on after its terminal."""
    return number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN


def _terminate(*_: object) -> NoReturn:
    raise Terminated


def _hang_up(*_: object) -> NoReturn:
    raise HungUp
