"""An empty store, and a small index, for the tests of the backends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hybrid_search import connect
from hybrid_search.backends import open_backend
from hybrid_search.backends.base import Backend
from tests.helpers.changed_index import DOCUMENTS, URL, ask


@pytest.fixture
def store(empty_url: str) -> Iterator[Backend]:
    """An empty backend of each kind, without an encoder."""
    backend = open_backend(empty_url)
    yield backend
    backend.close()


@pytest.fixture
def answers(tiny_encoder: None) -> dict[str, float]:
    """The answer of an index of all `DOCUMENTS`, which is in `STORE` and closed."""
    with connect(URL) as client:
        client.ingest(DOCUMENTS)
        return ask(client)
