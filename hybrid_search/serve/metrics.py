"""Count the requests of a service for Prometheus."""

from __future__ import annotations

from hybrid_search.errors import MissingExtraError
from hybrid_search.serve.limits import Gate
from hybrid_search.system import install_command

try:
    from prometheus_client import (
        CONTENT_TYPE_LATEST,
        CollectorRegistry,
        Counter,
        Gauge,
        Histogram,
        PlatformCollector,
        ProcessCollector,
        generate_latest,
    )
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"metrics need the package prometheus-client: {install_command('metrics')}"
    ) from missing

PREFIX = "hybrid_search_serve"
BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper bounds of the histogram's buckets in seconds: a query takes 10 to 100 ms."""


class RequestMetrics:
    """The numbers of one service: requests by route and status, their seconds, calls that run."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, gate: Gate) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._requests = Counter(
            f"{PREFIX}_requests",
            "Requests that were answered.",
            ["route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            f"{PREFIX}_request_seconds",
            "Seconds from a request to its answer.",
            ["route"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        running = Gauge(
            f"{PREFIX}_running_calls", "Calls that have not ended.", registry=self._registry
        )
        running.set_function(lambda: gate.running)

    def add(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def format(self) -> bytes:
        """Return all numbers as Prometheus reads them."""
        return generate_latest(self._registry)
