"""The files of an embedded index: read where nobody may write, locked, and told from others'.

Permissions do not bind the superuser, so these tests read as another user, in a process of their
own; where this process may not become another user, it is not the superuser either.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends.base import LocalBackend
from hybrid_search.backends.embedded import readers
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.types import SCHEMA
from hybrid_search.errors import (
    HybridSearchError,
    IndexBusyError,
    IndexMissingError,
    IndexStoreError,
)
from hybrid_search.search.result import Result
from tests.helpers.cli import invoke_cli
from tests.helpers.stored_passages import SHORT, read_passages, record_checksums, write_documents
from tests.helpers.tiny_encoder import (
    fill_index,
    make_entries,
    make_request,
    make_spec,
)

NOBODY = 65534
"""The number of a user without any rights of its own."""

MORE = {"id": "y", "text": "just more"}

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """A folder with an index of one document, which everybody may read and nobody may write."""
    folder = tmp_path / "store"
    with closing(EmbeddedBackend(folder)) as backend:
        write_documents(backend, SHORT)
    protect(folder)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o700)


def protect(folder: Path) -> None:
    for path in folder.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    folder.chmod(0o555)
    for parent in folder.parents[:4]:  # pytest's folders are this user's alone
        is_own = parent.stat().st_uid == os.getuid()
        if is_own and parent.name.startswith(("pytest", "popen", "test_")):
            parent.chmod(0o755)


def answer_as_another_user(ask: Callable[[], str]) -> str:
    """Return what `ask` returns, or the error that it raises, in a process without rights."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        try:
            answer = ask()
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(write_end, answer.encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def read_texts(folder: Path) -> str:
    with closing(EmbeddedBackend(folder)) as backend:
        return " | ".join(passage.text for passage in read_passages(backend))


def test_an_index_in_a_folder_that_the_reader_may_not_write_is_read(store: Path) -> None:
    files = sorted(store.rglob("*"))
    assert answer_as_another_user(lambda: read_texts(store)) == "just this"
    assert sorted(store.rglob("*")) == files


def test_its_passages_are_listed_too(store: Path) -> None:
    def list_ids() -> str:
        with closing(EmbeddedBackend(store)) as backend:
            return ",".join(row.document_id for row in backend.iterate_passages("calls"))

    assert answer_as_another_user(list_ids) == "x"


def test_changes_that_a_killed_writer_left_are_read_by_its_lock_files(store: Path) -> None:
    """SQLite reads them without writing as long as its file of locks is there."""
    store.chmod(0o700)
    (store / "calls.sqlite").chmod(0o600)
    leave_changes(store)
    protect(store)
    assert answer_as_another_user(lambda: read_texts(store)) == "just this | just more"


def test_changes_that_cannot_be_read_without_writing_are_an_error_with_the_remedy(
    store: Path,
) -> None:
    """Without the later changes the answer would be an old one."""
    store.chmod(0o700)
    (store / "calls.sqlite").chmod(0o600)
    leave_changes(store)
    (store / "calls.sqlite-shm").unlink()
    protect(store)
    answer = answer_as_another_user(lambda: read_texts(store))
    assert answer.startswith("IndexStoreError: ")
    assert "calls.sqlite-wal beside it has" in answer
    assert "Query the index once as a user who may" in answer
    store.chmod(0o700)
    for path in store.glob("*.sqlite*"):
        path.chmod(0o600)
    assert read_texts(store) == "just this | just more"
    protect(store)
    assert answer_as_another_user(lambda: read_texts(store)) == "just this | just more"


def leave_changes(folder: Path) -> None:
    """Write a document in a process that ends without closing the file."""
    child = os.fork()
    if child == 0:
        writer = EmbeddedBackend(folder).writer("calls", make_spec())
        writer.write(make_entries(MORE))
        os._exit(0)
    os.waitpid(child, 0)
    assert (folder / "calls.sqlite-wal").stat().st_size


def test_what_is_written_meanwhile_is_seen_by_a_reader_without_locks(store: Path) -> None:
    """A reader that may not write sees no lock of SQLite; it looks whether the files changed."""

    def read_before_and_after() -> str:
        with closing(EmbeddedBackend(store)) as backend:
            before = len(read_passages(backend))
            os.write(to_parent[1], b"read")
            os.read(to_child[0], 1)
            return f"{before}, {len(read_passages(backend))}"

    to_parent, to_child = os.pipe(), os.pipe()

    def write() -> None:
        os.read(to_parent[0], 4)
        store.chmod(0o755)
        (store / "calls.sqlite").chmod(0o644)
        with closing(EmbeddedBackend(store)) as backend:
            write_documents(backend, MORE)
        protect(store)
        os.write(to_child[1], b"x")

    writing = threading.Thread(target=write)
    writing.start()
    assert answer_as_another_user(read_before_and_after) == "1, 2"
    writing.join()


def test_an_index_written_during_a_call_without_locks_is_no_wrong_answer(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_meanwhile() -> str:
        with closing(EmbeddedBackend(store)) as backend, backend._open_reader("calls"):
            monkeypatch.setattr(readers, "_is_current", lambda *_: False)
        return "no error"

    answer = answer_as_another_user(write_meanwhile)
    assert answer.startswith("IndexBusyError: ")
    assert answer.endswith("run the same query again")


def test_an_index_that_this_user_may_not_read_says_so(store: Path) -> None:
    (store / "calls.sqlite").chmod(0o400)
    if os.getuid() != 0:
        pytest.skip("only the superuser can read as another user")
    answer = answer_as_another_user(lambda: read_texts(store))
    assert answer.startswith("IndexStoreError: ")
    assert answer.endswith("let this user read the files of the index")


def test_writing_where_nobody_may_is_refused_with_the_remedy(store: Path) -> None:
    def write() -> str:
        with closing(EmbeddedBackend(store)) as backend:
            write_documents(backend, MORE)
        return "written"

    answer = answer_as_another_user(write)
    assert answer.startswith("IndexStoreError: ")
    assert "let this user write there" in answer


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        write_documents(backend, SHORT)
        with (
            backend._open_reader("calls") as reader,
            pytest.raises(sqlite3.OperationalError, match="readonly"),
        ):
            reader.connection.execute("DELETE FROM documents")


def test_an_index_that_was_read_and_closed_is_one_file(tmp_path: Path) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        write_documents(backend, SHORT)
        read_passages(backend)
        write_documents(backend, MORE)
        # a copy of the file alone, made while a reader has it open, has everything
        copy = tmp_path / "copy"
        copy.mkdir()
        (copy / "calls.sqlite").write_bytes((tmp_path / "calls.sqlite").read_bytes())
    assert read_texts(copy) == "just this | just more"
    assert sorted(path.name for path in tmp_path.glob("calls.*")) == ["calls.lock", "calls.sqlite"]


# The lock


def test_a_damaged_lock_file_hurts_nothing(tmp_path: Path) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        write_documents(backend, SHORT)
        (tmp_path / "calls.lock").write_bytes(os.urandom(5000))
        write_documents(backend, MORE)
        assert len(read_passages(backend)) == 2
        backend.drop_index("calls")
    assert list(tmp_path.iterdir()) == []


def test_delete_with_a_folder_in_place_of_the_lock_is_one_error_line(tmp_path: Path) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        write_documents(backend, SHORT)
    (tmp_path / "calls.lock").unlink()
    (tmp_path / "calls.lock").mkdir()
    error = invoke_cli("delete", "--yes", "--url", f"embedded:{tmp_path}").error
    assert "calls.lock, the lock of index 'calls', is not a plain file: remove it" in error
    assert error.endswith("The index is not damaged")
    (tmp_path / "calls.lock").rmdir()
    assert invoke_cli("delete", "--yes", "--url", f"embedded:{tmp_path}").status == 0


@pytest.mark.parametrize("exists", [True, False])
def test_a_lock_is_never_taken_through_a_link(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "theirs"
    if exists:
        target.write_text("theirs")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "calls.lock").symlink_to(target)
    with (
        closing(EmbeddedBackend(tmp_path / "store")) as backend,
        pytest.raises(IndexStoreError, match="is not a plain file: remove it"),
    ):
        write_documents(backend, SHORT)
    assert target.exists() == exists
    assert not exists or target.read_text() == "theirs"


def test_a_lock_that_was_removed_with_its_index_locks_no_second_writer_out(tmp_path: Path) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        backend.create_index("calls", make_spec(), {})
        with backend.writer("calls", make_spec()):
            with pytest.raises(IndexBusyError):
                backend.drop_index("calls")
            with pytest.raises(IndexBusyError):
                backend.writer("calls", make_spec())
        backend.drop_index("calls")
        write_documents(backend, SHORT)
        assert len(read_passages(backend)) == 1


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_new_files_are_for_their_user_alone(tmp_path: Path, mask: int) -> None:
    old_mask = os.umask(mask)
    try:
        with closing(EmbeddedBackend(tmp_path / "store")) as backend:
            write_documents(backend, SHORT)
            modes = {
                path.name: stat.S_IMODE(path.stat().st_mode)
                for path in [tmp_path / "store", *(tmp_path / "store").glob("calls.*")]
            }
    finally:
        os.umask(old_mask)
    assert modes.pop("store") == 0o700
    assert {"calls.lock", "calls.sqlite"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_a_new_index_is_not_made_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "calls.sqlite").symlink_to(tmp_path / "theirs")
    with (
        closing(EmbeddedBackend(tmp_path / "store")) as backend,
        pytest.raises(IndexStoreError, match=r"calls\.sqlite cannot be written .*broken link"),
    ):
        write_documents(backend, SHORT)
    assert not (tmp_path / "theirs").exists()


# Files of others, and of newer versions


def make_database(path: Path, *statements: str) -> bytes:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path.read_bytes()


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE customers (name)"],
        ["CREATE TABLE settings (key, value)", "INSERT INTO settings VALUES ('spec', '{}')"],
        ["CREATE TABLE documents (document, id)"],
        ["PRAGMA application_id = 42"],
        ["CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"],
    ],
)
def test_a_database_of_another_program_is_left_as_it_is(
    tmp_path: Path, statements: list[str]
) -> None:
    content = make_database(tmp_path / "calls.sqlite", *statements)
    with closing(EmbeddedBackend(tmp_path)) as backend:
        for use in (
            lambda: write_documents(backend, SHORT),
            lambda: backend.read_head("calls"),
            lambda: list(backend.iterate_passages("calls")),
        ):
            with pytest.raises(
                IndexStoreError, match=r"is a database of another program .*move it away"
            ):
                use()
    assert (tmp_path / "calls.sqlite").read_bytes() == content


