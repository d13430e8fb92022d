"""Bytes of an embedded index that change on the disk are told, and the remedy that is named mends.

The indexes are small ones of the tiny encoder; SQLite's own tables tell where a row lies.
"""

from __future__ import annotations

import re
import runpy
import shutil
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid_search import connect
from hybrid_search.backends import crc
from hybrid_search.backends.embedded import (
    checksums,
    commits,
    near_passages,
    segment_builder,
)
from hybrid_search.client import Client
from hybrid_search.errors import DamagedIndexError, HybridSearchError
from hybrid_search.text import word_codes
from tests.helpers.cli import invoke_cli
from tests.helpers.small_index import (
    DOCUMENTS,
    FILE,
    LOCK,
    LOG,
    REPAIR,
    STORE,
    URL,
    ask,
    change_rows,
)
from tests.helpers.tiny_encoder import make_entries, make_spec

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("tiny_encoder")]


def warn(client: Client) -> list[str]:
    return list(client.query("refund", size=50).plan.get("warnings", []))


def flip_bits(path: Path, *offsets: int) -> None:
    with path.open("rb+") as file:
        for offset in offsets:
            file.seek(offset)
            (byte,) = file.read(1)
            file.seek(offset)
            file.write(bytes((byte ^ 1,)))


def find_offset(text: bytes) -> int:
    data = FILE.read_bytes()
    assert text in data
    return data.index(text)


