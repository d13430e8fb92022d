"""Cuts words into the tokens of an index, with the tokenizer that FTS5 has for it."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

from hybrid_search.backends.embedded.schema import index_name
from hybrid_search.backends.highlight_markers import CLOSE, OPEN
from hybrid_search.backends.types import DamagedRowError

MAX_TOKENIZERS = 8
"""Every version of this program has had one tokenizer, so this is more than are in use."""


class Tokenizer:
    """Cuts texts as the full-text table that `create_statement` makes; in memory, for all threads.

    FTS5 does not return the tokens of a text. So the text is put into an empty table of the same
    definition, and read from the list of its terms.
    """

    def __init__(self, create_statement: str) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._connection.text_factory = bytes  # FTS5 may cut a very long word within a letter
        self._connection.execute(create_statement)
        self._connection.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, instance)")
        self._connection.execute(
            "CREATE TABLE weights (doc INTEGER PRIMARY KEY, weight INTEGER NOT NULL)"
        )
        columns = self._connection.execute("SELECT * FROM texts").description
        self._insert = f"INSERT INTO texts (rowid, {columns[0][0]}) VALUES (?, ?)"

    @contextmanager
    def insert(self, texts: Iterable[tuple[int, str]]) -> Iterator[sqlite3.Connection]:
        """Yield a connection to tables that have these numbered texts during the block.

        ``texts`` is the full-text table, ``tokens`` has the place of each token, and ``weights`` is
        an empty table with a number for each text. All texts of SQLite come as bytes.
        """
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany(self._insert, texts)
                yield self._connection
            finally:
                self._connection.execute("ROLLBACK")

    def cut(self, texts: Sequence[str]) -> list[list[bytes]]:
        """Return the tokens of each of `texts` in their order, in UTF-8."""
        tokens: defaultdict[int, list[bytes]] = defaultdict(list)
        with self.insert(enumerate(texts)) as connection:
            query = "SELECT doc, term FROM tokens ORDER BY doc, offset"
            for number, token in connection.execute(query):
                tokens[number].append(token)
        return [tokens[number] for number in range(len(texts))]

    def mark(self, texts: Mapping[int, str], match: str) -> dict[int, str]:
        """Return the texts that match an FTS5 expression, `OPEN` and `CLOSE` around what does."""
        query = "SELECT rowid, highlight(texts, 0, ?, ?) FROM texts WHERE texts MATCH ?"
        with self.insert(texts.items()) as connection:
            rows = connection.execute(query, (OPEN, CLOSE, match))
            return {number: marked.decode() for number, marked in rows}


def find_tokenizer(connection: sqlite3.Connection) -> Tokenizer:
    """Return the tokenizer of an open index.

    Raises:
        DamagedRowError: If its definition cannot be read.
    """
    query = "SELECT sql FROM sqlite_master WHERE name = 'texts'"
    (statement,) = connection.execute(query).fetchone() or (None,)
    if type(statement) is not str:
        raise DamagedRowError(index_name(connection), None, "the definition of the full-text index")
    return _make_tokenizer(statement)


_make_tokenizer = lru_cache(MAX_TOKENIZERS)(Tokenizer)
