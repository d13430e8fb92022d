"""Estimate the mentions below the threshold: the sum of the probabilities of the spans there.

Spans below the threshold are chosen like mentions above it, at most one for each clause, and
counted by their log odds. Their number has an interval by simulation: each draw moves the map as
far as it may be off, and then makes each span a mention with its probability (a Poisson-binomial
number). Spans with a probability below `LEAST_PROBABILITY` are ignored.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_search.topics.logistic import Interval, Scores
from hybrid_search.topics.mention_calibration import MentionMap
from hybrid_search.topics.types import UnlikelySpans

LEAST_PROBABILITY = 0.001
"""Below it, 1 of 5,000 labelled turns is a mention."""

BIN_WIDTH = 0.5
"""Log odds that are counted together; their middle stands for all, which is right to 1 in 100."""

FIRST_BIN = -7.0
"""The log odds where the first bin begins: of `LEAST_PROBABILITY`, rounded down."""

DRAWS = 1000
"""Draws of the simulation, with a fixed seed."""


@dataclass(frozen=True, slots=True)
class MissedMentions:
    """The number of mentions of a topic that are probably missed, and its 95 % interval."""

    expected: float
    interval: Interval

    def to_dict(self) -> dict[str, float]:
        """Return the estimate as a JSON object."""
        low, high = self.interval
        return {"expected": round(self.expected, 1), "low": round(low), "high": round(high)}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.expected:,.0f} ({low:,.0f} to {high:,.0f})"


def count_log_odds(probabilities: Scores) -> dict[int, int]:
    """Return how many probabilities are in each bin of log odds, by its number from 0."""
    log_odds = np.log(probabilities) - np.log1p(-probabilities)
    numbers = np.floor((log_odds - FIRST_BIN) / BIN_WIDTH).astype(int)
    return dict(Counter(numbers.tolist()))


def estimate_missed(spans: UnlikelySpans, used_map: MentionMap) -> MissedMentions | None:
    """Return how many of the spans below a topic's threshold are probably mentions.

    None if the map that gave them their probabilities is only a rough one.
    """
    if not used_map.is_known:
        return None
    calibration, generator = used_map.calibration, np.random.default_rng(0)
    numbers, counts = (
        np.array(list(column), dtype=np.int64)
        for column in (spans.counts.keys(), spans.counts.values())
    )
    scores = FIRST_BIN + BIN_WIDTH * (numbers.astype(np.float64) + 0.5)
    scores = calibration.midpoint + scores / calibration.slope
    expected = float(counts @ calibration.span(scores)) * spans.share
    # a span that is nearer to the phrase is never less likely
    intercepts, slopes = _draw_maps(used_map, generator)
    log_odds = intercepts[:, None] + np.maximum(slopes, 0)[:, None] * scores
    probabilities = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -30, 30)))
    mentions = generator.binomial(counts, probabilities).sum(axis=1)
    mentions = generator.binomial(mentions, _draw_shares(spans, generator))
    low, high = np.percentile(mentions, [2.5, 97.5])
    return MissedMentions(expected, (float(low), float(high)))


def _draw_maps(used_map: MentionMap, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return intercepts and slopes that the map may have, float64 ``[2, DRAWS]``."""
    calibration = used_map.calibration
    intercept, both, slope = used_map.covariance
    means = (-calibration.slope * calibration.midpoint, calibration.slope)
    return generator.multivariate_normal(means, [[intercept, both], [both, slope]], DRAWS).T


def _draw_shares(spans: UnlikelySpans, generator: np.random.Generator) -> NDArray[np.float64]:
    """Return shares of the spans for which the topic's conditions may hold, ``[DRAWS]``."""
    if not spans.checked:
        return np.full(DRAWS, spans.share)
    return generator.beta(spans.held + 0.5, spans.checked - spans.held + 0.5, DRAWS)
