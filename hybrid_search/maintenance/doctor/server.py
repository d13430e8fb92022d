"""Check a server: whether it answers, version, plugins, health, privileges and index."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NotRequired

from hybrid_search import backends
from hybrid_search.backends.server import aliases
from hybrid_search.backends.server.dialects import find_dialect
from hybrid_search.backends.server.dialects.base import format_version
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.connection import Server, connect
from hybrid_search.backends.server.transport.shape import (
    ANYTHING,
    Items,
    Shape,
    make_object,
)
from hybrid_search.backends.types import IndexInfo
from hybrid_search.config import Settings
from hybrid_search.errors import AccessError, IndexMissingError, ServerError
from hybrid_search.maintenance.doctor import model
from hybrid_search.maintenance.doctor.check import Check, attempt, ok, problem, warning

SECONDS = 5.0
"""Limit for opening a connection."""

READ = ("read", "view_index_metadata")
WRITE = ("write", "maintenance")
MAKE = ("create_index", "indices:admin/aliases")
"""Privileges that searching, ingesting and making an index need, by Elasticsearch's names.

docs/servers.md explains them.
"""

PAGE = "grant the privileges that the documentation lists under Servers"
ABSENT = (400, 404, 405)
"""HTTP statuses by which a server says that it has no security."""


HEALTH = Shape[dict[str, Any]](
    make_object(status=str, number_of_data_nodes=int, unassigned_shards=int)
)
PLUGINS = Shape[list[dict[str, Any]]](Items[make_object(component=str)])
PRIVILEGES = Shape[dict[str, Any]](
    make_object(index=dict[str, dict[str, bool]], cluster=dict[str, bool])
)
LOGIN = Shape[dict[str, Any]](make_object(roles=NotRequired[list[str] | None]))

RunChecks = Callable[[], Iterable[Check]]


def checks(settings: Settings, index: str) -> Iterator[Check]:
    """Yield all checks of a server; only one if it does not answer or refuses the login."""
    address = Address.parse(settings.url)
    try:
        socket.create_connection((address.host, address.port), SECONDS).close()
    except OSError as error:
        yield problem(
            "server",
            f"{address} does not answer: {error}",
            "start the server, or correct host and port of --url, or look into the network",
        )
        return
    server = connect(address, settings.access)
    checks_by_name: dict[str, RunChecks] = {
        "version": lambda: _version(server),
        "health": lambda: _health(server),
        "privileges": lambda: _privileges(server, index, settings.access.identity),
        "index": lambda: _index(server, settings, index),
    }
    try:
        if login_problem := _check_login(server):
            yield login_problem
            return
        for name, run_checks in checks_by_name.items():
            yield from attempt(name, run_checks)
    finally:
        server.close()


def _check_login(server: Server) -> Check | None:
    """Return a problem if the login or the server's certificate is not accepted, else None.

    A login without privileges (403) passes: `_privileges` says more about it.
    """
    try:
        server.request("GET", "/", read=ANYTHING.read)
    except AccessError as error:
        return (
            None
            if error.status == 403
            else problem("login", str(error), "do as the message says, then run doctor again")
        )
    return None


def _version(server: Server) -> Iterator[Check]:
    """Check the server's version; reading it raises `ServerError` if it is too old."""
    dialect = find_dialect(server.engine)
    finding = f"{server} is {dialect.title} {format_version(server.version)}"
    yield ok("version", finding)
    if dialect.knn_plugin:
        yield from attempt("plugins", lambda: _plugins(server, dialect.knn_plugin))


def _plugins(server: Server, needed: str) -> Iterator[Check]:
    rows = server.request(
        "GET",
        "/_cat/plugins",
        params={"format": "json", "h": "component"},
        read=PLUGINS.read,
    )
    if needed not in {row["component"] for row in rows}:
        yield problem(
            "plugins",
            f"{needed} is not installed",
            "install it: without it the server cannot search vectors",
        )
    else:
        yield ok("plugins", f"{needed} is installed")


