"""How the graphs of ingest use a machine, and what they make of faults in its processes."""

from __future__ import annotations

import logging
import math
import os
import re
from pathlib import Path

from vrag_ray.cluster import is_connected, require_ray

ACTOR_CPUS = 0.1
"""Parallelism is set by pool sizes. Whole-CPU reservations of three pools would deadlock a small machine."""


READER_BYTES = 1_300_000_000
"""What a reader takes while OCR reads a page: 1.0 GB of its child, and an actor."""


def readers(cpus: int, memory: int) -> int:
    """How many processes decode at once on ``cpus`` cores with ``memory`` bytes, each with one thread."""
    return max(1, min(cpus, memory // READER_BYTES))


def usable_memory() -> int:
    """Bytes that Ray found for work, on all nodes."""
    import ray

    return int(ray.cluster_resources().get("memory", 0))


def cores(count: int, allowed: int, quota: str) -> int:
    """How many of a machine's ``count`` cores this process gets: of those that it is ``allowed``, its cgroup's share.

    ``quota`` is the content of ``cpu.max``: microseconds a period, or ``max``, and the period.
    """
    share, _, period = quota.partition(" ")
    granted = math.ceil(int(share) / int(period)) if share.isdigit() and period.strip().isdigit() else count
    return max(1, min(count, allowed, granted))


def own_cores() -> int:
    """Of this machine, those that this process gets."""
    count = os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else count
    limit = Path("/sys/fs/cgroup/cpu.max")
    return cores(count, allowed, limit.read_text(encoding="ascii") if limit.is_file() else "")


def own_memory() -> int:
    """Bytes of this machine, or of the container that this process is in."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        if path.is_file() and (text := path.read_text(encoding="ascii").strip()).isdigit():
            limits.append(int(text))
    return min(limits)


def own_readers() -> int:
    """``readers`` of this machine, without Ray."""
    import psutil

    return readers(own_cores(), min(psutil.virtual_memory().available, own_memory()))


def usable_cpus() -> int:
    """CPUs that really exist: the runtime tells Ray of more logical ones than that on a small machine."""
    import ray

    alive = [node for node in ray.nodes() if node["Alive"]]
    if len(alive) == 1:
        return own_cores()
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def has_more_machines() -> bool:
    """Whether there are others to share work with: nodes of the Ray that this process has, or is to connect to."""
    if not is_connected() and not os.environ.get("RAY_ADDRESS"):
        return False
    require_ray()
    import ray

    return sum(bool(node["Alive"]) for node in ray.nodes()) > 1


def without_ray_data_output() -> None:
    """Ray Data's own bars, plans and advice would fight with ours for the terminal."""
    from ray.data import DataContext

    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    # They would ask the user for memory reservations that this graph leaves to its pool sizes.
    context.issue_detectors_config.detectors = []
    logging.getLogger("ray.data").setLevel(logging.WARNING)


_RAISED = re.compile(r"^(?:\w+\.)*\w+(?:Error|Exception): (.+)$", re.MULTILINE)


def cause_of(error: BaseException) -> str:
    """What went wrong in another process, in one line: of the stack trace that Ray gives, the fault that was first."""
    text = str(error)
    raised = _RAISED.search(text)
    if raised is not None:
        return raised[1].strip()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
