"""What ``ingest`` reads: files, the bundled sample, an index of a server, or a folder that files
come into.

One of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from hybrid_search.backends import open_server
from hybrid_search.config import settings
from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources import files, rejected
from hybrid_search.ingest.sources.server_index import ForeignIndex
from hybrid_search.ingest.sources.tables import SAME, Columns
from hybrid_search.ingest.types import SourceLine
from hybrid_search.observability import logs

Sources = Annotated[
    list[str] | None,
    typer.Argument(
        help="JSONL, CSV and TSV files, .gz too, Parquet files; - for JSONL on standard input. None: the bundled sample."
    ),
]
Sample = Annotated[
    bool,
    typer.Option(
        "--sample", help="Ingest the bundled sample, which on a server has to be asked for."
    ),
]
Rejects = Annotated[
    Path | None,
    typer.Option(
        help="File for refused documents. Default: INDEX.rejected.jsonl; of a shard INDEX.I-of-N.rejected.jsonl"
    ),
]
ColumnNames = Annotated[
    str | None,
    typer.Option("--columns", help="KEY=COLUMN,...: which columns of a table give which keys."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        help="KEY=VALUE that the metadata must have; other documents are passed over. May be repeated."
    ),
]
FromIndex = Annotated[
    str | None, typer.Option(help="Read the documents of this index of a server, instead of files.")
]
FromUrl = Annotated[
    str | None, typer.Option(help="The server of --from-index. Default: that of --url.")
]
TextField = Annotated[
    str, typer.Option(help="Field of --from-index that is the text, or the list of turns.")
]
IdField = Annotated[str, typer.Option(help="Field of --from-index that is the id.")]
Retry = Annotated[
    Path | None,
    typer.Option(help="A rejects file, whose documents are tried again instead of a source."),
]
Follow = Annotated[
    Path | None,
    typer.Option(
        help="Ingest each file that is moved into this folder, then move it into done/ or failed/ inside."
    ),
]


@dataclass(frozen=True, slots=True)
class Input:
    """The lines to ingest, how many bytes they have, if that is known, and the files that they are
    of, if any.
    """

    lines: Iterator[SourceLine]
    size: int | None = None
    files: Sequence[str] = ()


def check_one(
    paths: list[str] | None,
    *,
    sample: bool,
    from_index: str | None,
    follow: Path | None,
    retry: Path | None,
) -> None:
    """Raise UsageError where several sources of different kinds are given."""
    alternatives = {
        "--sample": sample,
        "--from-index": from_index,
        "--follow": follow,
        "--retry": retry,
    }
    values_by_source = {**alternatives, f"sources ({', '.join(paths or [])})": paths}
    given_sources = [name for name, value in values_by_source.items() if value]
    if len(given_sources) > 1:
        raise UsageError(f"both {' and '.join(given_sources)}: give one of them")


def parse_columns(text: str | None) -> Columns:
    """The mapping of ``--columns``."""
    return Columns.parse(text) if text else SAME


@contextmanager
def open_input(
    paths: list[str] | None,
    sample: bool,
    column_map: Columns,
    rejects: Path,
    foreign_index: ForeignIndex | None,
    from_url: str | None,
    url: str | None,
    retry: Path | None,
) -> Iterator[Input]:
    """What is to be ingested. Raises UsageError, MissingExtraError."""
    if retry:
        rejected.check(retry)
        yield Input(rejected.read(retry), files.size([str(retry)]))
    elif foreign_index is None:
        source_files = paths or _sample_source(url, requested=sample)
        files.check(source_files, rejects, column_map)
        yield Input(files.read(source_files, column_map), files.size(source_files), source_files)
    else:
        server_settings = settings(from_url or url)
        server = open_server(server_settings.url, server_settings.access)
        try:
            yield Input(foreign_index.lines(server))
        finally:
            server.close()


def _sample_source(url: str | None, *, requested: bool) -> list[str]:
    """The bundled sample as the source; said where nobody asked for it.

    Raises UsageError on a server, where it would stand among real documents.
    """
    scheme = settings(url).url.partition(":")[0]
    if not requested and scheme.endswith(("http", "https")):
        raise UsageError(
            "no source given: name the files to ingest (- for standard input), or give --sample for the bundled calls"
        )
    if not requested:
        logs.log_or_print("no source given: ingesting the bundled sample of 88 calls")
    return [str(files.SAMPLE)]
