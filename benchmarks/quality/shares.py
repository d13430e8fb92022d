"""How often the interval of a share holds it, and how wide it is beside plain counting.

The intents of calls_sgd are topics with three phrases each, as in `mining`; the share is that of
the calls in which the customer states the intent, and the labels answer as people would. A draw
takes one of the intents of the part ``dev``, and asks as ``judge --shares`` does, about calls drawn
at random within each stratum; but what is known is fitted only before each number of answers that
is measured, and not after each answer. Beside it calls drawn at random are counted, with the
interval of Wilson (1927). The constants of `hybrid_search.topics.shares` are fitted on the part
``train``.

    python -m benchmarks.quality.shares --url embedded:FOLDER --index calls
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import results
from benchmarks.quality.intent_labels import Labels, make_parser
from benchmarks.quality.intent_topics import build_topics
from hybrid_search import Topics, connect
from hybrid_search.topics.mention_calibration import MentionMap
from hybrid_search.topics.missed_mentions import LEAST_PROBABILITY
from hybrid_search.topics.shares import (
    LEVEL,
    STRATA,
    AnswerPlan,
    CallCounts,
    StratumModel,
    estimate_share,
    find_strata,
)

Interval = tuple[float, float, float]
"""Where an interval begins and ends, and the share that it should hold."""

ANSWERS = (0, 5, 20, 50, 100, 200)
DRAWS = 1000
PROCESSES, CHUNK = 4, 10
COUNTED = 200
"""Calls that are counted plainly."""


@dataclass(frozen=True, slots=True, eq=False)
class Intent:
    """The calls of an index as one intent sees them.

    Attributes:
        part: ``train`` or ``dev``.
        strata: The stratum of each call, int64 ``[calls]``.
        labels: Whether the intent is stated in it, bool ``[calls]``.
    """

    part: str
    strata: NDArray[np.int64]
    labels: NDArray[np.bool_]

    @property
    def share(self) -> float:
        """The share that is estimated."""
        return float(self.labels.mean())


def read_intents(url: str, index: str, data: Path) -> tuple[dict[str, Intent], MentionMap]:
    """Return the intents that are stated in an index, and the map of their spans."""
    lines = (data / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    queries = [json.loads(line) for line in lines]
    labels = Labels.read(data, queries)
    topics = Topics.load(build_topics(queries, LEAST_PROBABILITY))
    with connect(url) as client:
        blocks = list(client.mine_blocks(topics, index=index))
        passages = client.backend.iterate_passages(index)
        ids = list(dict.fromkeys(passage.document_id for passage in passages))
    numbers = {name: number for number, name in enumerate(ids)}
    best = {topic.name: np.full(len(ids), -np.inf) for topic in topics}
    for match in (match for block in blocks for match in block.matches):
        row, odds = best[match.topic], math.log(match.probability / (1 - match.probability))
        row[numbers[match.id]] = max(row[numbers[match.id]], odds)
    maps = blocks[-1].maps
    assert maps is not None
    intents = {
        name: Intent(
            labels.parts[name],
            find_strata(odds),
            np.array([(name, call) in labels.calls for call in ids]),
        )
        for name, odds in best.items()
    }
    stated = {name: intent for name, intent in intents.items() if intent.labels.any()}
    return stated, maps.default


def judge_intent(
    intent: Intent, used_map: MentionMap, generator: np.random.Generator
) -> Iterator[tuple[StratumModel, CallCounts]]:
    """Yield what is known after each of `ANSWERS`; those in between are planned together."""
    calls = np.bincount(intent.strata, minlength=STRATA)
    order = generator.permutation(len(intent.strata))
    waiting = [order[intent.strata[order] == number].tolist() for number in range(STRATA)]
    judged, yes = np.zeros_like(calls), np.zeros_like(calls)
    prior = StratumModel.from_map(used_map)
    for answers in np.diff(ANSWERS, append=ANSWERS[-1]):
        counts = CallCounts(calls, judged.copy(), yes.copy())
        model = prior.add_answers(counts)
        yield model, counts
        plan = AnswerPlan(model, counts)
        for _ in range(answers):
            strata = plan.rank_strata()
            if len(strata):  # else all calls with a span are known
                plan.add(int(strata[0]), 1)
                judged[strata[0]] += 1
                yes[strata[0]] += int(intent.labels[waiting[strata[0]].pop()])


def count_plainly(intent: Intent, generator: np.random.Generator) -> tuple[float, float]:
    """Return Wilson's interval of the share, by `COUNTED` calls drawn at random."""
    rows = generator.choice(len(intent.labels), COUNTED, replace=False)
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    share, squared = float(intent.labels[rows].mean()), z**2 / COUNTED
    half = z * math.sqrt((share * (1 - share) + squared / 4) / COUNTED)
    middle = share + squared / 2
    return (middle - half) / (1 + squared), (middle + half) / (1 + squared)


def summarize(rows: Sequence[Interval]) -> dict[str, float]:
    """Return how often intervals of low and high end hold the true share, and their width."""
    low, high, true = np.array(rows).T
    return {
        "covered": round(float(((low <= true) & (true <= high)).mean()), 3),
        "width": round(float((high - low).mean()), 4),
    }


def simulate_draw(intent: Intent, used_map: MentionMap, seed: int) -> dict[str, Interval]:
    """Return the intervals of one draw: of calls that are counted, and after each of `ANSWERS`."""
    generator = np.random.default_rng(seed)
    intervals = {"counted": (*count_plainly(intent, generator), intent.share)}
    stages = judge_intent(intent, used_map, generator)
    for number, (model, counts) in zip(ANSWERS, stages, strict=True):
        share = estimate_share(counts, model.draw())
        intervals[str(number)] = (share.low, share.high, intent.share)
    return intervals


def simulate(intents: Sequence[Intent], used_map: MentionMap, draws: int) -> dict[str, Any]:
    """Return the figures of so many draws, intent by intent in turn."""
    turns = [intents[seed % len(intents)] for seed in range(draws)]
    with ProcessPoolExecutor(PROCESSES) as pool:
        rows = list(pool.map(simulate_draw, turns, repeat(used_map), range(draws), chunksize=CHUNK))
    return {name: summarize([row[name] for row in rows]) for name in rows[0]}


def main() -> None:
    """Run the command."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, default=results.DATA, help="the folder of all data")
    options = parser.parse_args()
    intents, used_map = read_intents(options.url, options.index, options.data / "calls_sgd")
    measured = [intent for intent in intents.values() if intent.part == "dev"]
    payload = {
        "calls": len(measured[0].labels),
        "topics": len(measured),
        "draws": DRAWS,
        "dev": simulate(measured, used_map, DRAWS),
    }
    results.write("shares", payload, results.QUALITY)


if __name__ == "__main__":
    main()
