"""The outputs of ``mine``: their options, and a report or an index of matches made of its file."""

# The annotations of a table are read at run time, so they are not postponed here.
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hybrid_search.errors import UsageError
from hybrid_search.observability import logs
from hybrid_search.parameters import Parameter
from hybrid_search.topics.share_options import ShareOptions

if TYPE_CHECKING:
    from hybrid_search.backends.server.backend import ServerBackend
    from hybrid_search.client import Client
    from hybrid_search.search.hit import DocumentView
    from hybrid_search.topics.call_counts import CallGroups
    from hybrid_search.topics.match_upload import ReadDocuments
    from hybrid_search.topics.run import MiningSummary


class Output(ShareOptions, total=False):
    """Where the matches go, and the page of them."""

    out: Annotated[
        Path | None,
        Parameter(
            "File for the matches. After a kill the same command continues it. Default: standard "
            "output."
        ),
    ]
    output_format: Annotated[
        str, Parameter("jsonl, csv or parquet (a file only).", default="jsonl", option="--format")
    ]
    to_index: Annotated[
        str | None,
        Parameter(
            "Index of matches on the same server, where those of these topics are replaced; needs "
            "--out FILE in jsonl."
        ),
    ]
    since: Annotated[
        str | None,
        Parameter(
            "Only documents written since are mined. On a server a time in ISO 8601, in UTC if it "
            "has no offset; on an embedded index the --out of an earlier, complete run.",
            value="TIME",
        ),
    ]
    report: Annotated[
        Path | None,
        Parameter("File for a page of the matches, in HTML; needs --out FILE in jsonl."),
    ]


def check_outputs(output: Output, shard: str | None) -> None:
    """Raise UsageError if the options are not compatible."""
    from hybrid_search.topics.match_file import check_format

    out, form, to_index, since = (
        output["out"],
        output["output_format"],
        output["to_index"],
        output["since"],
    )
    check_format(form, out)
    if since and out and Path(since).resolve() == out.resolve():
        raise UsageError(
            f"--since and --out are both {out}, whose matches would be lost: name another --out"
        )
    options = {"--report": output["report"], "--to-index": to_index}
    for name in (name for name, value in options.items() if value):
        if out is None or form != "jsonl":
            raise UsageError(f"{name} is made from a file of matches: add --out FILE, in jsonl")
    _check_report(output)
    if to_index and shard:
        raise UsageError(
            f"--to-index replaces all matches of a topic, and --shard {shard} has some of them: "
            "leave out one of the two"
        )


def _check_report(output: Output) -> None:
    path, out = output["report"], output["out"]
    if path is None:
        return
    if out and path.resolve() == out.resolve():
        raise UsageError(f"--report and --out are both {out}: name another file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"there is no folder for the report {path}: make it first")


def open_groups(client: "Client", index: str, output: Output) -> "CallGroups":
    """Return how calls are counted; a report has weeks by the first field of dates, if any.

    UsageError is raised if the index lacks a field, or a line of the judgments is not valid.
    """
    from hybrid_search.topics import call_counts

    fields, options = client.describe(index).fields, output
    if output["report"] and output["date"] is None:
        options = {**output, "date": call_counts.choose_date_field(fields)}
    return call_counts.open_groups(options, fields)


def write_report(
    client: "Client",
    index: str,
    out: Path,
    output: Output,
    summary: "MiningSummary",
    groups: "CallGroups",
) -> None:
    """Write the report of the matches in `out`, if requested."""
    from hybrid_search.topics.report import writer

    path = output["report"]
    if path is None:
        return
    writer.write_report(
        path,
        out,
        summary,
        partial(client.open_document, index=index),
        index=index,
        model=client.describe(index).spec.fingerprint,
        groups=groups,
    )


Upload = Callable[[Path, "MiningSummary", str | None], None]
"""Uploads the matches file of a complete run, with the time from a metadata field."""


def open_upload(client: "Client", index: str, to_index: str) -> Upload:
    """Return a function that uploads matches; raise UsageError if the index cannot take them."""
    from hybrid_search.backends.server.backend import ServerBackend
    from hybrid_search.backends.server.match_index import MatchIndex
    from hybrid_search.topics.match_upload import upload_matches

    backend = client.backend
    if not isinstance(backend, ServerBackend):
        raise UsageError(
            "--to-index writes to a server, and this index is not on a server: give --url "
            "opensearch+https://..., or use --report FILE.html"
        )
    sink = MatchIndex(backend.server, to_index, index, backend.options)
    sink.open(client.describe(index).fields)

    read_documents = build_reader(backend, index)

    def upload(out: Path, summary: "MiningSummary", date_field: str | None) -> None:
        names = summary.topics.names
        written, removed = upload_matches(sink, out, names, read_documents, date_field)
        logs.log_or_print(
            f"{written:,} matches written to {to_index}, {removed:,} of earlier runs removed"
        )

    return upload


def build_reader(backend: "ServerBackend", index: str) -> "ReadDocuments":
    """Return a function that reads many documents of an index at once."""
    from hybrid_search.search.open_document import join_contents

    def read_documents(ids: Sequence[str]) -> dict[str, "DocumentView"]:
        documents = backend.read_documents(index, ids)
        return {name: join_contents(index, name, items)[0] for name, items in documents.items()}

    return read_documents
