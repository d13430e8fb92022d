"""The fit of probabilities: what counts how often, and that any model folder takes its maps."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.quality import mentions
from benchmarks.quality.encoders import Model
from benchmarks.quality.mention_sets import NEAR, RIGHT, UNKNOWN, WRONG, MentionSet
from benchmarks.quality.mentions import SHARE, Scored
from hybrid_search.encoder.model_folder import CALIBRATION
from hybrid_search.search.calibration import MENTIONS, SCORE, Calibration, load
from hybrid_search.system import file_digest


def make_scored(seed: int, midpoint: float = 1.0, slope: float = 12.0) -> Scored:
    """Turns whose labels are drawn by a known map; the first two phrases are of one topic."""
    generator = np.random.default_rng(seed)
    scores = generator.uniform(0.2, 1.6, (4000, 3))
    scores[:, 1] = scores[:, 0]
    are_right = generator.random((4000, 3)) < Calibration(midpoint, slope).span(scores)
    are_right[:, 1] = are_right[:, 0]
    labels = np.where(are_right, RIGHT, WRONG).astype(np.int8)
    return Scored(MentionSet([""] * 4000, ["a", "b", "c"], np.array([0, 0, 1]), labels), scores)


def test_mentions_are_rare_and_what_is_unknown_does_not_count() -> None:
    labels = np.array([RIGHT, RIGHT, NEAR, UNKNOWN] + 96 * [WRONG], dtype=np.int8)[:, None]
    labelled = MentionSet([""] * 100, ["a"], np.array([0]), labels)
    item = Scored(labelled, np.zeros((100, 1)))
    weights = item.weigh()[:, 0]
    assert weights.sum() == pytest.approx(1)
    assert weights[3] == 0
    assert weights[0] == weights[2]
    mentions_weigh, others_weigh = weights[:2].sum(), weights[4:].sum()
    assert mentions_weigh == pytest.approx(SHARE * (mentions_weigh + others_weigh))


def test_a_turn_counts_by_the_best_phrase_of_a_topic() -> None:
    item = make_scored(0)
    item.scores[5, 1] += 1.0
    joined = item.join()
    assert joined.scores.shape == (4000, 2)
    assert joined.scores[5, 0] == item.scores[5, 1]
    assert (joined.labels[:, 1] == item.labels[:, 2]).all()


def test_the_map_that_labels_were_drawn_by_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share is that of the draw, so that the weights move nothing."""
    item = make_scored(1)
    monkeypatch.setattr(mentions, "SHARE", float(item.are_right.mean()))
    monkeypatch.setattr(mentions, "HITS", 2000)
    fitted = mentions.fit(item, item)
    assert fitted.midpoint == pytest.approx(1.0, abs=0.03)
    assert fitted.slope == pytest.approx(12.0, rel=0.1)
    assert fitted.spread < 0.05
    figures = mentions.measure(item, fitted)
    assert figures["calibration error"] < 0.02
    assert figures["median of right hits"] > 0.9 > figures["median of wrong hits"]


def test_a_model_folder_takes_the_maps_of_its_dimension(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "encoder.json").write_text(json.dumps({"sha256": {}}))
    (tmp_path / CALIBRATION).write_text(json.dumps({"precisions": {"int8": {"midpoint": 0.5}}}))
    info = Model().encoder.info
    monkeypatch.setattr(Model, "encoder", Model().encoder)
    fitted = Calibration(0.9, 13.0, spread=0.07)
    mentions.write_maps(Model(tmp_path), {MENTIONS: fitted})
    assert load(tmp_path, "float16", info.dimension, MENTIONS) == fitted
    assert load(tmp_path, "int8", 64, MENTIONS) == load(tmp_path, "int8", 64, SCORE)
    digests = json.loads((tmp_path / "encoder.json").read_text())["sha256"]
    assert digests[CALIBRATION] == file_digest(tmp_path / CALIBRATION)
