"""A server: whether it answers, what it is, how it is, whether its index is as we made it, and what this login may do."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from hybrid_search import backends, mappings
from hybrid_search.backends.base import IndexInfo
from hybrid_search.backends.options import IndexOptions
from hybrid_search.backends.server import indexes, plugins
from hybrid_search.backends.server.address import Address
from hybrid_search.backends.server.base import Server
from hybrid_search.backends.server.connection import dotted
from hybrid_search.backends.server.engines import connect
from hybrid_search.config import Settings
from hybrid_search.doctor import model
from hybrid_search.doctor.check import Check, attempt, ok, problem, warning
from hybrid_search.errors import AccessError, IndexMissingError, ServerError

SECONDS = 5.0
"""That a connection may take."""

READ = ("read", "view_index_metadata")
WRITE = ("write", "maintenance")
MAKE = ("create_index", "indices:admin/aliases")
"""What asking, ingesting and making an index need on it (docs/servers.md), as Elasticsearch calls it."""

PAGE = "docs/servers.md lists the privileges"
ABSENT = (400, 404, 405)
"""What servers without security answer to a question about it."""

Look = Callable[[], Iterable[Check]]


def checks(asked: Settings, index: str) -> Iterator[Check]:
    """All checks of the server at the URL of `asked`; only the first, where it does not answer or knows no such login."""
    address = Address.parse(asked.url)
    try:
        socket.create_connection((address.host, address.port), SECONDS).close()
    except OSError as error:
        yield problem("server", f"{address} does not answer: {error}", "start it, or see to the host and the port of --url and to the network")
        return
    server = connect(address, asked.access)
    looks: dict[str, Look] = {
        "version": lambda: _version(server),
        "health": lambda: _health(server),
        "privileges": lambda: _privileges(server, index, asked.access.who),
        "mapping": lambda: _mapping(server, index),
        "index": lambda: _index(asked, index),
    }
    try:
        if refused := _refused(server):
            yield refused
            return
        for name, look in looks.items():
            yield from attempt(name, look)
    finally:
        server.close()


def _refused(server: Server) -> Check | None:
    """What is wrong with the login, or with the server's certificate; what it may do is seen later."""
    try:
        server.request("GET", "/")
    except AccessError as error:
        return None if error.status == 403 else problem("login", str(error), "do as the message says, and run this again")
    return None


def _version(server: Server) -> Iterator[Check]:
    """Raises ServerError for one that is too old."""
    said = f"{server} is {mappings.ENGINES[server.engine]} {dotted(server.version)}"
    yield ok("version", said)
    if server.engine == "opensearch":
        yield from attempt("plugins", lambda: _plugins(server))


def _plugins(server: Server) -> Iterator[Check]:
    there = plugins.listed(server)
    if plugins.KNN not in there:
        yield problem("plugins", f"{plugins.KNN} is not installed", "install it: without it no vectors are searched")
    else:
        own = "has" if plugins.NEURAL_SEARCH in there else "lacks"
        yield ok("plugins", f"{plugins.KNN} is there; the server {own} its own hybrid query, which only compat needs")


def _health(server: Server) -> Iterator[Check]:
    told = server.request("GET", "/_cluster/health")
    found = f"{told['status']}, {told['number_of_data_nodes']} data nodes, {told['unassigned_shards']} shards without a place"
    if told["status"] == "red":
        yield problem("health", found, "see to the shards that have no place: what they hold cannot be asked")
    elif told["status"] == "yellow":
        yield warning("health", found, "add a node, or set replicas to 0: copies of some shards have no place")
    else:
        yield ok("health", found)


