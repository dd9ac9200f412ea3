"""How late an event loop is: the one number that tells whether something blocks it."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque

TICK_S = 0.02
MEASURED_TICKS = 3000
"""One minute."""


class LoopLag:
    """Sleeps for a moment, over and over, and notes by how much it wakes too late. Start it on the loop it watches."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=MEASURED_TICKS)
        self._task = asyncio.get_running_loop().create_task(self._watch(), name="loop-lag")

    def p99_s(self) -> float:
        """Seconds that 99 of 100 wake-ups of the last minute were late at most; 0 before the first."""
        if not self._late:
            return 0.0
        ordered = sorted(self._late)
        return ordered[math.ceil(0.99 * len(ordered)) - 1]

    def stop(self) -> None:
        self._task.cancel()

    async def _watch(self) -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(TICK_S)
            self._late.append(max(0.0, time.perf_counter() - begun - TICK_S))
