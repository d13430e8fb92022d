"""``language=``: the language of documents that do not say theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import hybrid_search
from hybrid_search.client import Client
from hybrid_search.encoder.base import Encoder, EncoderInfo
from hybrid_search.errors import UsageError
from hybrid_search.ingest.document_language import warn_of_languages
from hybrid_search.text.languages import detect_language

GERMAN = "Guten Tag, ich habe zwei Rechnungen für dieselbe Bestellung bekommen und bitte um Geld."
ENGLISH = "Hello, I was sent two bills for one and the same order, and I'd like a refund."
SPANISH = "Hola, me han cobrado dos veces el mismo pedido y quiero que me devuelvan el dinero."


@pytest.fixture
def client(tiny_encoder: None) -> Client:
    return hybrid_search.connect("memory:")


def read_languages(client: Client) -> dict[str, Any]:
    return {id_: client.open_document(id_).metadata.get("language") for id_ in ("a", "b")}


def test_a_language_is_that_of_the_documents_without_one(client: Client) -> None:
    documents = [{"id": "a", "text": GERMAN}, {"id": "b", "text": ENGLISH, "language": "en-GB"}]
    summary = client.ingest(documents, language="German")
    assert read_languages(client) == {"a": "de", "b": "en-GB"}
    assert summary.to_dict()["languages"] == {"de": 1, "en-GB": 1}


def test_without_one_nothing_is_added(client: Client) -> None:
    assert not client.ingest([{"id": "a", "text": GERMAN}, {"id": "b", "text": ENGLISH}]).languages
    assert read_languages(client) == {"a": None, "b": None}


def test_each_document_has_the_language_that_is_detected(client: Client) -> None:
    turns = [{"speaker": "agent", "text": "Sí, dígame."}, {"speaker": "customer", "text": SPANISH}]
    client.ingest([{"id": "a", "text": GERMAN}, {"id": "b", "turns": turns}], language="detect")
    assert read_languages(client) == {"a": "de", "b": "es"}
    hits = client.query("Rechnung", alpha=0).hits
    assert [hit.id for hit in hits] == ["a"]  # the text has "Rechnungen"
    assert not client.query("Rechnung", alpha=0, where={"language": "es"}).hits


def test_a_language_that_the_model_does_not_know_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = EncoderInfo("slice", "1", 8, "int8", "turn", languages=("en",))
    counts = {"de": 2, "de-AT": 1, "French": 1, "en": 5, "en_GB": 1, "Klingon": 9}
    warn_of_languages(counts, model)
    (message,) = caplog.messages
    assert message.startswith(
        "4 documents are in French or German, but slice is made for English; slice-multilingual "
        "knows French and German. Their words are found"
    )
    warn_of_languages({"en": 5, "Klingon": 1}, model)
    warn_of_languages(counts, replace(model, languages=()))  # nobody says what it knows
    assert len(caplog.messages) == 1


def test_the_model_that_ships_says_that_it_knows_english(real_encoder: Encoder) -> None:
    assert real_encoder.info.languages == ("en",)


def test_a_call_in_two_languages_has_both_and_what_is_said_shortly_counts_for_none(
    client: Client,
) -> None:
    texts = [GERMAN, "Hotel Bristol, OK.", SPANISH, "Sí.", f"{GERMAN} Ich warte."]
    turns = [{"speaker": "customer", "text": text} for text in texts]
    short = [{"speaker": "customer", "text": text} for text in ("Guten Morgen!", "Ja, genau.")]
    summary = client.ingest(
        [{"id": "a", "turns": turns}, {"id": "b", "turns": short}], language="detect"
    )
    assert read_languages(client) == {"a": ["de", "es"], "b": "de"}
    assert summary.languages == {"de": 2, "es": 1}


@pytest.mark.parametrize("text", ["", "?!", "1234 5678", "\U0001f600"])
def test_a_text_without_words_has_some_language(text: str) -> None:
    assert detect_language(text)


def test_another_language_writes_a_document_again(client: Client) -> None:
    document = {"id": "a", "text": GERMAN}
    for language, written in (("de", 1), ("de", 0), ("detect", 0), ("en", 1), (None, 1)):
        assert client.ingest([document], language=language).documents == written


def test_an_unknown_language_is_refused(client: Client) -> None:
    with pytest.raises(UsageError, match=r"language is 'klingon': use detect, or one of da"):
        client.ingest([{"id": "a", "text": GERMAN}], language="klingon")
