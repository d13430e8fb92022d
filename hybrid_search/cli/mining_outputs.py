"""What ``mine`` makes of its file of matches: a report, or an index of matches on a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.server.match_index import MatchIndex
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.ingest.shards import Shard
from hybrid_search.observability import logs
from hybrid_search.search.document_view import DocumentView
from hybrid_search.search.open_document import join_contents
from hybrid_search.topics.match_upload import ReadDocuments, upload_matches
from hybrid_search.topics.report import writer
from hybrid_search.topics.run import MiningSummary


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The path of the report, the fields it counts, and the date field."""

    path: Path | None
    by: tuple[str, ...]
    date_field: str | None

    def check(self, out: Path | None, output_format: str, to_index: str | None = None) -> None:
        """Check that the options are compatible.

        Raises:
            UsageError: If they are not.
        """
        if self.path is None:
            if self.by or (self.date_field and not to_index):
                raise UsageError("--by and --date belong to a report: add --report FILE.html")
            return
        if out is None or output_format != "jsonl":
            raise UsageError("--report is made from a file of matches: add --out FILE, in jsonl")
        if self.path.resolve() == out.resolve():
            raise UsageError(f"--report and --out are both {out}: name another file")
        if not self.path.absolute().parent.is_dir():
            raise UsageError(f"there is no folder for the report {self.path}: make it first")

    def check_index(self, client: Client, index: str) -> None:
        """Raise UsageError if the index lacks a field."""
        names = [*self.by, *filter(None, [self.date_field])]
        if names:
            writer.check_fields(names, client.describe(index).fields)

    def write(
        self, client: Client, index: str, out: Path, summary: MiningSummary, shard: Shard | None
    ) -> None:
        """Write the report of the matches in `out`, if requested.

        `shard` selects the mined documents; None for documents written since an earlier run, whose
        metadata is not counted.
        """
        if self.path is None:
            return
        values = writer.count_values(client.backend, index, shard, self.by) if shard else {}
        writer.write_report(
            self.path,
            out,
            summary,
            partial(client.open_document, index=index),
            index=index,
            model=client.describe(index).spec.fingerprint,
            by=self.by,
            date_field=self.date_field,
            values=values,
        )


Upload = Callable[[Path, MiningSummary, str | None], None]
"""Uploads the matches file of a complete run, with the time from a metadata field."""


def check_upload(
    to_index: str | None, out: Path | None, output_format: str, shard: str | None
) -> None:
    """Check that the options are compatible.

    Raises:
        UsageError: If they are not.
    """
    if to_index and (out is None or output_format != "jsonl"):
        raise UsageError("--to-index is made from a file of matches: add --out FILE, in jsonl")
    if to_index and shard:
        raise UsageError(
            f"--to-index replaces all matches of a topic, and --shard {shard} has some of them: "
            "leave out one of the two"
        )


def open_upload(client: Client, index: str, to_index: str) -> Upload:
    """Open the index for matches.

    Returns:
        A function that uploads matches.

    Raises:
        UsageError: If the backend is not a server, or the index does not hold matches.
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
    """Return a function that reads many documents of an index at once."""

    def read_documents(ids: Sequence[str]) -> dict[str, DocumentView]:
        documents = backend.read_documents(index, ids)
        return {name: join_contents(index, name, items)[0] for name, items in documents.items()}

    return read_documents
