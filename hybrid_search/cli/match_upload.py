"""What ``mine --to-index`` does: replace the matches of some topics in an index on the server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.match_index import MatchIndex
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.observability import logs
from hybrid_search.phrases.match_upload import ReadDocuments, upload_matches
from hybrid_search.phrases.run import MiningSummary
from hybrid_search.search.document_view import DocumentView
from hybrid_search.search.open_document import join_contents

Upload = Callable[[Path, MiningSummary, str | None], None]
"""Writes the matches of a file, of a complete run, with the time in a metadata field."""


def check_upload(
    to_index: str | None, out: Path | None, output_format: str, shard: str | None
) -> None:
    """Check that the options go together.

    Raises:
        UsageError: If they do not.
    """
    if to_index and (out is None or output_format != "jsonl"):
        raise UsageError("--to-index is made from a file of matches: add --out FILE, in jsonl")
    if to_index and shard:
        raise UsageError(
            f"--to-index replaces all matches of a topic, and --shard {shard} has some of them: "
            "leave out one of the two"
        )


def open_upload(client: Client, index: str, to_index: str) -> Upload:
    """Open the index of matches.

    Returns:
        What writes into it.

    Raises:
        UsageError: If the backend is no server, or the index is none of matches.
    """
    backend = client.backend
    if not isinstance(backend, ServerBackend):
        raise UsageError(
            "--to-index writes to a server, and this index is not on a server: give --url "
            "opensearch+https://..., or use --report FILE.html"
        )
    sink = MatchIndex(backend.server, to_index, index, backend.options)
    sink.open(client.describe(index).fields)

    read_documents = build_reader(backend, index)

    def upload(out: Path, summary: MiningSummary, date_field: str | None) -> None:
        names = [topic.name for topic in summary.topics]
        written, removed = upload_matches(sink, out, names, read_documents, date_field)
        logs.log_or_print(
            f"{written:,} matches written to {to_index}, {removed:,} of earlier runs removed"
        )

    return upload


def build_reader(backend: ServerBackend, index: str) -> ReadDocuments:
    """Return what reads many documents of an index together."""

    def read_documents(ids: Sequence[str]) -> dict[str, DocumentView]:
        documents = backend.read_documents(index, ids)
        return {name: join_contents(index, name, items)[0] for name, items in documents.items()}

    return read_documents
