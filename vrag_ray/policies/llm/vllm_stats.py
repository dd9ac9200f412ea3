"""What the engine's own counters say, read from the metrics that vLLM keeps in this process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineStats:
    """As of the engine's last step. ``prompt_tokens`` were looked up in the prefix cache, ``cached_tokens`` found."""

    running: int
    waiting: int
    prompt_tokens: int
    cached_tokens: int


def engine_stats() -> EngineStats:
    """The sums over all engines of this process, which has one."""
    from prometheus_client import REGISTRY

    sums: dict[str, float] = {}
    for family in REGISTRY.collect():
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    return EngineStats(
        running=int(sums.get("vllm:num_requests_running", 0)),
        waiting=int(sums.get("vllm:num_requests_waiting", 0)),
        prompt_tokens=int(sums.get("vllm:prefix_cache_queries_total", 0)),
        cached_tokens=int(sums.get("vllm:prefix_cache_hits_total", 0)),
    )
