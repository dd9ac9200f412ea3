"""How often Python looks for cycles of objects that nobody holds, in a process that is there to train."""

from __future__ import annotations

import gc

YOUNG = 50_000
"""New objects until the youngest are looked through; Python's own number is 700, a fraction of one rollout step."""
OLDER = 20


def collect_seldom() -> None:
    """Look for unreachable cycles seldom, and never among what is there now: model and engine stay to the end.

    A rollout makes objects by the hundred thousand that live until it ends. To look through them again and again takes
    a tenth and more of its time and finds nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, OLDER, OLDER)
