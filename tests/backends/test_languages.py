"""Documents in several languages, in every store: each is found by words cut as its own are."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_search.backends.base import Backend
from hybrid_search.text.filters import Condition
from tests.helpers.tiny_encoder import bm25_scores, fill_index, make_request

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "en", "text": "Two gifts were charged, and I want to return the cards."},
    {"id": "de", "text": "Ich möchte meine Rechnungen und die Gifte prüfen.", "language": "de"},
    {"id": "at", "text": "Die Rechnung für den Kasten kam zweimal.", "language": "de-AT"},
    {"id": "es", "text": "Las devoluciones de las tarjetas tardan.", "language": "Spanish"},
    {"id": "fr", "text": "J’attends les remboursements de l’hôtel.", "language": "fr"},
    {"id": "pl", "text": "Proszę o zwrot za rachunki.", "language": "pl"},
]


@pytest.fixture
def filled_store(store: Backend) -> Backend:
    fill_index(store, DOCUMENTS)
    return store


@pytest.mark.parametrize(
    ("phrase", "expected"),
    [
        ("Rechnung", {"de", "at"}),
        ("devolución", {"es"}),
        ("hôtels", {"fr"}),
        ("hotel", {"fr"}),
        ("cards", {"en"}),
        ("rachunki", {"pl"}),
        ("die", set()),  # a stop word in German, and in no English text
        ("Rechnungen and gifts", {"de", "at", "en"}),
    ],
)
def test_words_are_cut_as_those_of_each_document(
    filled_store: Backend, phrase: str, expected: set[str]
) -> None:
    assert set(bm25_scores(filled_store, phrase)) == expected


def test_the_matching_words_are_those_of_the_documents_language(filled_store: Backend) -> None:
    request = make_request("die Rechnung", semantic=False)
    passages = {
        passage.key: passage.document_id for passage in filled_store.find("calls", request).passages
    }
    ranges = filled_store.find_highlights("calls", request, list(passages))
    contents = filled_store.fetch_contents("calls", list(passages))
    words = {
        passages[key]: [contents[key].text[start:end] for start, end in places]
        for key, places in ranges.items()
    }
    assert words == {"de": ["Rechnungen"], "at": ["Rechnung"]}


def test_a_language_is_a_field_like_any_other(filled_store: Backend) -> None:
    request = make_request("Rechnung", conditions=(Condition("language", ("de-AT",)),))
    assert {item.document_id for item in filled_store.find("calls", request).passages} == {"at"}
    assert filled_store.count_facets("calls", make_request("Rechnung"), ["language"]) == {
        "language": {"de": 1, "de-AT": 1}
    }


def test_a_document_that_changes_its_language_is_cut_anew(filled_store: Backend) -> None:
    assert set(bm25_scores(filled_store, "Kaste")) == {"at"}
    fill_index(filled_store, [{**DOCUMENTS[2], "language": "en"}])
    assert set(bm25_scores(filled_store, "Kaste")) == set()
    assert set(bm25_scores(filled_store, "Kasten")) == {"at"}


def test_each_passage_of_a_document_in_two_languages_is_cut_in_its_own(store: Backend) -> None:
    english = "The agent returned my call, and I was asked to wait for the next bill. " * 8
    french = "Bonjour, j’attends toujours les remboursements que vous m’avez promis hier. " * 8
    turns = [{"speaker": "agent", "text": english}, {"speaker": "customer", "text": french}]
    fill_index(store, [{"id": "both", "turns": turns, "language": ["en", "fr"]}, DOCUMENTS[0]])

    def find_texts(phrase: str) -> list[str]:
        request = make_request(phrase, semantic=False)
        keys = [passage.key for passage in store.find("calls", request).passages]
        contents = store.fetch_contents("calls", keys)
        return [contents[key].text for key in keys if "gifts" not in contents[key].text]

    # "rembourse" has the stem of "remboursements" in French alone
    for phrase, word in (("rembourse", "remboursements"), ("returned", "returned")):
        texts = find_texts(phrase)
        assert texts
        assert all(word in text for text in texts)
    for language in ("en", "fr"):
        request = make_request("returned", conditions=(Condition("language", (language,)),))
        found = store.find("calls", request).passages
        assert {passage.document_id for passage in found} == {"both"}
