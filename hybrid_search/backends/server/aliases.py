"""Versioned indexes behind an alias, such as ``calls-000001`` behind ``calls``."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.index_names import check_index_name
from hybrid_search.backends.index_options import IndexOptions
from hybrid_search.backends.server import answers, mappings
from hybrid_search.backends.server.attachment import (
    SUFFIX,
    Attachment,
    check_text_field,
    is_nested,
    merge_properties,
    read_fields,
)
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.transport.shape import OBJECT, ShapeError
from hybrid_search.backends.types import SCHEMA, Head, IndexSpec, check_spec
from hybrid_search.errors import (
    AccessError,
    IndexMissingError,
    IndexStoreError,
    ServerError,
    UsageError,
)
from hybrid_search.text import name_lists

REJECTED = "-rejected"
"""Ends the name of the index with notes on rejected documents."""


@dataclass(frozen=True, slots=True)
class ServerIndex:
    """An index as the server describes it: created with `spec` and `options`, behind `alias`.

    Its `name` is that of the version, as in ``calls-000001``. `fields` are its metadata fields
    (dotted name -> type). `graph` says how the vectors of its covering windows are written. An
    alias with a `filter` shows only the passages that match it. With an `attachment` it only has
    spans, of the texts of another index, whose fields are its `fields`.
    """

    name: str
    alias: str
    spec: IndexSpec
    fields: Mapping[str, str]
    options: Mapping[str, Any]
    graph: GraphVectors
    filter: Mapping[str, Any] | None = None
    attachment: Attachment | None = None

    @property
    def head(self) -> Head:
        """Its spec and fields."""
        return self.spec, self.fields

    def narrow(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return a query for its hits among the passages that the alias shows."""
        return {"bool": {"filter": [query, self.filter]}} if self.filter else dict(query)

    def check_own(self, action: str) -> None:
        """Raise UsageError if the documents belong to another program, for an `action` on them."""
        if self.attachment:
            index = self.attachment.index
            raise UsageError(
                f"cannot {action} {index!r}: its documents are those of another program. Its spans "
                f"follow them by hybrid-search attach --index {index} --sync, and go by "
                f"hybrid-search delete --yes --index {self.alias}"
            )

    def check_whole(self, action: str) -> None:
        """Raise UsageError if the alias does not show the whole index, which an `action` is for."""
        if self.filter:
            raise UsageError(
                f"cannot {action} {self.alias!r}: this alias has a filter and shows a part of "
                f"{self.name}. Give a name of the index that has no filter"
            )


def find_index(server: Server, alias: str) -> ServerIndex:
    """Return the index behind `alias`; raise IndexMissingError if there is none.

    Of an index of another program it is the sidecar with its spans, if it has one.

    Raises:
        IndexStoreError: If `alias` stands for several indexes, or for one of another project, of
            another schema or with other columns.
    """
    heads_by_name = _fetch_heads(server, alias)
    is_own = any(map(_is_own, heads_by_name.values()))
    if not is_own and (sidecar := _find_sidecar(server, alias, heads_by_name)):
        return _ask_by(find_index(server, sidecar), alias)
    if len(heads_by_name) > 1:
        raise IndexStoreError(
            f"{alias!r} points to {len(heads_by_name)} indexes, "
            f"{name_lists.list_names(sorted(heads_by_name))}, but must point to one: "
            "remove it from the others"
        )
    ((name, head),) = heads_by_name.items()
    index = _read_mapping(server, name, alias, head["mappings"])
    if attached := head["mappings"]["_meta"].get("attached"):
        return _attach(server, index, attached)
    return replace(index, filter=head["aliases"].get(alias, {}).get("filter"))


def _fetch_heads(server: Server, alias: str) -> dict[str, Any]:
    """Return mapping and aliases of the indexes behind a name; else raise IndexMissingError."""
    try:
        return _get_heads(server, alias)
    except ServerError as error:
        if error.status != 404:
            raise
        missing_error = build_missing_error(server, alias)
        raise missing_error from error


def _get_heads(server: Server, name: str) -> dict[str, Any]:
    path, params = f"/{quote(check_index_name(name))}", {"filter_path": "*.mappings,*.aliases"}
    heads: dict[str, Any] = server.request("GET", path, params=params, read=answers.HEADS.read)
    return heads


def _is_own(head: Mapping[str, Any]) -> bool:
    return "hybrid_search" in head["mappings"].get("_meta", {})


def _find_sidecar(server: Server, alias: str, heads_by_name: Mapping[str, Any]) -> str | None:
    """Return the sidecar of an index of another program, None if it has none.

    It may be named after the index, or after another name of it: a login may ask by an alias that
    shows a part.
    """
    others = {name for head in heads_by_name.values() for name in head["aliases"]}
    names = [f"{name}{SUFFIX}" for name in (alias, *sorted({*heads_by_name, *others} - {alias}))]
    return next((name for name in names if _exists(server, name)), None)


def _exists(server: Server, name: str) -> bool:
    """Return whether there is an index that this login may know of."""
    try:
        return bool(_get_heads(server, name))
    except ServerError as error:
        if error.status not in (403, 404):
            raise
        return False


