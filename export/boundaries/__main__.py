"""Train a model's span prior: ``python -m export.boundaries --model FOLDER --data DATA``.

``boundaries.npz`` is written into the model folder, its digest into ``encoder.json``, and a section
into the model card. The encoder runs on the CPU, in int8 where the model allows it, as it ships.
The same seed gives the same file on the same machine.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import results
from benchmarks.quality.calibrate import record_digest
from export import card
from export.boundaries.npz import FILE, write_priors
from export.boundaries.summary import render_card, render_summary, summarize
from export.boundaries.training import train_prior
from hybrid_search import encoder
from hybrid_search.errors import HybridSearchError

SECTION = "Span prior"


def main() -> None:
    """Run the command."""
    options = _parse_options()
    try:
        full_encoder = encoder.load(options.model, "cpu")
    except HybridSearchError as error:
        raise SystemExit(str(error)) from error
    trained = train_prior(full_encoder, options.data, options.seed, _report)
    path = options.model / FILE
    write_priors(path, trained.priors)
    record_digest(path)
    card.replace_section(options.model, SECTION, render_card(trained, options.seed))
    if options.json:
        print(json.dumps(summarize(trained, options.seed), indent=1))
    else:
        print(render_summary(trained))


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m export.boundaries", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--model", type=Path, required=True, help="a folder made by python -m export.to_onnx"
    )
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of data sets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser.parse_args()


def _report(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
