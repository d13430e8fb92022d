"""A server: whether it answers, what it is, how it is, whether its index is as we made it, and what
this login may do.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from hybrid_search import backends
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import aliases, mappings
from hybrid_search.backends.server.transport import plugins
from hybrid_search.backends.server.transport.address import Address
from hybrid_search.backends.server.transport.base import Server
from hybrid_search.backends.server.transport.connect import connect
from hybrid_search.backends.server.transport.connection import format_version
from hybrid_search.backends.types import IndexInfo
from hybrid_search.config import Settings
from hybrid_search.errors import AccessError, IndexMissingError, ServerError
from hybrid_search.maintenance.doctor import model
from hybrid_search.maintenance.doctor.check import Check, attempt, ok, problem, warning

SECONDS = 5.0
"""That a connection may take."""

READ = ("read", "view_index_metadata")
WRITE = ("write", "maintenance")
MAKE = ("create_index", "indices:admin/aliases")
"""What asking, ingesting and making an index need on it (docs/servers.md), as Elasticsearch calls
it.
"""

PAGE = "docs/servers.md lists the privileges"
ABSENT = (400, 404, 405)
"""What servers without security answer to a question about it."""

Look = Callable[[], Iterable[Check]]


def checks(settings: Settings, index: str) -> Iterator[Check]:
    """All checks of the server at the URL of `asked`; only the first, where it does not answer or
    knows no such login.
    """
    address = Address.parse(settings.url)
    try:
        socket.create_connection((address.host, address.port), SECONDS).close()
    except OSError as error:
        yield problem(
            "server",
            f"{address} does not answer: {error}",
            "start it, or see to the host and the port of --url and to the network",
        )
        return
    server = connect(address, settings.access)
    looks: dict[str, Look] = {
        "version": lambda: _version(server),
        "health": lambda: _health(server),
        "privileges": lambda: _privileges(server, index, settings.access.identity),
        "mapping": lambda: _mapping(server, index),
        "index": lambda: _index(settings, index),
    }
    try:
        if login_problem := _check_login(server):
            yield login_problem
            return
        for name, look in looks.items():
            yield from attempt(name, look)
    finally:
        server.close()


def _check_login(server: Server) -> Check | None:
    """What is wrong with the login, or with the server's certificate; what it may do is seen later."""
    try:
        server.request("GET", "/")
    except AccessError as error:
        return (
            None
            if error.status == 403
            else problem("login", str(error), "do as the message says, and run this again")
        )
    return None


def _version(server: Server) -> Iterator[Check]:
    """Raises ServerError for one that is too old."""
    finding = f"{server} is {mappings.ENGINES[server.engine]} {format_version(server.version)}"
    yield ok("version", finding)
    if server.engine == "opensearch":
        yield from attempt("plugins", lambda: _plugins(server))


def _plugins(server: Server) -> Iterator[Check]:
    installed = plugins.list_plugins(server)
    if plugins.KNN not in installed:
        yield problem(
            "plugins",
            f"{plugins.KNN} is not installed",
            "install it: without it no vectors are searched",
        )
    else:
        own = "has" if plugins.NEURAL_SEARCH in installed else "lacks"
        yield ok(
            "plugins",
            f"{plugins.KNN} is there; the server {own} its own hybrid query, which only compat needs",
        )


def _health(server: Server) -> Iterator[Check]:
    health = server.request("GET", "/_cluster/health")
    finding = f"{health['status']}, {health['number_of_data_nodes']} data nodes, {health['unassigned_shards']} shards without a place"
    if health["status"] == "red":
        yield problem(
            "health",
            finding,
            "see to the shards that have no place: what they hold cannot be asked",
        )
    elif health["status"] == "yellow":
        yield warning(
            "health",
            finding,
            "add a node, or set replicas to 0: copies of some shards have no place",
        )
    else:
        yield ok("health", finding)


