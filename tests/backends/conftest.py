"""An empty store for the tests of the backends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.base import Backend


@pytest.fixture
def store(empty_url: str) -> Iterator[Backend]:
    """An empty backend of each kind, without an encoder."""
    backend = open_backend(empty_url)
    yield backend
    backend.close()
