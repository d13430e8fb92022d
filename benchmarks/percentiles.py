"""The percentiles by which benchmarks tell times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def find_percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return p50 and p95 of some milliseconds, rounded to tenths."""
    return {f"p{share}": round(float(np.percentile(milliseconds, share)), 1) for share in (50, 95)}