@pytest.mark.parametrize("version", [SCHEMA - 1, SCHEMA + 1])
def test_an_index_of_another_format_is_refused_in_one_line(tmp_path: Path, version: int) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        write_documents(backend, SHORT)
    make_database(tmp_path / "calls.sqlite", f"PRAGMA user_version = {version}")
    with closing(EmbeddedBackend(tmp_path)) as backend:
        for use in (
            lambda: write_documents(backend, SHORT),
            lambda: backend.read_head("calls"),
        ):
            with pytest.raises(IndexStoreError) as raised:
                use()
            assert str(raised.value) == (
                f"{tmp_path / 'calls.sqlite'} has format {version}, and this version of the "
                f"program reads format {SCHEMA}: ingest again into a new index"
            )


@pytest.mark.parametrize(
    "value",
    ["", "x", "[]", "null", '{"model": "m"}', "[" * 5000, '{"unknown": 2}', b"\xff"],
)
def test_a_damaged_record_of_the_model_is_one_clear_error(
    tmp_path: Path, value: str | bytes
) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        write_documents(backend, SHORT)
    with closing(sqlite3.connect(tmp_path / "calls.sqlite", isolation_level=None)) as connection:
        connection.execute("UPDATE settings SET value = ?", (value,))
    with closing(EmbeddedBackend(tmp_path)) as backend:
        for use in (lambda: write_documents(backend, SHORT), lambda: backend.read_head("calls")):
            with pytest.raises(IndexStoreError, match="its record of the model and policy cannot"):
                use()


