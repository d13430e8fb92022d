"""Reports of a run besides the terminal: metrics over HTTP, if requested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hybrid_search.ingest.options import Report, ignore_report
from hybrid_search.ingest.summary import Summary
from hybrid_search.observability import logs


def combine_reports(first: Report, second: Report) -> Report:
    """Return a report that passes the summary to both reports."""

    def report(summary: Summary) -> None:
        first(summary)
        second(summary)

    return report


@contextmanager
def serve_reports(port: int | None, host: str) -> Iterator[Report]:
    """Yield a report that feeds the metrics at `port`; without a port it does nothing.

    Metrics are served until the block ends.
    """
    if port is None:
        yield ignore_report
        return
    from hybrid_search.ingest.metrics import RunMetrics, serve_metrics

    metrics = RunMetrics()
    with serve_metrics(metrics, host, port) as bound_port:
        address = f"[{host}]" if ":" in host else host
        logs.log_or_print(
            f"metrics at http://{address}:{bound_port}/metrics", extra={"port": bound_port}
        )
        yield metrics
