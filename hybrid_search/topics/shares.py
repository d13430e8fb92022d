"""Estimate the share of calls that have a topic, from probabilities and answers about calls.

Calls are put into strata by the log odds of their best span. The log odds of a call of each
stratum are unknown, with a normal prior: its mean is what the topic's map says, its covariance how
far the map may be off, and how far a single stratum may lie from it. Answers about calls move both
(Laplace's approximation; Rasmussen and Williams 2006, algorithm 3.1). This is the correction of
prediction-powered inference (Angelopoulos et al. 2023) in its Bayesian, stratified form (Hofer et
al. 2024; Fisch et al. 2024), which keeps its coverage where answers are few and a topic is rare;
sample variances do not. The share is then summed over the strata (poststratification; Gelman and
Little 1997).

Answers may be as many in each stratum as one likes, and depend on earlier ones: chosen at random
within a stratum, they say of it what they say however it was chosen (Rubin 1976).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from hybrid_search.topics.logistic import Scores
from hybrid_search.topics.mention_calibration import MentionMap
from hybrid_search.topics.missed_mentions import BIN_WIDTH, FIRST_BIN
from hybrid_search.topics.types import Integers

BINS = 28
"""Bins of log odds, from `FIRST_BIN` to +7; what is outside counts for the nearest."""

STRATA = BINS + 1
"""One for each bin; the first is of calls in which no span is likely enough to be counted."""

DEVIATION, REACH = 1.4, 2.0
"""How far a stratum lies from its map, as a standard deviation of log odds, and how far in log
odds such deviations are alike: their correlation falls by e. From the intents of calls_sgd that are
not measured (`benchmarks.quality.shares`)."""

SQUARED_C = (16 * 3**0.5 / (15 * np.pi)) ** 2
"""A logistic is nearly a normal distribution function with log odds times c (Zeger et al. 1988)."""

LEVEL = 0.9
"""How often an interval holds the share."""

CHANCE, ROUNDING = 0.05, 1e-9
"""How often a change is called one where there is none, and what rounding may add to a share."""

DRAWS = 1000
"""Draws of a simulation, with a fixed seed."""

STEPS, TOLERANCE, LARGEST_STEP = 100, 1e-8, 3.0
"""Of Newton's method: the most steps, when it ends, and how far one goes in log odds."""

MOST_ANSWERS = 100_000
"""More answers than this are not counted."""

BATCH = 0.05
"""Answers that are planned at once, as a share of those planned so far."""


def find_strata(log_odds: Scores) -> Integers:
    """Return the stratum of calls by the log odds of their best span, int64 ``[calls]``.

    -inf is that of a call without such a span.
    """
    numbers = np.floor((np.maximum(log_odds, -1e9) - FIRST_BIN) / BIN_WIDTH).astype(np.int64)
    return np.where(np.isneginf(log_odds), 0, np.clip(numbers, 0, BINS - 1) + 1)


def list_log_odds() -> Scores:
    """Return what the map says of each stratum, its middle, float64 ``[STRATA]``."""
    middles: Scores = FIRST_BIN + BIN_WIDTH * (np.arange(STRATA, dtype=np.float64) - 0.5)
    return middles


@dataclass(frozen=True, slots=True, eq=False)
class CallCounts:
    """The calls of each stratum, each int64 ``[STRATA]``.

    Attributes:
        calls: How many calls there are.
        judged: How many of them were asked about.
        yes: How many of these have the topic.
    """

    calls: Integers
    judged: Integers
    yes: Integers

    @property
    def open(self) -> Integers:
        """How many calls nobody was asked about."""
        return self.calls - self.judged


@dataclass(frozen=True, slots=True)
class Share:
    """The share of calls that have a topic, 0..1, with its interval.

    Attributes:
        share: The expected share.
        low: Where the interval begins that holds the share `LEVEL` of the time.
        high: Where it ends.
        calls: How many calls there are.
        judged: How many of them were asked about.
    """

    share: float
    low: float
    high: float
    calls: int
    judged: int

    def to_dict(self) -> dict[str, float]:
        """Return the share as a JSON object."""
        rounded = {name: round(getattr(self, name), 4) for name in ("share", "low", "high")}
        return {**rounded, "calls": self.calls, "judged": self.judged}

    def __str__(self) -> str:
        return f"{self.share:.1%} ({self.low:.1%} to {self.high:.1%})"


