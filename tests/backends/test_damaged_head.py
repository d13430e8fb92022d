"""A damaged spec, field type or list is told before an answer depends on it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.errors import DamagedIndexError
from tests.helpers.small_index import (
    DOCUMENTS,
    FILE,
    REPAIR,
    URL,
    ask,
    change_rows,
)

pytestmark = pytest.mark.usefixtures("tiny_encoder")


def read_settings() -> dict[str, str]:
    with closing(sqlite3.connect(FILE)) as connection:
        return dict(connection.execute("SELECT name, value FROM settings"))


SPEC_CHANGES = {
    "a letter of the spec": "UPDATE settings SET value = replace(value, 'tiny-', 'tiny=') "
    "WHERE name = 'spec'",
    "the name of the spec": "UPDATE settings SET name = 'spek' WHERE name = 'spec'",
    "a letter of the copy": "UPDATE settings SET value = replace(value, 'tiny-', 'tiny=') "
    "WHERE name = 'spec_copy'",
    "the name of the copy": "UPDATE settings SET name = 'spec-copy' WHERE name = 'spec_copy'",
    "the checksum": "UPDATE settings SET value = '7' WHERE name = 'spec_checksum'",
    "the name of the checksum": "DELETE FROM settings WHERE name = 'spec_checksum'",
    "the type of the spec": "UPDATE settings SET value = x'00' WHERE name = 'spec'",
}


@pytest.mark.parametrize("change", SPEC_CHANGES)
@pytest.mark.parametrize("mend", ["ingest", "repair"])
def test_a_spec_that_is_damaged_in_one_place_is_read_and_mended(
    change: str, mend: str, answers: dict[str, float], caplog: pytest.LogCaptureFixture
) -> None:
    settings = read_settings()
    change_rows(SPEC_CHANGES[change])
    with connect(URL) as client:
        assert ask(client) == answers
        assert "damaged in one of its copies" in client.verify(sample=0).findings[0].found
        if mend == "ingest":
            client.ingest([DOCUMENTS[0]])
            assert "damaged in one of its copies; mended" in caplog.text
        assert client.verify(sample=0, repair=mend == "repair").is_sound
        assert ask(client) == answers
    names = ("spec", "spec_copy", "spec_checksum")
    assert [read_settings()[name] for name in names] == [settings[name] for name in names]


def test_a_spec_that_is_damaged_in_two_places_is_told(answers: dict[str, float]) -> None:
    for name in ("spec", "spec_copy"):
        change_rows(
            "UPDATE settings SET value = replace(value, 'tiny', ?) WHERE name = ?", *[name] * 2
        )
    with connect(URL) as client, pytest.raises(DamagedIndexError, match="delete the index and"):
        ask(client)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE fields SET type = 'string'",
        "UPDATE fields SET name = 'numbes'",
        "DELETE FROM fields",
        "INSERT INTO fields VALUES ('more', 'string')",
        "UPDATE fields SET type = x'00'",
        "UPDATE settings SET value = '7' WHERE name = 'fields_checksum'",
        "DELETE FROM settings WHERE name = 'fields_checksum'",
    ],
)
def test_damaged_types_of_fields_are_told_and_made_again(
    change: str, answers: dict[str, float]
) -> None:
    change_rows(change)
    new = {"id": "new", "text": "one more refund", "number": 7}
    with connect(URL) as client:
        for call in (
            lambda: client.query("refund", where={"number": 7}),
            lambda: client.verify(sample=0),
            lambda: client.ingest([new]),  # a wrong type would refuse the document
        ):
            with pytest.raises(DamagedIndexError, match=REPAIR):
                call()
        assert client.verify(repair=True, sample=0).is_sound
        assert client.ingest([new]).failed == 0
        hits = client.query("refund", where={"number": 7}).hits
        assert {hit.id for hit in hits} == {"call-007", "new"}
        client.delete(["new"])
        assert ask(client) == answers


def change_page(table: str, old: bytes, new: bytes) -> None:
    """Replace bytes in the only page of a table or an index."""
    with closing(sqlite3.connect(FILE)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (root,) = connection.execute(query, (table,)).fetchone()
    data = FILE.read_bytes()
    place = data.index(old, 4096 * (root - 1), 4096 * root)
    FILE.write_bytes(data[:place] + new + data[place + len(old) :])


@pytest.mark.parametrize("where", [{"id": "call-007"}, {"id": {"gte": "call-007"}}])
def test_a_list_of_ids_that_lacks_one_is_told(
    where: dict[str, Any], answers: dict[str, float]
) -> None:
    with connect(URL) as client:
        hits = client.query("refund", where=where).hits
        assert hits
        assert not client.query("refund", where={"id": "nobody"}).hits
    change_page("sqlite_autoindex_documents_1", b"call-007", b"call-00!")
    with connect(URL) as client:
        for condition in (where, {"id": ["call-007", "call-003"]}):
            with pytest.raises(DamagedIndexError, match=REPAIR):
                client.query("refund", where=condition)
        assert client.query("refund", where={"id": "call-003"}).hits
        assert client.verify(repair=True).is_sound
        assert client.query("refund", where=where).hits == hits
        assert ask(client) == answers


def test_a_filter_that_loses_a_passage_of_its_documents_is_told(
    answers: dict[str, float],
) -> None:
    """An entry is its header, the document's number, 0 for the first passage, and its number."""
    change_page("passages_by_document", b"\x04\x01\x08\x01\x08\x08", b"\x04\x01\x08\x01\x7f\x08")
    with connect(URL) as client:
        with pytest.raises(DamagedIndexError, match=REPAIR):
            client.query("refund", where={"number": 7})
        assert [hit.id for hit in client.query("refund", where={"number": 3}).hits] == ["call-003"]
        assert client.verify(repair=True).is_sound
        assert [hit.id for hit in client.query("refund", where={"number": 7}).hits] == ["call-007"]
        assert ask(client) == answers


def test_passages_that_cannot_be_looked_up_are_told() -> None:
    """A page that leads to others may hide rows from a lookup that a scan of the table shows."""
    documents = [{"id": f"call-{n:03}", "text": f"refund word{n} please"} for n in range(120)]
    with connect(URL) as client:
        client.ingest(documents)
        answers = ask(client)
    with closing(sqlite3.connect(FILE)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'passages'"
        (root,) = connection.execute(query).fetchone()
    start = 4096 * (root - 1)
    with FILE.open("rb+") as file:
        file.seek(start)
        page = file.read(4096)
        assert page[0] == 5  # it leads to others
        offset = int.from_bytes(page[12:14], "big")
        file.seek(start + offset + 4)  # the last number on the first of them
        file.write(b"\x02")
    with connect(URL) as client:
        result = client.query("refund word7", size=50)
        (warning,) = result.plan["warnings"]
        shown = {hit.id for hit in result.hits}
        assert shown < set(answers)
        count = len(re.findall(r"passage 0", warning)) + int(
            re.findall(r"and (\d+) more", warning)[0]
        )
        assert count == len(set(answers) - shown)
        assert client.verify(repair=True).is_sound
        assert ask(client) == answers
