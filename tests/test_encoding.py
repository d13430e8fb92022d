"""An encoder that fails at one text costs that document; one that fails at all of them is one error, and nothing is lost."""

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
from hybrid_search.ingest import worker
from hybrid_search.ingest.encoding import encoded
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.summary import Summary
from hybrid_search.types import Encoding
from tests.tiny import TinyEncoder, bm25

REJECTS = Path("rejected.jsonl")


@dataclass
class Breaks(TinyEncoder):
    """Breaks at a text with the word ``poison``; at every text once it was asked `dies` times."""

    dies: int = 10**9
    asked: list[int] = field(default_factory=list)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        self.asked.append(len(texts))
        if len(self.asked) > self.dies:
            raise RuntimeError("out of memory")
        if any("poison" in text for text in texts):
            raise ValueError("an odd shape")
        return super().encode(texts)


def ingest(backend: Backend, encoder: TinyEncoder, documents: Sequence[dict[str, Any]]) -> Summary:
    lines = [Line("calls.jsonl", number, json.dumps(each).encode()) for number, each in enumerate(documents, 1)]
    return worker.ingest(lines, backend, encoder, "calls", REJECTS)


def refused() -> dict[int, str]:
    return {each["line"]: each["reason"] for each in map(json.loads, REJECTS.read_text().splitlines())}


def test_the_one_text_of_a_block_is_found_by_halves() -> None:
    encoder = Breaks()
    texts = [f"text {number}" for number in range(64)]
    texts[41] = "poison"
    found = encoded(encoder, texts)
    assert [number for number, each in enumerate(found) if isinstance(each, InputError)] == [41]
    # The block, two halves on each of five levels, the text and its neighbour, and the probe.
    assert len(encoder.asked) == 1 + 2 * 6 + 1
    assert str(found[41]) == "the encoder fails at this text: ValueError: an odd shape"


def test_an_encoder_that_takes_nothing_is_one_error_found_soon() -> None:
    encoder = Breaks(dies=0)
    with pytest.raises(ModelError, match=r"the encoder tiny fails at every text: RuntimeError: out of memory\. What was committed is safe"):
        encoded(encoder, ["text"] * 64)
    assert encoder.asked == [64, 32, 16, 8, 4, 2, 1, 1]


def short(number: int, word: str = "parcel") -> dict[str, Any]:
    return {"id": f"d{number}", "text": f"{word} number{number}"}


def long(bad: int | None, word: str = "parcel") -> dict[str, Any]:
    """A document of five passages, of which one is bad."""
    turns = [{"text": " ".join([word] * 70 + (["poison"] if number == bad else []))} for number in range(5)]
    return {"id": "long", "turns": turns}


@pytest.mark.parametrize("block", [1, 2, 3, 4, 64])
@pytest.mark.parametrize("bad", [0, 2, 4])
def test_only_the_document_with_that_text_is_refused(empty_url: str, block: int, bad: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BLOCK_PASSAGES", block)
    documents = [short(1), short(2), long(bad), short(3), short(4, "poison"), short(5)]
    with closing(open_backend(empty_url)) as backend:
        ingest(backend, TinyEncoder(), [long(None, "older"), short(9, "older")])
        summary = ingest(backend, Breaks(), documents)
        assert (summary.documents, summary.failed, summary.passages) == (4, 2, 4)
        assert refused() == dict.fromkeys((3, 5), "the encoder fails at this text: ValueError: an odd shape")
        held = backend.describe("calls")
        assert (held.documents, held.passages) == (6, 10)  # the older version of the long one is as it was
        assert set(bm25(backend, "older")) == {"long", "d9"}
        assert set(bm25(backend, "parcel")) == {"d1", "d2", "d3", "d5"}
        again = ingest(backend, TinyEncoder(), documents)
        assert (again.documents, again.skipped, again.failed) == (2, 4, 0)
        assert backend.describe("calls").passages == 11


def test_a_bad_document_at_the_end_takes_nothing_along(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is begun in a block that also ends a good one, and breaks in the last block."""
    monkeypatch.setattr(worker, "BLOCK_PASSAGES", 4)
    with closing(open_backend(empty_url)) as backend:
        summary = ingest(backend, Breaks(), [short(1), long(4)])
        assert (summary.documents, summary.passages, summary.failed) == (1, 1, 1)
        assert (backend.describe("calls").documents, backend.describe("calls").passages) == (1, 1)


def test_a_document_that_the_store_refused_before_is_refused_once(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BLOCK_PASSAGES", 2)
    with closing(open_backend(empty_url)) as backend:
        summary = ingest(backend, Breaks(), [short(1) | {"n": 1}, long(4) | {"n": "one"}, short(2)])
        assert (summary.documents, summary.passages, summary.failed) == (2, 2, 1)
        assert list(refused()) == [2]
        assert "metadata field 'n' is a string here" in refused()[2]


def test_an_encoder_that_dies_loses_nothing_that_was_committed(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BLOCK_PASSAGES", 8)
    documents = [short(number) for number in range(100)]
    with closing(open_backend(empty_url)) as backend:
        with pytest.raises(ModelError, match="out of memory"):
            ingest(backend, Breaks(dies=6), documents)
        assert not REJECTS.exists()
        again = ingest(backend, TinyEncoder(), documents)
        assert again.documents + again.skipped == 100
        assert again.skipped % 8 == 0
        assert backend.describe("calls").documents == 100
