"""Failing encoders: failing at one text costs that document, failing at all texts is one error.

Nothing that was committed is lost.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.base import Backend
from hybrid_search.errors import InputError, ModelError
from hybrid_search.ingest import pipeline
from hybrid_search.ingest.encode import encode_or_isolate
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.summary import Summary
from hybrid_search.text.types import Encoding
from tests.helpers.source_lines import make_lines
from tests.helpers.tiny_encoder import TinyEncoder, bm25_scores

REJECTS = Path("rejected.jsonl")


@dataclass
class FailingEncoder(TinyEncoder):
    """Fails at a text with the word ``poison``, and at every text after `fails_after` calls."""

    fails_after: int = 10**9
    batch_sizes: list[int] = field(default_factory=list)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        self.batch_sizes.append(len(texts))
        if len(self.batch_sizes) > self.fails_after:
            raise RuntimeError("out of memory")
        if any("poison" in text for text in texts):
            raise ValueError("an odd shape")
        return super().encode(texts)


def ingest_documents(
    backend: Backend, encoder: TinyEncoder, documents: Sequence[dict[str, Any]]
) -> Summary:
    return pipeline.ingest(make_lines(documents), backend, encoder, IngestOptions("calls", REJECTS))


def read_rejects() -> dict[int, str]:
    return {
        entry["line"]: entry["reason"]
        for entry in map(json.loads, REJECTS.read_text().splitlines())
    }


def test_the_one_text_of_a_block_is_found_by_halves() -> None:
    encoder = FailingEncoder()
    texts = [f"text {number}" for number in range(64)]
    texts[41] = "poison"
    results = encode_or_isolate(encoder, texts)
    assert [number for number, result in enumerate(results) if isinstance(result, InputError)] == [
        41
    ]
    # The block, two halves on each of six levels, and the probe.
    assert len(encoder.batch_sizes) == 1 + 2 * 6 + 1
    assert str(results[41]) == "the encoder fails at this text: ValueError"


def test_an_encoder_that_takes_nothing_is_one_error_found_soon() -> None:
    encoder = FailingEncoder(fails_after=0)
    message = (
        r"the encoder tiny fails at every text: RuntimeError: out of memory\. What was "
        r"committed is safe"
    )
    with pytest.raises(ModelError, match=message):
        encode_or_isolate(encoder, ["text"] * 64)
    assert encoder.batch_sizes == [64, 32, 16, 8, 4, 2, 1, 1]


def make_short_document(number: int, word: str = "parcel") -> dict[str, Any]:
    return {"id": f"d{number}", "text": f"{word} number{number}"}


def make_long_document(bad: int | None, word: str = "parcel") -> dict[str, Any]:
    """Return a document of five passages, of which one may be bad."""
    turns = [
        {"text": " ".join([word] * 70 + (["poison"] if number == bad else []))}
        for number in range(5)
    ]
    return {"id": "long", "turns": turns}


@pytest.mark.parametrize("block", [1, 3, 64])
@pytest.mark.parametrize("bad", [0, 2, 4])
def test_only_the_document_with_that_text_is_refused(
    empty_url: str, block: int, bad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "BLOCK_PASSAGES", block)
    documents = [
        make_short_document(1),
        make_short_document(2),
        make_long_document(bad),
        make_short_document(3),
        make_short_document(4, "poison"),
        make_short_document(5),
    ]
    with closing(open_backend(empty_url)) as backend:
        ingest_documents(
            backend,
            TinyEncoder(),
            [make_long_document(None, "older"), make_short_document(9, "older")],
        )
        summary = ingest_documents(backend, FailingEncoder(), documents)
        assert (summary.documents, summary.failed, summary.passages) == (4, 2, 4)
        assert read_rejects() == dict.fromkeys((3, 5), "the encoder fails at this text: ValueError")
        description = backend.describe_index("calls")
        # the older version of the long one is as it was
        assert (description.documents, description.passages) == (6, 10)
        assert set(bm25_scores(backend, "older")) == {"long", "d9"}
        assert set(bm25_scores(backend, "parcel")) == {"d1", "d2", "d3", "d5"}
        again = ingest_documents(backend, TinyEncoder(), documents)
        assert (again.documents, again.skipped, again.failed) == (2, 4, 0)
        assert backend.describe_index("calls").passages == 11


def test_a_bad_document_at_the_end_takes_nothing_along(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins in a block that also ends a good document, and fails in the last block."""
    monkeypatch.setattr(pipeline, "BLOCK_PASSAGES", 4)
    with closing(open_backend(empty_url)) as backend:
        summary = ingest_documents(
            backend, FailingEncoder(), [make_short_document(1), make_long_document(4)]
        )
        assert (summary.documents, summary.passages, summary.failed) == (1, 1, 1)
        assert (
            backend.describe_index("calls").documents,
            backend.describe_index("calls").passages,
        ) == (1, 1)


def test_a_document_that_the_store_refused_before_is_refused_once(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "BLOCK_PASSAGES", 2)
    with closing(open_backend(empty_url)) as backend:
        summary = ingest_documents(
            backend,
            FailingEncoder(),
            [
                make_short_document(1) | {"n": 1},
                make_long_document(4) | {"n": "one"},
                make_short_document(2),
            ],
        )
        assert (summary.documents, summary.passages, summary.failed) == (2, 2, 1)
        assert list(read_rejects()) == [2]
        assert "metadata field 'n' is a string here" in read_rejects()[2]


def test_an_encoder_that_dies_loses_nothing_that_was_committed(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "BLOCK_PASSAGES", 8)
    documents = [make_short_document(number) for number in range(100)]
    with closing(open_backend(empty_url)) as backend:
        with pytest.raises(ModelError, match="out of memory"):
            ingest_documents(backend, FailingEncoder(fails_after=6), documents)
        assert not REJECTS.exists()
        again = ingest_documents(backend, TinyEncoder(), documents)
        assert again.documents + again.skipped == 100
        assert again.skipped % 8 == 0
        assert backend.describe_index("calls").documents == 100
