"""Fit and measure probabilities of mentions: ``python -m benchmarks.quality.mentions [--fit]``.

A probability is a logistic of the score of a turn's best span. It is fitted on written topics of
trades that may be trained on, and on the intents of calls_sgd of the part ``train``, so weighted
that a turn in 200 is a mention, as in a collection where a topic is rare. It is measured on what
was kept out. With ``--fit`` the model folder gets the new maps, that for phrases moved by feedback
too.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import results
from benchmarks.quality import encoders
from benchmarks.quality.calibrate import change_calibration
from benchmarks.quality.intent_labels import JudgedMentions, Labels, find_best_mentions
from benchmarks.quality.intent_topics import build_topics
from benchmarks.quality.judging import MEASURED_FROM
from benchmarks.quality.mention_sets import (
    NEAR,
    RIGHT,
    SGD_STEP,
    UNKNOWN,
    MentionSet,
    read_absent_phrases,
    read_multidogo,
    read_natcs,
    read_sgd,
    read_written,
)
from benchmarks.quality.span_scores import score_texts
from benchmarks.quality.tasks import rows
from benchmarks.quality.vectors import means
from benchmarks.quality.written import DEV_DOMAINS, FILE
from hybrid_search import connect
from hybrid_search.encoder import Encoder
from hybrid_search.encoder.base import span_prior
from hybrid_search.encoder.model_folder import CALIBRATION
from hybrid_search.search import calibration
from hybrid_search.search.calibration import KEYS, MENTIONS, MOVED_MENTIONS, RANGES, Calibration
from hybrid_search.search.result import LIKELY
from hybrid_search.search.span_search import best_spans
from hybrid_search.search.types import Scores
from hybrid_search.text.words import contains_words
from hybrid_search.topics.logistic import fit_logistic

SHARE = 0.005
"""The share of mentions among the turns of a collection, as weighted here."""

EVEN = 0.5
"""From this probability on a turn counts as found, where precision and recall are measured."""

WRITTEN_SHARE = 0.25
"""The share of the written topics in the fit; the intents of calls are the rest.

Most of their mentions share no word with a phrase, more than in calls: alike, the map is so flat
that twice as many mentions are expected below a threshold as there are.
"""

FEEDBACK = 10
"""Documents whose best spans phrases are moved to."""

HITS = 10
"""Hits of a query that are looked at."""

LEAST = 0.001
"""Mentions below this probability are not looked at, where phrases are moved."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A labelled set, with the score of each turn's best span, ``[texts, phrases]``."""

    labelled: MentionSet
    scores: Scores

    @property
    def labels(self) -> NDArray[np.int8]:
        """The labels of the set."""
        return self.labelled.labels

    @property
    def are_right(self) -> NDArray[np.bool_]:
        """Which turns say the phrase."""
        are_right: NDArray[np.bool_] = self.labels == RIGHT
        return are_right

    def select(self, columns: NDArray[np.bool_]) -> Scored:
        """Return the set with some of its phrases."""
        return Scored(self.labelled.select(columns), self.scores[:, columns])

    def split(self) -> list[Scored]:
        """Return a set for each topic."""
        groups = self.labelled.groups
        return [self.select(groups == group) for group in np.unique(groups)]

    def join(self) -> Scored:
        """Return the set with each topic as `mine` has it: a turn counts by its best phrase."""
        topics = self.split()
        firsts = np.diff(self.labelled.groups, prepend=-1) != 0
        best = np.stack([topic.scores.max(axis=1) for topic in topics], axis=1)
        return Scored(self.labelled.select(firsts), best)

    def weigh(self) -> Scores:
        """Return how often each pair counts: `SHARE` are mentions, and what is unknown is left out.

        A turn that only looks right counts as much as one that says it: there is one for two.
        """
        is_written = self.are_right | (self.labels == NEAR)
        others = (self.labels != UNKNOWN) & ~is_written
        rare = SHARE / (1 - SHARE) * others.sum() / max(1, self.are_right.sum())
        weights: Scores = np.where(is_written, rare, others.astype(np.float64))
        weights /= weights.sum()
        return weights


