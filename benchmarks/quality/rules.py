"""How well rules say which calls they hold in: ``python -m benchmarks.quality.rules``.

``benchmarks/data/rules`` has forty short calls and nine rules, written by hand for this measure
with their answers: the rules that each call fulfils. Nothing was fitted to them. Calls are mined
with several thresholds of all topics, since a rule misses a call if the model misses a part of it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import results
from hybrid_search import Match, Topics, connect
from hybrid_search.client import Client

FOLDER = Path(__file__).parent.parent / "data" / "rules"

THRESHOLDS = (0.5, 0.3, 0.2, 0.1)
"""Thresholds of all topics; 0.2 is that of most topics of the bundled sample."""

Answer = tuple[str, str]
"""The id of a call, and the name of a rule that holds in it."""


def read_calls() -> list[dict[str, Any]]:
    """Return the calls, each with the names of its rules under ``rules``."""
    lines = (FOLDER / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def measure(client: Client) -> dict[str, Any]:
    """Return precision, recall and probabilities of the rules, with the client's model."""
    calls = read_calls()
    right = {(call["id"], name) for call in calls for name in call["rules"]}
    documents = [{key: call[key] for key in ("id", "turns")} for call in calls]
    client.ingest(documents, index="rules")
    found = {limit: mine_rules(client, limit) for limit in THRESHOLDS}
    names = sorted({name for _, name in right})
    return {
        "calls": len(calls),
        "answers": len(right),
        "thresholds": {limit: judge(rows, right) for limit, rows in found.items()},
        "rules": {name: judge_rule(name, found[0.2], right) for name in names},
        "probabilities": judge_probabilities(found[min(THRESHOLDS)], right),
    }


def judge_rule(name: str, found: Mapping[Answer, Match], right: set[Answer]) -> dict[str, float]:
    """Return the figures of one rule."""
    own = {answer: match for answer, match in found.items() if answer[1] == name}
    return judge(own, {answer for answer in right if answer[1] == name})


def mine_rules(client: Client, threshold: float) -> dict[Answer, Match]:
    """Return the matches of the rules, where all topics have this threshold."""
    loaded = Topics.load(FOLDER / "topics.yaml")
    topics = tuple(replace(topic, threshold=threshold) for topic in loaded)
    matches = client.mine(Topics(topics, rules=loaded.rules), index="rules")
    return {(match.id, match.topic): match for match in matches if match.evidence}


def judge(found: Mapping[Answer, Match], right: set[Answer]) -> dict[str, float]:
    """Return how many answers were found, and how many of them are right."""
    hits = len(found.keys() & right)
    return {
        "found": len(found),
        "right": hits,
        "answers": len(right),
        "precision": round(hits / max(len(found), 1), 3),
        "recall": round(hits / len(right), 3),
    }


def judge_probabilities(
    found: Mapping[Answer, Match], right: set[Answer]
) -> dict[str, dict[str, float]]:
    """Return how the probabilities of matches go with the answers, for one part and for several.

    Beside the product stands the least probability of a part, as if parts were wrong together.
    ``expected`` is the sum of the probabilities, and ``brier`` the mean squared error.
    """
    one = {row: match for row, match in found.items() if len(match.evidence) == 1}
    several = {row: match for row, match in found.items() if len(match.evidence) > 1}
    least = [min(part.probability for part in match.evidence) for match in several.values()]
    return {
        "one part": score([match.probability for match in one.values()], one.keys(), right),
        "several parts, product": score(
            [match.probability for match in several.values()], several.keys(), right
        ),
        "several parts, least": score(least, several.keys(), right),
    }


def score(
    probabilities: Sequence[float], answers: Collection[Answer], right: set[Answer]
) -> dict[str, float]:
    """Return how many are right, how many were expected, and the mean squared error."""
    labels = [answer in right for answer in answers]
    errors = [(one - label) ** 2 for one, label in zip(probabilities, labels, strict=True)]
    return {
        "matches": len(labels),
        "right": sum(labels),
        "expected": round(sum(probabilities), 1),
        "brier": round(sum(errors) / max(len(errors), 1), 3),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=results.QUALITY)
    options = parser.parse_args()
    with connect("memory:") as client:
        figures = measure(client)
        model = client.describe("rules").spec.model
    results.write("rules", {"model": model, **figures}, options.out)


if __name__ == "__main__":
    main()
