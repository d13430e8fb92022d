"""Versioned indexes behind an alias: ``calls`` is an alias, ``calls-000001`` the index that it
stands for now.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.index_names import check_index_name
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import mappings
from hybrid_search.backends.server.transport.base import Server
from hybrid_search.backends.types import SCHEMA, IndexSpec, check_spec
from hybrid_search.errors import AccessError, IndexMissingError, IndexStoreError, ServerError

_VERSIONED = re.compile(r"^(?P<alias>.+)-(?P<number>\d{6})$")
REJECTED = "-rejected"
"""What the name of an index's notes on refused documents ends in."""

TYPES = {"keyword": "string", "double": "number", "long": "number", "boolean": "boolean"}
"""What a server calls a type, and what we do."""


@dataclass(frozen=True, slots=True)
class ServerIndex:
    """An index as it is on the server: its own `name`, the `alias` that it stands behind, what it
    was made for, its metadata fields, and with which `options` it was made.
    """

    name: str
    alias: str
    spec: IndexSpec
    fields: Mapping[str, str]
    options: Mapping[str, Any]


def find_index(server: Server, alias: str) -> ServerIndex:
    """The index behind `alias`.

    Raises IndexMissingError, and IndexStoreError for one that is not ours or of another schema.
    """
    mappings_by_name = _fetch_mapping(server, check_index_name(alias))
    if mappings_by_name is None:
        raise build_missing_error(server, alias)
    if len(mappings_by_name) > 1:
        raise IndexStoreError(
            f"{alias!r} stands for {len(mappings_by_name)} indexes, {', '.join(sorted(mappings_by_name))}, and must stand for one: remove it from the others"
        )
    ((name, mapping),) = mappings_by_name.items()
    return parse_mapping(server, name, alias, mapping["mappings"])


def build_missing_error(server: Server, alias: str) -> IndexMissingError:
    """That there is no index `alias`, but which there are."""
    index_names = _format_names(server)
    return IndexMissingError(
        f"there is no index {alias!r} on {server} (indexes there: {index_names}). Make it: python -m hybrid_search.ingest --index {alias}"
    )


def parse_mapping(server: Server, name: str, alias: str, mapping: Mapping[str, Any]) -> ServerIndex:
    """An index by its mapping.

    Raises IndexStoreError for one that is not ours, or of another schema.
    """
    meta = mapping.get("_meta", {}).get("hybrid_search")
    if meta is None:
        raise IndexStoreError(
            f"index {name!r} on {server} was not made by hybrid_search: use another name, or delete it"
        )
    if meta.get("schema") != SCHEMA:
        raise IndexStoreError(
            f"index {name!r} on {server} is of schema {meta.get('schema')}, and this version of hybrid_search reads {SCHEMA}: "
            "use the version that wrote it, or ingest into a new index"
        )
    metadata = mapping["properties"]["metadata"].get("properties", {})
    return ServerIndex(
        name,
        alias,
        IndexSpec(**meta),
        dict(sorted(_flatten_fields(metadata, ""))),
        mapping["_meta"].get("options", {}),
    )


def read_options(server: Server, index: ServerIndex) -> dict[str, str]:
    """All options of an index, its shards and copies as they are now."""
    ((_, index_settings),) = server.request(
        "GET", f"/{quote(index.alias)}/_settings/index.number_of_*", params={"flat_settings": True}
    ).items()
    counts = {
        name: index_settings["settings"][f"index.number_of_{name}"]
        for name in ("shards", "replicas")
    }
    return {name: str(value) for name, value in {**index.options, **counts}.items()}


def _fetch_mapping(server: Server, alias: str) -> dict[str, Any] | None:
    try:
        mappings_by_name: dict[str, Any] = server.request("GET", f"/{quote(alias)}/_mapping")
    except ServerError as error:
        if error.status == 404:
            return None
        raise
    return mappings_by_name


def _flatten_fields(properties: Mapping[str, Any], prefix: str) -> list[tuple[str, str]]:
    fields = []
    for name, properties_of_field in properties.items():
        path = f"{prefix}{name}"
        fields.append((path, TYPES.get(properties_of_field.get("type", "object"), "object")))
        fields += _flatten_fields(properties_of_field.get("properties", {}), f"{path}.")
    return fields


def _format_names(server: Server) -> str:
    """The names of all indexes, for a message; who may read one index may not be allowed to see
    which others there are.
    """
    try:
        return ", ".join(list_names(server)) or "none"
    except AccessError:
        return "not shown to this login"


def list_names(server: Server) -> list[str]:
    """The names of all indexes that are ours, sorted: their aliases."""
    mappings_by_name = server.request(
        "GET", "/_all/_mapping", params={"filter_path": "*.mappings._meta.hybrid_search.schema"}
    )
    paths = [f"/{quote(name)}" for name in mappings_by_name]
    aliases = server.request("GET", "/_alias") if paths else {}
    return sorted(
        {alias for name in mappings_by_name for alias in aliases.get(name, {}).get("aliases", {})}
    )


