"""How right the estimate is of what mining misses: for labelled intents, and for written turns.

The intents of calls_sgd are topics with three phrases each, as in `mining`; missed are the labelled
turns below the threshold of 0.5. Each topic has the measured map first, then one that is tuned by
the judgments that `judge` would ask for, which the labels answer. A topic whose map is not known
well enough is not counted. The written turns are of trades that nothing was trained on; most of
them share no word with a phrase.

    python -m benchmarks.quality.missed --url embedded:FOLDER --index calls
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.quality.intent_labels import JudgedMentions, Labels, find_best_mentions, make_parser
from benchmarks.quality.intent_topics import build_topics
from benchmarks.quality.judging import choose_as_judge
from hybrid_search import Topics, connect
from hybrid_search.topics.call_counts import CallGroups
from hybrid_search.topics.judging_queue import LEAST_PROBABILITY as LEAST_JUDGED
from hybrid_search.topics.match_file import Progress
from hybrid_search.topics.mention_calibration import MentionMap, MentionMaps
from hybrid_search.topics.missed_mentions import (
    LEAST_PROBABILITY,
    MissedMentions,
    count_log_odds,
    estimate_missed,
)
from hybrid_search.topics.run import MiningSummary
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.tuning import FEWEST, Tuning, fit_map
from hybrid_search.topics.types import UnlikelySpans

THRESHOLD = 0.5
JUDGMENTS = (20, 40, 80)
TRADES = ("water", "vet", "hotels")


def summarize(rows: Iterable[tuple[MissedMentions | None, int]]) -> dict[str, float]:
    """Return how often the interval holds what was missed, and both sums."""
    known = [(estimate, missed) for estimate, missed in rows if estimate]
    held = [estimate.interval[0] <= missed <= estimate.interval[1] for estimate, missed in known]
    return {
        "topics": len(known),
        "held": sum(held),
        "expected": round(sum(estimate.expected for estimate, _ in known), 1),
        "missed": sum(missed for _, missed in known),
    }


def estimate_intent(own: JudgedMentions, used_map: MentionMap) -> tuple[MissedMentions | None, int]:
    """Return what a map says of one intent, and how many labelled turns it misses."""
    probabilities = used_map.calibration.span(own.scores)
    is_below = probabilities < THRESHOLD
    counted = probabilities[is_below & (probabilities >= LEAST_PROBABILITY)]
    estimate = estimate_missed(UnlikelySpans(count_log_odds(counted)), used_map)
    return estimate, int(own.labels[is_below].sum())


def tune_intent(name: str, own: JudgedMentions, count: int, maps: MentionMaps) -> MentionMap | None:
    """Return the map by so many judgments; None if they are too few, or of one kind."""
    asked = own.select(np.array([match.probability >= LEAST_JUDGED for match in own.matches]))
    rows = choose_as_judge(asked, count)
    labels = asked.labels[rows]
    if len(rows) < FEWEST or labels.all() or not labels.any():
        return None
    topic = Topic(name, (name,))
    tuned = fit_map(asked.scores[rows], labels, topic)
    return MentionMaps(maps.default, Tuning("", count, None, {name: tuned})).find(topic)


def measure_intents(url: str, index: str, data: Path) -> dict[str, Any]:
    """Return the figures of the intents, by the map that is used."""
    lines = (data / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line) for line in lines]
    topics = Topics.load(build_topics(queries, LEAST_PROBABILITY / 2))
    with connect(url) as client:
        documents = client.describe(index).documents
        blocks = list(client.mine_blocks(topics, index=index))
    maps = blocks[-1].maps
    assert maps is not None
    best = find_best_mentions(match for block in blocks for match in block.matches)
    judged = JudgedMentions.judge(best, Labels.read(data, queries), maps.default.calibration)
    intents = {topic.name: judged.of_topic(topic.name) for topic in topics}
    figures = {
        "measured": summarize(estimate_intent(own, maps.default) for own in intents.values())
    }
    for count in JUDGMENTS:
        tuned = {name: tune_intent(name, own, count, maps) for name, own in intents.items()}
        rows = (estimate_intent(intents[name], own) for name, own in tuned.items() if own)
        figures[f"{count} judgments"] = summarize(rows)
    return {"calls": documents, **figures}


def measure_written(path: Path) -> dict[str, float]:
    """Return the figures of the written turns, each a document of its own."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["domain"] in TRADES]
    documents = [
        {"id": f"{row['topic']} {kind} {number}", "text": turn["text"]}
        for row in rows
        for kind in ("says", "near")
        for number, turn in enumerate(row[kind])
    ]
    topics = Topics.load(
        [{"name": row["topic"], "phrases": list(row["phrases"].values())} for row in rows]
    )
    found: defaultdict[str, set[str]] = defaultdict(set)
    progress = start = Progress()
    with connect("memory:") as client:
        client.ingest(documents)
        for block in client.mine_blocks(topics, groups=CallGroups()):
            progress = progress.add(block, start, 0)
            for match in block.matches:
                found[match.topic].add(match.id)
    estimates = MiningSummary(progress, 0, 0.0, topics, block.maps).estimate_missed()
    ids = {
        row["topic"]: {f"{row['topic']} says {number}" for number in range(len(row["says"]))}
        for row in rows
    }
    missed = {name: len(own - found[name]) for name, own in ids.items()}
    return summarize((estimates[name], count) for name, count in missed.items())


def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of all data")
    options = parser.parse_args()
    payload = {
        "intents": measure_intents(options.url, options.index, options.data / "calls_sgd"),
        "written": measure_written(options.data / "written" / "topics.jsonl"),
    }
    results.write("missed", payload, results.QUALITY)


if __name__ == "__main__":
    main()
