"""The index behind a name, as the server describes it: its spec, fields, options and filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from hybrid_search.backends.index_names import check_index_name
from hybrid_search.backends.server import answers, mappings
from hybrid_search.backends.server.attachment import (
    SUFFIX,
    Attachment,
    merge_properties,
    read_fields,
)
from hybrid_search.backends.server.graph_vectors import GraphVectors
from hybrid_search.backends.server.transport.connection import Server
from hybrid_search.backends.server.transport.shape import ShapeError
from hybrid_search.backends.types import SCHEMA, Head, IndexSpec
from hybrid_search.errors import (
    AccessError,
    IndexMissingError,
    IndexStoreError,
    ServerError,
    UsageError,
)
from hybrid_search.text import name_lists


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
    return describe_index(name, alias, spec, meta.get("options", {}), properties)


def describe_index(
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
