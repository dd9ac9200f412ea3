"""Where the time of a training step goes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class StepTimer:
    """Seconds by phase since the last ``elapsed``."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = defaultdict(float)
        self._begun = time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._spent[name] += time.perf_counter() - begun

    def elapsed(self) -> dict[str, float]:
        """``seconds/<phase>`` of each phase, ``seconds/other`` of what lay between, ``seconds/step`` of all."""
        now = time.perf_counter()
        whole = now - self._begun
        spent = {**self._spent, "other": whole - sum(self._spent.values())}
        self._spent.clear()
        self._begun = now
        return {f"seconds/{name}": seconds for name, seconds in spent.items()} | {"seconds/step": whole}