def score(encoder: Encoder, labelled: MentionSet) -> Scored:
    """Return a set with its scores."""
    vectors = means(encoder, labelled.phrases)
    return Scored(labelled, score_texts(encoder, labelled.texts, vectors).span)


def fit(written: Scored, intents: Scored) -> Calibration:
    """Return the map that fits written topics and the intents of calls.

    Its spread is that of the intents, each with all its phrases, which are as frequent as in calls.
    """
    sets = (written, intents)
    scores = np.concatenate([item.scores.ravel() for item in sets])
    are_right = np.concatenate([item.are_right.ravel() for item in sets])
    own, others = (item.weigh().ravel() * len(scores) for item in sets)
    weights = np.concatenate([WRITTEN_SHARE * own, (1 - WRITTEN_SHARE) * others])
    fitted = fit_logistic(scores, are_right, weights)
    midpoints = [_fit_midpoint(topic, fitted.slope) for topic in intents.join().split()]
    spread = float(np.std(midpoints))
    return Calibration(round(fitted.midpoint, 4), round(fitted.slope, 2), spread=round(spread, 3))


def _fit_midpoint(topic: Scored, slope: float) -> float:
    """Return the midpoint at which a topic has as many mentions as the map expects."""
    known = topic.labels != UNKNOWN
    scores, mentions = topic.scores[known], topic.are_right[known].sum()
    low, high = RANGES["midpoint"]
    while high - low > 1e-4:
        middle = (low + high) / 2
        is_too_low = Calibration(middle, slope).span(scores).sum() > mentions
        low, high = (middle, high) if is_too_low else (low, middle)
    return low


def fit_moved(model: encoders.Model, data: Path, plain: Calibration) -> Calibration:
    """Return the map for phrases moved by feedback: `plain`, moved as the intents of calls say.

    The folder has `plain` for both. Some calls are mined with and without feedback.
    """
    folder = data / "calls_sgd"
    queries = [row for row in rows(folder / "queries.jsonl") if row["part"] == "train"]
    topics, labels = build_topics(queries, LEAST), Labels.read(folder, queries)

    def fit_mined(feedback: int) -> Calibration:
        best = find_best_mentions(client.mine(topics, feedback=feedback))
        judged = JudgedMentions.judge(best, labels, plain)
        return fit_logistic(judged.scores, judged.labels)

    with connect("memory:", model=str(model.folder)) as client:
        client.ingest(islice(rows(folder / "calls.jsonl.gz"), 0, None, SGD_STEP))
        without, moved = fit_mined(0), fit_mined(FEEDBACK)
    return replace(
        plain,
        midpoint=round(plain.midpoint + moved.midpoint - without.midpoint, 4),
        slope=round(plain.slope * moved.slope / without.slope, 2),
    )


def write_maps(model: encoders.Model, maps: Mapping[str, Calibration]) -> None:
    """Write maps of mentions into the model's folder, for vectors of its dimension."""
    key = str(model.encoder.info.dimension)

    def add(payload: dict[str, Any]) -> None:
        for kind, fitted in maps.items():
            values = {name: getattr(fitted, name) for name in ("midpoint", "slope", "spread")}
            payload.setdefault(KEYS[kind], {})[key] = values

    change_calibration(model.folder / CALIBRATION, add)
    calibration.load.cache_clear()


def measure(item: Scored, used_map: Calibration) -> dict[str, Any]:
    """Return how right probabilities are, and those of the best hits of each phrase."""
    known = item.labels != UNKNOWN
    probabilities = used_map.span(item.scores)
    weights = item.weigh()
    is_likely = known & (probabilities >= MEASURED_FROM)
    hits = [_find_hits(item, column) for column in range(item.scores.shape[1])]
    shown = np.array([[row, column] for column, rows in enumerate(hits) for row in rows]).T
    values, are_right = probabilities[*shown], item.are_right[*shown]
    likely = [probabilities[rows, column].max() >= LIKELY for column, rows in enumerate(hits)]
    is_found = known & (probabilities >= EVEN)
    found = (is_found & item.are_right).sum()
    return {
        "turns": len(item.scores),
        "phrases": len(hits),
        "calibration error": calibration_error(
            probabilities[known], item.are_right[known], weights[known]
        ),
        "calibration error of likely mentions": calibration_error(
            probabilities[is_likely], item.are_right[is_likely], weights[is_likely]
        ),
        "precision at 0.5": round(float(found / max(1, is_found.sum())), 4),
        "recall at 0.5": round(float(found / item.are_right.sum()), 4),
        "median of right hits": round(float(np.median(values[are_right])), 4),
        "median of wrong hits": round(float(np.median(values[~are_right])), 4),
        "phrases with a likely hit": round(float(np.mean(likely)), 4),
    }


