"""A run that writes nothing leaves nothing, and an index that was there stays as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.client import Client
from hybrid_search.errors import IndexMissingError, InputError
from hybrid_search.ingest.types import SourceLine
from tests.helpers.source_lines import make_lines
from tests.helpers.tiny_encoder import TinyEncoder

pytestmark = pytest.mark.usefixtures("tiny_encoder")

GOOD = {"id": "a", "text": "a good call"}
REFUSED_BY_STORE = {"id": "b", "text": "a call", "mixed": [1, "x"]}


def ingest(client: Client, *documents: dict[str, Any]) -> int:
    return client.ingest_lines(make_lines(documents)).documents


def break_off(error: BaseException) -> Iterator[SourceLine]:
    yield SourceLine("calls.jsonl", 1, json.dumps(GOOD).encode())
    raise error


def refuse_lines(client: Client) -> None:
    assert ingest(client, {"id": "a"}, {"text": "without an id"}) == 0


def refuse_metadata(client: Client) -> None:
    assert ingest(client, REFUSED_BY_STORE) == 0


def read_nothing(client: Client) -> None:
    assert ingest(client) == 0


def select_nothing(client: Client) -> None:
    line = SourceLine("calls.jsonl", 1, json.dumps(GOOD).encode())
    assert client.ingest_lines([line], where={"id": "another"}).documents == 0


def lose_the_source(client: Client) -> None:
    with pytest.raises(OSError, match="gone"):
        client.ingest_lines(break_off(OSError("gone")))


def interrupt(client: Client) -> None:
    with pytest.raises(KeyboardInterrupt):
        client.ingest_lines(break_off(KeyboardInterrupt()))


def fail_to_encode(client: Client) -> None:
    def encode(_: object, texts: object) -> None:
        raise InputError("the model cannot read this")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TinyEncoder, "encode", encode)
        try:
            assert ingest(client, GOOD) == 0
        except Exception as error:  # whatever the run ends with
            assert "the model" in str(error)


FAILURES = [
    refuse_lines,
    refuse_metadata,
    read_nothing,
    select_nothing,
    lose_the_source,
    interrupt,
    fail_to_encode,
]


def list_traces(client: Client, folder: Path) -> list[str]:
    """Return all that an index could leave behind; a rejects file is of the run, and stays."""
    files = {path.name for path in folder.glob("store/*")} - {"calls.rejected.jsonl"}
    traces = client.indexes() + sorted(files)
    if isinstance(client.backend, ServerBackend):
        rows = client.backend.server.request(
            "GET", "/_cat/indices", params={"format": "json", "h": "index"}
        )
        traces += [row["index"] for row in rows if row["index"].startswith("calls")]
    return traces


def test_a_run_that_writes_nothing_leaves_nothing(client: Client, tmp_path: Path) -> None:
    for fail in FAILURES:
        fail(client)
        assert list_traces(client, tmp_path) == [], fail.__name__
        with pytest.raises(IndexMissingError):
            client.query("call")
    assert ingest(client, GOOD, REFUSED_BY_STORE, {"id": "c"}) == 1
    assert client.query("call").total == 1


@pytest.mark.parametrize("make", [Client.setup, lambda client: ingest(client, GOOD)])
def test_an_index_that_was_there_stays_as_it_was(
    client: Client, make: Callable[[Client], object]
) -> None:
    make(client)
    documents = client.describe().documents
    for fail in FAILURES:
        fail(client)
        assert client.describe().documents == documents, fail.__name__
    assert client.verify().is_sound


def test_an_index_whose_documents_were_all_deleted_stays(client: Client) -> None:
    ingest(client, GOOD)
    client.delete(["a"])
    assert client.describe().documents == 0
