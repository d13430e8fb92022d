"""BM25 that is computed from FTS5's tables is FTS5's own, on the scale of Lucene.

The tables are made by FTS5 itself. `fts5_scores` asks its ``bm25()``.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_search import connect
from hybrid_search.backends.embedded import bm25, postings, readers
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.embedded.bm25 import Matches
from hybrid_search.backends.embedded.passage_documents import PassageDocuments
from hybrid_search.backends.embedded.postings import PassageLengths, SharedLengths, Totals
from hybrid_search.backends.embedded.schema import TOKENIZER
from hybrid_search.backends.embedded.term_reader import TermReader
from hybrid_search.errors import DamagedIndexError
from hybrid_search.text.terms import join_terms, query_terms
from hybrid_search.text.words import words
from tests.helpers.tiny_encoder import bm25_scores, fill_index, make_request


def make_table() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    columns = f'terms, text UNINDEXED, tokenize = "{TOKENIZER}"'
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5 ({columns})")
    return connection


def insert_text(connection: sqlite3.Connection, number: int, text: str) -> None:
    row = (number, join_terms(text, words(text)), text)
    connection.execute("INSERT INTO texts (rowid, terms, text) VALUES (?, ?, ?)", row)


def fts5_scores(connection: sqlite3.Connection, phrase: str) -> dict[int, float]:
    """FTS5's scores of a phrase in fewer than 1,000 passages, with Lucene's idf and no k1 + 1."""
    (total,) = connection.execute("SELECT count(*) FROM texts").fetchone()
    terms = query_terms(phrase)
    scores: Counter[int] = Counter()
    for term in terms:
        query = "SELECT rowid, -bm25(texts) FROM texts WHERE texts MATCH ?"
        rows = connection.execute(query, (f'"{term}"',)).fetchall()
        odds = (total - len(rows) + 0.5) / (len(rows) + 0.5)
        fts5_idf = max(1e-6, math.log(odds))
        for number, score in rows:
            scores[number] += score / fts5_idf / 2.2 * math.log(1 + odds)
    return dict(scores)


SINGLE = PassageDocuments(np.arange(100), np.arange(100))
"""Each passage is a document."""

WORDS = ["refund", "refunds", "refunded", "it's", "its", "café", "a", "the", "card", "💳", "is"]
SHORT_TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
LONG_TEXTS = SHORT_TEXTS.map(lambda text: " ".join([text] * 40))
"""Of up to 480 words: their lengths take two bytes."""
TEXTS = st.one_of(SHORT_TEXTS, SHORT_TEXTS, LONG_TEXTS)
PHRASES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
CHANGES = st.lists(st.one_of(TEXTS, st.integers(0, 30)), max_size=30)
"""A text is inserted; a number is that of a passage to delete, if there is one."""


@settings(deadline=None, max_examples=60)
@given(blocks=st.lists(st.tuples(CHANGES, PHRASES), min_size=1, max_size=3))
def test_scores_are_fts5s_after_any_changes(blocks: list[tuple[list[str | int], str]]) -> None:
    lengths, number = SharedLengths(), 0
    with closing(make_table()) as connection:
        for changes, phrase in blocks:
            for change in changes:
                if isinstance(change, int):
                    connection.execute("DELETE FROM texts WHERE rowid = ?", (change,))
                else:
                    number += 1
                    insert_text(connection, number, change)
            matches = bm25.search(connection, phrase, TermReader(lengths))
            scores = dict(zip(matches.passages.tolist(), matches.scores.tolist(), strict=True))
            # a part is rounded to 24 bits, by at most 2**-24 of itself
            assert scores == pytest.approx(fts5_scores(connection, phrase), rel=6e-8)


def test_a_word_of_two_tokens_counts_where_both_stand_in_a_row() -> None:
    # passage 1 has "it s" twice, 2 has both tokens apart, 3 the other way round
    with closing(make_table()) as connection:
        for row in enumerate(["it s here it s", "it is s", "s it"], 1):
            connection.execute("INSERT INTO texts (rowid, terms) VALUES (?, ?)", row)
        passages, frequencies = postings.read_postings(connection, [b"it", b"s"])
    assert (passages.tolist(), frequencies.tolist()) == ([1], [2])


def test_a_word_longer_than_a_token_may_be_is_found() -> None:
    word = "א" * 20_000  # 40,000 bytes, of which FTS5 indexes 32,768
    with closing(make_table()) as connection:
        insert_text(connection, 1, f"one {word}")
        assert bm25.search(connection, word, TermReader(SharedLengths())).passages.tolist() == [1]


# Lengths


def test_lengths_are_those_of_fts5_and_only_new_ones_are_read() -> None:
    # 300 is 0x82 0x2C as a varint: 2 * 128 + 44
    lengths = SharedLengths()
    with closing(make_table()) as connection:
        insert_text(connection, 3, "card")
        insert_text(connection, 4, "card " * 300)
        assert lengths.refresh(connection).tokens.tolist() == [1, 300]
        connection.execute("UPDATE texts_docsize SET sz = x'0500' WHERE id = 3")
        insert_text(connection, 9, "")
        known = lengths.refresh(connection)
    assert (known.passages.tolist(), known.tokens.tolist()) == ([3, 4, 9], [1, 300, 0])


def test_numbers_of_one_to_nine_bytes_are_read() -> None:
    data = np.frombuffer(bytes.fromhex("00 7f 8100 822c 81808080808080807f"), np.uint8)
    # the ninth is 1 * 128 ** 8 + 127
    numbers = postings.decode_varints(data, data < 128).tolist()
    assert numbers == [0, 127, 128, 300, 2**56 + 127]


@pytest.mark.parametrize(
    "blob", ["''", "x''", "x'82'", "x'05'", "x'050000'", "x'8282'", "x'ffffffffffff00'"]
)
def test_a_damaged_length_hurts_those_alone_who_match_it(blob: str) -> None:
    with closing(make_table()) as connection:
        for number, text in enumerate(["refund card", "refund", "card card"], 1):
            insert_text(connection, number, text)
        expected = fts5_scores(connection, "card")
        connection.execute(f"UPDATE texts_docsize SET sz = {blob} WHERE id = 2")
        lengths = SharedLengths()
        scores = bm25.search(connection, "card", TermReader(lengths)).best_scores(9, SINGLE)
        assert scores == pytest.approx(expected)
        with pytest.raises(DamagedIndexError, match="does not know how long passages are"):
            bm25.search(connection, "refund", TermReader(lengths))


def test_an_empty_index_has_no_totals_and_no_matches() -> None:
    with closing(make_table()) as connection:
        assert postings.read_totals(connection) == Totals(0, 0)
        assert not len(bm25.search(connection, "refund", TermReader(SharedLengths())).passages)
        insert_text(connection, 1, "one refund")
        assert postings.read_totals(connection) == Totals(1, 2)


def test_a_passage_without_a_length_has_no_row() -> None:
    lengths = PassageLengths(np.array([2, 5]), np.array([7, 8], np.int32))
    np.testing.assert_array_equal(lengths.find_rows(np.array([5, 2])), [1, 0])
    for unknown in (1, 3, 6):
        assert lengths.find_rows(np.array([2, unknown])) is None


# Damage


@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM texts_docsize WHERE id = 2",
        "UPDATE texts_docsize SET sz = NULL",
        "UPDATE texts_docsize SET id = id + 1152921504606846976",
        "DELETE FROM texts_data WHERE id = 1",
        "UPDATE texts_data SET block = 'x' WHERE id = 1",
        "UPDATE texts_data SET block = x'03' WHERE id = 1",
        "UPDATE texts_data SET block = x'0382' WHERE id = 1",
        "UPDATE texts_data SET block = x'00' WHERE id > 10",
        "DROP TABLE texts_docsize",
    ],
)
def test_damage_is_one_error_with_the_remedy_which_mends_it(
    tmp_path: Path, tiny_encoder: None, edit: str
) -> None:
    documents = [{"id": str(number), "text": f"refund {number}"} for number in range(3)]
    with connect(f"embedded:{tmp_path}") as client:
        client.ingest(documents)
        expected = {hit.id: hit.bm25 for hit in client.query("refund").hits}
    with closing(sqlite3.connect(tmp_path / "calls.sqlite", isolation_level=None)) as connection:
        connection.execute(edit)
    with connect(f"embedded:{tmp_path}") as client:
        with pytest.raises(DamagedIndexError, match="verify --index calls --repair"):
            client.query("refund")
        client.verify(repair=True)
        assert {hit.id: hit.bm25 for hit in client.query("refund").hits} == pytest.approx(expected)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE sqlite_master SET name = 'Texts' WHERE name = 'texts'",
        "UPDATE sqlite_master SET sql = CAST(sql || x'20ff' AS TEXT) WHERE name = 'texts'",
    ],
)
def test_a_definition_that_cannot_be_read_is_one_error_with_the_remedy(
    tmp_path: Path, edit: str
) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        fill_index(backend, [{"id": "a", "text": "refund"}])
    with closing(sqlite3.connect(tmp_path / "calls.sqlite", isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute(edit)
    with (
        closing(EmbeddedBackend(tmp_path)) as backend,
        pytest.raises(DamagedIndexError, match="restore it from a backup, or delete it and ingest"),
    ):
        bm25_scores(backend, "refund")


# Readers


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[EmbeddedBackend]:
    with closing(EmbeddedBackend(tmp_path)) as embedded:
        fill_index(embedded, [{"id": "a", "text": "refund card"}, {"id": "b", "text": "refund"}])
        yield embedded


def test_an_index_that_another_process_made_anew_is_scored_by_its_own_lengths(
    backend: EmbeddedBackend, tmp_path: Path
) -> None:
    first = bm25_scores(backend, "refund")
    with closing(EmbeddedBackend(tmp_path)) as other:
        other.drop_index("calls")
        fill_index(other, [{"id": "a", "text": "refund"}, {"id": "b", "text": "refund card card"}])
        expected = bm25_scores(other, "refund")
    assert bm25_scores(backend, "refund") == expected != first


def test_readers_of_a_file_share_its_lengths(
    backend: EmbeddedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "available_cores", lambda: 2)
    with closing(EmbeddedBackend(backend._folder)) as pair, pair._open_reader("calls") as first:
        first.terms.lengths.refresh(first.connection)
        with pair._open_reader("calls") as second:
            statements: list[str] = []
            second.connection.set_trace_callback(statements.append)
            lengths = second.terms.lengths.refresh(second.connection)
            assert lengths.tokens.tolist() == [2, 1]
            # the second reads those after passage 2, of which there are none
            assert "id > 2" in statements[-1]


def test_where_a_word_stands_is_read_once_until_the_index_is_written(
    backend: EmbeddedBackend, tmp_path: Path
) -> None:
    with backend._open_reader("calls") as reader:
        statements: list[str] = []
        reader.connection.set_trace_callback(statements.append)
    reads = []
    for phrase in ("refund", "refund card", "refund"):
        bm25_scores(backend, phrase)
        reads.append(sum("FROM instances" in statement for statement in statements))
    assert reads == [1, 2, 2]
    with closing(EmbeddedBackend(tmp_path)) as other:
        fill_index(other, [{"id": "c", "text": "refund refund"}])
    assert set(bm25_scores(backend, "refund")) == {"a", "b", "c"}


def test_a_search_sees_nothing_of_what_is_committed_meanwhile(
    backend: EmbeddedBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Totals of before and postings of after would give scores of neither."""
    request = make_request("refund", semantic=False)
    with closing(EmbeddedBackend(tmp_path)) as other:
        expected = other.find_candidates("calls", request).lexical
    read_totals = postings.read_totals

    def commit_after_totals(connection: sqlite3.Connection) -> Totals:
        totals = read_totals(connection)
        monkeypatch.undo()
        with closing(EmbeddedBackend(tmp_path)) as other:
            fill_index(other, [{"id": "late", "text": "one late refund"}])
        return totals

    monkeypatch.setattr(postings, "read_totals", commit_after_totals)
    assert backend.find_candidates("calls", request).lexical == expected
    assert len(backend.find_candidates("calls", request).lexical) == 3


# Matches


def test_the_best_of_equal_scores_are_the_first_passages() -> None:
    matches = Matches(np.array([2, 3, 5, 7, 8]), np.array([1.0, 2.0, 1.0, 2.0, 1.0]))
    assert list(matches.best_scores(3, SINGLE).items()) == [(3, 2.0), (7, 2.0), (2, 1.0)]
    assert list(matches.best_scores(9, SINGLE)) == [3, 7, 2, 5, 8]


def test_a_document_that_has_the_best_matches_leaves_room_for_those_of_others() -> None:
    """Passages 1 to 40 are of one document, and each of the others of its own."""
    passages = np.arange(1, 44)
    matches = Matches(passages, np.linspace(2, 1, 43))
    documents = PassageDocuments(passages, np.array([7] * 40 + [8, 9, 10]))
    assert list(matches.best_scores(3, documents)) == [1, 2, 3, 41, 42]
    assert list(matches.best_scores(9, documents)) == [*range(1, 10), 41, 42, 43]
