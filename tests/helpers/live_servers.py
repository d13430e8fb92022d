"""The real servers that HYBRID_SEARCH_TEST_URLS names, and temporary indexes on them."""

from __future__ import annotations

import http.client
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest

import hybrid_search
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.heads import list_names
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.connection import Server, connect
from hybrid_search.client import Client
from hybrid_search.credentials import Access


def _server_label(url: str) -> str:
    """Return engine and version for a test's name (``opensearch-3.5.0``), else host and port."""
    address = Address.parse(url)
    kind = http.client.HTTPSConnection if address.is_secure else http.client.HTTPConnection
    connection = kind(address.host, address.port, timeout=10)
    try:
        connection.request("GET", f"{address.prefix}/")
        version = json.loads(connection.getresponse().read())["version"]
        return f"{version.get('distribution', 'elasticsearch')}-{version['number']}"
    except (OSError, http.client.HTTPException, ValueError, LookupError):
        return f"{address.host}:{address.port}"
    finally:
        connection.close()


LABELS = {url: _server_label(url) for url in os.environ.get("HYBRID_SEARCH_TEST_URLS", "").split()}
SERVERS = [pytest.param(url, id=label, marks=pytest.mark.server) for url, label in LABELS.items()]
"""Additional `params` of a fixture: empty if no servers are named."""

URLS = SERVERS or [
    pytest.param("", marks=pytest.mark.skip(reason="HYBRID_SEARCH_TEST_URLS names no server"))
]
"""All `params` of a fixture: its tests run on each server, or are skipped with the reason."""


@contextmanager
def open_server(url: str) -> Iterator[Server]:
    """Open a connection to the server at `url` for a block."""
    server = connect(Address.parse(url), Access())
    try:
        yield server
    finally:
        server.close()


@contextmanager
def open_client(url: str, engine: str) -> Iterator[Client]:
    """Connect to the server at `url` for a block, or skip the test if it is of another engine."""
    with hybrid_search.connect(url) as connected:
        assert isinstance(connected.backend, ServerBackend)
        if connected.backend.server.engine != engine:
            pytest.skip(f"this is about {engine} alone")
        yield connected


@contextmanager
def scratch_index(server: Server, body: Mapping[str, Any]) -> Iterator[str]:
    """Make an index from `body` for a block, and yield its name."""
    name = f"scratch-{secrets.token_hex(4)}"
    server.request("PUT", f"/{name}", body=body)
    try:
        yield name
    finally:
        server.request("DELETE", f"/{name}")


@contextmanager
def unique_index_name(url: str) -> Iterator[str]:
    """Yield an unused index name; all indexes whose names start with it are removed at the end."""
    name = f"own-{secrets.token_hex(4)}"
    try:
        yield name
    finally:
        with open_server(url) as server:
            for index_name in _list_indexes(server):
                if index_name.startswith(name):
                    server.request("DELETE", f"/{quote(index_name)}")


@contextmanager
def remove_new_indexes(url: str) -> Iterator[None]:
    """Remove the indexes that a block makes on the server at `url`, and no others."""
    with open_server(url) as server:
        known_names, before = list_names(server), _list_indexes(server)
        assert not known_names, (
            f"{url} already has indexes of this project, {', '.join(known_names)}: "
            "delete them, or use another server"
        )
        try:
            yield
        finally:
            for name in _list_indexes(server) - before:
                server.request("DELETE", f"/{quote(name)}")


def _list_indexes(server: Server) -> set[str]:
    """Return all index names except the server's own."""
    rows = server.request("GET", "/_cat/indices", params={"format": "json", "h": "index"})
    return {row["index"] for row in rows if not row["index"].startswith(".")}
