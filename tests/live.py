"""Real servers, for tests: those that HYBRID_SEARCH_TEST_URLS names, and indexes there that are gone afterwards."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from hybrid_search.access import Access
from hybrid_search.backends.server.address import Address
from hybrid_search.backends.server.base import Server
from hybrid_search.backends.server.engines import connect

URLS: list[Any] = os.environ.get("HYBRID_SEARCH_TEST_URLS", "").split() or [
    pytest.param("", marks=pytest.mark.skip(reason="HYBRID_SEARCH_TEST_URLS names no server"))
]
"""For a fixture's `params`: its tests run on each of them, or are skipped, saying why."""


@contextmanager
def opened(url: str) -> Iterator[Server]:
    """A connection to the server at `url`."""
    server = connect(Address.parse(url), Access())
    try:
        yield server
    finally:
        server.close()


@contextmanager
def scratch(server: Server, body: Mapping[str, Any]) -> Iterator[str]:
    """The name of an index that is made by `body`, and removed in the end."""
    name = f"scratch-{secrets.token_hex(4)}"
    server.request("PUT", f"/{name}", body=body)
    try:
        yield name
    finally:
        server.request("DELETE", f"/{name}")
