"""Choose which span to ask about next: the one whose answer would tell most.

This is uncertainty sampling (Lewis and Gale 1994, "A sequential algorithm for training text
classifiers"): the span whose probability is nearest to 0.5 under the map fitted to the answers so
far. Spans at 0.5 alone say little of the slope, so every other question is near 0.18 or 0.82, where
a logistic's two parameters are estimated best (D-optimality, Minkin 1987). The topic with the
fewest answers comes first.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hybrid_search.topics.judgments import Judgment, current_time
from hybrid_search.topics.logistic import Scores, fit_logistic
from hybrid_search.topics.match import Match
from hybrid_search.topics.match_file import Progress
from hybrid_search.topics.run import MiningSummary, ReportMining
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.types import MinedBlock

TARGETS = (0.5, 0.18, 0.5, 0.82)
"""The probabilities near which one question of a topic after the other is asked."""

ANCHORS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
ANCHOR_WEIGHT = 0.8
"""The map of mining counts as four answers: as much at each of five probabilities."""

SCALE = 10.0
"""Log odds are divided by this, so that scores lie in the range of a cosine."""

BINS = 10
CELL_SPANS = 40
"""How many spans of a topic, and of a tenth of all probabilities, are in the queue."""

Place = tuple[str, str, int, int]
"""Topic, document, start and end, as `Judgment.place`."""


def match_place(match: Match) -> Place:
    """Return the span of a match that is judged."""
    return match.topic, match.id, match.start, match.end


def make_judgment(match: Match, answer: str) -> Judgment:
    """Return the judgment of a match that is made now; `answer` is ``yes`` or ``no``."""
    return Judgment(
        match.topic,
        match.phrase,
        match.id,
        match.start,
        match.end,
        match.text,
        answer,
        match.model,
        current_time(),
    )


class CandidateSample:
    """Some matches of each topic from each tenth of all probabilities, whatever their order.

    Args:
        judged: The places that stay in it in any case.
    """

    def __init__(self, judged: Iterable[Place] = ()) -> None:
        self._judged = frozenset(judged)
        self._judged_matches: list[Match] = []
        self._cells: dict[tuple[str, int], list[tuple[int, Place, Match]]] = {}

    def add(self, match: Match) -> None:
        """Take a match into the sample, or leave it out if its cell is full of others."""
        place = match_place(match)
        if place in self._judged:
            self._judged_matches.append(match)
            return
        number = min(int(match.probability * BINS), BINS - 1)
        cell = self._cells.setdefault((match.topic, number), [])
        # the smallest digests stay, so that the sample does not depend on when a match comes
        digest = hashlib.sha256(repr(place).encode("utf-8", "replace")).digest()
        row = (-int.from_bytes(digest[:8], "big"), place, match)
        if len(cell) < CELL_SPANS:
            heapq.heappush(cell, row)
        else:
            heapq.heappushpop(cell, row)

    def list_matches(self) -> list[Match]:
        """Return the matches of the sample, ordered by their places."""
        rows = [match for cell in self._cells.values() for _, _, match in cell]
        return sorted([*self._judged_matches, *rows], key=match_place)


@dataclass(slots=True)
class _TopicState:
    """The spans of one topic, in order, with their answers."""

    matches: Sequence[Match]
    scores: Scores
    answers: dict[int, bool] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)

    def probabilities(self) -> Scores:
        """Return the probability of each span, by the map that fits the answers so far."""
        rows = list(self.answers)
        anchors = np.log(ANCHORS / (1 - ANCHORS)) / SCALE
        scores = np.concatenate([self.scores[rows], anchors, anchors])
        labels = np.zeros(len(scores), dtype=np.bool_)
        labels[: len(rows)] = list(self.answers.values())
        labels[len(rows) : len(rows) + len(ANCHORS)] = True
        weights = [np.ones(len(rows)), ANCHOR_WEIGHT * ANCHORS, ANCHOR_WEIGHT * (1 - ANCHORS)]
        # the slope of the map of mining is 1 for log odds, and so SCALE here
        fitted = fit_logistic(scores, labels, np.concatenate(weights), SCALE)
        return fitted.span(self.scores)

    def list_open(self) -> list[int]:
        """Return the numbers of the spans that nothing was said of."""
        return [
            number
            for number in range(len(self.matches))
            if number not in self.answers and number not in self.skipped
        ]


class JudgingQueue:
    """Spans that may be asked about, and the answers so far; it reads and writes no file.

    Args:
        matches: Candidates with their probabilities by the map of mining, of several topics.
        judgments: Earlier answers; their spans are not asked about again.
    """

    def __init__(self, matches: Sequence[Match], judgments: Iterable[Judgment] = ()) -> None:
        self._topics = {
            name: _build_state([match for match in matches if match.topic == name])
            for name in dict.fromkeys(match.topic for match in matches)
        }
        self._counts: Counter[str] = Counter()
        self._steps: list[tuple[str, int, Match]] = []
        self._returned: Match | None = None
        for judgment in judgments:
            self._counts[judgment.topic] += 1
            number = self._find(judgment.place)
            if number is not None:
                self._topics[judgment.topic].answers[number] = judgment.is_mention

    def __len__(self) -> int:
        """Return how many spans nothing was said of."""
        return sum(len(state.list_open()) for state in self._topics.values())

    def choose(self) -> Match | None:
        """Return the span to ask about next; None if all were answered or skipped."""
        if self._returned:
            return self._returned
        open_spans = {name: state.list_open() for name, state in self._topics.items()}
        names = [name for name, numbers in open_spans.items() if numbers]
        if not names:
            return None
        name = min(names, key=lambda name: self._counts[name])
        state, target = self._topics[name], TARGETS[self._counts[name] % len(TARGETS)]
        distances = np.abs(state.probabilities() - target)
        return state.matches[min(open_spans[name], key=lambda number: distances[number])]

    def estimate(self, match: Match) -> float:
        """Return the probability of a span of the queue, by the answers so far."""
        number = self._find(match_place(match))
        if number is None:
            raise KeyError(match_place(match))
        return float(self._topics[match.topic].probabilities()[number])

    def answer(self, match: Match, *, is_mention: bool) -> None:
        """Take an answer about a span of the queue."""
        number = self._step("answer", match)
        self._topics[match.topic].answers[number] = is_mention
        self._counts[match.topic] += 1

    def skip(self, match: Match) -> None:
        """Ask no more about a span of the queue."""
        self._topics[match.topic].skipped.add(self._step("skip", match))

    def drop(self, match: Match) -> None:
        """Remove a span that cannot be shown from the queue; this does not count as a step."""
        self.skip(match)
        self._steps.pop()

    def undo(self) -> tuple[str, Match] | None:
        """Take the last step back; its span is asked about next.

        Returns:
            ``answer`` or ``skip``, and the span; None if there was no step.
        """
        if not self._steps:
            return None
        kind, number, match = self._steps.pop()
        state = self._topics[match.topic]
        if kind == "answer":
            del state.answers[number]
            self._counts[match.topic] -= 1
        else:
            state.skipped.remove(number)
        self._returned = match
        return kind, match

    def _step(self, kind: str, match: Match) -> int:
        number = self._find(match_place(match))
        if number is None:
            raise KeyError(match_place(match))
        self._steps.append((kind, number, match))
        self._returned = None
        return number

    def _find(self, place: Place) -> int | None:
        """Return the number of a span in its topic, None if it is not in the queue."""
        state = self._topics.get(place[0])
        matches = state.matches if state else ()
        return next(
            (number for number, match in enumerate(matches) if match_place(match) == place), None
        )


def _build_state(matches: Sequence[Match]) -> _TopicState:
    logits = [math.log(p / (1 - p)) for p in (_inside(match.probability) for match in matches)]
    return _TopicState(matches, np.array(logits) / SCALE)


def _inside(probability: float) -> float:
    """Return a probability that has finite odds."""
    return min(max(probability, 1e-9), 1 - 1e-9)


LEAST_PROBABILITY = 0.01
"""Less likely spans are not asked about: nearly all of them are no mentions."""


def build_queue(
    open_blocks: Callable[[Topics], Iterator[MinedBlock]],
    topics: Topics,
    judgments: Sequence[Judgment],
    report: ReportMining | None = None,
) -> JudgingQueue:
    """Return the spans to judge, drawn from all with a probability worth asking about.

    Args:
        open_blocks: Mines topics.
        topics: The topics; their own thresholds are ignored.
        judgments: Earlier answers, about these and perhaps other topics.
        report: Called with the progress.
    """
    lowered = [replace(topic, threshold=LEAST_PROBABILITY, precision=None) for topic in topics]
    started_at = time.monotonic()
    sample = CandidateSample(judgment.place for judgment in judgments)
    progress = start = Progress()
    for block in open_blocks(Topics(tuple(lowered), topics.tuning_file)):
        for match in block.matches:
            sample.add(match)
        progress = progress.add(block, start, 0)
        if report:
            report(MiningSummary(progress, 0, time.monotonic() - started_at, topics))
    return JudgingQueue(sample.list_matches(), judgments)
