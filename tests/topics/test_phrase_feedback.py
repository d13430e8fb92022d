"""Mining with feedback: phrases are moved as by a query, and probabilities have a map of theirs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Request
from hybrid_search.client import Client
from hybrid_search.encoder.base import span_prior
from hybrid_search.errors import UsageError
from hybrid_search.search.calibration import MENTIONS, MOVED_MENTIONS
from hybrid_search.search.candidates import fuse, retrieve
from hybrid_search.search.feedback import add_feedback
from hybrid_search.search.phrase_vector import query_vector
from hybrid_search.search.query import WINDOW
from hybrid_search.text.filters import Condition
from hybrid_search.text.types import Floats
from hybrid_search.topics import topic_matrix
from tests.helpers.shipped_maps import load_map
from tests.helpers.tiny_encoder import TinyEncoder
from tests.topics.test_mining import (
    CALIBRATION,
    ENCODERS,
    fill,
    list_matches,
    make_documents,
    mine_blocks,
    store,
)
from tests.topics.test_tuning import judge

__all__ = ["store"]

TOPIC = {
    "name": "hold",
    "phrases": ["on hold", "back now"],
    "not": ["hold on"],
    "where": {"sector": "shop"},
    "threshold": 0.3,
}


def move(backend: Backend, encoder: TinyEncoder, phrase: str) -> Floats:
    """Return the vector that a query with feedback asks for a phrase of `TOPIC`."""
    conditions = (Condition("sector", ("shop",)),)
    vector, prior = query_vector(encoder, phrase), span_prior(encoder)
    request = Request(phrase, vector, WINDOW, conditions, prior=prior)
    passages, _, _ = retrieve(backend, "calls", request)
    scored = fuse(passages, request, "calibrated", 0.5, CALIBRATION)
    return add_feedback(request, scored, 2).vector


@pytest.mark.parametrize("name", ENCODERS)
def test_mentions_are_those_of_the_moved_phrases(
    store: Backend, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = ENCODERS[name]
    fill(store, encoder, make_documents(1))
    plain = list_matches(mine_blocks(store, encoder, [TOPIC]))
    again = list_matches(mine_blocks(store, encoder, [TOPIC], feedback=2))
    vectors = {phrase: move(store, encoder, phrase) for phrase in ("on hold", "back now")}
    vectors["hold on"] = query_vector(encoder, "hold on")
    monkeypatch.setattr(
        topic_matrix, "query_vectors", lambda _, phrases: [vectors[text] for text in phrases]
    )
    expected = list_matches(mine_blocks(store, encoder, [TOPIC]))
    assert again
    assert [match.to_dict() for match in again] == [match.to_dict() for match in expected]
    assert [match.cosine for match in again] != [match.cosine for match in plain]


def test_probabilities_are_by_the_map_that_was_measured_with_feedback(sample: Client) -> None:
    topics = [{"name": "refund", "phrases": ["I want my money back"], "threshold": 0.1}]
    maps = {kind: load_map(kind) for kind in (MENTIONS, MOVED_MENTIONS)}
    assert len(set(maps.values())) == 2
    for feedback, kind in ((0, MENTIONS), (10, MOVED_MENTIONS)):
        matches = list(sample.mine(topics, feedback=feedback))
        assert matches
        for match in matches:
            score = maps[kind].inverse_span(match.probability)
            assert match.cosine - 0.2 < score < match.cosine + 0.8  # what a prior adds


def test_a_tuning_is_not_used_and_a_warning_says_so(
    sample: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "topics.yaml"
    file.write_text("- {name: refund, phrases: [I want my money back], threshold: 0.002}")
    judge(sample, file, tmp_path / "judgments.jsonl")
    untuned = [match.to_dict() for match in sample.mine(file, feedback=10)]
    sample.tune(file, tmp_path / "judgments.jsonl")
    with caplog.at_level(logging.WARNING):
        assert [match.to_dict() for match in sample.mine(file, feedback=10)] == untuned
    assert "topics.tuned.json was tuned for phrases as they are" in caplog.text


def test_a_number_of_documents_that_is_none_is_refused(sample: Client) -> None:
    topics = [{"name": "refund", "phrases": ["money back"]}]
    with pytest.raises(UsageError, match=r"^feedback is -1: it must be an integer from 0 to 100"):
        list(sample.mine(topics, feedback=-1))
