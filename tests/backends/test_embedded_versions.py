"""The next version of an embedded index: copied or ingested beside it, and put in its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect, encoder
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.embedded.next_version import NextVersion
from hybrid_search.backends.embedded.versions import FIELDS, remove_version
from hybrid_search.client import Client
from hybrid_search.errors import IndexBusyError, IndexStoreError, UsageError
from hybrid_search.ingest.summary import Summary
from hybrid_search.ingest.types import SourceLine
from tests.helpers.source_lines import make_lines
from tests.helpers.tiny_encoder import TinyEncoder, make_spec

DOCUMENTS: list[dict[str, Any]] = [
    {"id": f"{number:03d}", "text": f"call {number} about a refund " * 10, "number": number}
    for number in range(40)
]


class OtherEncoder(TinyEncoder):
    info = replace(TinyEncoder.info, fingerprint="other-fingerprint")


@pytest.fixture
def client(tiny_encoder: None, tmp_path: Path) -> Iterator[Client]:
    """A client of an index with several files of codes."""
    with connect(f"embedded:{tmp_path / 'store'}") as embedded_client:
        embedded_client.ingest(DOCUMENTS[:30])
        embedded_client.ingest(DOCUMENTS[30:])
        yield embedded_client


def list_files(tmp_path: Path) -> list[str]:
    folder = tmp_path / "store"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def ask(client: Client) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in client.query("refund 7", size=40)]


def make_again(client: Client, **options: Any) -> Summary:
    return client.reindex("calls", make_lines(DOCUMENTS), **options)


def test_documents_ingested_again_answer_alike_under_another_policy_and_are_sound(
    client: Client, tmp_path: Path
) -> None:
    before = ask(client)
    assert make_again(client, policy="6/1").documents == 40
    assert ask(client) == before
    assert client.describe().spec.policy == "6/1"
    assert client.verify(full=True).is_sound
    client.close()
    (version,) = (path for path in (tmp_path / "store/calls.index").iterdir() if path.is_dir())
    assert version.name == "000002"


def test_nothing_is_copied_without_documents(client: Client, tmp_path: Path) -> None:
    before, files = ask(client), list_files(tmp_path)
    with pytest.raises(UsageError, match="name the files of all documents"):
        client.reindex("calls")
    assert (ask(client), list_files(tmp_path)) == (before, files)


def test_a_version_of_too_few_documents_is_refused_with_all_counts(tmp_path: Path) -> None:
    backend = EmbeddedBackend(tmp_path)
    backend.create_index("calls", make_spec(), {})
    version = backend.create_next_version("calls", make_spec(), {})
    counts = "has 0 documents of 2 and 0 passages of 0. .*run the same command again"
    with pytest.raises(IndexStoreError, match=counts):
        version.check(2)
    version.discard()


def test_another_client_reads_the_old_version_and_then_the_new_one(
    client: Client, tmp_path: Path
) -> None:
    with connect(f"embedded:{tmp_path / 'store'}") as other:
        before = ask(other)
        make_again(client, policy="3/1")
        assert ask(other) == before
        assert other.describe().spec.policy == "3/1"
        client.ingest([{"id": "new", "text": "a new refund"}])
        assert other.describe().documents == 41
    assert client.describe().documents == 41


def test_all_documents_can_be_ingested_again_by_another_model(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "load", lambda *_: OtherEncoder())
    lines = [
        SourceLine("calls", number, f'{{"id": "{number}", "text": "refund {number}"}}'.encode())
        for number in range(5)
    ]
    assert client.reindex("calls", lines).documents == 5
    assert client.describe().spec.fingerprint == "other-fingerprint"
    assert len(client.query("refund", size=40).hits) == 5
    assert client.verify(full=True).is_sound


def test_a_refused_document_leaves_the_index_as_it_was(client: Client, tmp_path: Path) -> None:
    before, files = ask(client), list_files(tmp_path)
    with pytest.raises(IndexStoreError, match="1 of 1 documents were refused"):
        client.reindex("calls", [SourceLine("calls", 1, b"{}")])
    assert ask(client) == before
    new_files = set(list_files(tmp_path)) - set(files)
    assert new_files == {"calls.rejected.jsonl"}


def test_what_a_killed_reindex_left_is_removed_by_the_next(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(NextVersion, "publish", _kill)
        patch.setattr(NextVersion, "discard", NextVersion._close)
        with pytest.raises(KeyboardInterrupt):
            make_again(client)
    index = tmp_path / "store/calls.index"
    assert sorted(path.name for path in index.iterdir()) == ["000001", "000002", "head.json"]
    before = ask(client)
    assert make_again(client).documents == 40
    assert sorted(path.name for path in index.iterdir()) == ["000002", "head.json"]
    assert ask(client) == before


def _kill(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_an_index_that_is_being_written_is_not_replaced(client: Client) -> None:
    with client.backend.writer("calls", make_spec()), pytest.raises(IndexBusyError):
        make_again(client)
    assert make_again(client).documents == 40


def test_a_folder_in_the_place_of_a_file_is_left_when_an_index_is_removed(tmp_path: Path) -> None:
    version = tmp_path / "000001"
    (version / FIELDS).mkdir(parents=True)
    remove_version(version)
    assert [path.name for path in version.iterdir()] == [FIELDS]
