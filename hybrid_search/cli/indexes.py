"""The command ``indexes``: list the indexes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hybrid_search.cli import options
from hybrid_search.errors import HybridSearchError
from hybrid_search.observability import logs

if TYPE_CHECKING:
    from hybrid_search.client import Client

UNKNOWN = "?"


def indexes(*, store: options.Store, as_json: options.Json = False) -> None:
    """List the indexes: their documents, size on disk, model, and when they were last written."""
    from hybrid_search.api import connect

    with connect(**store) as client:
        rows = [_describe(client, name) for name in client.indexes()]
    if as_json:
        options.print_json({"indexes": rows})
    elif rows:
        _show(rows)
    else:
        options.print_lines("there is no index yet: hybrid-search ingest FILE makes one")


def _describe(client: Client, name: str) -> dict[str, Any]:
    """Return the details of an index; only its name if it cannot be read."""
    try:
        return {"name": name, **client.describe(name).to_dict()}
    except HybridSearchError as error:
        logs.log_or_print(f"index {name!r} cannot be described: {error}", logging.WARNING)
        return {"name": name}


def _show(rows: Sequence[dict[str, Any]]) -> None:
    """Print the rows as a table that is never truncated."""
    table = [("index", "documents", "size", "model", "last written"), *map(_format_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, documents, size, model, written_at in table:
        cells = (
            name.ljust(widths[0]),
            documents.rjust(widths[1]),
            size.rjust(widths[2]),
            model.ljust(widths[3]),
            written_at,
        )
        options.print_lines("  ".join(cells).rstrip())


def _format_cells(row: dict[str, Any]) -> tuple[str, str, str, str, str]:
    documents, size, written_at = (row.get(key) for key in ("documents", "bytes", "written_at"))
    return (
        row["name"],
        UNKNOWN if documents is None else f"{documents:,}",
        UNKNOWN if size is None else f"{size / 1e6:,.1f} MB",
        row.get("model", UNKNOWN),
        f"{datetime.fromisoformat(written_at):%Y-%m-%d %H:%M} UTC" if written_at else UNKNOWN,
    )
