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
from dataclasses import replace

import numpy as np

from hybrid_search.topics.judgments import Judgment, current_time
from hybrid_search.topics.logistic import fit_logistic
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


def make_judgment(match: Match, answer: str, call: str = "") -> Judgment:
    """Return the judgment of a match that is made now; `answer` is ``yes`` or ``no``.

    `call` is the answer about the whole call, if that was asked.
    """
    known = {name: getattr(match, name) for name in Judgment.__slots__ if hasattr(match, name)}
    return Judgment(**known, answer=answer, at=current_time(), call=call)


def find_tenth(match: Match) -> int:
    """Return which tenth of all probabilities a match is in, from 0."""
    return min(int(match.probability * BINS), BINS - 1)


def draw_number(place: Place) -> int:
    """Return a number that is as good as random, always the same for a place."""
    digest = hashlib.sha256(repr(place).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big")


class CandidateSample:
    """Some matches of each topic from each cell, a tenth of all probabilities, in whatever order.

    The `judged` places stay in it in any case.
    """

    def __init__(
        self, judged: Iterable[Place] = (), find_cell: Callable[[Match], int] = find_tenth
    ) -> None:
        self._judged, self._find_cell = frozenset(judged), find_cell
        self._judged_matches: list[Match] = []
        self._cells: dict[tuple[str, int], list[tuple[int, Place, Match]]] = {}

    def add(self, match: Match) -> None:
        """Take a match into the sample, or leave it out if its cell is full of others."""
        place = match_place(match)
        if place in self._judged:
            self._judged_matches.append(match)
            return
        cell = self._cells.setdefault((match.topic, self._find_cell(match)), [])
        # the smallest numbers stay, so that the sample does not depend on when a match comes
        row = (-draw_number(place), place, match)
        heapq.heappush(cell, row)
        if len(cell) > CELL_SPANS:
            heapq.heappop(cell)

    def list_matches(self) -> list[Match]:
        """Return the matches of the sample, ordered by their places."""
        rows = [match for cell in self._cells.values() for _, _, match in cell]
        return sorted([*self._judged_matches, *rows], key=match_place)


class JudgingQueue:
    """Spans that may be asked about, and the answers so far; it reads and writes no file.

    Args:
        matches: Candidates with their probabilities by the map of mining, of several topics.
        judgments: Earlier answers; their spans are not asked about again.

    Attributes:
        asks_calls: Whether an answer is about the whole call, which its span stands for.
    """

    asks_calls = False

    def __init__(self, matches: Sequence[Match], judgments: Iterable[Judgment] = ()) -> None:
        self._topics: dict[str, dict[Place, Match]] = {}
        for match in matches:
            self._topics.setdefault(match.topic, {})[match_place(match)] = match
        self._take_earlier({judgment.place: judgment.is_mention for judgment in judgments})
        self._skipped: set[Place] = set()
        self._steps: list[tuple[str, Match]] = []
        self._returned: Match | None = None

    def _take_earlier(self, answers: dict[Place, bool]) -> None:
        self._answers = answers
        self._counts = Counter(topic for topic, *_ in answers)

    def __len__(self) -> int:
        """Return how many spans nothing was said of."""
        return sum(len(self._list_open(topic)) for topic in self._topics)

    def choose(self) -> Match | None:
        """Return the span to ask about next; None if all were answered or skipped."""
        if self._returned:
            return self._returned
        open_topics = [topic for topic in self._topics if self._list_open(topic)]
        if not open_topics:
            return None
        topic = min(open_topics, key=lambda name: self._counts[name])
        return self._topics[topic][self._choose_place(topic)]

    def estimate(self, match: Match) -> float:
        """Return the probability of a span of the queue, by the answers so far."""
        return self._estimate_topic(match.topic)[match_place(match)]

    def answer(self, match: Match, *, is_mention: bool) -> None:
        """Take an answer about a span of the queue."""
        self._answers[match_place(match)] = is_mention
        self._counts[match.topic] += 1
        self._step("answer", match)

    def skip(self, match: Match) -> None:
        """Ask no more about a span of the queue."""
        self._skipped.add(match_place(match))
        self._step("skip", match)

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
        kind, match = self._steps.pop()
        if kind == "answer":
            del self._answers[match_place(match)]
            self._counts[match.topic] -= 1
        else:
            self._skipped.remove(match_place(match))
        self._returned = match
        return kind, match

    def _step(self, kind: str, match: Match) -> None:
        self._steps.append((kind, match))
        self._returned = None

    def _list_open(self, topic: str) -> list[Place]:
        """Return the spans of a topic that nothing was said of."""
        closed = self._answers.keys() | self._skipped
        return [place for place in self._topics[topic] if place not in closed]

    def _choose_place(self, topic: str) -> Place:
        """Return the span of a topic to ask about; there is an open one."""
        target = TARGETS[self._counts[topic] % len(TARGETS)]
        probabilities = self._estimate_topic(topic)
        return min(self._list_open(topic), key=lambda place: abs(probabilities[place] - target))

    def _estimate_topic(self, topic: str) -> dict[Place, float]:
        """Return the probability of each span, by the map that fits the answers so far."""
        matches = self._topics[topic]
        scores = {place: _score(match.probability) for place, match in matches.items()}
        rows = [place for place in self._answers if place in matches]
        anchors = [_score(probability) for probability in ANCHORS]
        labels = [self._answers[place] for place in rows]
        labels += [is_mention for is_mention in (True, False) for _ in anchors]
        weights = [np.ones(len(rows)), ANCHOR_WEIGHT * ANCHORS, ANCHOR_WEIGHT * (1 - ANCHORS)]
        fitted = fit_logistic(
            np.array([*(scores[place] for place in rows), *anchors, *anchors]),
            np.array(labels),
            np.concatenate(weights),
            SCALE,  # the slope of the map of mining is 1 for log odds, and so SCALE here
        )
        probabilities = fitted.span(np.array(list(scores.values())))
        return dict(zip(scores, probabilities.tolist(), strict=True))


def _score(probability: float) -> float:
    """Return the log odds of a probability, made finite, in the range of a cosine."""
    finite = min(max(probability, 1e-9), 1 - 1e-9)
    return math.log(finite / (1 - finite)) / SCALE


LEAST_PROBABILITY = 0.01
"""Less likely spans are not asked about: nearly all of them are no mentions."""


def build_queue(
    open_blocks: Callable[[Topics], Iterator[MinedBlock]],
    topics: Topics,
    judgments: Sequence[Judgment],
    report: ReportMining | None = None,
) -> JudgingQueue:
    """Return the spans to judge, drawn from all with a probability worth asking about.

    `open_blocks` mines topics, whose own thresholds are ignored; the judgments are earlier answers,
    about these and perhaps other topics.
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