def list_pages(table: str) -> list[int]:
    """The leaf pages of a table, of 4,096 bytes each; a leaf of a table begins with 13."""
    with closing(sqlite3.connect(FILE)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (root,) = connection.execute(query, (table,)).fetchone()
    data = FILE.read_bytes()
    start = 4096 * (root - 1)
    if data[start] == 13:
        return [root]
    cells = int.from_bytes(data[start + 3 : start + 5], "big")
    places = [data[start + 12 + 2 * cell :][:2] for cell in range(cells)]
    offsets = [start + int.from_bytes(place, "big") for place in places]
    return [int.from_bytes(data[offset : offset + 4], "big") for offset in offsets]


def destroy_page(page: int) -> None:
    with FILE.open("rb+") as file:
        file.seek(4096 * (page - 1))
        file.write(b"\xa5" * 4096)


# Rows


def test_checksums_are_the_same_where_the_faster_library_is_missing(
    answers: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    plain_checksums = runpy.run_path(str(crc.__file__))
    assert plain_checksums["crc32"] is zlib.crc32
    monkeypatch.setattr(checksums, "crc32", zlib.crc32)
    with connect(URL) as client:
        assert (ask(client), warn(client)) == (answers, [])


def test_a_letter_that_changes_on_the_disk_is_told_and_its_passage_left_out(
    answers: dict[str, float],
) -> None:
    flip_bits(FILE, find_offset(b"refund word7 please") + 2)
    with connect(URL) as client:
        assert set(ask(client)) == set(answers) - {"call-007"}
        (warning,) = warn(client)
        assert warning.startswith("'call-007' passage 0: left out, because of a damaged text")
        assert warning.endswith("ingest again after hybrid-search delete --index calls -- call-007")
        client.delete(["call-007"])
        client.ingest(DOCUMENTS)
        assert ask(client) == answers
        assert client.verify(full=True).is_sound


def test_a_passage_that_lost_its_checksums_is_damaged(answers: dict[str, float]) -> None:
    change_rows("DELETE FROM checksums WHERE passage = 8")
    with connect(URL) as client:
        assert set(ask(client)) == set(answers) - {"call-007"}
        (warning,) = warn(client)
        assert warning.startswith("'call-007' passage 0: left out, because of damaged word codes")
        (finding,) = client.verify(sample=0).findings
        assert (finding.kind, finding.document_id) == ("text", "call-007")
        client.delete(["call-007"])
        client.ingest(DOCUMENTS)
        assert ask(client) == answers
        assert client.verify(full=True).is_sound


def test_a_bit_of_the_token_codes_that_changes_is_told_and_mended_from_the_text(
    answers: dict[str, float],
) -> None:
    with closing(sqlite3.connect(FILE)) as connection:
        query = "SELECT data FROM tokens ORDER BY passage LIMIT 1 OFFSET 7"
        (codes,) = connection.execute(query).fetchone()
    flip_bits(FILE, find_offset(codes) + len(codes) // 2)
    with connect(URL) as client:
        (warning,) = warn(client)
        assert warning == (
            f"'call-007' passage 0: left out, because of damaged word codes. To mend this: {REPAIR}"
        )
        assert client.verify(sample=0).is_sound  # which reads no codes
        (finding,) = client.verify(sample=0, full=True).findings
        assert (finding.kind, finding.document_id) == ("codes", "call-007")
        assert client.verify(repair=True).is_sound
        assert ask(client) == answers


@pytest.mark.parametrize("candidates", [400, 10])
def test_a_best_hit_whose_damaged_codes_would_hide_it_is_told(
    answers: dict[str, float], candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Word codes that are as far from every phrase as can be are never shown by themselves."""
    # 10: by the short codes of the tail
    monkeypatch.setattr(near_passages, "MOST_CANDIDATES", candidates)
    with closing(sqlite3.connect(FILE)) as connection:
        (data,) = connection.execute("SELECT data FROM tokens WHERE passage = 8").fetchone()
    codes = word_codes.from_bytes(data)
    opposite = word_codes.to_bytes(replace(codes, residuals=~codes.residuals))
    change_rows("UPDATE tokens SET data = ? WHERE passage = 8", opposite)
    with connect(URL) as client:
        result = client.query("refund word7", alpha=1, size=1)
        assert result.hits[0].id != "call-007"
        (warning,) = result.plan["warnings"]
        assert warning.startswith("'call-007' passage 0: left out, because of damaged word codes")
        codes_by_id = {
            passage.document_id: passage.tokens for passage in client.backend.scan_codes("calls")
        }
        assert codes_by_id["call-007"] is word_codes.UNREADABLE
        assert client.verify(repair=True).is_sound
        assert ask(client) == answers


def test_verify_names_all_damaged_documents_at_once(answers: dict[str, float]) -> None:
    change_rows("UPDATE texts_content SET c1 = replace(c1, 'please', 'pleats') WHERE id > 10")
    with connect(URL) as client:
        verification = client.verify(sample=0)
    assert verification.wrong == {"text": 30}
    assert {finding.document_id for finding in verification.findings} == set(
        [document["id"] for document in DOCUMENTS][10:]
    )


def test_a_filter_value_that_changed_is_found_by_a_full_check_and_mended(
    answers: dict[str, float],
) -> None:
    change_rows("UPDATE metadata SET value = 99 WHERE value = 7")
    with connect(URL) as client:
        (finding,) = client.verify(full=True).findings
        assert (finding.kind, "'call-007'" in finding.found) == ("file", True)
        assert client.verify(repair=True).is_sound
        assert [hit.id for hit in client.query("refund", where={"number": 7}).hits] == ["call-007"]
        assert ask(client) == answers


# Pages


def test_a_damaged_full_text_index_is_told_by_verify_and_made_again(
    answers: dict[str, float],
) -> None:
    change_rows("UPDATE texts_data SET block = zeroblob(length(block)) WHERE id > 1000")
    with connect(URL) as client:
        (finding,) = client.verify(sample=0).findings
        assert (finding.kind, finding.remedy) == ("file", f"{REPAIR} mends it")
        verification = client.verify(repair=True)
        assert (verification.is_sound, verification.salvaged_documents) == (True, 40)
        assert ask(client) == answers


@pytest.mark.parametrize("table", ["documents", "passages", "tokens", "texts_content"])
def test_what_can_be_read_of_a_damaged_file_is_saved_and_the_rest_named(
    answers: dict[str, float], table: str
) -> None:
    destroy_page(list_pages(table)[0])
    with connect(URL) as client:
        with pytest.raises(DamagedIndexError, match=re.escape(REPAIR)):
            client.delete([document["id"] for document in DOCUMENTS])
        verification = client.verify(repair=True)
        lost = {finding.document_id for finding in verification.findings}
        assert lost <= set(answers)
        assert verification.salvaged_documents == 40 - verification.wrong["missing"] < 40
        assert set(ask(client)) == set(answers) - lost
        assert client.verify(full=True).is_sound
        client.ingest(DOCUMENTS)
        assert ask(client) == answers


@pytest.mark.parametrize("page", [1, 2])
def test_an_index_of_which_nothing_can_be_read_can_be_deleted(
    answers: dict[str, float], page: int
) -> None:
    data = FILE.read_bytes()
    FILE.write_bytes(data[: 4096 * (page - 1)] + bytes(3) + b"\xff" * 5000)
    result = invoke_cli("verify", "--url", URL, "--repair")
    assert result.status == 2
    assert "hybrid-search delete --index calls --yes" in result.stderr
    assert invoke_cli("delete", "--url", URL, "--yes").status == 0
    with connect(URL) as client:
        client.ingest(DOCUMENTS)
        assert ask(client) == answers


def test_a_passage_of_which_a_row_is_lost_is_told(answers: dict[str, float]) -> None:
    change_rows("DELETE FROM passages WHERE passage = 8")
    with connect(URL) as client:
        assert set(ask(client)) == set(answers) - {"call-007"}
        (warning,) = warn(client)
        assert warning.startswith("a lost passage: left out")
        assert warning.endswith(REPAIR)


# The full-text index

DAMAGED_WORDS = (
    "the full-text index of index 'calls' is damaged: BM25 scores may be wrong, and matches "
    f"missing. To mend this: {REPAIR}"
)


def ask_words(client: Client) -> dict[str, float] | str:
    """The BM25 scores of a phrase, or what an error or the only warning says."""
    try:
        result = client.query("refund word7", alpha=0.0, size=50, highlight=True)
    except HybridSearchError as error:
        return str(error)
    if warnings := result.plan.get("warnings"):
        return str(*warnings)
    return {hit.id: hit.bm25 for hit in result.hits}


@pytest.mark.parametrize(
    ("table", "key", "column", "step"),
    [("texts_data", "id", "block", 3), ("texts_docsize", "id", "sz", 1)],
)
def test_no_byte_of_the_full_text_index_changes_a_score_without_a_word(
    answers: dict[str, float], table: str, key: str, column: str, step: int
) -> None:
    with connect(URL) as client:
        expected = ask_words(client)
    with closing(sqlite3.connect(FILE)) as connection:
        rows = connection.execute(f"SELECT {key}, {column} FROM {table}").fetchall()
    replies = []
    for number, value in rows:
        for place in range(0, len(value), step):
            changed = bytearray(value)
            changed[place] ^= 1 << place % 8
            change = f"UPDATE {table} SET {column} = ? WHERE {key} = ?"
            change_rows(change, bytes(changed), number)
            with connect(URL) as client:
                replies.append(ask_words(client))
            change_rows(change, value, number)
    wrong = [reply for reply in replies if reply != expected]
    assert len(wrong) > 20
    assert all(isinstance(reply, str) and REPAIR in reply for reply in wrong)
    assert DAMAGED_WORDS in wrong


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE term_sums SET total = total + 1",
        "UPDATE term_sums SET passages = passages - 1",
        "DELETE FROM term_sums",
        "UPDATE texts_data SET block = x'297800' WHERE id = 1",  # 41 passages, and there are 40
        "UPDATE texts_docsize SET sz = x'0600' WHERE id = 8",
        "UPDATE texts_docsize SET sz = x'0301' WHERE id = 8",  # of the column without an index
    ],
)
def test_a_damaged_full_text_index_is_told_by_each_query_until_it_is_mended(
    answers: dict[str, float], change: str
) -> None:
    change_rows(change)
    with connect(URL) as client:
        assert ask_words(client) == DAMAGED_WORDS
        assert DAMAGED_WORDS in warn(client)
        spans_only = client.query("refund", alpha=1.0, size=50)
        assert spans_only.plan["warnings"] == [DAMAGED_WORDS]
        client.ingest([{"id": "new", "text": "one more refund"}])  # which must not hide it
        assert ask_words(client) == DAMAGED_WORDS
        assert client.verify(sample=0).wrong["file"] == 1
        assert client.verify(repair=True).is_sound
        client.delete(["new"])
        assert ask(client) == answers


def test_a_sound_index_is_not_called_damaged_after_changes(answers: dict[str, float]) -> None:
    with connect(URL) as client:
        client.ingest(
            [{"id": "call-007", "text": "refund refund card"}, {"id": "x", "text": "card"}]
        )
        client.delete(["call-003", "x"])
        client.ingest([{"id": "y", "text": "refund"}, {"id": "y", "text": "word7 refund"}])
        assert not warn(client)
        client.reindex()
        client.ingest([DOCUMENTS[3], DOCUMENTS[7]])
        client.delete(["y"])
        assert not warn(client)
        assert ask(client) == answers
        assert client.verify(full=True).is_sound


@pytest.mark.parametrize("table", ["checksums", "tokens"])
def test_an_index_that_lacks_a_table_is_a_damaged_one(
    answers: dict[str, float], table: str
) -> None:
    with closing(sqlite3.connect(FILE, isolation_level=None)) as connection:
        connection.execute(f"DROP TABLE {table}")
    with connect(URL) as client, pytest.raises(DamagedIndexError, match="hybrid-search verify"):
        ask(client)


def test_a_term_that_leads_to_another_page_of_the_index_is_told(answers: dict[str, float]) -> None:
    words = [" ".join(f"w{number}x{place}" for place in range(60)) for number in range(60)]
    with connect(URL) as client:
        client.ingest([{"id": f"long-{number}", "text": text} for number, text in enumerate(words)])
        change_rows("UPDATE texts_idx SET pgno = pgno + 2 WHERE pgno > 4")
        results = [client.query(text.split()[0], alpha=0.0) for text in words]
    is_told = ["warnings" in result.plan for result in results]
    is_right = [
        [hit.id for hit in result.hits] == [f"long-{number}"]
        for number, result in enumerate(results)
    ]
    assert is_told.count(True) > 10
    assert all(right or told for right, told in zip(is_right, is_told, strict=True))


# The list of passages


@pytest.mark.parametrize("segment_passages", [20, 100_000])
@pytest.mark.parametrize("table", ["passages", "tokens"])
def test_a_passage_whose_number_changed_is_told_and_mended(
    monkeypatch: pytest.MonkeyPatch, table: str, segment_passages: int
) -> None:
    monkeypatch.setattr(near_passages, "MOST_CANDIDATES", 100 if segment_passages < 100 else 400)
    monkeypatch.setattr(segment_builder, "TAIL_PASSAGES", segment_passages)
    documents = [{"id": f"call-{number}", "text": f"refund w{number}"} for number in range(150)]
    with connect(URL) as client:
        client.ingest(documents)
        expected = list_ids(client)
    change_rows(f"DELETE FROM {table} WHERE passage = 150")
    with connect(URL) as client:
        assert list_ids(client) != expected
        for alpha in (0.5, 1.0):
            plan = client.query("w149", alpha=alpha).plan
            assert any(warning.endswith(REPAIR) for warning in plan["warnings"])
        client.verify(repair=True)
        client.ingest(documents)
        assert list_ids(client) == expected
        assert not warn(client)
        assert client.verify(full=True).is_sound


def list_ids(client: Client) -> list[str]:
    return [hit.id for hit in client.query("w149", size=150, alpha=1.0).hits]


# Metadata


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE metadata SET value = 99 WHERE value = 7",
        "UPDATE metadata SET document = document + 100 WHERE value = 7",
        "DELETE FROM metadata WHERE value = 7",
        "UPDATE value_sums SET rows = rows + 1 WHERE value = 7",
        "UPDATE value_sums SET total = total - 1 WHERE value = 7",
        "DELETE FROM value_sums WHERE value = 7",
    ],
)
def test_a_changed_row_of_metadata_is_told_by_what_reads_it_and_mended(
    answers: dict[str, float], change: str
) -> None:
    change_rows(change)
    with connect(URL) as client:
        for where in ({"number": 7}, {"number": {"gt": 5, "lt": 9}}):
            with pytest.raises(DamagedIndexError, match=re.escape(REPAIR)):
                client.query("refund", where=where)
        with pytest.raises(DamagedIndexError, match=re.escape(REPAIR)):
            client.query("refund", facets=["number"], facets_over="matches")
        sound = client.query("refund", where={"number": 8})
        assert [[hit.id for hit in sound.hits], "warnings" in sound.plan] == [["call-008"], False]
        assert client.verify(repair=True).is_sound
        assert [hit.id for hit in client.query("refund", where={"number": 7}).hits] == ["call-007"]
        assert ask(client) == answers


def test_values_of_all_kinds_are_filtered_without_a_false_alarm(answers: dict[str, float]) -> None:
    changing = {"id": "mixed", "text": "refund", "tags": ["a", "a", "b"], "deep": {"on": True}}
    with connect(URL) as client:
        client.ingest([changing, {"id": "half", "text": "refund", "number": 7.5, "tags": "é"}])
        client.ingest([{**changing, "tags": ["b"]}])
        client.delete(["call-007"])
        client.reindex()
        wheres = ({"tags": "b"}, {"deep.on": True}, {"number": {"gt": 6, "lt": 8}}, {"tags": "a"})
        ids = [[hit.id for hit in client.query("refund", where=where).hits] for where in wheres]
        assert ids == [["mixed"], ["mixed"], ["half"], []]
        assert client.query("refund", facets=["tags"]).facets == {"tags": {"b": 1, "é": 1}}


# Commits


@pytest.fixture
def killed(answers: dict[str, float]) -> Iterator[set[str]]:
    """The ids in an index whose writer was killed with its last 3 commits in the log."""
    with connect(URL) as client, client.backend.writer("calls", make_spec()) as writer:
        for number in range(3):
            writer.write(make_entries({"id": f"late-{number}", "text": "refund late"}))
        shutil.copytree(STORE, "copy")
    shutil.rmtree(STORE)
    Path("copy").rename(STORE)
    yield {*answers, *[f"late-{number}" for number in range(3)]}


def test_commits_that_a_damaged_log_loses_are_told_until_something_is_written(
    killed: set[str], caplog: pytest.LogCaptureFixture
) -> None:
    flip_bits(LOG, LOG.stat().st_size // 2)
    with connect(URL) as client:
        assert set(ask(client)) < killed
        (warning,) = warn(client)
        assert re.search(r"calls\.sqlite lacks the last [123] of 4 commits: its log was", warning)
        assert warning.endswith("hybrid-search ingest FILE --index calls")
        (finding,) = client.verify().findings
        assert finding.kind == "commits"
        caplog.clear()
        client.ingest([{"id": "new", "text": "one more refund"}])
        assert "lacks the last" in caplog.text
        assert not warn(client)
        assert client.verify().is_sound
    with connect(URL) as client:
        assert not warn(client)


def test_a_log_that_is_gone_is_told(killed: set[str]) -> None:
    LOG.unlink()
    with connect(URL) as client:
        assert "lacks the last 3 of 4 commits" in warn(client)[0]
        assert len(ask(client)) == 40


def test_a_sound_log_is_read_without_a_word(killed: set[str]) -> None:
    with connect(URL) as client:
        assert set(ask(client)) == killed
        assert not warn(client)
        assert client.verify().is_sound


def test_a_writer_that_was_killed_before_it_noted_its_commit_lost_nothing(
    answers: dict[str, float],
) -> None:
    mark = LOCK.read_bytes()
    with connect(URL) as client:
        client.ingest([{"id": "new", "text": "one more refund"}])
    LOCK.write_bytes(mark)
    with connect(URL) as client:
        assert not warn(client)


@pytest.mark.parametrize("mark", [b"", b"commits x 999 00000000\n", b"\xff" * 300])
def test_a_damaged_mark_means_nothing(answers: dict[str, float], mark: bytes) -> None:
    LOCK.write_bytes(mark)
    with connect(URL) as client:
        assert not warn(client)
        client.ingest([{"id": "new", "text": "one more refund"}])
        assert not warn(client)
    assert commits.read_mark(LOCK) is not None


def test_an_index_that_is_replaced_lacks_nothing(answers: dict[str, float]) -> None:
    mark = LOCK.read_bytes()
    with connect(URL) as client:
        for _ in range(3):
            client.reindex()
            assert not warn(client)
        client.drop("calls")
        client.ingest(DOCUMENTS[:1])
        LOCK.write_bytes(mark)  # of the index that had the name
    with connect(URL) as client:
        assert not warn(client)


def test_an_older_copy_in_place_of_the_index_is_told(answers: dict[str, float]) -> None:
    shutil.copy2(FILE, "older")
    with connect(URL) as client:
        client.ingest([{"id": "new", "text": "one more refund"}])
    shutil.copy2("older", FILE)
    with connect(URL) as client:
        assert "or an older copy was put in its place" in warn(client)[0]