# Edited rows


INGEST_AGAIN = "ingest again after hybrid-search delete --index calls -- x"


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE documents SET metadata = 'x'",
        "UPDATE documents SET metadata = '[]'",
        "UPDATE documents SET metadata = x'ff'",
        "UPDATE documents SET metadata = CAST(x'736563ff' AS TEXT)",
        """UPDATE documents SET metadata = '{"sector": "bink"}'""",
        "UPDATE passages SET layout = CAST(x'ff' AS TEXT)",
        "UPDATE passages SET layout = '[]'",
        "UPDATE passages SET layout = x'ff'",
        "UPDATE passages SET start = -1",
        "UPDATE passages SET start = 1",
        "UPDATE passages SET start = 'x'",
        "UPDATE passages SET ordinal = 1",
        "UPDATE texts_content SET c0 = NULL",
        "UPDATE texts_content SET c0 = x'ff'",
        "UPDATE texts_content SET c1 = NULL",
        "UPDATE texts_content SET c1 = x'ff'",
        "UPDATE texts_content SET c1 = CAST(x'ff' AS TEXT)",
        "UPDATE texts_content SET c1 = 'jusu this'",
    ],
)
def test_an_edited_row_is_left_out_with_a_warning_that_names_its_document_and_the_remedy(
    tmp_path: Path, tiny_encoder: None, edit: str
) -> None:
    sound = {"id": "sound", "text": "just that", "sector": "bank"}
    document = {**SHORT, "sector": "bank"}
    with connect(f"embedded:{tmp_path}") as client:
        client.ingest([document])
        make_database(tmp_path / "calls.sqlite", edit)
        client.ingest([sound])
        result = client.query("just", highlight=True, facets=["sector"])
        assert [hit.id for hit in result.hits] == ["sound"]
        assert result.total == 1
        (warning,) = result.plan["warnings"]
        assert warning.startswith("'x' passage ")
        assert "left out, because of a damaged text, place or metadata" in warning
        assert warning.endswith(INGEST_AGAIN)
        assert not {"just", "bank", "sec"} & set(warning.split())
        assert {finding.document_id for finding in client.verify().findings} >= {"x"}
        client.delete(["x"])
        client.ingest([document])
        result = client.query("just", facets=["sector"], facets_over="matches", highlight=True)
        assert {hit.text for hit in result.hits} == {SHORT["text"], sound["text"]}
        assert result.facets == {"sector": {"bank": 2}}
        assert client.verify(full=True).is_sound


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("UPDATE documents SET id = x'ff'", "a row is damaged in index 'calls': restore it"),
        (
            "UPDATE documents SET id = CAST(x'ff' AS TEXT)",
            "a row is damaged in index 'calls': restore",
        ),
        ("UPDATE metadata SET value = CAST(x'ff' AS TEXT)", "the metadata of document 'x' is dam"),
        ("UPDATE metadata SET value = x'ff'", "the metadata of document 'x' is damaged"),
        (
            "UPDATE fields SET type = CAST(x'ff' AS TEXT)",
            "the types of its metadata fields are not",
        ),
        ("UPDATE passages SET ordinal = 'x'", "a row of document 'x' is damaged"),
    ],
)
def test_an_edited_row_without_which_nothing_is_told_is_one_error_with_the_remedy(
    tmp_path: Path, tiny_encoder: None, edit: str, message: str
) -> None:
    with connect(f"embedded:{tmp_path}") as client:
        document = {**SHORT, "sector": "bank"}
        client.ingest([document])
        make_database(tmp_path / "calls.sqlite", edit)
        with pytest.raises(IndexStoreError) as caught:
            client.query("just", facets=["sector"], facets_over="matches", highlight=True)
        assert message in str(caught.value)
        remedy = "ingest it again after hybrid-search delete --index calls -- x"
        assert str(caught.value).endswith((remedy, "delete it and ingest again"))
        assert not {"just", "bank"} & set(str(caught.value).split())
        if "fields" not in edit:
            client.verify()  # finds it or does not look there, and in any case ends
        if "SET id" not in edit and "fields" not in edit:
            client.delete(["x"])
            client.ingest([document])
            result = client.query("just", facets=["sector"], facets_over="matches")
            assert (result.hits[0].text, result.facets) == (SHORT["text"], {"sector": {"bank": 1}})


