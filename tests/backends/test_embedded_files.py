"""The files of an embedded index: read where nobody may write, locked, and told from others'.

Permissions do not bind the superuser, so these tests read as another user, in a process of their
own; where this process may not become another user, it is not the superuser either.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.backends import open_backend
from hybrid_search.backends.embedded import backend
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.embedded.turns import Turns
from hybrid_search.backends.types import Head
from hybrid_search.errors import (
    IndexBusyError,
    IndexMissingError,
    IndexStoreError,
)
from hybrid_search.search.result import Result
from tests.helpers.changed_index import change_records
from tests.helpers.cli import invoke_cli
from tests.helpers.stored_passages import SHORT, read_passages, write_documents
from tests.helpers.tiny_encoder import fill_index, make_entries, make_request, make_spec

NOBODY = 65534
"""The number of a user without any rights of its own."""

MORE = {"id": "y", "text": "just more"}

LOCK = "calls.index.lock"

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
        assert list(backend.iterate_passages("calls"))  # they are listed, too
        return " | ".join(passage.text for passage in read_passages(backend))


def test_an_index_in_a_folder_that_the_reader_may_not_write_is_read(store: Path) -> None:
    files = sorted(store.rglob("*"))
    assert answer_as_another_user(lambda: read_texts(store)) == "just this"
    assert sorted(store.rglob("*")) == files


def test_what_a_killed_writer_committed_is_read_there(store: Path) -> None:
    for path in [store, *store.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)
    child = os.fork()
    if child == 0:
        writer = EmbeddedBackend(store).writer("calls", make_spec())
        writer.write(make_entries(MORE))
        os._exit(0)
    os.waitpid(child, 0)
    protect(store)
    assert answer_as_another_user(lambda: read_texts(store)) == "just this | just more"


def test_an_index_that_this_user_may_not_read_says_so(store: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only the superuser can read as another user")
    for path in store.rglob("*"):
        if path.is_file():
            path.chmod(0o400)
    answer = answer_as_another_user(lambda: read_texts(store))
    assert answer.startswith("IndexStoreError: ")
    assert "Permission denied" in answer


def write_more(folder: Path) -> str:
    with closing(EmbeddedBackend(folder)) as backend:
        write_documents(backend, MORE)
    return "written"


def drop(folder: Path) -> str:
    with closing(EmbeddedBackend(folder)) as backend:
        backend.drop_index("calls")
    return "dropped"


def test_writing_where_nobody_may_is_refused_with_the_remedy(store: Path) -> None:
    answer = answer_as_another_user(lambda: write_more(store))
    assert answer.startswith("IndexStoreError: ")
    assert "let this user write there" in answer


def test_an_index_in_a_folder_that_this_user_may_not_enter_says_so(store: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only the superuser can read as another user")
    (store / "calls.index").chmod(0o700)
    for ask in (drop, read_texts):
        answer = answer_as_another_user(partial(ask, store))
        assert answer.startswith("IndexStoreError: ")
        assert "Permission denied: use another folder, or let this user write there" in answer


# The lock


def test_a_damaged_lock_file_hurts_nothing(tmp_path: Path) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        write_documents(backend, SHORT)
        (tmp_path / LOCK).write_bytes(os.urandom(5000))
        write_documents(backend, MORE)
        assert len(read_passages(backend)) == 2
        backend.drop_index("calls")
    assert list(tmp_path.iterdir()) == []


def test_delete_with_a_folder_in_place_of_the_lock_is_one_error_line(tmp_path: Path) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        write_documents(backend, SHORT)
    (tmp_path / LOCK).unlink()
    (tmp_path / LOCK).mkdir()
    error = invoke_cli("delete", "--yes", "--url", f"embedded:{tmp_path}").error
    assert f"{LOCK}, the lock of index 'calls', is not a plain file: remove it" in error
    assert error.endswith("The index is not damaged")
    (tmp_path / LOCK).rmdir()
    assert invoke_cli("delete", "--yes", "--url", f"embedded:{tmp_path}").status == 0


@pytest.mark.parametrize("exists", [True, False])
def test_a_lock_is_never_taken_through_a_link(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "theirs"
    if exists:
        target.write_text("theirs")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / LOCK).symlink_to(target)
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
def test_new_folders_are_for_their_user_alone(tmp_path: Path, mask: int) -> None:
    old_mask = os.umask(mask)
    try:
        with closing(EmbeddedBackend(tmp_path / "store")) as backend:
            write_documents(backend, SHORT)
        modes = {
            path: stat.S_IMODE(path.stat().st_mode)
            for path in [tmp_path / "store", *(tmp_path / "store").rglob("*")]
        }
    finally:
        os.umask(old_mask)
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {modes[path] for path in modes if path.suffix in (".json", ".codes", ".lock")} >= {0o600}


def test_a_new_index_is_not_made_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "calls.index").symlink_to(tmp_path / "theirs")
    with (
        closing(EmbeddedBackend(tmp_path / "store")) as backend,
        pytest.raises(IndexStoreError, match=r"calls\.index"),
    ):
        write_documents(backend, SHORT)
    assert not (tmp_path / "theirs").exists()


# Indexes of before, and what a record may hold


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "calls.sqlite"
    file.write_bytes(b"SQLite format 3\0")
    with pytest.raises(IndexStoreError, match="is a file, and indexes lie in a folder"):
        open_backend(f"embedded:{file}")


@pytest.mark.parametrize(
    "layout", ["x", "[]", "{}", "7", '[{"turn": 0}]', '[{"turn": [], "start": 0, "end": 9}]']
)
def test_a_passage_without_its_turns_is_shown_without_spans_and_with_a_warning(
    tmp_path: Path, tiny_encoder: None, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.helpers.changed_index.record.read_speakers", lambda _: ())
    with connect(f"embedded:{tmp_path}") as client:
        client.ingest([SHORT])
        change_records(lambda found: replace(found, layout=layout), tmp_path / "calls.index")
        result = client.query("just")
        assert [(hit.text, hit.spans) for hit in result.hits] == [(SHORT["text"], [])]
        (warning,) = result.plan["warnings"]
        assert "'x' passage 0" in warning
        assert warning.endswith("ingest again after hybrid-search delete --index calls -- x")
        assert not client.verify().is_sound
        client.delete(["x"])
        client.ingest([SHORT])
        assert client.query("just").hits[0].spans


def test_numbers_are_not_given_again_to_passages_after_the_last_was_deleted(
    tmp_path: Path,
) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        fill_index(backend, [SHORT, MORE])
        last = list(backend.scan_codes("calls"))[-1].position
        with backend.writer("calls", make_spec()) as writer:
            writer.delete([SHORT["id"], MORE["id"]])
        fill_index(backend, [{"id": "new", "text": "a later one"}])
        assert [found.document_id for found in backend.scan_codes("calls", last)] == ["new"]


# Threads


def test_threads_read_side_by_side_and_a_full_house_waits_in_order() -> None:
    turns = Turns(1)
    order: list[str] = []
    threads = []
    with turns.take():
        for name in ("first", "second", "third"):
            thread = threading.Thread(target=_take, args=(turns, order, name))
            thread.start()
            threads.append(thread)
            while len(turns._queue) < len(threads):
                pass
    for thread in threads:
        thread.join()
    assert order == ["first", "second", "third"]


def _take(turns: Turns, order: list[str], name: str) -> None:
    with turns.take():
        order.append(name)


def test_a_query_waits_while_as_many_are_computed_as_there_are_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "available_cores", lambda: 1)
    with connect(f"embedded:{tmp_path}") as client:
        client.ingest([SHORT])
        answers: list[Result] = []
        thread = threading.Thread(target=lambda: answers.append(client.query("just")))

        def wait(_: Head) -> None:
            thread.start()
            thread.join(0.5)
            assert thread.is_alive()

        client.backend.answer_by_head("calls", wait)
        thread.join(30)
        assert [hit.id for hit in answers[0]] == [SHORT["id"]]


def test_threads_that_read_while_one_writes_see_whole_documents(tmp_path: Path) -> None:
    with closing(EmbeddedBackend(tmp_path)) as store:
        fill_index(store, _make_numbered(0, 20), tmp_path / "rejected.jsonl")
        done = threading.Event()

        def read() -> None:
            counts = [0]
            while not done.is_set():
                found = store.find("calls", make_request("number", window=1000)).passages
                counts.append(len(found))
                assert sum(passage.bm25 > 0 for passage in found) >= 20
            assert counts == sorted(counts)

        with ThreadPoolExecutor(8) as pool:
            readers = [pool.submit(read) for _ in range(8)]
            for start in range(20, 60, 10):
                fill_index(store, _make_numbered(start, 10), tmp_path / "rejected.jsonl")
            done.set()
        for reader in readers:
            reader.result()
        assert len(store.find("calls", make_request("number")).passages) == 60


def _make_numbered(start: int, count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"{number:03d}", "text": f"number {number}"}
        for number in range(start, start + count)
    ]


def test_an_index_dropped_while_threads_read_is_missing_and_no_crash(tmp_path: Path) -> None:
    with closing(EmbeddedBackend(tmp_path)) as backend:
        fill_index(backend, [SHORT], tmp_path / "rejected.jsonl")
        begun = threading.Barrier(5, timeout=30)

        def read() -> None:
            begun.wait()
            while True:
                read_passages(backend)

        with ThreadPoolExecutor(4) as pool:
            readers = [pool.submit(read) for _ in range(4)]
            begun.wait()
            backend.drop_index("calls")
    assert [type(reader.exception()) for reader in readers] == [IndexMissingError] * 4