def _mapping(server: Server, index: str) -> Iterator[Check]:
    """Whether the mapping of the index is ours, field by field."""
    try:
        made = indexes.find(server, index)
    except IndexMissingError as error:
        yield warning("mapping", str(error), f"hybrid-search setup --index {index}, or the first ingest, makes it")
        return
    held = server.request("GET", f"/{quote(index)}/_mapping")[made.name]["mappings"]
    options = IndexOptions.parse(indexes.options(server, made))
    wanted = mappings.body(server.engine, made.spec, options, server.version)["mappings"]
    wrong = [*differences(wanted["properties"], held["properties"], "")]
    wrong += [] if str(held.get("dynamic")) == "strict" else ["dynamic is not strict"]
    if wrong:
        yield problem("mapping", f"{made.name} is not as we make it: {'; '.join(wrong[:5])}", f"hybrid-search reindex --index {index} makes it anew")
    else:
        yield ok("mapping", f"{made.name} has all {len(mappings.FIELDS)} fields as they are made")


def differences(wanted: Mapping[str, Any], held: Mapping[str, Any], prefix: str) -> Iterator[str]:
    """Fields that are missing or of another type, analyzer or dimension."""
    for name, told in wanted.items():
        path, there = f"{prefix}{name}", held.get(name)
        if there is None:
            yield f"{path} is missing"
            continue
        for key in ("type", "analyzer", "dimension", "dims"):
            default = "object" if key == "type" else None
            if told.get(key, default) != there.get(key, default):
                yield f"{path} has {key} {there.get(key, default)!r} and not {told.get(key, default)!r}"
        yield from differences(told.get("properties", {}), there.get("properties", {}), f"{path}.")


def _index(asked: Settings, index: str) -> Iterator[Check]:
    """Whether it is of this model, and how much is in it."""
    backend = backends.open_backend(asked.url, asked.access)
    try:
        held: IndexInfo = backend.describe(index)
    except IndexMissingError:  # said before
        return
    finally:
        backend.close()
    yield model.compared(asked, index, held)


def _privileges(server: Server, index: str, who: str) -> Iterator[Check]:
    """What the login may do, by what the server says of it. Nothing is changed, not even tried."""
    look = _asked if server.engine == "elasticsearch" else _tried
    try:
        yield from look(server, index, who)
    except ServerError as error:
        if error.status not in ABSENT:
            raise
        yield ok("privileges", "the server has no security: everybody may do everything")


def _asked(server: Server, index: str, who: str) -> Iterator[Check]:
    names = [index, f"{index}-*"]
    body = {"cluster": ["cluster:monitor/main"], "index": [{"names": names, "privileges": [*READ, *WRITE, *MAKE]}]}
    told = server.request("POST", "/_security/user/_has_privileges", body=body)
    may = told["index"]
    lacking = {
        "ask": [each for each in READ if not may[index][each]],
        "ingest": [each for each in WRITE if not all(may[name][each] for name in names)],
        "make it": [each for each in MAKE if not all(may[name][each] for name in names)],
    }
    lacking["make it"] += [name for name, allowed in told["cluster"].items() if not allowed]
    missing = [f"{what} ({', '.join(names)})" for what, names in lacking.items() if names]
    if not missing:
        yield ok("privileges", f"{who} may ask, ingest into and make {index!r}")
    else:
        made = problem if lacking["ask"] else warning
        yield made("privileges", f"{who} may not {' or '.join(missing)} {index!r}", f"nothing where that is as it should be; else {PAGE}")


def _tried(server: Server, index: str, who: str) -> Iterator[Check]:
    """OpenSearch says who we are; of what we may do only the reading can be tried."""
    told = server.request("GET", "/_plugins/_security/authinfo")
    roles = ", ".join(told.get("roles", [])) or "no roles"
    try:
        indexes.search(server, index, {"size": 0})
    except AccessError as error:
        yield problem("privileges", f"{who} ({roles}) may not ask {index!r}: {error}", PAGE)
    except ServerError as error:
        if error.status != 404:
            raise
        yield warning("privileges", f"{who} ({roles}): there is no {index!r} to try them on", PAGE)
    else:
        yield ok("privileges", f"{who} ({roles}) may ask {index!r}; writing is not tried")