def _ask_by(sidecar: ServerIndex, alias: str) -> ServerIndex:
    """Return a sidecar whose texts are those that an alias of its index shows."""
    if sidecar.attachment is None:
        return sidecar
    return replace(sidecar, attachment=replace(sidecar.attachment, index=alias))


def _attach(server: Server, index: ServerIndex, attached: Any) -> ServerIndex:
    """Return a sidecar with the fields of the index that it is attached to."""
    try:
        meta = answers.ATTACHED.read(attached)
    except ShapeError as error:
        raise IndexStoreError(
            f"index {index.name!r} no longer says in its _meta what it is attached to ({error}): "
            "delete it, and attach again"
        ) from error
    types, names = read_fields(read_properties(server, meta["index"]))
    return replace(index, fields=types, attachment=Attachment.from_meta(meta, names))


def read_properties(server: Server, name: str) -> dict[str, Any]:
    """Return the fields of an index, alias or data stream of another program.

    Raises:
        IndexStoreError: If it is one of this project.
    """
    heads = _fetch_heads(server, name)
    if any(map(_is_own, heads.values())):
        raise IndexStoreError(f"{name!r} is an index of hybrid_search, which has its spans already")
    return merge_properties(heads[key]["mappings"] for key in sorted(heads))


def build_missing_error(server: Server, alias: str) -> IndexMissingError:
    """Return the error for a missing index; it lists the indexes that exist."""
    try:
        index_names = name_lists.list_names(list_names(server), alias)
    except AccessError:  # a login that may read one index may not be allowed to list the others
        index_names = "not shown to this login"
    return IndexMissingError(
        f"there is no index {alias!r} on {server} (indexes there: {index_names}). "
        f"Create it: hybrid-search ingest FILE --index {alias}"
    )


def _read_mapping(server: Server, name: str, alias: str, mapping: Mapping[str, Any]) -> ServerIndex:
    """Return the index that a mapping describes; raise IndexStoreError if it is none of ours."""
    place = f"index {name!r} on {server}"
    if "hybrid_search" not in mapping.get("_meta", {}):
        raise IndexStoreError(
            f"{place} was not made by hybrid_search: use another name, or make spans for it by "
            f"hybrid-search attach --index {alias} --text FIELD"
        )
    try:
        meta = answers.META.read(mapping["_meta"])
        schema = meta["hybrid_search"].get("schema")
        if schema != SCHEMA:
            raise IndexStoreError(
                f"{place} has schema {schema}, "
                f"and this version of hybrid_search reads {SCHEMA}: ingest again into a new index"
            )
        spec = answers.SPEC.read(meta["hybrid_search"])
    except ShapeError as error:
        raise IndexStoreError(
            f"{place} no longer says in its _meta how it was made ({error}): "
            f"put that back, or delete the index and ingest into it again"
        ) from error
    properties = mapping.get("properties", {})
    columns = mappings.list_columns(server.engine)
    if missing := columns.difference(mappings.name_columns(properties)):
        raise IndexStoreError(
            f"{place} lacks {name_lists.list_names(sorted(missing))} in its "
            f"mapping, which an index of {server.engine} has: ingest again into a new index"
        )
    return _describe(name, alias, spec, meta.get("options", {}), properties)


def _describe(
    name: str,
    alias: str,
    spec: IndexSpec,
    options: Mapping[str, Any],
    properties: Mapping[str, Any],
) -> ServerIndex:
    """Return an index whose mapping has these properties."""
    graph = GraphVectors.from_mapping(properties["spans"]["properties"]["vector"], spec.dimension)
    return ServerIndex(name, alias, spec, mappings.read_fields(properties), options, graph)


def read_options(server: Server, index: ServerIndex) -> dict[str, str]:
    """Return all options of an index, with the shards and replicas that it has now."""
    prefix = "index.number_of_"
    counts = read_settings(server, index.alias, f"{prefix}shards", f"{prefix}replicas")
    current = {name.removeprefix(prefix): count for name, count in counts.items()}
    return {name: str(value) for name, value in {**index.options, **current}.items()}


def read_settings(server: Server, name: str, *settings: str) -> dict[str, int]:
    """Return these settings of an index, which are whole numbers, by their names."""
    numbers: dict[str, int] = server.request(
        "GET",
        f"/{quote(name)}/_settings/{','.join(settings)}",
        params={"include_defaults": True, "flat_settings": True},
        read=answers.settings_reader(*settings),
    )
    return numbers


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


def list_names(server: Server) -> list[str]:
    """Return the names (aliases) of all indexes of this project, sorted."""
    mappings_by_name = server.request(
        "GET",
        "/_all/_mapping",
        params={"filter_path": "*.mappings._meta.hybrid_search.schema"},
        read=answers.OUR_MAPPINGS.read,
    )
    if not mappings_by_name:
        return []
    aliases = server.request("GET", "/_alias", read=answers.ALIASES.read)
    return sorted(
        {alias for name in mappings_by_name for alias in aliases.get(name, {}).get("aliases", {})}
    )


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
    return _describe(name, alias, spec, stored_options, body["mappings"]["properties"])


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
