"""BM25 of the embedded and the memory backend: Lucene's numbers, for any phrase."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Plus

from hybrid_search.backends.base import Backend
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.memory import MemoryBackend, round_length
from hybrid_search.client import Client
from hybrid_search.text.stems import count_text_stems
from tests.helpers.tiny_encoder import bm25_scores, fill_index

CORPUS = {
    "a": "refund refund please",
    "b": "the refund never came to my account",
    "c": "my account is locked and my card is gone",
    "d": "thank you for calling",
}
DOCUMENTS: list[dict[str, Any]] = [{"id": name, "text": text} for name, text in CORPUS.items()]


@pytest.fixture(params=["memory", "embedded"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """An empty backend of each kind, without an encoder."""
    backend: Backend = (
        MemoryBackend() if request.param == "memory" else EmbeddedBackend(tmp_path / "store")
    )
    yield backend
    backend.close()


@pytest.fixture
def filled_store(store: Backend) -> Backend:
    fill_index(store, DOCUMENTS)
    return store


def lucene_idf(total: int, document_frequency: int) -> float:
    return math.log(1 + (total - document_frequency + 0.5) / (document_frequency + 0.5))


def lucene_score(
    tf: int, length: int, document_frequency: int, average: float, total: int
) -> float:
    """Return BM25 of one term as Lucene has computed it since version 8."""
    idf = lucene_idf(total, document_frequency)
    return idf * tf / (tf + 1.2 * (1 - 0.75 + 0.75 * length / average))


def test_scores_are_lucenes(filled_store: Backend) -> None:
    # Four passages of 3, 5, 6 and 3 words without stop words: 17 / 4 = 4.25 on average. "refund" is
    # in two of them (twice in a), "account" in two, "card" in one.
    average = 17 / 4
    assert bm25_scores(filled_store, "refund") == pytest.approx(
        {"a": lucene_score(2, 3, 2, average, 4), "b": lucene_score(1, 5, 2, average, 4)}
    )
    assert bm25_scores(filled_store, "account card") == pytest.approx(
        {
            "c": lucene_score(1, 6, 2, average, 4) + lucene_score(1, 6, 1, average, 4),
            "b": lucene_score(1, 5, 2, average, 4),
        }
    )


def test_better_matches_come_first(filled_store: Backend) -> None:
    assert list(bm25_scores(filled_store, "refund")) == ["a", "b"]
    assert list(bm25_scores(filled_store, "my card")) == ["c", "b"]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Die Straße ist gesperrt", "Straße"),
        ("Die Straße ist gesperrt", "STRAẞE"),
        ("पैसे की वापसी चाहिए", "वापसी"),
        ("אני רוצה הֶחְזֵר", "הֶחְזֵר"),
        ("कोटि कोटि धन्यवाद", "धन्यवाद"),
        ("ΟΔΟΣ ΑΘΗΝΑΣ", "οδος"),
        ("press 1️⃣ now", "1"),
    ],
)
def test_a_word_of_any_script_is_found_whole(store: Backend, text: str, phrase: str) -> None:
    fill_index(store, [{"id": "x", "text": text}, {"id": "y", "text": "व स न nothing of it"}])
    assert list(bm25_scores(store, phrase)) == ["x"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_word_in_every_passage_of_a_tiny_index_still_counts(store: Backend, count: int) -> None:
    fill_index(store, DOCUMENTS[:count])
    fill_index(store, [{"id": "all", "text": "refund"}])
    scores = bm25_scores(store, "refund")
    assert set(scores) == {
        "all",
        *[document["id"] for document in DOCUMENTS[:count] if "refund" in document["text"]],
    }
    assert all(score > 0.01 for score in scores.values())


def test_a_phrase_of_unknown_words_matches_nothing(filled_store: Backend) -> None:
    assert bm25_scores(filled_store, "xylophone") == {}
    assert list(bm25_scores(filled_store, "xylophone card")) == ["c"]


SYNTAX = [
    ('"refund" account', "refund account"),
    ('"refund', "refund"),
    ("refund*", "refund"),
    ("^refund", "refund"),
    ("refund AND account", "refund and account"),
    ("refund NOT account", "refund not account"),
    ("NEAR(refund account, 2)", "near refund account 2"),
    ("text: refund", "text refund"),
    ("(refund", "refund"),
    ("refund -account", "refund account"),
    ("refund;account--", "refund account"),
    ("'; DROP TABLE texts; --refund", "drop table texts refund"),
    ("refund \\ account %_?", "refund account"),
    ("re\0fund account", "re fund account"),
]


@pytest.mark.parametrize(("phrase", "plain_phrase"), SYNTAX)
def test_query_syntax_is_data(filled_store: Backend, phrase: str, plain_phrase: str) -> None:
    assert bm25_scores(filled_store, phrase) == bm25_scores(filled_store, plain_phrase)


@pytest.mark.parametrize(("phrase", "plain_phrase"), [SYNTAX[0], SYNTAX[6], SYNTAX[11]])
def test_query_syntax_is_data_to_the_client(client: Client, phrase: str, plain_phrase: str) -> None:
    client.ingest(DOCUMENTS)
    assert {hit.id: hit.bm25 for hit in client.query(phrase)} == {
        hit.id: hit.bm25 for hit in client.query(plain_phrase)
    }


@pytest.mark.parametrize("phrase", ["...", "?!", "-", "💳", "❤️", '"'])
def test_a_phrase_without_a_letter_matches_nothing(filled_store: Backend, phrase: str) -> None:
    assert bm25_scores(filled_store, phrase) == {}


WORDS = st.sampled_from(
    [
        *sorted({word for text in CORPUS.values() for word in text.split()}),
        "refunding",
        "AND",
        "NEAR(",
        '"',
        "*",
        "col:",
    ]
)


def test_both_backends_agree_on_any_phrase(tmp_path: Path) -> None:
    reference, embedded = MemoryBackend(), EmbeddedBackend(tmp_path)
    for backend in (reference, embedded):
        fill_index(backend, DOCUMENTS)

    @settings(deadline=None, max_examples=150)
    @given(
        st.one_of(
            st.lists(WORDS, max_size=8).map(" ".join),
            st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30),
        )
    )
    def agree(phrase: str) -> None:
        # tantivy adds parts of 24 bits
        assert bm25_scores(embedded, phrase) == pytest.approx(
            bm25_scores(reference, phrase), rel=1e-6
        )

    agree()
    embedded.close()


def test_a_phrase_of_a_thousand_words_is_answered(store: Backend) -> None:
    vocabulary = [f"word{number}" for number in range(1000)]
    fill_index(
        store,
        [{"id": "all", "text": " ".join(vocabulary[:60])}, {"id": "one", "text": "word999 alone"}],
    )
    fill_index(
        store,
        [
            {"id": f"d{number}", "text": " ".join(vocabulary[number : number + 50])}
            for number in range(100, 1000, 50)
        ],
    )
    assert len(bm25_scores(store, " ".join(vocabulary))) == 20


def test_the_part_of_term_frequency_is_that_of_rank_bm25(
    calls: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Compare our scores with rank-bm25's BM25+, given Lucene's idf and no delta.

    They are equal except for the factor k1 + 1, which Lucene dropped.
    """
    store = EmbeddedBackend(tmp_path)
    texts = [turn["text"] for call in calls[:30] for turn in call["turns"]]
    fill_index(store, [{"id": str(number), "text": text} for number, text in enumerate(texts)])
    oracle = BM25Plus(
        [list(count_text_stems(text).elements()) for text in texts], k1=1.2, b=0.75, delta=0
    )
    for term in oracle.idf:
        oracle.idf[term] = lucene_idf(
            len(texts), sum(term in frequencies for frequencies in oracle.doc_freqs)
        )
    for phrase in (
        "refund",
        "account locked",
        "I want to speak to a manager",
        "red light on the router",
    ):
        scores = oracle.get_scores(list(count_text_stems(phrase)))
        assert bm25_scores(store, phrase) == pytest.approx(
            {str(number): score / 2.2 for number, score in enumerate(scores) if score}
        )
    store.close()


@pytest.mark.parametrize(
    ("length", "rounded"), [(0, 0), (40, 40), (41, 40), (42, 42), (57, 56), (58, 56), (60, 60)]
)
def test_lengths_are_rounded_as_lucene_does(length: int, rounded: int) -> None:
    """Its SmallFloat: 24 and a number of four bits; 58 - 24 is 100010, of which 1000 is kept."""
    assert round_length(length) == rounded
