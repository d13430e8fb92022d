"""Options for those who watch a run, and what they switch on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from hybrid_search.ingest.pipeline import Report, ignore_report
from hybrid_search.ingest.summary import Summary
from hybrid_search.observability import logs

LogFormat = Annotated[
    logs.Format, typer.Option(help="Standard error as text for people, or a JSON object a line.")
]
LogLevel = Annotated[
    logs.Level | None,
    typer.Option(help="The least that is logged. Default: warning; info with --log-format json."),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        help="Serve /metrics for Prometheus and /healthz at this port; 0: any that is free.",
        min=0,
        max=65535,
    ),
]
MetricsHost = Annotated[str, typer.Option(help="The address to serve them at.")]
Profile = Annotated[
    bool, typer.Option("--profile", help="Say at the end where the time went, stage by stage.")
]

LOOPBACK = "127.0.0.1"


def combine_reports(first: Report, second: Report) -> Report:
    """Tells both of them."""

    def report(summary: Summary) -> None:
        first(summary)
        second(summary)

    return report


@contextmanager
def serve_reports(port: int | None, host: str) -> Iterator[Report]:
    """What to report to, beside what is shown to people: where a port is given, the metrics that
    are served there during the block.
    """
    if port is None:
        yield ignore_report
        return
    from hybrid_search.ingest.observe.metrics import serve_metrics
    from hybrid_search.ingest.observe.stall_detector import StallDetector

    detector = StallDetector()
    with serve_metrics(detector, host, port) as bound_port:
        logs.log_or_print(
            f"metrics at http://{f'[{host}]' if ':' in host else host}:{bound_port}/metrics",
            extra={"port": bound_port},
        )
        yield detector