@dataclass(frozen=True, slots=True, eq=False)
class StratumModel:
    """What is known of the log odds of each stratum's calls: a normal distribution.

    Attributes:
        mean: Float64 ``[STRATA]``.
        covariance: Float64 ``[STRATA, STRATA]``.
    """

    mean: Scores
    covariance: Scores

    @classmethod
    def from_map(cls, used_map: MentionMap) -> StratumModel:
        """Return what is known without an answer, by the topic's map.

        The log odds of a score s are ``intercept + slope s``, so that those of two scores have the
        covariance ``v + c (s + t) + w s t`` of the map's errors.
        """
        log_odds = list_log_odds()
        scores = used_map.calibration.midpoint + log_odds / used_map.calibration.slope
        intercept, both, slope = used_map.covariance
        covariance = intercept + both * np.add.outer(scores, scores)
        covariance += slope * np.outer(scores, scores)
        distances = np.abs(np.subtract.outer(log_odds, log_odds))
        covariance += DEVIATION**2 * np.exp(-distances / REACH)
        return cls(log_odds * _find_attenuation(covariance), covariance)

    def add_answers(self, counts: CallCounts) -> StratumModel:
        """Return what is known with answers: their posterior, by Laplace's approximation.

        Newton's method finds its mode f, where ``f = mean + covariance (yes - judged p)`` with p
        the probabilities of f; its precision there is that of the prior and ``judged p (1 - p)``.
        """
        mode, judged = self.mean.copy(), counts.judged.astype(np.float64)
        for _ in range(STEPS):
            probabilities = _to_probabilities(mode)
            weights = judged * probabilities * (1 - probabilities)
            target = weights * (mode - self.mean) + counts.yes - judged * probabilities
            reduced = self._reduce(weights)
            step = self.mean + reduced @ target - mode
            mode += step / max(1.0, float(np.abs(step).max()) / LARGEST_STEP)
            if np.abs(step).max() < TOLERANCE:
                break
        probabilities = _to_probabilities(mode)
        return StratumModel(mode, self._reduce(judged * probabilities * (1 - probabilities)))

    def _reduce(self, weights: Scores) -> Scores:
        """Return the covariance with the information `weights` of each stratum added."""
        roots = np.sqrt(weights)
        scaled = roots[:, None] * self.covariance
        inner = np.eye(len(roots)) + scaled * roots
        reduced: Scores = self.covariance - scaled.T @ np.linalg.solve(inner, scaled)
        return reduced

    def average_probabilities(self) -> Scores:
        """Return the mean probability of each stratum, float64 ``[STRATA]``."""
        return _to_probabilities(self.mean / _find_attenuation(self.covariance))

    def average_slopes(self) -> Scores:
        """Return how much that rises with the mean log odds, float64 ``[STRATA]``."""
        probabilities = self.average_probabilities()
        return probabilities * (1 - probabilities) / _find_attenuation(self.covariance)

    def draw(self) -> Scores:
        """Return probabilities that the strata may have, float64 ``[DRAWS, STRATA]``."""
        values, vectors = np.linalg.eigh(self.covariance)
        factors = vectors * np.sqrt(np.maximum(values, 0))
        return _to_probabilities(self.mean + _draw_normal() @ factors.T)


@cache
def _draw_normal() -> Scores:
    """Return the same normal numbers each time, float64 ``[DRAWS, STRATA]``."""
    return np.random.default_rng(0).standard_normal((DRAWS, STRATA))


def _find_attenuation(covariance: Scores) -> Scores:
    """Return how many times the log odds of a mean probability a mean of log odds is."""
    attenuation: Scores = np.sqrt(1 + SQUARED_C * np.diagonal(covariance))
    return attenuation


def _to_probabilities(log_odds: Scores) -> Scores:
    probabilities: Scores = 1.0 / (1.0 + np.exp(-np.clip(log_odds, -30, 30)))
    return probabilities


