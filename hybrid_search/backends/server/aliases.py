"""Versioned indexes behind an alias, such as ``calls-000001`` behind ``calls``."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.index_names import check_index_name
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import answers, mappings
from hybrid_search.backends.server.attachment import Attachment, check_text_field, is_nested
from hybrid_search.backends.server.heads import (
    ServerIndex,
    describe_index,
    find_index,
    read_properties,
)
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.transport.shape import OBJECT
from hybrid_search.backends.types import IndexSpec, check_spec
from hybrid_search.errors import IndexMissingError, IndexStoreError, ServerError, UsageError
from hybrid_search.text import name_lists

REJECTED = "-rejected"
"""Ends the name of the index with notes on rejected documents."""


def _fetch_mappings(server: Server, name: str) -> dict[str, Any]:
    """Return the mappings of the indexes behind a name; none if there is no such index."""
    try:
        found: dict[str, Any] = server.request(
            "GET", f"/{quote(name)}/_mapping", read=answers.MAPPINGS.read
        )
    except ServerError as error:
        if error.status == 404:
            return {}
        raise
    return found


def create_version(
    server: Server,
    alias: str,
    spec: IndexSpec,
    options: IndexOptions,
    *,
    behind_alias: bool = True,
    attachment: Attachment | None = None,
) -> ServerIndex:
    """Return the next version of `alias`, which it creates (``-000001`` is the first).

    With an `attachment` it is the first of a sidecar.

    Raises UsageError if the server does not support an option.

    Raises:
        ServerError: If the server refuses to create it.
    """
    body = mappings.index_body(server.engine, spec, options, server.version)
    name = f"{check_index_name(alias)}-{_last_version_number(server, alias) + 1:06d}"
    if behind_alias:
        body["aliases"] = {alias: {"is_write_index": True}}
    if attachment:
        body["mappings"]["_meta"]["attached"] = attachment.to_meta()
    body["mappings"]["_meta"]["making"] = creation_token = secrets.token_hex(8)
    try:
        server.request(
            "PUT",
            f"/{quote(name)}",
            body=body,
            params={"wait_for_active_shards": 1},
            read=answers.ACKNOWLEDGED.read,
        )
    except ServerError as error:
        # if its answer is lost the request is sent again, and then finds its own index
        found = _fetch_mappings(server, name) if error.status == 400 else {}
        meta = found.get(name, {}).get("mappings", {}).get("_meta", {})
        if meta.get("making") != creation_token:
            raise
    stored_options = body["mappings"]["_meta"]["options"]
    return describe_index(name, alias, spec, stored_options, body["mappings"]["properties"])


def _last_version_number(server: Server, alias: str) -> int:
    """Return the highest version number that `alias` has had so far, 0 if none."""
    settings_by_name = server.request(
        "GET",
        f"/{quote(alias)}-*/_settings/index.uuid",
        params={"expand_wildcards": "all"},
        read=answers.UUIDS.read,
    )
    version = re.compile(rf"{re.escape(alias)}-(\d{{6}})")
    matches = map(version.fullmatch, settings_by_name)
    return max((int(match[1]) for match in matches if match), default=0)


def open_sidecar(
    server: Server, attachment: Attachment, spec: IndexSpec, options: IndexOptions
) -> tuple[ServerIndex, Attachment]:
    """Return the sidecar of an index of another program; create it if it does not exist.

    The attachment comes back with what the mapping of the index says.

    Raises ModelError if it was created for another spec.

    Raises:
        UsageError: If it was created for other texts or another template.
    """
    properties = read_properties(server, attachment.index)
    check_text_field(attachment, properties)
    nested = is_nested(properties, attachment.columns.get("turns", ""))
    attachment = replace(attachment, is_nested=nested)
    alias = attachment.sidecar
    open_or_create(server, alias, spec, options, attachment)
    index = find_index(server, alias)
    wanted, meta = attachment.to_meta(), index.attachment.to_meta() if index.attachment else {}
    for name, value in wanted.items():
        if meta.get(name) != value:
            raise UsageError(
                f"{alias!r} was made with {name} {meta.get(name)!r}, and now {name} is {value!r}: "
                f"say the same, or hybrid-search delete --yes --index {alias} and attach again"
            )
    return index, attachment


def open_or_create(
    server: Server,
    alias: str,
    spec: IndexSpec,
    options: IndexOptions,
    attachment: Attachment | None = None,
) -> ServerIndex:
    """Return the index behind `alias`; create it if it does not exist.

    Raises ModelError if it was created for another spec.

    Raises:
        ServerError: If the server refuses to create it.
    """
    try:
        index = find_index(server, alias)
    except IndexMissingError:
        try:
            return create_version(server, alias, spec, options, attachment=attachment)
        except ServerError as error:
            # another process may have created it since: then the index exists, or the alias
            # already has an index to write to
            if error.status not in (400, 500):
                raise
            try:
                index = find_index(server, alias)
            except IndexMissingError:
                raise error from None
    check_spec(alias, index.spec, spec)
    return index


def swap_alias(server: Server, new: ServerIndex, old: ServerIndex) -> None:
    """Move the alias from `old` to `new`, in one step.

    Raises:
        IndexStoreError: If another reindex has moved the alias since.
        ServerError: If the server refuses the move.
    """
    actions = [
        {"remove": {"index": old.name, "alias": new.alias}},
        {"add": {"index": new.name, "alias": new.alias, "is_write_index": True}},
    ]
    try:
        server.request(
            "POST", "/_aliases", body={"actions": actions}, read=answers.ACKNOWLEDGED.read
        )
    except ServerError as error:
        # if its answer was lost and the request is sent again, the alias is found moved
        current_names = resolve_alias(server, new.alias)
        if current_names not in ({old.name}, {new.name}):
            raise IndexStoreError(
                f"{new.alias!r} pointed to {old.name} before, and now points to "
                f"{name_lists.list_names(sorted(current_names))}: another reindex was faster. "
                "Nothing was changed"
            ) from error
        if current_names != {new.name}:
            raise


def resolve_alias(server: Server, alias: str) -> set[str]:
    """Return the names of the indexes behind `alias`."""
    return set(_fetch_mappings(server, alias))


def delete_index(server: Server, name: str) -> None:
    """Delete an index by its own name; a missing one counts as deleted."""
    try:
        server.request("DELETE", f"/{quote(name)}", read=answers.ACKNOWLEDGED.read)
    except ServerError as error:
        if error.status != 404:  # the answer to the first request may have been lost
            raise


def ensure_index(server: Server, name: str, body: Mapping[str, Any]) -> None:
    """Create an index, unless it exists."""
    path = f"/{quote(name)}"
    if server.request("HEAD", path):
        return
    try:
        server.request("PUT", path, body=body, read=answers.ACKNOWLEDGED.read)
    except ServerError as error:
        # another process may have created it since, or this one did and the answer was lost
        if error.status != 400 or not server.request("HEAD", path):
            raise


COMPLETE_RESULTS = {"allow_partial_search_results": False}
"""Makes an answer from only some of the shards an error: it looks as if the index held less."""


def search(
    server: Server,
    name: str,
    body: Mapping[str, Any],
    params: Mapping[str, Any] = COMPLETE_RESULTS,
) -> answers.Answer:
    """Return the answer to one search of an index or alias."""
    read = answers.read_search(body)
    answer: answers.Answer = server.request(
        "POST", f"/{quote(name)}/_search", params=params, body=body, binary=True, read=read
    )
    return answer


def refresh(server: Server, name: str) -> None:
    """Make everything that was written visible to searches."""
    server.request("POST", f"/{quote(name)}/_refresh", read=OBJECT.read)
