"""Real servers, for tests: those that HYBRID_SEARCH_TEST_URLS names, and indexes there that are gone afterwards."""

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

from hybrid_search.access import Access
from hybrid_search.backends.server.address import Address
from hybrid_search.backends.server.base import Server
from hybrid_search.backends.server.engines import connect
from hybrid_search.backends.server.indexes import names


def _named(url: str) -> str:
    """The server at `url` as a test's name shows it: ``opensearch-3.5.0``; its host and port where it does not say what it is."""
    address = Address.parse(url)
    connection = (http.client.HTTPSConnection if address.secure else http.client.HTTPConnection)(address.host, address.port, timeout=10)
    try:
        connection.request("GET", f"{address.prefix}/")
        version = json.loads(connection.getresponse().read())["version"]
        return f"{version.get('distribution', 'elasticsearch')}-{version['number']}"
    except (OSError, http.client.HTTPException, ValueError, LookupError):
        return f"{address.host}:{address.port}"
    finally:
        connection.close()


SERVERS = [pytest.param(url, id=_named(url), marks=pytest.mark.server) for url in os.environ.get("HYBRID_SEARCH_TEST_URLS", "").split()]
"""More `params` of a fixture that has others: none where no servers are named."""

URLS = SERVERS or [pytest.param("", marks=pytest.mark.skip(reason="HYBRID_SEARCH_TEST_URLS names no server"))]
"""All `params` of a fixture: its tests run on each of them, or are skipped, saying why."""


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


@contextmanager
def own_name(url: str) -> Iterator[str]:
    """A name for an index on the server at `url` that nobody else uses; in the end, all whose names begin with it are removed."""
    name = f"own-{secrets.token_hex(4)}"
    try:
        yield name
    finally:
        with opened(url) as server:
            for each in _indexes(server):
                if each.startswith(name):
                    server.request("DELETE", f"/{quote(each)}")


@contextmanager
def emptied(url: str) -> Iterator[None]:
    """Around a test that makes indexes of any name on the server at `url`: those that it made are removed, by their names, and no others."""
    with opened(url) as server:
        ours, before = names(server), _indexes(server)
        assert not ours, f"{url} has indexes of ours, {', '.join(ours)}, and is to have none before a test: delete them, or use another server"
        try:
            yield
        finally:
            for name in _indexes(server) - before:
                server.request("DELETE", f"/{quote(name)}")


def _indexes(server: Server) -> set[str]:
    """Without those of the server itself."""
    listed = server.request("GET", "/_cat/indices", params={"format": "json", "h": "index"})
    return {each["index"] for each in listed if not each["index"].startswith(".")}
