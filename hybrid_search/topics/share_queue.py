"""Choose which call to ask about next, so that the interval of a topic's share shrinks most.

The calls of a stratum are asked about in an order that is random, so that those with an answer are
a random sample of it; how many of which stratum is decided by `AnswerPlan`. A call is shown by its
best span. The topic with the fewest answers about calls comes first.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hybrid_search.topics.judging_queue import (
    CandidateSample,
    JudgingQueue,
    Place,
    build_queue,
    draw_number,
    match_place,
)
from hybrid_search.topics.judgments import Judgment, read_earlier
from hybrid_search.topics.match import Match
from hybrid_search.topics.match_file import Progress
from hybrid_search.topics.missed_mentions import LEAST_PROBABILITY
from hybrid_search.topics.run import MiningSummary, ReportMining
from hybrid_search.topics.shares import STRATA, AnswerPlan, CallCounts, StratumModel, find_strata
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.types import Integers, MinedBlock


def find_stratum(match: Match) -> int:
    """Return the stratum of a call by its best span."""
    probability = min(max(match.probability, 1e-12), 1 - 1e-12)
    return int(find_strata(np.array([math.log(probability / (1 - probability))]))[0])


class ShareQueue(JudgingQueue):
    """Calls that may be asked about, each by its best span; it reads and writes no file.

    Args:
        matches: The best spans of some calls, drawn at random from each stratum.
        judgments: Earlier answers about the calls of these spans.
        calls: How many calls are in each stratum, by topic, int64 ``[STRATA]``.
        models: What is known of the strata of each topic without an answer.
    """

    asks_calls = True

    def __init__(
        self,
        matches: Sequence[Match],
        judgments: Sequence[Judgment],
        calls: Mapping[str, Integers],
        models: Mapping[str, StratumModel],
    ) -> None:
        best = {(match.topic, match.id): match_place(match) for match in matches}
        known = [row for row in judgments if row.call and (row.topic, row.id) in best]
        super().__init__(matches)
        self._take_earlier({best[row.topic, row.id]: row.call == "yes" for row in known})
        self._calls, self._models = calls, models

    def _choose_place(self, topic: str) -> Place:
        model, counts = self._fit(topic)
        open_places = defaultdict(list)
        for place in self._list_open(topic):
            open_places[find_stratum(self._topics[topic][place])].append(place)
        ranked = AnswerPlan(model, counts).rank_strata().tolist()
        stratum = next((number for number in ranked if number in open_places), min(open_places))
        return min(open_places[stratum], key=draw_number)

    def _estimate_topic(self, topic: str) -> dict[Place, float]:
        model, _ = self._fit(topic)
        probabilities = model.average_probabilities()
        matches = self._topics[topic]
        return {place: float(probabilities[find_stratum(row)]) for place, row in matches.items()}

    def _fit(self, topic: str) -> tuple[StratumModel, CallCounts]:
        """Return what is known of a topic's strata by the answers so far, and its calls."""
        judged, yes = np.zeros(STRATA, dtype=np.int64), np.zeros(STRATA, dtype=np.int64)
        for place, match in self._topics[topic].items():
            if place in self._answers:
                judged[find_stratum(match)] += 1
                yes[find_stratum(match)] += self._answers[place]
        counts = CallCounts(self._calls[topic], judged, yes)
        return self._models[topic].add_answers(counts), counts


def open_queue(
    open_blocks: Callable[[Topics], Iterator[MinedBlock]],
    topics: Topics,
    judgments: str | Path | None,
    report: ReportMining | None = None,
    *,
    shares: bool,
) -> JudgingQueue:
    """Return a queue of spans, or of calls for `shares`, with the answers of a file so far.

    The file need not exist; UsageError is raised if one of its lines is not valid.
    """
    earlier = read_earlier(judgments) if judgments else []
    build = build_share_queue if shares else build_queue
    return build(open_blocks, topics, earlier, report)


def build_share_queue(
    open_blocks: Callable[[Topics], Iterator[MinedBlock]],
    topics: Topics,
    judgments: Sequence[Judgment],
    report: ReportMining | None = None,
) -> ShareQueue:
    """Return the calls to ask about, drawn from all in which a span is likely enough.

    As `hybrid_search.topics.judging_queue.build_queue`.
    """
    lowered = [replace(topic, threshold=LEAST_PROBABILITY, precision=None) for topic in topics]
    started_at = time.monotonic()
    answered = {(row.topic, row.id) for row in judgments if row.call}
    sample = CandidateSample(find_cell=find_stratum)
    kept: list[Match] = []
    models: dict[str, StratumModel] = {}
    calls = {topic.name: np.zeros(STRATA, dtype=np.int64) for topic in topics}
    progress = start = Progress()
    for block in open_blocks(Topics(tuple(lowered), topics.tuning_file)):
        for match in _find_best(block.matches):
            calls[match.topic][find_stratum(match)] += 1
            if (match.topic, match.id) in answered:
                kept.append(match)
            else:
                sample.add(match)
        progress = progress.add(block, start, 0)
        if report:
            report(MiningSummary(progress, 0, time.monotonic() - started_at, topics))
        if block.maps:
            models = {topic.name: StratumModel.from_map(block.maps.find(topic)) for topic in topics}
    for counts in calls.values():
        counts[0] = progress.documents - counts.sum()
    return ShareQueue([*kept, *sample.list_matches()], judgments, calls, models)


def _find_best(matches: Sequence[Match]) -> list[Match]:
    """Return the most probable match of each topic and document, of equal ones the first."""
    best: dict[tuple[str, str], Match] = {}
    for match in matches:
        key = match.topic, match.id
        if key not in best or match.probability > best[key].probability:
            best[key] = match
    return list(best.values())
