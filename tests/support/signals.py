"""Ctrl-C for processes of tests that a shell may have started in the background."""

from __future__ import annotations

import sys

_PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def heeding_interrupts(*command: str) -> list[str]:
    """``command`` so that SIGINT and SIGHUP reach it.

    What a shell starts in the background ignores the first, and what nohup starts the second, with its children.
    """
    return [sys.executable, "-c", _PROGRAM, *command]
