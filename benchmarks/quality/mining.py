"""How well mining finds labelled intents: probabilities, precision and recall, by threshold.

The intents of calls_sgd are topics with three phrases each (`intent_topics`). A turn counts by its
best mention. It is right if the customer states the intent in it for the first time. Later turns of
the same call may repeat the intent and are not labelled: they are left out. The map from scores to
probabilities is fitted on the intents of the part ``train`` and measured on those of ``dev``.

    python -m benchmarks.quality.mining --url embedded:FOLDER --index calls

The same mentions say what judgments of them buy (`judging`), and are compared with what one might
do without mining (`mining_rivals`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from benchmarks import results
from benchmarks.quality import judging, mining_rivals
from benchmarks.quality.discover import read_customer_turns
from benchmarks.quality.intent_labels import JudgedMentions, Labels, find_best_mentions, make_parser
from benchmarks.quality.intent_topics import build_topics
from benchmarks.quality.judging import MEASURED_FROM
from hybrid_search import connect
from hybrid_search.search.calibration import MENTIONS, MOVED_MENTIONS
from hybrid_search.search.pipeline import match_encoder_to_index
from hybrid_search.topics.logistic import calibration_error, fit_logistic
from hybrid_search.topics.topic import Topic

DATA = Path(__file__).parents[3] / "shared" / "data" / "calls_sgd"

LEAST_PROBABILITY = 0.001
"""Mentions below it are not looked at: of 1,000 of them one would be right."""

PARTS = ("train", "dev")
THRESHOLDS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)


def measure(judged: JudgedMentions, labels: Labels) -> dict[str, Any]:
    """Return the figures of both parts, by the map that is fitted on the first."""
    is_train = np.array([labels.parts[match.topic] == "train" for match in judged.matches])
    fitted = fit_logistic(judged.scores[is_train], judged.labels[is_train])
    stated = {part: sum(labels.parts[turn[0]] == part for turn in labels.turns) for part in PARTS}
    return {
        "midpoint": round(fitted.midpoint, 4),
        "slope": round(fitted.slope, 3),
        **{
            part: measure_part(fitted.span(judged.scores[rows]), judged.labels[rows], stated[part])
            for part, rows in (("train", is_train), ("dev", ~is_train))
        },
    }


def measure_part(
    probabilities: NDArray[np.float64], are_right: NDArray[np.bool_], stated: int
) -> dict[str, Any]:
    """Return the figures of one part; `stated` is the number of turns that should be found."""
    is_likely = probabilities >= MEASURED_FROM
    return {
        "turns": len(probabilities),
        "stated": stated,
        "calibration error": round(calibration_error(probabilities, are_right), 4),
        "calibration error of likely mentions": round(
            calibration_error(probabilities[is_likely], are_right[is_likely]), 4
        ),
        "average precision": round(float(average_precision_score(are_right, probabilities)), 4),
        "thresholds": {
            str(threshold): _measure_threshold(probabilities >= threshold, are_right, stated)
            for threshold in THRESHOLDS
        },
    }


def _measure_threshold(
    is_found: NDArray[np.bool_], are_right: NDArray[np.bool_], stated: int
) -> dict[str, float]:
    right = int((is_found & are_right).sum())
    return {
        "precision": round(right / max(1, int(is_found.sum())), 4),
        "recall": round(right / stated, 4),
    }


def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--feedback", type=int, default=0, help="move the phrases first; writes mining-feedback"
    )
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of calls_sgd")
    options = parser.parse_args()
    lines = (options.data / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line) for line in lines]
    topics = build_topics(queries, LEAST_PROBABILITY)
    labels = Labels.read(options.data, queries)
    with connect(options.url) as client:
        spec = client.describe(options.index).spec
        matches = client.mine(topics, index=options.index, feedback=options.feedback)
        best = find_best_mentions(matches)
        turns = read_customer_turns(client, options.index)
        encoder = match_encoder_to_index(client._encoders.full, options.index, spec)
        kind = MOVED_MENTIONS if options.feedback else MENTIONS
        shipped = client._encoders.load_calibration(spec.precision, spec.dimension, kind)
    judged = JudgedMentions.judge(best, labels, shipped)
    if options.feedback:
        measured = {"model": spec.model, "feedback": options.feedback, **measure(judged, labels)}
        results.write("mining-feedback", measured, results.QUALITY)
        return
    results.write("mining", {"model": spec.model, **measure(judged, labels)}, results.QUALITY)
    dev_topics = [
        Topic(topic["name"], tuple(topic["phrases"]), precision=judging.PRECISION)
        for topic in topics
        if labels.parts[topic["name"]] == "dev"
    ]
    intents = [mining_rivals.label_turns(topic, turns, labels) for topic in dev_topics]
    ways = mining_rivals.compare(intents, turns, best, encoder)
    head = {"model": spec.model, "topics": len(dev_topics)}
    results.write("mining-rivals", {**head, **ways}, results.QUALITY)
    orders = judging.compare(dev_topics, judged, shipped, spec.fingerprint)
    results.write("judging", {**head, **orders}, results.QUALITY)


if __name__ == "__main__":
    main()