def estimate_share(counts: CallCounts, probabilities: Scores) -> Share:
    """Return the share of these calls that have the topic.

    A call that was asked about counts as was answered, every other one has the topic with the
    probability of its stratum. `probabilities` are draws of `StratumModel`, float64
    ``[DRAWS, STRATA]``. Without calls the share is 0.
    """
    calls, judged = int(counts.calls.sum()), int(counts.judged.sum())
    if not calls:
        return Share(0.0, 0.0, 0.0, 0, 0)
    generator = np.random.default_rng(1)
    open_calls = np.broadcast_to(counts.open, probabilities.shape)
    shares = (generator.binomial(open_calls, probabilities).sum(axis=1) + counts.yes.sum()) / calls
    low, high = np.quantile(shares, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    mean = (counts.yes.sum() + counts.open @ probabilities.mean(axis=0)) / calls
    return Share(float(mean), float(low), float(high), calls, judged)


def compare_shares(before: Integers, after: Integers, probabilities: Scores) -> int:
    """Return 1 if the share rose from some calls to others, -1 if it fell, 0 if chance explains it.

    A permutation test (Fisher 1935): the calls of both, each with the mean probability of its
    stratum, are mixed and divided anew. The share changed if so large a difference comes by that in
    at most `CHANCE` of the draws. Both have the same probabilities: an error of the map is no
    change. `before` and `after` are calls by stratum, int64 ``[STRATA]``.
    """
    if not (before.sum() and after.sum()):
        return 0
    means, both = probabilities.mean(axis=0), before + after
    drawn = np.random.default_rng(2).multivariate_hypergeometric(
        both, after.sum(), DRAWS, method="marginals"
    )
    later_calls = np.vstack([after, drawn])  # as they are, and by chance
    earlier_calls = both - later_calls
    differences = later_calls @ means / after.sum() - earlier_calls @ means / before.sum()
    are_as_large = np.abs(differences) >= abs(differences[0]) - ROUNDING
    return int(np.sign(differences[0])) if are_as_large.mean() <= CHANCE else 0


class AnswerPlan:
    """Plans answers: of which stratum the next one reduces the variance of the share most.

    The variance has two parts: that of the probabilities of the strata, and that of which calls
    have the topic. An answer reduces both: it has the information p (1 - p), and makes a call
    known. The share is taken as linear in the log odds, with the mean slope of each stratum
    (exact for covariances with normal variables; Stein 1981).
    """

    def __init__(self, model: StratumModel, counts: CallCounts) -> None:
        self._calls = max(1, int(counts.calls.sum()))
        self._open = counts.open.astype(np.float64)
        self._covariance = model.covariance.copy()
        self._slopes = model.average_slopes()

    def measure_variance(self) -> float:
        """Return the variance of the share."""
        gradient = self._open * self._slopes / self._calls
        unknown = (self._open * self._slopes).sum() / self._calls**2
        return float(gradient @ self._covariance @ gradient + unknown)

    def rank_strata(self) -> Integers:
        """Return the strata by what an answer of each reduces, the best first, int64 ``[n]``.

        The first stratum is left out, as there is no span to show, and those without open calls.
        """
        gradient = self._open * self._slopes / self._calls
        reduced = (self._covariance @ gradient) ** 2 * self._slopes
        reduced /= 1 + self._slopes * np.diagonal(self._covariance)
        reduced += self._slopes / self._calls**2
        order = np.argsort(-reduced, kind="stable")
        return order[(order > 0) & (self._open[order] >= 1)]

    def add(self, stratum: int, answers: float) -> None:
        """Plan for some answers about calls of a stratum."""
        column = self._covariance[:, stratum].copy()
        information = answers * self._slopes[stratum]
        scale = information / (1 + information * column[stratum])
        self._covariance -= scale * np.outer(column, column)
        self._open[stratum] -= answers


def count_answers_to_halve(model: StratumModel, counts: CallCounts) -> int | None:
    """Return how many more answers would halve the interval of the share; None if none would.

    They are planned one after the other, in the order of `AnswerPlan`.
    """
    plan = AnswerPlan(model, counts)
    wanted, answers = plan.measure_variance() / 4, 0
    while plan.measure_variance() > wanted:
        strata = plan.rank_strata()
        if not len(strata) or answers > MOST_ANSWERS:
            return None
        best = int(strata[0])
        batch = min(max(1, int(answers * BATCH)), int(plan._open[best]))
        plan.add(best, batch)
        answers += batch
    return answers
