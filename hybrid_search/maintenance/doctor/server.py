"""Check a server: whether it answers, version, plugins, health, privileges and index."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NotRequired

from hybrid_search.backends.server import aliases
from hybrid_search.backends.server.dialects import find_dialect
from hybrid_search.backends.server.dialects.base import format_version
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.connection import Server, connect
from hybrid_search.backends.server.transport.shape import ANYTHING, Items, Shape, make_object
from hybrid_search.config import Settings
from hybrid_search.errors import AccessError, ServerError
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


def checks(settings: Settings, index: str) -> Iterator[Check]:
    """Yield all checks of a server; only one if it does not answer or refuses the login."""
    address = Address.parse(settings.url)
    try:
        socket.create_connection((address.host, address.port), SECONDS).close()
    except OSError as error:
        remedy = "start the server, or correct host and port of --url, or look into the network"
        yield problem("server", f"{address} does not answer: {error}", remedy)
        return
    server = connect(address, settings.access)
    identity = settings.access.identity
    with closing(server):
        if login_problem := _check_login(server):
            yield login_problem
            return
        yield from attempt("version", lambda: _version(server))
        yield from attempt("health", lambda: _health(server))
        yield from attempt("privileges", lambda: _privileges(server, index, identity))
        yield from attempt("index", lambda: model.index(settings, index))


def _check_login(server: Server) -> Check | None:
    """Return a problem if the login or the server's certificate is not accepted, else None.

    A login without privileges (403) passes: `_privileges` says more about it.
    """
    try:
        server.request("GET", "/", read=ANYTHING.read)
    except AccessError as error:
        if error.status != 403:
            return problem("login", str(error), "do as the message says, then run doctor again")
    return None


def _version(server: Server) -> Iterator[Check]:
    """Check the server's version; reading it raises `ServerError` if it is too old."""
    dialect = find_dialect(server.engine)
    yield ok("version", f"{server} is {dialect.title} {format_version(server.version)}")
    if dialect.knn_plugin:
        yield from attempt("plugins", lambda: _plugins(server, dialect.knn_plugin))


def _plugins(server: Server, needed: str) -> Iterator[Check]:
    params = {"format": "json", "h": "component"}
    rows = server.request("GET", "/_cat/plugins", params=params, read=PLUGINS.read)
    if needed in {row["component"] for row in rows}:
        yield ok("plugins", f"{needed} is installed")
    else:
        remedy = "install it: without it the server cannot search vectors"
        yield problem("plugins", f"{needed} is not installed", remedy)


def _health(server: Server) -> Iterator[Check]:
    health = server.request("GET", "/_cluster/health", read=HEALTH.read)
    nodes, unassigned = health["number_of_data_nodes"], health["unassigned_shards"]
    finding = f"{health['status']}, {nodes} data nodes, {unassigned} unassigned shards"
    if health["status"] == "red":
        remedy = "start the missing nodes: what the unassigned shards hold cannot be searched"
        yield problem("health", finding, remedy)
    elif health["status"] == "yellow":
        remedy = "add a node, or set replicas to 0: some replicas have no node"
        yield warning("health", finding, remedy)
    else:
        yield ok("health", finding)


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

    def list_lacking(privileges: Sequence[str], *places: str) -> list[str]:
        granted = [response["index"].get(place, {}) for place in places]
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
    """Check by a search: OpenSearch says who a login is, but not what it may do."""
    response = server.request("GET", "/_plugins/_security/authinfo", read=LOGIN.read)
    login = f"{identity} ({', '.join(response.get('roles') or ()) or 'no roles'})"
    try:
        aliases.search(server, index, {"size": 0})
    except AccessError as error:
        yield problem("privileges", f"{login} may not search {index!r}: {error}", PAGE)
    except ServerError as error:
        if error.status != 404:
            raise
        finding = f"{login}: there is no index {index!r} to try to search"
        yield warning("privileges", finding, PAGE)
    else:
        yield ok("privileges", f"{login} may search {index!r}; writing was not tried")
