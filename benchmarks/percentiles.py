"""The percentiles by which benchmarks tell times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def find_percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return p50 and p95 of some milliseconds, rounded to tenths."""
    return {f"p{share}": round(float(np.percentile(milliseconds, share)), 1) for share in (50, 95)}


def format_percentiles(figures: Mapping[str, float]) -> str:
    """Return p50 and p95 as a cell of a table has them, in whole milliseconds."""
    return f"{figures['p50']:.0f} / {figures['p95']:.0f}"
