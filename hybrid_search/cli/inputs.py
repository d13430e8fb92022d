"""What ``ingest`` reads: files, the bundled sample, an index of a server, or a folder that files come into. One of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from hybrid_search import logs
from hybrid_search.backends import open_server
from hybrid_search.config import settings
from hybrid_search.errors import UsageError
from hybrid_search.ingest import again, sources
from hybrid_search.ingest.existing import Existing
from hybrid_search.ingest.sources import Line
from hybrid_search.ingest.tables import SAME, Columns

Sources = Annotated[
    list[str] | None,
    typer.Argument(help="JSONL, CSV and TSV files, .gz too, Parquet files; - for JSONL on standard input. None: the bundled sample."),
]
Sample = Annotated[bool, typer.Option("--sample", help="Ingest the bundled sample, which on a server has to be asked for.")]
Rejects = Annotated[
    Path | None, typer.Option(help="File for refused documents. Default: INDEX.rejected.jsonl; of a shard INDEX.I-of-N.rejected.jsonl")
]
ColumnNames = Annotated[str | None, typer.Option("--columns", help="KEY=COLUMN,...: which columns of a table give which keys.")]
Where = Annotated[list[str] | None, typer.Option(help="KEY=VALUE that the metadata must have; other documents are passed over. May be repeated.")]
FromIndex = Annotated[str | None, typer.Option(help="Read the documents of this index of a server, instead of files.")]
FromUrl = Annotated[str | None, typer.Option(help="The server of --from-index. Default: that of --url.")]
TextField = Annotated[str, typer.Option(help="Field of --from-index that is the text, or the list of turns.")]
IdField = Annotated[str, typer.Option(help="Field of --from-index that is the id.")]
Retry = Annotated[Path | None, typer.Option(help="A rejects file, whose documents are tried again instead of a source.")]
Follow = Annotated[Path | None, typer.Option(help="Ingest each file that is moved into this folder, then move it into done/ or failed/ inside.")]


@dataclass(frozen=True, slots=True)
class Input:
    """The lines to ingest, how many bytes they have, if that is known, and the files that they are of, if any."""

    lines: Iterator[Line]
    size: int | None = None
    files: Sequence[str] = ()


def check_one(files: list[str] | None, *, sample: bool, from_index: str | None, follow: Path | None, retry: Path | None) -> None:
    """Raise UsageError where several sources of different kinds are given."""
    others = {"--sample": sample, "--from-index": from_index, "--follow": follow, "--retry": retry}
    given = {**others, f"sources ({', '.join(files or [])})": files}
    named = [name for name, value in given.items() if value]
    if len(named) > 1:
        raise UsageError(f"both {' and '.join(named)}: give one of them")


def columns(given: str | None) -> Columns:
    """The mapping of ``--columns``."""
    return Columns.parse(given) if given else SAME


@contextmanager
def opened(
    files: list[str] | None,
    sample: bool,
    named: Columns,
    rejects: Path,
    existing: Existing | None,
    from_url: str | None,
    url: str | None,
    retry: Path | None,
) -> Iterator[Input]:
    """What is to be ingested. Raises UsageError, MissingExtraError."""
    if retry:
        again.check(retry)
        yield Input(again.read(retry), sources.size([str(retry)]))
    elif existing is None:
        chosen = files or _sample(url, asked=sample)
        sources.check(chosen, rejects, named)
        yield Input(sources.read(chosen, named), sources.size(chosen), chosen)
    else:
        found = settings(from_url or url)
        server = open_server(found.url, found.access)
        try:
            yield Input(existing.lines(server))
        finally:
            server.close()


def _sample(url: str | None, *, asked: bool) -> list[str]:
    """The bundled sample as the source; said where nobody asked for it. Raises UsageError on a server, where it would stand among real documents."""
    scheme = settings(url).url.partition(":")[0]
    if not asked and scheme.endswith(("http", "https")):
        raise UsageError("no source given: name the files to ingest (- for standard input), or give --sample for the bundled calls")
    if not asked:
        logs.tell("no source given: ingesting the bundled sample of 88 calls")
    return [str(sources.SAMPLE)]
