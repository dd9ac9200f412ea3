"""How the graphs of ingest use a machine, and what they make of faults in its processes."""

from __future__ import annotations

import logging
import os
import re

ACTOR_CPUS = 0.1
"""Parallelism is set by pool sizes. Whole-CPU reservations of three pools would deadlock a small machine."""


def usable_cpus() -> int:
    """CPUs that really exist: the runtime tells Ray of more logical ones than that on a small machine."""
    import ray

    alive = [node for node in ray.nodes() if node["Alive"]]
    if len(alive) == 1:
        return os.cpu_count() or 1
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


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
