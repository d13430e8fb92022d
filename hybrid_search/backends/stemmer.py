"""Cuts texts into terms, and stems them as SQLite's full-text search does."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from hybrid_search.backends.embedded.bm25 import find_marked_terms, quote
from hybrid_search.backends.embedded.schema import TOKENIZER
from hybrid_search.backends.highlight_markers import CLOSE, OPEN
from hybrid_search.text.terms import join_terms, query_terms
from hybrid_search.text.words import words


class Stemmer:
    """Cuts a text into terms, and stems them as SQLite's full-text search does."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._connection.executescript(
            f'CREATE VIRTUAL TABLE texts USING fts5 (terms, tokenize = "{TOKENIZER}");'
            "CREATE VIRTUAL TABLE stems USING fts5vocab (texts, instance);"
        )

    def count_terms(self, text: str) -> Counter[str]:
        """Count the terms of `text`."""
        with self._index_terms(text):
            return Counter(row[0] for row in self._connection.execute("SELECT term FROM stems"))

    def find_matches(self, text: str, phrase: str) -> list[tuple[int, int]]:
        """Return start and end of the words of `text` that are a term of `phrase`."""
        query = "SELECT highlight(texts, 0, ?, ?) FROM texts WHERE texts MATCH ?"
        match = " OR ".join(map(quote, query_terms(phrase)))
        with self._index_terms(text):
            row = self._connection.execute(query, (OPEN, CLOSE, match or '""')).fetchone()
        return find_marked_terms(row[0], text) if row else []

    @contextmanager
    def _index_terms(self, text: str) -> Iterator[None]:
        terms = join_terms(text, words(text))
        self._connection.execute("INSERT INTO texts (rowid, terms) VALUES (1, ?)", (terms,))
        yield
        self._connection.execute("DELETE FROM texts")
