"""Versioned indexes behind an alias: ``calls`` is an alias, ``calls-000001`` the index that it stands for now."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hybrid_search import mappings
from hybrid_search.backends.base import SCHEMA, IndexSpec, check_spec
from hybrid_search.backends.names import checked
from hybrid_search.backends.options import IndexOptions
from hybrid_search.backends.server.base import Server
from hybrid_search.errors import AccessError, IndexMissingError, IndexStoreError, ServerError

_VERSIONED = re.compile(r"^(?P<alias>.+)-(?P<number>\d{6})$")
REJECTED = "-rejected"
"""What the name of an index's notes on refused documents ends in."""

TYPES = {"keyword": "string", "double": "number", "long": "number", "boolean": "boolean"}
"""What a server calls a type, and what we do."""


@dataclass(frozen=True, slots=True)
class Made:
    """An index as it is on the server: its own `name`, the `alias` that it stands behind, what it was made for, its metadata fields, and with
    which `options` it was made."""

    name: str
    alias: str
    spec: IndexSpec
    fields: Mapping[str, str]
    options: Mapping[str, Any]


def find(server: Server, alias: str) -> Made:
    """The index behind `alias`. Raises IndexMissingError, and IndexStoreError for one that is not ours or of another schema."""
    found = _mapping(server, checked(alias))
    if found is None:
        raise missing(server, alias)
    if len(found) > 1:
        raise IndexStoreError(
            f"{alias!r} stands for {len(found)} indexes, {', '.join(sorted(found))}, and must stand for one: remove it from the others"
        )
    ((name, mapping),) = found.items()
    return read(server, name, alias, mapping["mappings"])


def missing(server: Server, alias: str) -> IndexMissingError:
    """That there is no index `alias`, but which there are."""
    there = _listed(server)
    return IndexMissingError(
        f"there is no index {alias!r} on {server} (indexes there: {there}). Make it: python -m hybrid_search.ingest --index {alias}"
    )


def read(server: Server, name: str, alias: str, mapping: Mapping[str, Any]) -> Made:
    """An index by its mapping. Raises IndexStoreError for one that is not ours, or of another schema."""
    held = mapping.get("_meta", {}).get("hybrid_search")
    if held is None:
        raise IndexStoreError(f"index {name!r} on {server} was not made by hybrid_search: use another name, or delete it")
    if held.get("schema") != SCHEMA:
        raise IndexStoreError(
            f"index {name!r} on {server} is of schema {held.get('schema')}, and this version of hybrid_search reads {SCHEMA}: "
            "use the version that wrote it, or ingest into a new index"
        )
    metadata = mapping["properties"]["metadata"].get("properties", {})
    return Made(name, alias, IndexSpec(**held), dict(sorted(_fields(metadata, ""))), mapping["_meta"].get("options", {}))


def options(server: Server, made: Made) -> dict[str, str]:
    """All options of an index, its shards and copies as they are now."""
    ((_, held),) = server.request("GET", f"/{quote(made.alias)}/_settings/index.number_of_*", params={"flat_settings": True}).items()
    counts = {name: held["settings"][f"index.number_of_{name}"] for name in ("shards", "replicas")}
    return {name: str(value) for name, value in {**made.options, **counts}.items()}


