"""The source of an ingest: files, the sample, a rejects file, an index, or a folder.

Exactly one of them is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hybrid_search.backends import open_server
from hybrid_search.config import settings
from hybrid_search.errors import UsageError
from hybrid_search.ingest.sources import files, rejected
from hybrid_search.ingest.sources.read_options import AS_IS, ReadOptions
from hybrid_search.ingest.sources.server_index import read_index
from hybrid_search.ingest.types import SourceLine
from hybrid_search.observability import logs
from hybrid_search.text.name_lists import list_names


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """The source named by a command; by default the bundled sample."""

    paths: Sequence[str] = ()
    read_options: ReadOptions = AS_IS
    sample: bool = False
    retry: Path | None = None
    follow: Path | None = None
    from_index: str | None = None
    from_url: str | None = None
    """The server of the index to read; None for the server of `url`."""
    url: str | None = None
    """The URL of the target index, as given; None for the configured one."""

    def check(self, checkpoint: Path | None) -> None:
        """Raise UsageError if sources of several kinds are given, or a checkpoint of no files."""
        others = {
            "--from-index": self.from_index,
            "--follow": self.follow,
            "--retry": self.retry,
        }
        given = [name for name, value in others.items() if value]
        files = {"--sample": self.sample, f"sources ({list_names(self.paths)})": self.paths}
        names = given + [name for name, value in files.items() if value]
        if len(names) > 1:
            raise UsageError(f"both {' and '.join(names)}: give one of them")
        if checkpoint and given:
            raise UsageError(
                f"--checkpoint is for files, but {given[0]} was given: leave --checkpoint out, "
                "unchanged documents are skipped without it"
            )


@dataclass(frozen=True, slots=True)
class Input:
    """The lines to ingest, their size in bytes if known, and their files."""

    lines: Iterator[SourceLine]
    size: int | None = None
    files: Sequence[str] = ()


@contextmanager
def open_input(source: SourceChoice, rejects: Path) -> Iterator[Input]:
    """Yield the lines of the chosen source, which must not be a watched folder.

    Raises UsageError if the source does not exist or is the rejects file, MissingExtraError if a
    package needed to read it is not installed.
    """
    if source.retry:
        rejected.check(source.retry)
        yield Input(rejected.read(source.retry), files.size([str(source.retry)]))
    elif source.from_index:
        origin = settings(source.from_url or source.url)
        with closing(open_server(origin.url, origin.access)) as server:
            yield Input(read_index(server, source.from_index, source.read_options))
    else:
        if not (source.paths or source.sample):
            _announce_sample(settings(source.url).url)
        paths = source.paths or [str(files.SAMPLE)]
        files.check(paths, rejects, source.read_options)
        names = [file.path for file in files.find(paths)]
        yield Input(files.read(paths, source.read_options), files.size(paths), names)


def _announce_sample(url: str) -> None:
    """Log that the sample is ingested; raise UsageError if it would mix with real documents."""
    if url.partition(":")[0].endswith(("http", "https")):
        raise UsageError(
            "no source given: name the files to ingest (- for standard input), "
            "or give --sample for the bundled calls"
        )
    logs.log_or_print("no source given: ingesting the bundled sample of 100 calls")
