"""What spans are chosen by: the cosine and the model's prior, or the cosine alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid_search import connect
from hybrid_search.client import Client
from hybrid_search.encoder import prior_file
from hybrid_search.encoder.model_folder import BOUNDARIES, SHIPPED
from hybrid_search.errors import ModelError
from hybrid_search.search.hit import Span
from hybrid_search.search.hit_builder import RELATED, leave_out_weak_spans

CALL = "Right, one moment. I would like to have all my money back, and quickly. Thank you."
BARE = "right one moment i would like to have all my money back and quickly thank you"


def write_arrays(path: Path, **changed: Any) -> None:
    """Write a prior for vectors of 2 numbers; of `changed` those that are None are left out."""
    vouch_for_prior(path.parent)
    arrays = {
        "hidden": np.zeros((4, 3), np.float16),
        "hidden_bias": np.zeros(3, np.float32),
        "output": np.zeros(3, np.float32),
        "output_bias": np.float32(0.5),
        "weights": np.array([0.1, 0.02, 0.05, 0.4], np.float32),
    } | changed
    present: Any = {f"{name}.2": array for name, array in arrays.items() if array is not None}
    np.savez(path, **present)


def test_the_prior_of_a_dimension_is_read(tmp_path: Path) -> None:
    write_arrays(tmp_path / BOUNDARIES)
    prior = prior_file.load(tmp_path, 2)
    assert prior is not None
    assert (prior.ends, prior.inside, prior.length) == pytest.approx((0.1, 0.02, 0.05))
    assert (prior.boundaries.dimension, prior.boundaries.output_bias) == (2, 0.5)
    assert prior.boundaries.unmarked == pytest.approx(0.4)
    assert prior_file.load(tmp_path, 3) is None


def test_a_model_without_the_file_has_no_prior(tmp_path: Path) -> None:
    assert prior_file.load(tmp_path, 2) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"hidden": np.zeros((5, 3), np.float16)},
        {"output": np.zeros(2, np.float32)},
        {"output": np.full(3, np.nan, np.float32)},
        {"weights": np.zeros(3, np.float32)},
        {"weights": np.array([0.1, np.inf, 0.05, 0.4], np.float32)},
        {"output_bias": np.float32(np.nan)},
        {"hidden_bias": None},
        {"weights": np.array([1, {}, None], dtype=object)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, changed: Mapping[str, Any]) -> None:
    write_arrays(tmp_path / BOUNDARIES, **changed)
    with pytest.raises(ModelError, match=r"boundaries\.npz cannot be used"):
        prior_file.load(tmp_path, 2)


def vouch_for_prior(folder: Path, *, is_named: bool = True) -> None:
    """Write the settings of a model, which name its prior or do not."""
    settings = json.loads((SHIPPED / "encoder.json").read_text())
    prior = {BOUNDARIES: "0" * 64} if is_named else {}
    settings["sha256"] = {"int8.onnx": "0" * 64, **prior}
    (folder / "encoder.json").write_text(json.dumps(settings))


def test_a_prior_that_the_settings_do_not_name_may_be_of_another_model(tmp_path: Path) -> None:
    write_arrays(tmp_path / BOUNDARIES)
    vouch_for_prior(tmp_path, is_named=False)
    assert prior_file.load(tmp_path, 2) is None


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04" + b"\0" * 40])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    vouch_for_prior(tmp_path)
    (tmp_path / BOUNDARIES).write_bytes(content)
    with pytest.raises(ModelError, match=r"boundaries\.npz cannot be used"):
        prior_file.load(tmp_path, 2)


def test_the_shipped_prior_is_the_one_that_was_exported() -> None:
    digests = json.loads((SHIPPED / "encoder.json").read_text())["sha256"]
    content = (SHIPPED / BOUNDARIES).read_bytes()
    assert hashlib.sha256(content).hexdigest() == digests[BOUNDARIES]
    for dimension in (64, 128, 256, 384):
        assert prior_file.load(SHIPPED, dimension) is not None


@pytest.mark.parametrize("text", [CALL, BARE])
def test_the_span_is_the_clause_that_a_person_would_mark(text: str) -> None:
    with connect("memory:") as client:
        (span,) = client.best_spans("a refund", text)
        (literal,) = client.best_spans("a refund", text, spans_by="cosine")
    start, end = text.index("would like"), text.index("back") + len("back")
    assert span.start <= start
    assert end <= span.end <= text.index("quickly") + len("quickly")
    assert span.prior > 0
    assert len(literal.text) <= len(span.text)
    assert (literal.prior, literal.cosine >= span.cosine) == (0.0, True)


def test_passages_are_ranked_by_what_their_spans_are_chosen_by(sample: Client) -> None:
    by_score, by_cosine = (
        sample.query("refund request", spans_by=by, alpha=1.0, group_by="passage")
        for by in ("score", "cosine")
    )
    assert (by_score.plan["spans_by"], by_cosine.plan["spans_by"]) == ("score", "cosine")
    for hit in by_cosine:
        assert {span.prior for span in hit.spans} == {0.0} == {hit.prior}
    for hit in [*by_score, *by_cosine]:
        best = hit.spans[0]
        assert (hit.cosine, hit.prior) == pytest.approx((best.cosine, best.prior), abs=1e-6)
    for result in (by_score, by_cosine):
        span_scores = [hit.cosine + hit.prior for hit in result]
        assert span_scores == sorted(span_scores, reverse=True)
    assert [hit.id for hit in by_score] != [hit.id for hit in by_cosine]


def test_a_clause_comes_before_a_word_that_is_in_the_phrase(tmp_path: Path) -> None:
    texts = {"word": "Waiting.", "clause": "I have been waiting in this queue for an hour."}
    calls = [{"id": id_, "turns": [{"text": text}]} for id_, text in texts.items()]
    with connect(f"embedded:{tmp_path}") as client:
        client.ingest(calls)
        ranked = {
            by: [hit.id for hit in client.query("waiting on hold", spans_by=by, alpha=1.0)]
            for by in ("score", "cosine")
        }
    assert ranked == {"score": ["clause", "word"], "cosine": ["word", "clause"]}


WITHIN_TOKENS = {
    "Brown": ("I was seen by Dr. Brown on Monday", "Dr. Brown"),
    "thirty minutes past ten": ("My appointment is at 10:30 tomorrow and I am late", "10:30"),
    "Mary": ("the office near St. Mary's is closed", "St. Mary's"),
    "2.4": ("version 2.4.1 crashes", "2.4.1"),
}


@pytest.mark.parametrize("spans", [1, 5])
def test_no_span_ends_within_a_token(client: Client, spans: int) -> None:
    client.ingest([{"id": text, "text": text} for text, _ in WITHIN_TOKENS.values()])
    for phrase, (text, token) in WITHIN_TOKENS.items():
        hit = next(hit for hit in client.query(phrase, spans=spans).hits if hit.id == text)
        start, end = text.index(token), text.index(token) + len(token)
        for span in hit.spans:
            assert not start < span.start < end
            assert not start < span.end < end


def test_a_model_without_a_prior_chooses_by_cosine_and_says_so(
    sample_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for path in SHIPPED.iterdir():
        if path.name != BOUNDARIES:
            (folder / path.name).symlink_to(path)
    settings = json.loads((SHIPPED / "encoder.json").read_text())
    del settings["sha256"][BOUNDARIES]
    (folder / "encoder.json").unlink()
    (folder / "encoder.json").write_text(json.dumps(settings))
    with connect(sample_url, model=folder) as client:
        result = client.query("refund request", size=1, alpha=1.0)
    assert result.plan["spans_by"] == "cosine"
    assert result.hits[0].spans[0].cosine == result.hits[0].cosine


def make_span(text: str, cosine: float) -> Span:
    return Span(0, len(text), text, cosine)


def test_spans_that_repeat_or_say_nothing_are_left_out() -> None:
    spans = [
        make_span("on hold", 0.8),
        make_span("On  hold", 0.8),
        make_span("for waiting", 0.8 * RELATED),
        make_span("don't", 0.8 * RELATED - 0.01),
    ]
    assert list(leave_out_weak_spans(spans)) == [spans[0], spans[2]]
    assert list(leave_out_weak_spans([])) == []