def _mapping(server: Server, index: str) -> Iterator[Check]:
    """Whether the mapping of the index is ours, field by field."""
    try:
        server_index = aliases.find_index(server, index)
    except IndexMissingError as error:
        yield warning(
            "mapping",
            str(error),
            f"hybrid-search setup --index {index}, or the first ingest, makes it",
        )
        return
    actual = server.request("GET", f"/{quote(index)}/_mapping")[server_index.name]["mappings"]
    options = IndexOptions.parse(aliases.read_options(server, server_index))
    expected = mappings.index_body(server.engine, server_index.spec, options, server.version)[
        "mappings"
    ]
    faults = [*mapping_differences(expected["properties"], actual["properties"], "")]
    faults += [] if str(actual.get("dynamic")) == "strict" else ["dynamic is not strict"]
    if faults:
        yield problem(
            "mapping",
            f"{server_index.name} is not as we make it: {'; '.join(faults[:5])}",
            f"hybrid-search reindex --index {index} makes it anew",
        )
    else:
        yield ok(
            "mapping", f"{server_index.name} has all {len(mappings.FIELDS)} fields as they are made"
        )


def mapping_differences(
    expected: Mapping[str, Any], actual: Mapping[str, Any], prefix: str
) -> Iterator[str]:
    """Fields that are missing or of another type, analyzer or dimension."""
    for name, expected_field in expected.items():
        path, actual_field = f"{prefix}{name}", actual.get(name)
        if actual_field is None:
            yield f"{path} is missing"
            continue
        for key in ("type", "analyzer", "dimension", "dims"):
            default = "object" if key == "type" else None
            if expected_field.get(key, default) != actual_field.get(key, default):
                yield f"{path} has {key} {actual_field.get(key, default)!r} and not {expected_field.get(key, default)!r}"
        yield from mapping_differences(
            expected_field.get("properties", {}), actual_field.get("properties", {}), f"{path}."
        )


def _index(settings: Settings, index: str) -> Iterator[Check]:
    """Whether it is of this model, and how much is in it."""
    backend = backends.open_backend(settings.url, settings.access)
    try:
        info: IndexInfo = backend.describe_index(index)
    except IndexMissingError:  # said before
        return
    finally:
        backend.close()
    yield model.check_index_model(settings, index, info)


def _privileges(server: Server, index: str, identity: str) -> Iterator[Check]:
    """What the login may do, by what the server says of it. Nothing is changed, not even tried."""
    look = _query_privileges if server.engine == "elasticsearch" else _try_search
    try:
        yield from look(server, index, identity)
    except ServerError as error:
        if error.status not in ABSENT:
            raise
        yield ok("privileges", "the server has no security: everybody may do everything")


def _query_privileges(server: Server, index: str, identity: str) -> Iterator[Check]:
    names = [index, f"{index}-*"]
    body = {
        "cluster": ["cluster:monitor/main"],
        "index": [{"names": names, "privileges": [*READ, *WRITE, *MAKE]}],
    }
    response = server.request("POST", "/_security/user/_has_privileges", body=body)
    index_privileges = response["index"]
    lacking = {
        "ask": [privilege for privilege in READ if not index_privileges[index][privilege]],
        "ingest": [
            privilege
            for privilege in WRITE
            if not all(index_privileges[name][privilege] for name in names)
        ],
        "make it": [
            privilege
            for privilege in MAKE
            if not all(index_privileges[name][privilege] for name in names)
        ],
    }
    lacking["make it"] += [name for name, allowed in response["cluster"].items() if not allowed]
    missing = [f"{action} ({', '.join(names)})" for action, names in lacking.items() if names]
    if not missing:
        yield ok("privileges", f"{identity} may ask, ingest into and make {index!r}")
    else:
        build_check = problem if lacking["ask"] else warning
        yield build_check(
            "privileges",
            f"{identity} may not {' or '.join(missing)} {index!r}",
            f"nothing where that is as it should be; else {PAGE}",
        )


def _try_search(server: Server, index: str, identity: str) -> Iterator[Check]:
    """OpenSearch says who we are; of what we may do only the reading can be tried."""
    response = server.request("GET", "/_plugins/_security/authinfo")
    roles = ", ".join(response.get("roles", [])) or "no roles"
    try:
        aliases.search(server, index, {"size": 0})
    except AccessError as error:
        yield problem("privileges", f"{identity} ({roles}) may not ask {index!r}: {error}", PAGE)
    except ServerError as error:
        if error.status != 404:
            raise
        yield warning(
            "privileges", f"{identity} ({roles}): there is no {index!r} to try them on", PAGE
        )
    else:
        yield ok("privileges", f"{identity} ({roles}) may ask {index!r}; writing is not tried")