def _health(server: Server) -> Iterator[Check]:
    health = server.request("GET", "/_cluster/health", read=HEALTH.read)
    nodes, unassigned = health["number_of_data_nodes"], health["unassigned_shards"]
    finding = f"{health['status']}, {nodes} data nodes, {unassigned} unassigned shards"
    if health["status"] == "red":
        yield problem(
            "health",
            finding,
            "start the missing nodes: what the unassigned shards hold cannot be searched",
        )
    elif health["status"] == "yellow":
        yield warning(
            "health",
            finding,
            "add a node, or set replicas to 0: some replicas have no node",
        )
    else:
        yield ok("health", finding)


def _index(server: Server, settings: Settings, index: str) -> Iterator[Check]:
    """Check that this model made the index, and count what is in it."""
    try:
        aliases.find_index(server, index)
    except IndexMissingError as error:
        yield warning(
            "index",
            str(error),
            f"run hybrid-search setup --index {index}, or the first ingest, to make it",
        )
        return
    backend = backends.open_backend(settings.url, settings.access)
    try:
        info: IndexInfo = backend.describe_index(index)
    finally:
        backend.close()
    yield model.check_index_model(settings, index, info)


def _privileges(server: Server, index: str, identity: str) -> Iterator[Check]:
    """Check what the login may do, as far as the server says; nothing is written to try."""
    run_checks = _query_privileges if find_dialect(server.engine).tells_privileges else _try_search
    try:
        yield from run_checks(server, index, identity)
    except ServerError as error:
        if error.status not in ABSENT:
            raise
        yield ok("privileges", "the server has no security: everybody may do anything")


def _query_privileges(server: Server, index: str, identity: str) -> Iterator[Check]:
    names = [index, f"{index}-*"]
    body = {
        "cluster": ["cluster:monitor/main"],
        "index": [{"names": names, "privileges": [*READ, *WRITE, *MAKE]}],
    }
    response = server.request(
        "POST", "/_security/user/_has_privileges", body=body, read=PRIVILEGES.read
    )
    index_privileges = {name: response["index"].get(name, {}) for name in names}

    def list_lacking(privileges: Sequence[str], *places: str) -> list[str]:
        granted = [index_privileges[place] for place in places]
        return [name for name in privileges if not all(item.get(name) for item in granted)]

    lacking = {
        "search": list_lacking(READ, index),
        "ingest into": list_lacking(WRITE, *names),
        "make": list_lacking(MAKE, *names),
    }
    lacking["make"] += [name for name, allowed in response["cluster"].items() if not allowed]
    missing = [f"{action} ({', '.join(names)})" for action, names in lacking.items() if names]
    if not missing:
        yield ok("privileges", f"{identity} may search, ingest into and make {index!r}")
    else:
        build_check = problem if lacking["search"] else warning
        yield build_check(
            "privileges",
            f"{identity} may not {' or '.join(missing)} {index!r}",
            f"leave it, if this login is restricted on purpose; otherwise {PAGE}",
        )


def _try_search(server: Server, index: str, identity: str) -> Iterator[Check]:
    """Check on OpenSearch, by searching, that the login may search.

    OpenSearch says who a login is, but not what it may do; trying to write would change the index.

    Yields:
        One check.

    Raises:
        ServerError: If the search fails for another reason than a missing index.
    """
    response = server.request("GET", "/_plugins/_security/authinfo", read=LOGIN.read)
    roles = ", ".join(response.get("roles") or ()) or "no roles"
    try:
        aliases.search(server, index, {"size": 0})
    except AccessError as error:
        yield problem("privileges", f"{identity} ({roles}) may not search {index!r}: {error}", PAGE)
    except ServerError as error:
        if error.status != 404:
            raise
        yield warning(
            "privileges",
            f"{identity} ({roles}): there is no index {index!r} to try to search",
            PAGE,
        )
    else:
        yield ok("privileges", f"{identity} ({roles}) may search {index!r}; writing was not tried")
