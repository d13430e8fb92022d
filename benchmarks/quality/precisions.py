"""Measure what each precision costs and gains: ``python -m benchmarks.quality.precisions``.

For a model folder that has several, beside one of the same weights that was exported with
``--precision float32`` (``--float32``). Tokens a second on the turns of ``--calls`` calls of
calls_sgd, the precisions taking turns, as the machine is shared; Pearson on STS-B-Context, every
row.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import results
from benchmarks.quality import encoders, stsb_context, turns
from benchmarks.quality.encoders import Model
from hybrid_search.encoder import Encoder

MEASURED = ("int8", "float16")
CALLS = 100
ROUNDS = 5


def measure(model: Model, float32: Path, data: Path, calls: int = CALLS) -> dict[str, Any]:
    """Return a row for each precision; `float32` is the folder of that precision.

    Speeds are medians over the rounds, and so are their ratios to float32, taken round by round.
    """
    encoders_by_precision = {
        "float32": replace(model, folder=float32, precision="float32").encoder,
        **{precision: replace(model, precision=precision).encoder for precision in MEASURED},
    }
    texts = turns.read(data, calls).texts
    seconds = _time_rounds(encoders_by_precision, texts)
    tokens = sum(len(encoding.vectors) for encoding in encoders_by_precision["int8"].encode(texts))
    rows = {}
    for name, encoder in encoders_by_precision.items():
        rounds = zip(seconds[name], seconds["float32"], strict=True)
        rows[name] = {
            "pearson": stsb_context.score(encoder, data / stsb_context.FILE)["pearson"],
            "tokens/s": round(tokens / median(seconds[name])),
            "times float32": round(median(b / a for a, b in rounds), 2),
        }
    return rows


def _time_rounds(
    encoders_by_precision: dict[str, Encoder], texts: Sequence[str]
) -> dict[str, list[float]]:
    """Return the seconds of each round, after one that warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in encoders_by_precision}
    for _ in range(ROUNDS + 1):
        for name, encoder in encoders_by_precision.items():
            started_at = time.perf_counter()
            encoder.encode(texts)
            seconds[name].append(time.perf_counter() - started_at)
    return {name: values[1:] for name, values in seconds.items()}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument(
        "--calls", type=int, default=CALLS, help="whose turns are encoded for the clock"
    )
    parser.add_argument(
        "--float32", type=Path, required=True, help="a folder of the same weights in float32"
    )
    options = parser.parse_args()
    model = encoders.load_model(options)
    measured = measure(model, options.float32, options.data, options.calls)
    results.write(
        f"precisions{model.suffix()}",
        {"model": replace(model, precision="auto").label, "precisions": measured},
        results.QUALITY,
    )


if __name__ == "__main__":
    main()
