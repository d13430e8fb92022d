"""The passages that filters leave are remembered, until the index is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from hybrid_search import connect
from hybrid_search.backends.embedded import filter_sql, remembered, schema
from hybrid_search.backends.embedded.allowed_passages import AllowedPassages
from hybrid_search.client import Client
from hybrid_search.text.filters import Condition, compile_where
from tests.helpers.small_index import FILE, URL, ask


@pytest.fixture
def connection(answers: dict[str, float]) -> Iterator[sqlite3.Connection]:
    assert answers
    reader, _ = schema.connect_reader(FILE)
    with closing(reader):
        yield reader


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Condition, ...]]:
    """The filters that were read from the index."""
    filters: list[tuple[Condition, ...]] = []
    read = filter_sql.read_allowed_passages

    def note(reader: sqlite3.Connection, conditions: tuple[Condition, ...]) -> object:
        filters.append(conditions)
        return read(reader, conditions)

    monkeypatch.setattr(filter_sql, "read_allowed_passages", note)
    return filters


def make_filter(numbers: int) -> tuple[Condition, ...]:
    """A filter that leaves the first `numbers` of the forty documents, of one passage each."""
    return compile_where({"number": {"lt": numbers}}, {"number": "number"})


def list_seven(client: Client) -> set[str]:
    return {hit.id for hit in client.query("refund", where={"number": 7}).hits}


def test_a_query_with_a_filter_sees_what_another_client_wrote_or_deleted(
    answers: dict[str, float],
) -> None:
    with connect(URL) as reader, connect(URL) as writer:
        assert list_seven(reader) == {"call-007"}
        writer.ingest([{"id": "new", "text": "refund word7", "number": 7}])
        assert list_seven(reader) == {"call-007", "new"}
        writer.delete(["call-007"])
        assert list_seven(reader) == {"new"}
        assert ask(reader).keys() == answers.keys() - {"call-007"} | {"new"}


def test_a_filter_is_read_once(
    connection: sqlite3.Connection, reads: list[tuple[Condition, ...]]
) -> None:
    passages, conditions = AllowedPassages(), make_filter(3)
    first = passages.find(connection, conditions)
    second = passages.find(connection, conditions)
    assert first is not None
    assert first.tolist() == [1, 2, 3]
    assert second is first
    assert reads == [conditions]
    assert passages.find(connection, ()) is None


def test_the_filters_that_were_used_longest_ago_are_forgotten_first(
    connection: sqlite3.Connection,
    reads: list[tuple[Condition, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There is room for 20: for filters of 8 and 7 numbers, but not for 9 beside them."""
    monkeypatch.setattr(remembered, "MAX_NUMBERS", 20)
    passages = AllowedPassages()
    for numbers in (7, 8, 7, 9, 7, 9, 8, 30, 30):
        allowed = passages.find(connection, make_filter(numbers))
        assert allowed is not None
        assert len(allowed) == numbers
    assert reads == [make_filter(numbers) for numbers in (7, 8, 9, 8, 30, 30)]
