"""The numbers of a run for Prometheus, over HTTP, read at each request."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hybrid_search.errors import MissingExtraError, UsageError
from hybrid_search.ingest.summary import Summary, Tally
from hybrid_search.observability import logs, tracing
from hybrid_search.system import install_command

try:
    from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
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


class RunMetrics(Collector):
    """A `Report` that sums up the runs of a command, and the metrics that it makes of them."""

    def __init__(self) -> None:
        self._tally, self._last_block_at = Tally(), time.perf_counter()
        self._retries = tracing.counts["retries"]

    def __call__(self, summary: Summary) -> None:
        """Record that a block was written."""
        self._tally(summary)
        self._last_block_at = time.perf_counter()

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        summary = self._tally.total()
        for name, (metric, description) in COUNTERS.items():
            yield CounterMetricFamily(f"{PREFIX}_{metric}", description, getattr(summary, name))
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
        yield stages
        yield GaugeMetricFamily(
            f"{PREFIX}_lag_seconds",
            "Seconds since the last block was committed.",
            time.perf_counter() - self._last_block_at,
        )


@contextmanager
def serve_metrics(metrics: RunMetrics, host: str, port: int) -> Iterator[int]:
    """Yield the port at which metrics are served during the block; `port` 0 picks a free one.

    The metrics of this process are beside those of the run: memory, processor time, open files.

    Raises:
        UsageError: If the address cannot be used.
    """
    registry = CollectorRegistry()
    registry.register(metrics)
    ProcessCollector(registry=registry)
    try:
        server, _ = start_http_server(port, host, registry)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"metrics cannot be served at {host}:{port} ({error}): "
            "name another address with --metrics-port or --metrics-host"
        ) from error
    server.handle_error = _log_error  # type: ignore[assignment]
    bound_port = int(server.server_address[1])
    address = f"[{host}]" if ":" in host else host
    with server:
        try:
            url = f"http://{address}:{bound_port}/metrics"
            logs.log_or_print(f"metrics at {url}", extra={"port": bound_port})
            yield bound_port
        finally:
            server.shutdown()


def _log_error(*_: Any) -> None:
    """Log that a reader left early, where the server would print a traceback."""
    _log.debug("a request of metrics failed: %s", sys.exception())
