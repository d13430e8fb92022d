"""Benchmarks by hand: their encoders have few numbers, which only fine codes keep."""

from __future__ import annotations

from functools import partial

import pytest

from benchmarks.quality import span_scores
from hybrid_search.encoder.passage_codes import encode_passages
from hybrid_search.search import span_search
from tests.helpers.tiny_encoder import FINEST


@pytest.fixture(autouse=True)
def _fine_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(span_scores, "BITS", FINEST)
    monkeypatch.setattr(span_search, "encode_passages", partial(encode_passages, bits=FINEST))
