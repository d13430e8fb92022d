"""Check a server: whether it answers, version, plugins, health, privileges, mapping and index."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NotRequired
from urllib.parse import quote

from hybrid_search import backends
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import aliases, answers, mappings
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
        "mapping": lambda: _mapping(server, index),
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


def _mapping(server: Server, index: str) -> Iterator[Check]:
    """Check that the mapping of the index is the one that we write, field by field."""
    try:
        server_index = aliases.find_index(server, index)
    except IndexMissingError as error:
        yield warning(
            "mapping",
            str(error),
            f"run hybrid-search setup --index {index}, or the first ingest, to make it",
        )
        return
    answer = server.request("GET", f"/{quote(index)}/_mapping", read=answers.MAPPINGS.read)
    actual = next(iter(answer.values()))["mappings"]
    options = IndexOptions.parse(aliases.read_options(server, server_index))
    expected = mappings.index_body(server.engine, server_index.spec, options, server.version)[
        "mappings"
    ]
    faults = [*mapping_differences(expected["properties"], actual.get("properties", {}), "")]
    faults += [] if str(actual.get("dynamic")) == "strict" else ["dynamic is not strict"]
    if faults:
        yield problem(
            "mapping",
            f"{server_index.name} has another mapping than ours: {'; '.join(faults[:5])}",
            f"run hybrid-search reindex --index {index}, which writes a new version",
        )
    else:
        count = len(expected["properties"])
        yield ok("mapping", f"{server_index.name} has our {count} fields, unchanged")


def mapping_differences(
    expected: Mapping[str, Any], actual: Mapping[str, Any], prefix: str
) -> Iterator[str]:
    """Yield a sentence for each field that is missing or of another type or analyzer."""
    for name, expected_field in expected.items():
        path, actual_field = f"{prefix}{name}", actual.get(name)
        if actual_field is None:
            yield f"{path} is missing"
            continue
        for key in ("type", "analyzer", "dimension", "dims"):
            default = "object" if key == "type" else None
            expected_value = expected_field.get(key, default)
            actual_value = actual_field.get(key, default)
            if expected_value != actual_value:
                yield f"{path} has {key} {actual_value!r} and not {expected_value!r}"
        yield from mapping_differences(
            expected_field.get("properties", {}), actual_field.get("properties", {}), f"{path}."
        )


def _index(server: Server, settings: Settings, index: str) -> Iterator[Check]:
    """Check that this model made the index, and count what is in it."""
    try:
        aliases.find_index(server, index)
    except IndexMissingError:  # the check of the mapping has said so
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
    lacking = {
        "search": [privilege for privilege in READ if not index_privileges[index].get(privilege)],
        "ingest into": [
            privilege
            for privilege in WRITE
            if not all(index_privileges[name].get(privilege) for name in names)
        ],
        "make": [
            privilege
            for privilege in MAKE
            if not all(index_privileges[name].get(privilege) for name in names)
        ],
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
