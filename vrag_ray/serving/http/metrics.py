"""Prometheus text of one gateway replica: its own counters, and the state of the parts at the time of the scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from vrag_ray.serving.contract import AgentState, RetrieverState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_OF_COLLECTIONS: tuple[tuple[str, str, Callable[[RetrieverState], int]], ...] = (
    ("vrag_shards_ok", "Index shards that answer.", lambda state: state.shards_ok),
    ("vrag_shards_total", "Index shards there should be.", lambda state: state.shards_total),
    ("vrag_collection_version", "Version being searched.", lambda state: state.version),
    ("vrag_documents", "Documents being searched.", lambda state: state.documents),
)


class Metrics:
    """Counters of one gateway. Routes are labelled by template, so that ids do not multiply the series."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "vrag_http_requests", "Requests by outcome.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "vrag_http_request_seconds",
            "Seconds to the first byte of a reply.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._search = Histogram(
            "vrag_search_seconds", "Seconds of one search, all its queries.", buckets=_SECONDS, registry=self._registry
        )

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def observe_search(self, seconds: float) -> None:
        self._search.observe(seconds)

    def exposition(self, retrievers: Sequence[RetrieverState], agent: AgentState | None) -> bytes:
        """All series as text. A part that did not answer has ``vrag_up`` 0 and no series of its own."""
        state = CollectorRegistry()
        state.register(_StateCollector(retrievers, agent))
        return bytes(generate_latest(self._registry)) + bytes(generate_latest(state))


class _StateCollector:
    def __init__(self, retrievers: Sequence[RetrieverState], agent: AgentState | None) -> None:
        self._retrievers = retrievers
        self._agent = agent

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("vrag_up", "Whether a part answers and is ready.", labels=["part"])
        up.add_metric(
            ["retriever"], float(bool(self._retrievers) and all(retriever.ready for retriever in self._retrievers))
        )
        up.add_metric(["agent"], float(self._agent is not None))
        yield up
        for name, text, value_of in _OF_COLLECTIONS:
            gauge = GaugeMetricFamily(name, text, labels=["collection"])
            for retriever in self._retrievers:
                gauge.add_metric([retriever.collection], value_of(retriever))
            yield gauge
        if self._agent is not None:
            yield GaugeMetricFamily("vrag_runs_active", "Runs under way.", value=self._agent.active)
            yield GaugeMetricFamily(
                "vrag_agent_loop_lag_p99_seconds",
                "By how much 99 of 100 wake-ups of the agent's event loop were late at most, over a minute.",
                value=self._agent.loop_lag_p99_s,
            )
            runs = CounterMetricFamily("vrag_runs", "Runs by how they ended.", labels=["status"])
            for status, count in sorted(self._agent.finished.items()):
                runs.add_metric([status], count)
            yield runs
