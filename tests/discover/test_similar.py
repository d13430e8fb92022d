"""`similar` counts every clause that says the same, as plain loops over every span do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from hybrid_search import connect
from hybrid_search.backends.base import Backend
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.discover import similar
from hybrid_search.discover.options import SimilarOptions
from hybrid_search.discover.similar import find_similar_phrases
from hybrid_search.encoder.passage_codes import encode_passages
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.ingest.document_parser import parse
from hybrid_search.search.phrase_vector import query_vector
from hybrid_search.text import spans, word_codes
from hybrid_search.text.passages import split
from tests.helpers.cli import invoke_cli
from tests.helpers.tiny_encoder import DIMENSION, FINEST, TinyEncoder
from tests.topics.test_mining import ENCODERS, ClauseEncoder, fill, find_clause, make_documents

PHRASE = "refund money back"


@pytest.fixture(params=["memory", "embedded"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    backend = MemoryBackend() if request.param == "memory" else EmbeddedBackend(tmp_path / "store")
    yield backend
    backend.close()


def count_naively(
    encoder: TinyEncoder, documents: list[dict[str, Any]], least_cosine: float
) -> Counter[tuple[str, int, int]]:
    """Return the place of the best span of each clause that has one near the phrase."""
    prior = encoder.load_prior(DIMENSION) if isinstance(encoder, ClauseEncoder) else None
    places: Counter[tuple[str, int, int]] = Counter()
    for raw in documents:
        document, _ = parse(json.dumps(raw).encode())
        passages = list(split(document))
        all_codes = encode_passages(encoder, document, passages, FINEST)
        for passage, codes in zip(passages, all_codes, strict=True):
            cosines = word_codes.cosines(query_vector(encoder, PHRASE), codes)
            scores = cosines + (prior.score_spans(codes) if prior else 0.0)
            first_words, last_words = spans.bounds(codes.counts)
            taken: list[tuple[int, int]] = []
            for number in np.lexsort((last_words, first_words, -scores)).tolist():
                if cosines[number] < least_cosine:
                    continue
                first, last = int(first_words[number]), int(last_words[number])
                low, high = find_clause(codes, prior, first, last) if prior else (first, last)
                if any(low <= other_high and other_low <= high for other_low, other_high in taken):
                    continue
                taken.append((low, high))
                start, end = codes.words[first, 0], codes.words[last, 1]
                places[document.id, passage.start + int(start), passage.start + int(end)] += 1
    return places


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("seed", range(3))
def test_every_clause_that_is_near_is_counted_once(store: Backend, seed: int, name: str) -> None:
    encoder, documents = ENCODERS[name], make_documents(seed)
    fill(store, encoder, documents)
    options = SimilarOptions(size=1000, min_cosine=0.7, fold=1.0)
    phrases = find_similar_phrases(store, encoder, "calls", PHRASE, options)
    expected = count_naively(encoder, documents, 0.7)
    assert len(expected) > 5
    assert sum(phrase.count for phrase in phrases) == sum(expected.values())
    for phrase in phrases:
        example = phrase.example
        assert (example.id, example.start, example.end) in expected
    assert [phrase.cosine for phrase in phrases] == sorted(
        (phrase.cosine for phrase in phrases), reverse=True
    )


def say(*texts: str) -> list[dict[str, Any]]:
    """Return a document for each text, with two turns."""
    return [
        {
            "id": f"call-{number}",
            "turns": [{"speaker": "customer", "text": text}, {"speaker": "agent", "text": "card"}],
            "sector": "shop" if number % 2 else "bank",
        }
        for number, text in enumerate(texts)
    ]


def find(documents: list[dict[str, Any]], phrase: str = PHRASE, **options: Any) -> Any:
    store, encoder = MemoryBackend(), ENCODERS["plain"]
    fill(store, encoder, documents)
    return find_similar_phrases(store, encoder, "calls", phrase, cast("SimilarOptions", options))


def test_wordings_that_differ_in_case_and_marks_are_one_and_near_ones_are_folded() -> None:
    documents = say("refund money back", "Refund, money back!", "money back refund", "late order")
    distinct = find(documents, fold=1.0, min_cosine=0.99)
    # the tiny encoder reads no order: the third wording has the same vector
    assert sum(phrase.count for phrase in distinct) == 3
    folded = find(documents, fold=0.95, min_cosine=0.99)
    (phrase,) = folded
    assert (phrase.count, phrase.wordings, phrase.documents) == (3, 2, 3)
    assert phrase.cosine == pytest.approx(1.0, abs=6e-3)  # half a step of a norm
    assert {"refund", "money", "back"} == set(phrase.text.split())


def test_the_example_says_where_it_is() -> None:
    documents = say("now late refund money back")
    (phrase,) = find(documents, min_cosine=0.98)
    place = phrase.example
    assert place.text == documents[0]["turns"][0]["text"][place.start : place.end]
    assert (place.id, place.turn, place.speaker) == ("call-0", 0, "customer")


def test_speakers_and_metadata_cut_what_is_counted() -> None:
    documents = say("refund money back", "refund money back")
    assert find(documents, speakers=("agent",), min_cosine=0.9) == []
    assert find(documents, where={"sector": "shop"}, min_cosine=0.9)[0].documents == 1
    assert find(documents, min_cosine=0.9)[0].documents == 2


def test_too_many_wordings_are_cut_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(similar, "MOST_WORDINGS", 10)
    documents = make_documents(2)
    best = find(documents, size=3, min_cosine=0.3, fold=1.0)
    assert "were left out: ask for a larger min_cosine" in caplog.text
    monkeypatch.setattr(similar, "MOST_WORDINGS", 100_000)
    assert [item.text for item in find(documents, size=3, min_cosine=0.3, fold=1.0)] == [
        item.text for item in best
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size is 0: it must be an integer from 1 to 1,000"),
        ({"min_cosine": 2}, "min_cosine is 2: it must be a number from -1 to 1"),
        ({"fold": "near"}, "fold is 'near': it must be a number from -1 to 1"),
        ({"where": {"colour": "red"}}, "colour"),
    ],
)
def test_a_wrong_value_is_one_clear_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find(say("refund"), **options)
    with pytest.raises(UsageError, match="blank"):
        find(say("refund"), phrase=" ")


def test_the_client_and_the_command_agree(sample_url: str) -> None:
    with connect(sample_url, device="cpu") as client:
        phrases = client.similar("I want my money back", size=5, min_cosine=0.4)
        with pytest.raises(IndexMissingError):
            client.similar("refund", index="other")
    arguments = ("similar", "I want my money back", "--size", "5", "--min-cosine", "0.4")
    printed = invoke_cli(*arguments, "--url", sample_url, "--device", "cpu", "--json")
    assert printed.json == {"phrases": [phrase.to_dict() for phrase in phrases]}
    shown = invoke_cli(*arguments, "--url", sample_url, "--device", "cpu")
    assert phrases[0].text in shown.stdout
    assert phrases[0].example.id in shown.stdout


def test_where_nothing_is_near_enough_one_line_says_how_to_see_more(sample_url: str) -> None:
    result = invoke_cli("similar", "refund", "--min-cosine", "1", "--url", sample_url)
    assert result.status == 0
    expected = "no wording has a cosine of at least 1: a smaller --min-cosine shows more\n"
    assert result.stdout == expected