def _find_hits(item: Scored, column: int) -> NDArray[np.intp]:
    """Return the rows of the best hits of a phrase that are labelled."""
    rows_known = np.flatnonzero(item.labels[:, column] != UNKNOWN)
    order = np.argsort(-item.scores[rows_known, column], kind="stable")
    best: NDArray[np.intp] = rows_known[order[:HITS]]
    return best


def calibration_error(
    probabilities: Scores, are_right: NDArray[np.bool_], weights: Scores
) -> float:
    """Return the expected calibration error of ten bins, where pairs count differently."""
    numbers = np.minimum((probabilities * 10).astype(int), 9)
    sums = np.bincount(numbers, weights * (probabilities - are_right))
    return round(float(np.abs(sums).sum() / weights.sum()), 4)


def measure_word_for_word(encoder: Encoder, data: Path) -> dict[str, float]:
    """Return in how many turns the best span has the phrase, which is a stretch of the turn."""
    topics = (row for row in rows(data / FILE) if row["domain"] in DEV_DOMAINS)
    turns = [(turn["core"], turn["text"]) for topic in topics for turn in topic["says"]]
    prior = span_prior(encoder)
    found = (
        contains_words(best_spans(encoder, phrase, text, prior=prior)[0].text, phrase)
        for phrase, text in turns
    )
    return {"turns": len(turns), "found": sum(found)}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    encoders.add_options(parser)
    parser.add_argument("--fit", action="store_true", help="fit the maps, and write them first")
    options = parser.parse_args()
    model = encoders.load_model(options)
    if not model.prior:
        raise SystemExit(f"{model.folder} has no prior of spans: its probabilities stay rough")
    sgd, are_train = read_sgd(options.data)
    scored = score(model.encoder, sgd)
    if options.fit:
        fit_model(model, options.data, scored.select(are_train))
    payload = measure_model(model, options.data, scored.select(~are_train))
    results.write(f"mentions{model.suffix()}", payload, results.QUALITY)


def fit_model(model: encoders.Model, data: Path, train: Scored) -> None:
    """Fit the maps of a model, and write them into its folder."""
    written = score(model.encoder, read_written(data, is_dev=False))
    plain = fit(written, train)
    write_maps(model, {MENTIONS: plain, MOVED_MENTIONS: plain})
    write_maps(model, {MOVED_MENTIONS: fit_moved(model, data, plain)})


def measure_model(model: encoders.Model, data: Path, dev: Scored) -> dict[str, Any]:
    """Return the figures of a model's maps on sets that were kept out; `dev` has the intents."""
    encoder, info = model.encoder, model.encoder.info
    plain, moved = (
        calibration.load(model.folder, info.precision, info.dimension, kind)
        for kind in (MENTIONS, MOVED_MENTIONS)
    )
    calls = score(encoder, read_multidogo(data))
    sets = {
        "written": score(encoder, read_written(data, is_dev=True)),
        "calls_sgd": dev,
        "calls_sgd, three phrases a topic": dev.join(),
        "natcs_utterances": score(encoder, read_natcs(data)),
        "calls_multidogo": calls,
    }
    absent = score(encoder, replace(calls.labelled, phrases=read_absent_phrases(data)))
    best = plain.span(absent.scores.max(axis=0))
    return {
        "model": info.name,
        "maps": {MENTIONS: asdict(plain), MOVED_MENTIONS: asdict(moved)},
        "sets": {name: measure(item, plain) for name, item in sets.items()},
        "absent topics": {"phrases": len(best), "nothing likely": int((best < LIKELY).sum())},
        "word for word": measure_word_for_word(encoder, data),
    }


if __name__ == "__main__":
    main()