def test_a_document_whose_id_is_damaged_is_found_with_a_remedy_that_can_be_run(
    tmp_path: Path, tiny_encoder: None
) -> None:
    with connect(f"embedded:{tmp_path}") as client:
        client.ingest([SHORT])
        make_database(tmp_path / "calls.sqlite", "UPDATE documents SET id = CAST(x'ff' AS TEXT)")
        (finding,) = client.verify().findings
    assert (finding.kind, finding.document_id) == ("id", "")
    assert "hybrid-search delete --index calls --yes" in finding.remedy


def test_a_schema_that_is_not_utf_8_is_one_error_with_the_remedy(tmp_path: Path) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        write_documents(backend, SHORT)
    make_database(
        tmp_path / "calls.sqlite",
        "PRAGMA writable_schema = 1",
        "UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT), sql = '(' WHERE name = 'passages'",
    )
    with closing(EmbeddedBackend(tmp_path)) as backend:
        for use in (lambda: write_documents(backend, SHORT), lambda: read_passages(backend)):
            with pytest.raises(IndexStoreError, match="restore it from a backup, or delete it and"):
                use()


@pytest.mark.parametrize(
    "layout", ["x", "[]", "{}", "7", '[{"turn": 0}]', '[{"turn": [], "start": 0, "end": 9}]']
)
def test_a_passage_without_its_turns_is_shown_without_spans_and_with_a_warning(
    tmp_path: Path, tiny_encoder: None, layout: str
) -> None:
    with connect(f"embedded:{tmp_path}") as client:
        client.ingest([SHORT])
        with closing(sqlite3.connect(tmp_path / "calls.sqlite", isolation_level=None)) as edited:
            edited.execute("UPDATE passages SET layout = ?", (layout,))
        record_checksums(tmp_path / "calls.sqlite")
        result = client.query("just")
        assert [(hit.text, hit.spans) for hit in result.hits] == [(SHORT["text"], [])]
        (warning,) = result.plan["warnings"]
        assert "'x' passage 0" in warning
        assert warning.endswith("ingest again after hybrid-search delete --index calls -- x")
        assert not client.verify().is_sound
        client.delete(["x"])
        client.ingest([SHORT])
        assert client.query("just").hits[0].spans


