"""Test which of two models is better: ``python -m benchmarks.quality.compare FIRST SECOND``.

Both are JSON results of ``python -m benchmarks.quality.dev``. On STS-B-Context by Williams' test,
``--setup`` of the first against ``--against`` of the second; on the turns of calls_sgd by the
bootstrap over intents, each system of the first against the same system of the second.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.quality import bootstrap, williams
from benchmarks.quality.correlation import ranks
from benchmarks.quality.stsb_context import unpack_scores

Result = Mapping[str, Any]


def compare_contexts(
    first: Result, second: Result, setup: str, against: str
) -> dict[str, dict[str, float]]:
    """Return Williams' test of Pearson and of Spearman.

    Raises:
        SystemExit: If a set-up was not measured, or the results are of different rows.
    """
    if first["gold"] != second["gold"]:
        raise SystemExit(
            "the two results are of different rows of STS-B-Context: measure both on all of them"
        )
    columns = unpack_scores(first["gold"]), _scores(first, setup), _scores(second, against)
    tested = {
        "pearson": williams.compare(*columns),
        "spearman": williams.compare(*map(ranks, columns)),
    }
    return {
        name: {statistic: float(f"{value:.4g}") for statistic, value in row.items()}
        for name, row in tested.items()
    }


def _scores(result: Result, setup: str) -> list[float]:
    if setup not in result["setups"]:
        raise SystemExit(
            f"there is no set-up {setup!r}: the result has {', '.join(result['setups'])}"
        )
    return unpack_scores(result["setups"][setup]["scores"])


def compare_turns(first: Result, second: Result) -> dict[str, Any]:
    """Return the mean difference of each system over the intents, with its interval."""
    pairs = {
        name: (row["intents"], second["systems"][name]["intents"])
        for name, row in first["systems"].items()
        if name in second["systems"]
    }
    return {
        name: bootstrap.difference([a[intent] for intent in a], [b[intent] for intent in a])
        for name, (a, b) in pairs.items()
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--setup", default="single pass")
    parser.add_argument("--against", help="default: the same")
    options = parser.parse_args()
    first, second = (json.loads(path.read_text()) for path in (options.first, options.second))
    comparison: dict[str, Any] = {"first": first["model"], "second": second["model"]}
    if "stsb-context" in first and "stsb-context" in second:
        against = options.against or options.setup
        tested = compare_contexts(
            first["stsb-context"], second["stsb-context"], options.setup, against
        )
        comparison["stsb-context"] = {"setups": [options.setup, against], **tested}
    if "turns" in first and "turns" in second:
        comparison["turns"] = compare_turns(first["turns"], second["turns"])
    print(json.dumps(comparison, indent=1))


if __name__ == "__main__":
    main()