def _mapping(server: Server, alias: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = server.request("GET", f"/{quote(alias)}/_mapping")
    except ServerError as error:
        if error.status == 404:
            return None
        raise
    return found


def _fields(properties: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    found = []
    for name, told in properties.items():
        path = f"{prefix}{name}"
        found.append((path, TYPES.get(told.get("type", "object"), "object")))
        found += _fields(told.get("properties", {}), f"{path}.")
    return found


def _listed(server: Server) -> str:
    """The names of all indexes, for a message; who may read one index may not be allowed to see which others there are."""
    try:
        return ", ".join(names(server)) or "none"
    except AccessError:
        return "not shown to this login"


def names(server: Server) -> list[str]:
    """The names of all indexes that are ours, sorted: their aliases."""
    found = server.request("GET", "/_all/_mapping", params={"filter_path": "*.mappings._meta.hybrid_search.schema"})
    ours = [f"/{quote(name)}" for name in found]
    aliases = server.request("GET", "/_alias") if ours else {}
    return sorted({alias for name in found for alias in aliases.get(name, {}).get("aliases", {})})


def create(server: Server, alias: str, spec: IndexSpec, options: IndexOptions, *, behind: bool = True) -> Made:
    """Make the next version of `alias` (``-000001`` is the first), and put it behind the alias. Raises UsageError for what the server cannot."""
    body = mappings.body(server.engine, spec, options, server.version)
    name = f"{checked(alias)}-{_last(server, alias) + 1:06d}"
    if behind:
        body["aliases"] = {alias: {"is_write_index": True}}
    body["mappings"]["_meta"]["making"] = making = secrets.token_hex(8)
    try:
        server.request("PUT", f"/{quote(name)}", body=body, params={"wait_for_active_shards": 1})
    except ServerError as error:
        if error.status != 400 or not _made(server, name, making):
            raise
    return Made(name, alias, spec, {}, body["mappings"]["_meta"]["options"])


def _made(server: Server, name: str, making: str) -> bool:
    """Whether there is an index that this very `making` made: its answer was lost, and the request that was sent again found it there."""
    mapping = (_mapping(server, name) or {}).get(name, {}).get("mappings", {})
    return bool(mapping.get("_meta", {}).get("making") == making)


def _last(server: Server, alias: str) -> int:
    """The highest number that an index of `alias` has, 0 for none."""
    found = server.request("GET", f"/{quote(alias)}-*/_settings/index.uuid", params={"expand_wildcards": "all"})
    versions = (_VERSIONED.match(name) for name in found)
    return max((int(match["number"]) for match in versions if match and match["alias"] == alias), default=0)


def opened(server: Server, alias: str, spec: IndexSpec, options: IndexOptions) -> Made:
    """The index behind `alias`, made if there is none. Raises ModelError where it was made for another spec."""
    try:
        made = find(server, alias)
    except IndexMissingError:
        try:
            return create(server, alias, spec, options)
        except ServerError as error:
            if error.status not in (400, 500):  # another process may have made it meanwhile: it is there, or the alias has its index to write to
                raise
            try:
                made = find(server, alias)
            except IndexMissingError:
                raise error from None
    check_spec(alias, made.spec, spec)
    return made


def swap(server: Server, new: Made, old: Made | None) -> None:
    """Let the alias stand for `new` instead of `old`, at once. The request may find it done, when the answer to it was lost and it is sent again."""
    actions: list[dict[str, Any]] = [{"add": {"index": new.name, "alias": new.alias, "is_write_index": True}}]
    if old is not None:
        actions.insert(0, {"remove": {"index": old.name, "alias": new.alias}})
    try:
        server.request("POST", "/_aliases", body={"actions": actions})
    except ServerError as error:
        now = stands_for(server, new.alias)
        if old is not None and now not in ({old.name}, {new.name}):
            raise IndexStoreError(
                f"{new.alias!r} stood for {old.name} before, and stands for {', '.join(sorted(now)) or 'none'} now: another reindex was faster. "
                "Nothing was changed"
            ) from error
        if now != {new.name}:
            raise


def stands_for(server: Server, alias: str) -> set[str]:
    """The names of the indexes that `alias` stands for."""
    return set(_mapping(server, alias) or ())


def delete(server: Server, name: str) -> None:
    """Remove an index by its own name, if it is there: an answer may be lost, and the request be sent again."""
    try:
        server.request("DELETE", f"/{quote(name)}")
    except ServerError as error:
        if error.status != 404:
            raise


def ensure(server: Server, name: str, body: Mapping[str, Any]) -> None:
    """Make an index, unless there is one of that name: another process may have made it meanwhile, or we did and the answer was lost."""
    path = f"/{quote(name)}"
    if server.request("HEAD", path):
        return
    try:
        server.request("PUT", path, body=body)
    except ServerError as error:
        if error.status != 400 or not server.request("HEAD", path):
            raise


WHOLE = {"allow_partial_search_results": False}
"""An answer from some of the shards alone, as while a server starts, would pass for one that says less is there: it is to be an error."""


def search(server: Server, name: str, body: Mapping[str, Any], params: Mapping[str, Any] = WHOLE) -> dict[str, Any]:
    """The answer to one search of an index or alias; in CBOR, where it holds codes."""
    found: dict[str, Any] = server.request("POST", f"/{quote(name)}/_search", params=params, body=body, binary=True)
    return found


def refresh(server: Server, name: str) -> None:
    """Let searches see all that was written."""
    server.request("POST", f"/{quote(name)}/_refresh")