def create_version(
    server: Server, alias: str, spec: IndexSpec, options: IndexOptions, *, behind_alias: bool = True
) -> ServerIndex:
    """Make the next version of `alias` (``-000001`` is the first), and put it behind the alias.

    Raises UsageError for what the server cannot.
    """
    body = mappings.index_body(server.engine, spec, options, server.version)
    name = f"{check_index_name(alias)}-{_last_version_number(server, alias) + 1:06d}"
    if behind_alias:
        body["aliases"] = {alias: {"is_write_index": True}}
    body["mappings"]["_meta"]["making"] = creation_token = secrets.token_hex(8)
    try:
        server.request("PUT", f"/{quote(name)}", body=body, params={"wait_for_active_shards": 1})
    except ServerError as error:
        if error.status != 400 or not _is_created_by(server, name, creation_token):
            raise
    return ServerIndex(name, alias, spec, {}, body["mappings"]["_meta"]["options"])


def _is_created_by(server: Server, name: str, creation_token: str) -> bool:
    """Whether there is an index that this very `making` made: its answer was lost, and the request
    that was sent again found it there.
    """
    mapping = (_fetch_mapping(server, name) or {}).get(name, {}).get("mappings", {})
    return bool(mapping.get("_meta", {}).get("making") == creation_token)


def _last_version_number(server: Server, alias: str) -> int:
    """The highest number that an index of `alias` has, 0 for none."""
    settings_by_name = server.request(
        "GET", f"/{quote(alias)}-*/_settings/index.uuid", params={"expand_wildcards": "all"}
    )
    versions = (_VERSIONED.match(name) for name in settings_by_name)
    return max(
        (int(match["number"]) for match in versions if match and match["alias"] == alias), default=0
    )


def open_or_create(
    server: Server, alias: str, spec: IndexSpec, options: IndexOptions
) -> ServerIndex:
    """The index behind `alias`, made if there is none.

    Raises ModelError where it was made for another spec.
    """
    try:
        index = find_index(server, alias)
    except IndexMissingError:
        try:
            return create_version(server, alias, spec, options)
        except ServerError as error:
            if (
                error.status not in (400, 500)
                # another process may have made it meanwhile: it is there, or the alias has its index to
                # write to
            ):
                raise
            try:
                index = find_index(server, alias)
            except IndexMissingError:
                raise error from None
    check_spec(alias, index.spec, spec)
    return index


def swap_alias(server: Server, new: ServerIndex, old: ServerIndex | None) -> None:
    """Let the alias stand for `new` instead of `old`, at once.

    The request may find it done, when the answer to it was lost and it is sent again.
    """
    actions: list[dict[str, Any]] = [
        {"add": {"index": new.name, "alias": new.alias, "is_write_index": True}}
    ]
    if old is not None:
        actions.insert(0, {"remove": {"index": old.name, "alias": new.alias}})
    try:
        server.request("POST", "/_aliases", body={"actions": actions})
    except ServerError as error:
        current_names = resolve_alias(server, new.alias)
        if old is not None and current_names not in ({old.name}, {new.name}):
            raise IndexStoreError(
                f"{new.alias!r} stood for {old.name} before, and stands for {', '.join(sorted(current_names)) or 'none'} now: another reindex was faster. "
                "Nothing was changed"
            ) from error
        if current_names != {new.name}:
            raise


def resolve_alias(server: Server, alias: str) -> set[str]:
    """The names of the indexes that `alias` stands for."""
    return set(_fetch_mapping(server, alias) or ())


def delete_index(server: Server, name: str) -> None:
    """Remove an index by its own name, if it is there: an answer may be lost, and the request be
    sent again.
    """
    try:
        server.request("DELETE", f"/{quote(name)}")
    except ServerError as error:
        if error.status != 404:
            raise


def ensure_index(server: Server, name: str, body: Mapping[str, Any]) -> None:
    """Make an index, unless there is one of that name: another process may have made it meanwhile,
    or we did and the answer was lost.
    """
    path = f"/{quote(name)}"
    if server.request("HEAD", path):
        return
    try:
        server.request("PUT", path, body=body)
    except ServerError as error:
        if error.status != 400 or not server.request("HEAD", path):
            raise


COMPLETE_RESULTS = {"allow_partial_search_results": False}
"""An answer from some of the shards alone, as while a server starts, would pass for one that says
less is there: it is to be an error.
"""


def search(
    server: Server, name: str, body: Mapping[str, Any], params: Mapping[str, Any] = COMPLETE_RESULTS
) -> dict[str, Any]:
    """The answer to one search of an index or alias; in CBOR, where it holds codes."""
    response: dict[str, Any] = server.request(
        "POST", f"/{quote(name)}/_search", params=params, body=body, binary=True
    )
    return response


def refresh(server: Server, name: str) -> None:
    """Let searches see all that was written."""
    server.request("POST", f"/{quote(name)}/_refresh")
