"""A run's numbers for Prometheus, and whether it gets on, over HTTP: ``/metrics`` and ``/healthz``. They are read when somebody asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hybrid_search import telemetry
from hybrid_search.errors import MissingExtraError, UsageError
from hybrid_search.ingest.watch import Watch

try:
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, PlatformCollector, ProcessCollector, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as missing:
    raise MissingExtraError("metrics need the package prometheus-client: pip install 'hybrid-search[metrics]'") from missing

PREFIX = "hybrid_search_ingest"

COUNTED = {
    "read": ("lines", "Lines read."),
    "documents": ("documents", "Documents written."),
    "passages": ("passages", "Passages written."),
    "spans": ("spans", "Covering spans written."),
    "tokens": ("tokens", "Tokens encoded, without special ones and padding."),
    "cells": ("cells", "Tokens computed by the encoder, special ones and padding included."),
    "bytes": ("read_bytes", "Bytes read."),
    "failed": ("refused", "Documents refused."),
    "skipped": ("skipped", "Documents skipped because they were unchanged."),
    "duplicates": ("duplicates", "Documents whose id came again in this run."),
}
"""What of a summary is counted, by which name, and what it is."""


class _Numbers(Collector):
    """What Prometheus is told when it asks."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._highest: dict[str, float] = {}
        self._retries = telemetry.counts["retries"]

    def collect(self) -> Iterator[Metric]:
        """All metrics as they are now."""
        summary = self._watch.summary
        for name, (called, what) in COUNTED.items():
            yield CounterMetricFamily(f"{PREFIX}_{called}", what, self._counted(name, getattr(summary, name)))
        yield CounterMetricFamily(f"{PREFIX}_retries", "What a server was asked for again.", telemetry.counts["retries"] - self._retries)
        stages = CounterMetricFamily(f"{PREFIX}_stage_seconds", "Seconds of work in each stage; stages overlap.", labels=["stage"])
        for stage, seconds in summary.stages.items():
            stages.add_metric([stage], seconds)
        queues = GaugeMetricFamily(f"{PREFIX}_queue_blocks", "Blocks that wait behind a stage.", labels=["stage"])
        for stage, depth in list(summary.queues.items()):
            queues.add_metric([stage], depth())
        fill = summary.tokens / summary.cells if summary.cells else 0.0
        yield from (stages, queues)
        yield GaugeMetricFamily(f"{PREFIX}_batch_fill_ratio", "Share of what the encoder computed that is a text's tokens; 0: not known.", fill)
        yield GaugeMetricFamily(f"{PREFIX}_lag_seconds", "Seconds since the last block was committed.", self._watch.lag)
        yield GaugeMetricFamily(f"{PREFIX}_healthy", "1 while the run gets on or idles.", 0.0 if self._watch.stalled else 1.0)

    def _counted(self, name: str, now: float) -> float:
        """The highest value so far: passages of a document that is refused in the end are taken back, and a counter that falls looks restarted."""
        self._highest[name] = max(now, self._highest.get(name, 0))
        return self._highest[name]


def registry(watch: Watch) -> CollectorRegistry:
    """The numbers of the run that reports to `watch`, and this process's own: memory, processor time, files."""
    made = CollectorRegistry()
    made.register(_Numbers(watch))
    ProcessCollector(registry=made)
    PlatformCollector(registry=made)
    return made


@contextmanager
def served(watch: Watch, host: str, port: int) -> Iterator[int]:
    """Answer at `host` and `port` (0: any that is free) during the block; the port. Raises UsageError where that cannot be had."""
    numbers = registry(watch)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._send(200, CONTENT_TYPE_LATEST, generate_latest(numbers))
            elif path == "/healthz":
                stalled = watch.stalled
                self._send(503 if stalled else 200, "text/plain; charset=utf-8", f"{stalled or 'ok'}\n".encode())
            else:
                self._send(404, "text/plain; charset=utf-8", b"/metrics or /healthz\n")

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: who asks every few seconds is no news."""

    try:
        server = ThreadingHTTPServer((host, port), Answer)
    except (OSError, OverflowError) as error:
        raise UsageError(f"metrics cannot be served at {host}:{port} ({error}): name another with --metrics-port or --metrics-host") from error
    with server:
        threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