# Threads


def test_threads_read_side_by_side_and_a_full_house_waits_in_order() -> None:
    turns = readers.Turns(1)
    order: list[str] = []
    threads = []
    with turns.take(begins_query=True):
        for name, begins_query in (("first", True), ("second", True), ("ends", False)):
            thread = threading.Thread(target=_take, args=(turns, begins_query, order, name))
            thread.start()
            threads.append(thread)
            while len(turns._queue) < len(threads):
                pass
    for thread in threads:
        thread.join()
    assert order == ["ends", "first", "second"]


def _take(turns: readers.Turns, begins_query: bool, order: list[str], name: str) -> None:
    with turns.take(begins_query=begins_query):
        order.append(name)


def test_two_threads_are_inside_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "available_cores", lambda: 2)
    with closing(EmbeddedBackend(tmp_path)) as backend:
        fill_index(backend, [SHORT], tmp_path / "rejected.jsonl")
        both = threading.Barrier(2, timeout=30)

        def read() -> None:
            with backend._open_reader("calls") as reader:
                both.wait()
                reader.connection.execute("SELECT count(*) FROM documents").fetchone()

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not both.broken


def test_a_query_waits_while_as_many_are_computed_as_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "available_cores", lambda: 1)
    with connect(f"embedded:{tmp_path}") as client:
        client.ingest([SHORT])
        backend = client.backend
        assert isinstance(backend, LocalBackend)
        answers: list[Result] = []
        thread = threading.Thread(target=lambda: answers.append(client.query("just")))
        with backend.take_place():
            thread.start()
            thread.join(0.5)
            assert thread.is_alive()
        thread.join(30)
        assert [hit.id for hit in answers[0]] == [SHORT["id"]]


def test_threads_that_read_while_one_writes_see_whole_documents(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    with closing(EmbeddedBackend(tmp_path)) as backend:
        fill_index(backend, _make_numbered(0, 20), tmp_path / "rejected.jsonl")
        done = threading.Event()

        def read() -> None:
            counts = [0]
            try:
                while not done.is_set():
                    found = backend.find_candidates("calls", make_request("number", window=1000))
                    counts.append(len(found.semantic))
                    assert len(found.lexical) >= 20
                assert counts == sorted(counts)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for start in range(20, 60, 10):
            fill_index(backend, _make_numbered(start, 10), tmp_path / "rejected.jsonl")
        done.set()
        for thread in threads:
            thread.join()
        assert errors == []
        assert len(backend.find_candidates("calls", make_request("number")).semantic) == 60


def _make_numbered(start: int, count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"{number:03d}", "text": f"number {number}"}
        for number in range(start, start + count)
    ]


def test_an_index_dropped_while_threads_read_is_missing_and_no_crash(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    with closing(EmbeddedBackend(tmp_path)) as backend:
        fill_index(backend, [SHORT], tmp_path / "rejected.jsonl")
        begun = threading.Barrier(5, timeout=30)

        def read() -> None:
            begun.wait()
            try:
                while True:
                    read_passages(backend)
            except HybridSearchError as error:
                errors.append(error)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        begun.wait()
        backend.drop_index("calls")
        for thread in threads:
            thread.join()
    assert [type(error) for error in errors] == [IndexMissingError] * 4
