"""Requests that go on and on beside what a test does, each reply counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from tests.support.patience import HANGS_AFTER_S


@dataclass
class Load:
    """``failed`` are statuses other than 200 and faults of the connection; ``partial`` are answers of some shards."""

    answered: int = 0
    partial: int = 0
    failed: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _over: threading.Event = field(default_factory=threading.Event)

    def until_answered(self, more: int, within_s: float = HANGS_AFTER_S) -> None:
        """Wait for that number of replies from now on."""
        deadline = time.monotonic() + within_s
        target = self.answered + more
        while self.answered < target:
            assert time.monotonic() < deadline, f"{self.answered} of {target} answered, failed: {self.failed[:5]}"
            time.sleep(0.05)

    def note(self, fault: str, shards: tuple[int, int], seconds: float) -> None:
        with self._lock:
            self.slowest_s = max(self.slowest_s, seconds)
            if fault:
                self.failed.append(fault)
            else:
                self.answered += 1
                self.partial += shards[0] < shards[1]


@contextmanager
def constant_searches(base_url: str, query: str, clients: int = 4) -> Iterator[Load]:
    load = Load()

    def ask() -> None:
        with httpx.Client(base_url=base_url, timeout=30) as http:
            while not load._over.is_set():
                began = time.monotonic()
                fault, shards = "", (0, 0)
                try:
                    reply = http.post("/v1/search", json={"query": query})
                    if reply.status_code == 200:
                        shards = reply.json()["shards_ok"], reply.json()["shards_total"]
                    else:
                        fault = f"{reply.status_code} {reply.text[:200]}"
                except httpx.HTTPError as error:
                    fault = repr(error)
                load.note(fault, shards, time.monotonic() - began)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        load._over.set()
        for thread in threads:
            thread.join(timeout=HANGS_AFTER_S)
