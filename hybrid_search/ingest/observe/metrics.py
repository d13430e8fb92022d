"""HTTP server for a run's numbers and health: ``/metrics`` for Prometheus and ``/healthz``.

The numbers are read at each request.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from hybrid_search.errors import MissingExtraError, UsageError
from hybrid_search.ingest.summary import Summary
from hybrid_search.observability import tracing
from hybrid_search.system import install_command

try:
    from prometheus_client import (
        CONTENT_TYPE_LATEST,
        CollectorRegistry,
        PlatformCollector,
        ProcessCollector,
        generate_latest,
    )
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as missing:
    raise MissingExtraError(
        f"metrics need the package prometheus-client: {install_command('metrics')}"
    ) from missing

_log = logging.getLogger(__name__)

PREFIX = "hybrid_search_ingest"

COUNTERS = {
    "read": ("lines", "Lines read."),
    "documents": ("documents", "Documents written."),
    "passages": ("passages", "Passages written."),
    "spans": ("spans", "Covering spans written."),
    "tokens": ("tokens", "Tokens encoded, without special ones and padding."),
    "bytes": ("read_bytes", "Bytes read."),
    "failed": ("refused", "Documents refused."),
    "skipped": ("skipped", "Documents skipped because they were unchanged."),
    "duplicates": ("duplicates", "Documents whose id came again in this run."),
}
"""The counters of a summary, each with the name and description of its metric."""


class _RunCollector(Collector):
    """A collector of the metrics of a run, for each request of Prometheus."""

    def __init__(self, watch: StallDetector) -> None:
        self._watch = watch
        self._highest: dict[str, float] = {}
        self._retries = tracing.counts["retries"]

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        summary = self._watch.summary
        for name, (metric, description) in COUNTERS.items():
            yield CounterMetricFamily(
                f"{PREFIX}_{metric}", description, self._keep_highest(name, getattr(summary, name))
            )
        yield CounterMetricFamily(
            f"{PREFIX}_retries",
            "Requests and passages that were sent to a server again.",
            tracing.counts["retries"] - self._retries,
        )
        stages = CounterMetricFamily(
            f"{PREFIX}_stage_seconds",
            "Seconds of work in each stage; stages overlap.",
            labels=["stage"],
        )
        for stage, seconds in summary.stages.items():
            stages.add_metric([stage], seconds)
        queues = GaugeMetricFamily(
            f"{PREFIX}_queue_blocks", "Blocks that wait behind a stage.", labels=["stage"]
        )
        for stage, depth in list(summary.queues.items()):
            queues.add_metric([stage], depth())
        yield from (stages, queues)
        yield GaugeMetricFamily(
            f"{PREFIX}_lag_seconds", "Seconds since the last block was committed.", self._watch.lag
        )
        yield GaugeMetricFamily(
            f"{PREFIX}_healthy",
            "1 while the run makes progress or idles.",
            0.0 if self._watch.stall_reason else 1.0,
        )

    def _keep_highest(self, name: str, value: float) -> float:
        """Return the highest value so far.

        Passages of a document that is finally refused are subtracted again, and Prometheus would
        take a falling counter for a restart.
        """
        self._highest[name] = max(value, self._highest.get(name, 0))
        return self._highest[name]


def build_registry(watch: StallDetector) -> CollectorRegistry:
    """Return a registry with the numbers of a run and of this process.

    The run reports to `watch`. Process metrics are memory, processor time and open files.
    """
    collector_registry = CollectorRegistry()
    collector_registry.register(_RunCollector(watch))
    ProcessCollector(registry=collector_registry)
    PlatformCollector(registry=collector_registry)
    return collector_registry


class _MetricsServer(ThreadingHTTPServer):
    """A server with a thread per request; an aborted request is not an error of the run."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log that a client disconnected early; the base class would print a traceback."""
        error = sys.exception()
        if not isinstance(error, OSError):
            super().handle_error(request, client_address)
            return
        _log.debug("a reader of the metrics left early: %s", error)


@contextmanager
def serve_metrics(watch: StallDetector, host: str, port: int) -> Iterator[int]:
    """Yield the port at which metrics are served during the block; `port` 0 picks a free one.

    Raises:
        UsageError: If the address cannot be used.
    """
    collector_registry = build_registry(watch)

    class MetricsHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._send(200, CONTENT_TYPE_LATEST, generate_latest(collector_registry))
            elif path == "/healthz":
                stall_reason = watch.stall_reason
                self._send(
                    503 if stall_reason else 200,
                    "text/plain; charset=utf-8",
                    f"{stall_reason or 'ok'}\n".encode(),
                )
            else:
                self._send(404, "text/plain; charset=utf-8", b"/metrics or /healthz\n")

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing, as requests come every few seconds."""

    try:
        server = _MetricsServer((host, port), MetricsHandler)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"metrics cannot be served at {host}:{port} ({error}): "
            "name another address with --metrics-port or --metrics-host"
        ) from error
    with server:
        threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()


STALLED_SECONDS = 900.0
"""A run that has work, but wrote no block for so long, is stalled. It is longer than the 600 s for
which a run waits for a server by default.
"""


@dataclass(slots=True)
class StallDetector:
    """A `Report` that keeps the summary of the run and the time of its last block.

    The summary is read while the run updates it; times are from `time.perf_counter`.
    """

    patience: float = STALLED_SECONDS
    summary: Summary = field(default_factory=Summary)
    last_block_at: float = field(default_factory=time.perf_counter)

    def __call__(self, summary: Summary) -> None:
        """Record that a block was written."""
        self.summary, self.last_block_at = summary, time.perf_counter()

    @property
    def lag(self) -> float:
        """Return the seconds since the last block was written, or since the start."""
        return time.perf_counter() - self.last_block_at

    @property
    def waiting_blocks(self) -> int:
        """Return the number of blocks that wait for a stage."""
        return sum(depth() for depth in list(self.summary.queues.values()))

    @property
    def working_stages(self) -> list[str]:
        """Return the stages that are working now, not those that wait, e.g. for standard input."""
        return sorted({stage for stage, _ in list(self.summary.running)})

    @property
    def stall_reason(self) -> str | None:
        """Return why the run is stalled; None if it makes progress or has nothing to do."""
        busy = self.working_stages
        if self.lag <= self.patience or not (busy or self.waiting_blocks):
            return None
        stages = f"{', '.join(busy) or 'no stage'} works"
        return f"no block was written for {self.lag:.0f} s, {self.waiting_blocks} wait and {stages}"
