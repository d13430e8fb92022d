"""Measure a model on the dev sets that models are chosen on: ``python -m benchmarks.quality.dev``.

STS-B-Context, PiC's phrases and the turns of calls_sgd, for any model folder; `measure` takes any
encoder. Never train on any of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.quality import encoders, pic_similarity, stsb_context, turns
from benchmarks.quality.systems import TokenMeans
from hybrid_search.encoder import Encoder
from hybrid_search.search.calibration import Calibration

EVALUATIONS = ("stsb-context", "pic", "turns")
ROWS = ("gold", "scores")


def measure(
    encoder: Encoder,
    data: Path,
    calibration: Calibration | None = None,
    only: tuple[str, ...] = EVALUATIONS,
    ngrams: int | None = stsb_context.PRUNED,
) -> dict[str, Any]:
    """Return the results of the evaluations named in `only`.

    `ngrams` spans a row are encoded by themselves, all of them if None (hours on a CPU).
    """
    measurements: dict[str, Callable[[], dict[str, Any]]] = {
        "stsb-context": lambda: stsb_context.measure(
            TokenMeans(encoder), stsb_context.read(data / stsb_context.FILE), pruned=ngrams
        ),
        "pic": lambda: pic_similarity.measure(encoder, data),
        "turns": lambda: turns.measure(encoder, data, calibration),
    }
    return {name: measurements[name]() for name in only}


def figures(measured: Any) -> Any:
    """Return `measured` without its row-by-row values.

    Gold scores belong to the data, and data are not stored in this repository.
    """
    return (
        {name: figures(value) for name, value in measured.items() if name not in ROWS}
        if isinstance(measured, dict)
        else measured
    )


def _ngrams(text: str) -> int | None:
    return None if text == "all" else int(text)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument(
        "--only", action="append", choices=EVALUATIONS, help="only this one; may be repeated"
    )
    parser.add_argument(
        "--ngrams",
        type=_ngrams,
        default=stsb_context.PRUNED,
        help="spans a row that are encoded by themselves, or all",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="a JSON file for figures and row-by-row scores;"
        " default: figures alone, to results/quality/dev_MODEL.json",
    )
    options = parser.parse_args()
    model = encoders.load_model(options)
    measured = measure(
        model.encoder,
        options.data,
        model.calibration,
        tuple(options.only or EVALUATIONS),
        options.ngrams,
    )
    payload = {"model": model.label, **measured}
    if options.out:
        results.save(options.out, payload)
    else:
        results.write(f"dev_{model.label}", figures(payload), results.QUALITY)


if __name__ == "__main__":
    main()
