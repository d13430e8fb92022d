"""The table of `benchmarks.speed.lists`."""

from __future__ import annotations

from benchmarks import results
from benchmarks.markdown import table
from benchmarks.percentiles import format_percentiles

CALLS = ("span leg", "query, alpha 0.5")
"""What is timed with lists of words and without."""


def lists() -> str:
    """Render what queries take that read the words near the phrase, beside all windows."""
    result = results.read_result("lists-calls_sgd", results.SPEED)

    def cells(way: str) -> list[str]:
        calls = [result[name][way] for name in CALLS]
        return [
            f"{result['recall@10'][way]:.3f}",
            *map(format_percentiles, calls),
            *(f"{figures['CPU']:.0f}" for figures in calls),
        ]

    columns = (
        "recall@10",
        *(f"{name}, p50 / p95" for name in CALLS),
        *(f"{name}, CPU" for name in CALLS),
    )
    return table("calls_sgd, milliseconds", columns, result["recall@10"], cells)


TABLES = {"lists": lists}
