"""A phrase in a language that the model does not know is told."""

from __future__ import annotations

import pytest

import hybrid_search
from hybrid_search.client import Client


@pytest.mark.parametrize(
    ("phrase", "language"),
    [("Ich möchte mein Geld zurück", "German"), ("je veux être remboursé", "French")],
)
def test_a_phrase_in_another_language_is_told(sample: Client, phrase: str, language: str) -> None:
    result = sample.query(phrase, alpha=1)
    assert result.plan["warnings"] == [
        f"'{phrase}' seems to be {language}, but slice-bge-small is made for English; "
        f"slice-multilingual knows {language} (--model)"
    ]


@pytest.mark.parametrize("phrase", ["a recipe for pancakes", "Volkswagen", "put the money back"])
def test_english_and_single_words_are_not_told(sample: Client, phrase: str) -> None:
    assert "warnings" not in sample.query(phrase, alpha=1).plan


def test_it_is_told_where_no_document_says_its_language_if_nothing_is_likely() -> None:
    with hybrid_search.connect("memory:") as client:
        client.ingest([{"id": 1, "text": "The parcel came late, and I want my money back."}])
        (warning,) = client.query("nächste Woche im Urlaub", alpha=1).plan["warnings"]
        assert "seems to be German" in warning
