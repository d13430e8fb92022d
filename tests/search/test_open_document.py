"""`Client.open_document`: the whole text, and under a phrase the scores of its words and spans."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hybrid_search.backends.types import Fault, FaultKind, PassageContent
from hybrid_search.client import Client
from hybrid_search.errors import DocumentMissingError, UsageError
from hybrid_search.search.open_document import join_contents, score_words

WORDS_OF_A_LONG_TURN = 400
"""More than a passage can have: the turn is cut into three pieces that overlap."""

DOCUMENTS: list[dict[str, Any]] = [
    {
        "id": "a b/ä",
        "city": "Ulm",
        "turns": [
            {"speaker": "agent", "text": "Good morning.", "start_ms": 0, "end_ms": 900},
            {"speaker": "nobody", "text": "..."},
            {"speaker": "caller", "text": "I want my money back, please.", "channel": 2},
        ],
    },
    {
        "id": "long",
        "text": " ".join(["the kettle leaks"] * (WORDS_OF_A_LONG_TURN // 3))
        + " and I want my money back",
    },
]


@pytest.fixture
def filled_client(client: Client) -> Client:
    client.ingest(DOCUMENTS)
    return client


def test_a_document_comes_back_with_its_turns_and_metadata(filled_client: Client) -> None:
    view = filled_client.open_document("a b/ä")
    first, last = view.turns
    assert view.text[first.start : first.end] == "Good morning."
    assert (first.speaker, first.start_ms, first.end_ms) == ("agent", 0, 900)
    assert view.text[last.start : last.end] == "I want my money back, please."
    assert (last.turn, last.speaker, last.turn_metadata) == (2, "caller", {"channel": 2})
    assert view.metadata == {"city": "Ulm"}
    assert (view.spans, view.words, view.passages) == ((), (), ())


def test_a_document_without_turns_is_its_text(filled_client: Client) -> None:
    assert filled_client.open_document("long").text == DOCUMENTS[1]["text"]


@pytest.mark.parametrize("document_id", ["a b/ä", "long"])
def test_its_best_span_and_scores_are_those_of_its_hit(
    filled_client: Client, document_id: str
) -> None:
    result = filled_client.query("refund my money", where={"id": document_id}, explain=True)
    (hit,) = result.hits
    view = filled_client.open_document(document_id, "refund my money")
    best = max(view.passages, key=lambda passage: passage.score)
    assert (view.spans[0].start, view.spans[0].text) == (hit.spans[0].start, hit.spans[0].text)
    assert view.spans[0].cosine == pytest.approx(hit.spans[0].cosine, abs=1e-6)
    assert view.spans[0].turn_metadata == hit.spans[0].turn_metadata
    assert best.passage == hit.passage
    assert best.score == pytest.approx(hit.score, abs=1e-6)
    assert hit.explanation is not None
    assert best.spans_part == pytest.approx(hit.explanation["spans"], abs=1e-6)
    assert best.bm25_part == pytest.approx(hit.explanation["bm25"], abs=1e-6)
    words = [view.text[start:end] for start, end in view.highlights]
    assert set(words) >= {"my", "money"}


def test_each_word_has_the_score_of_the_best_span_that_holds_it(filled_client: Client) -> None:
    view = filled_client.open_document("long", "money back", spans=1)
    assert len(view.words) == len(DOCUMENTS[1]["text"].split())
    places = [(start, end) for start, end, _ in view.words]
    assert places == sorted(set(places))
    best = max(passage.spans_part for passage in view.passages)
    inside = {
        score
        for start, end, score in view.words
        if view.spans[0].start <= start and end <= view.spans[0].end
    }
    assert list(inside) == [pytest.approx(best, abs=1e-4)]
    assert max(score for _, _, score in view.words) == pytest.approx(best, abs=1e-4)


def test_the_scores_of_words_are_the_maxima_over_the_spans_that_hold_them() -> None:
    # spans: word 0; words 0-2; words 1-2; word 2. Word 1 is in the second and the third.
    scores = np.array([0.9, 0.2, 0.4, 0.1], np.float32)
    first, last = np.array([0, 0, 1, 2]), np.array([0, 2, 2, 2])
    assert score_words(scores, first, last, 3) == pytest.approx([0.9, 0.4, 0.4])


def test_spans_of_a_document_do_not_overlap_and_are_sorted(filled_client: Client) -> None:
    view = filled_client.open_document("long", "money back", spans=8, spans_by="cosine")
    spans = view.spans
    assert len(spans) == 8
    scores = [span.cosine for span in spans]
    assert scores == sorted(scores, reverse=True)
    places = sorted((span.start, span.end) for span in spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))


def test_the_warning_of_a_damaged_passage_names_what_mends_its_kind_of_damage() -> None:
    def warn(kind: FaultKind) -> str:
        damaged = PassageContent(0, "", "[]", "{}", Fault(kind, "it is damaged"))
        _, (warning,) = join_contents("calls", "a b", {0: damaged})
        return warning

    assert warn("codes").endswith("To mend this: hybrid-search verify --index calls --repair")
    assert warn("text").endswith(
        "To mend this: ingest again after hybrid-search delete --index calls -- 'a b'"
    )


def test_an_unknown_document_is_an_error_that_names_it(filled_client: Client) -> None:
    for phrase in (None, "money"):
        with pytest.raises(DocumentMissingError, match=r"no document 'nobody' in index 'calls'"):
            filled_client.open_document("nobody", phrase)


def test_a_document_id_must_be_text(filled_client: Client) -> None:
    with pytest.raises(UsageError, match="document_id is 7"):
        filled_client.open_document(7)  # type: ignore[arg-type]


def test_values_are_checked_also_without_a_phrase(filled_client: Client) -> None:
    with pytest.raises(UsageError, match="spans_by is 'null'"):
        filled_client.open_document("long", spans_by="null")
    with pytest.raises(UsageError, match="alpha is 2"):
        filled_client.open_document("long", alpha=2)


def test_a_hit_in_json_has_its_text_and_turns_if_they_are_asked_for(filled_client: Client) -> None:
    hit = filled_client.query("money back", where={"id": "a b/ä"}).hits[0]
    assert not {"text", "start", "turns"} & set(hit.to_dict())
    with_texts = hit.to_dict(texts=True)
    assert with_texts["text"] == hit.text
    assert with_texts["start"] == 0
    assert [turn["speaker"] for turn in with_texts["turns"]] == ["agent", "caller"]
    assert set(with_texts) - {"text", "start", "turns"} == set(hit.to_dict())
