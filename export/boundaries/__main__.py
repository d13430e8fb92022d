"""Train a model's span prior: ``python -m export.boundaries --model FOLDER --data DATA``.

``boundaries.npz`` is written into the model folder, its digest into ``encoder.json``, and a section
into the model card. The encoder runs on the CPU, in int8 where the model allows it, as it ships.
The same seed gives the same file on the same machine.
"""

from __future__ import annotations

import argparse
import json

from benchmarks.quality.calibrate import record_digest
from export import card
from export.boundaries.npz import FILE, write_priors
from export.boundaries.summary import render_card, render_summary, summarize
from export.boundaries.training import train_prior
from export.fit_command import make_parser, report
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
    trained = train_prior(full_encoder, options.data, options.seed, report, options.texts)
    path = options.model / FILE
    write_priors(path, trained.priors)
    record_digest(path)
    card.replace_section(options.model, SECTION, render_card(trained, options.seed))
    if options.json:
        print(json.dumps(summarize(trained, options.seed), indent=1))
    else:
        print(render_summary(trained))


def _parse_options() -> argparse.Namespace:
    parser = make_parser("export.boundaries", __doc__)
    parser.add_argument(
        "--texts", type=int, help="use at most so many texts with labelled gaps; default: all"
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
