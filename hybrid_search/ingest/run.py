"""One run of the command ``ingest``, until the source ends or a signal stops it.

At a signal, a run finishes the lines it has read. It resumes after its checkpoint, and can retry
refused documents.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from hybrid_search.backends import open_server
from hybrid_search.config import settings
from hybrid_search.errors import UsageError
from hybrid_search.ingest import rejects as rejects_file
from hybrid_search.ingest.checkpoint import Checkpoint
from hybrid_search.ingest.options import IngestOptions, Report
from hybrid_search.ingest.prefetch import read_until_stopped
from hybrid_search.ingest.sources import files
from hybrid_search.ingest.sources.inbox import Inbox, follow
from hybrid_search.ingest.sources.read_options import AS_IS, ReadOptions
from hybrid_search.ingest.sources.records import rebuild_line
from hybrid_search.ingest.sources.server_index import read_index
from hybrid_search.ingest.summary import Summary, format_summary
from hybrid_search.ingest.types import SourceLine
from hybrid_search.observability import logs
from hybrid_search.text.name_lists import list_names

SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOPPING_MESSAGE = b"stopping: what was read is being finished; a second signal ends at once\n"

IngestLines = Callable[[Iterator[SourceLine], IngestOptions], Summary]
"""Ingests lines, as `Client.run_ingest` does."""

ShowProgress = Callable[[int | None], AbstractContextManager[Report]]
"""Shows progress during a block, given the size of the source in bytes, or None if unknown."""


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
        sources = {
            "--from-index": self.from_index,
            "--follow": self.follow,
            "--retry": self.retry,
        }
        other_names = [name for name, value in sources.items() if value]
        files = {"--sample": self.sample, f"sources ({list_names(self.paths)})": self.paths}
        names = other_names + [name for name, value in files.items() if value]
        if len(names) > 1:
            raise UsageError(f"both {' and '.join(names)}: give one of them")
        if checkpoint and other_names:
            raise UsageError(
                f"--checkpoint is for files, but {other_names[0]} was given: leave --checkpoint "
                "out, unchanged documents are skipped without it"
            )


class Input(NamedTuple):
    """The lines to ingest, their size in bytes if known, and their files."""

    lines: Iterator[SourceLine]
    size: int | None = None
    files: Sequence[str] = ()


@contextmanager
def open_input(source: SourceChoice, rejects: Path) -> Iterator[Input]:
    """Yield the lines of the chosen source, which must not be a watched folder."""
    if source.retry:
        rejects_file.check_retried(source.retry)
        lines = rejects_file.read_retried(source.retry)
        rebuilt = (rebuild_line(line, source.read_options) for line in lines)
        yield Input(rebuilt, files.size([str(source.retry)]))
    elif source.from_index:
        origin = settings(source.from_url or source.url)
        with closing(open_server(origin.url, origin.access)) as server:
            yield Input(read_index(server, source.from_index, source.read_options))
    else:
        if not (source.paths or source.sample):
            is_on_server = settings(source.url).url.partition(":")[0].endswith(("http", "https"))
            if is_on_server:  # the sample would mix with real documents
                raise UsageError(
                    "no source given: name the files to ingest (- for standard input), "
                    "or give --sample for the bundled calls"
                )
            logs.log_or_print("no source given: ingesting the bundled sample of 100 calls")
        paths = source.paths or [str(files.SAMPLE)]
        files.check(paths, rejects, source.read_options)
        names = [file.path for file in files.find(paths)]
        yield Input(files.read(paths, source.read_options), files.size(paths), names)


def run_ingest(
    ingest: IngestLines,
    source: SourceChoice,
    options: IngestOptions,
    checkpoint: Path | None,
    show_progress: ShowProgress,
) -> Summary:
    """Ingest `source`, of any kind, and record the lines done in the file `checkpoint`."""
    if source.follow:
        return _follow_folder(ingest, source, source.follow, options, show_progress)
    url = settings(source.url).url
    options = replace(options, rejects=options.find_rejects(url))
    place = (
        *(url, options.index, source.read_options),
        *(options.where, options.shard, options.cleaning, options.language, options.recogniser),
    )
    with (
        open_input(source, options.find_rejects()) as opened,
        show_progress(opened.size) as report_progress,
    ):
        options = options.reporting_to(report_progress)
        if checkpoint:
            what_goes_where = " ".join(map(repr, place))
            saved = Checkpoint(checkpoint, what_goes_where, opened.files)
            options = replace(options, checkpoint=saved)
        return _ingest_until_stopped(ingest, opened.lines, options, source.retry)


def _ingest_until_stopped(
    ingest: IngestLines, lines: Iterator[SourceLine], options: IngestOptions, retry: Path | None
) -> Summary:
    """Ingest `lines`; at SIGTERM or SIGINT, finish the lines read so far and stop."""
    rejects, checkpoint = options.find_rejects(), options.checkpoint
    again = rejects.with_name(f"{rejects.name}.again")  # if killed, the old file is unchanged
    fresh = rejects_file.remove_earlier(again) if retry else rejects
    with stop_on_signals() as stop_event:
        lines = read_until_stopped(stop_event, lines)
        summary = ingest(lines, replace(options, rejects=fresh))
    summary.stopped = stop_event.is_set()
    if checkpoint and not summary.stopped:
        checkpoint.finish()
    if retry and summary.stopped:  # documents not retried yet are only in the old file
        fresh.unlink(missing_ok=True)
        summary.rejected = str(retry)
    elif retry:
        rejects_file.settle_retry(fresh, rejects, retry)
        summary.rejected = str(rejects) if summary.failed else None
    return summary


def _follow_folder(
    ingest: IngestLines,
    source: SourceChoice,
    folder: Path,
    options: IngestOptions,
    show_progress: ShowProgress,
) -> Summary:
    """Ingest each new file in `folder` until SIGTERM or SIGINT, and log a line for each."""
    if options.rejects:
        raise UsageError(
            f"--rejects {options.rejects} is not for --follow, which writes refused documents "
            "beside their file in failed/: leave it out"
        )
    inbox = Inbox(folder)
    inbox.prepare()

    def ingest_file(file: Path, rejects: Path) -> Summary:
        lines = files.read([str(file)], source.read_options)
        lines = read_until_stopped(stop_event, lines)
        with show_progress(None) as report_progress:
            file_options = replace(options, rejects=rejects).reporting_to(report_progress)
            return ingest(lines, file_options)

    def log_file(destination: Path, summary: Summary) -> None:
        logs.log_or_print(f"{destination}: {format_summary(summary)}", extra=summary.to_dict())

    with stop_on_signals() as stop_event:
        logs.log_or_print(f"watching {folder} for files, until SIGTERM or Ctrl-C")
        summary = follow(inbox, ingest_file, stop_event.is_set, log_file)
    summary.stopped = stop_event.is_set()
    return summary


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM or SIGINT sets while the block runs; a second one ends it."""
    stop_event = threading.Event()
    old_handlers = {number: signal.getsignal(number) for number in SIGNALS}

    def stop(_: int, __: FrameType | None) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        stop_event.set()
        with suppress(OSError):  # a broken standard error must not end the run
            os.write(2, STOPPING_MESSAGE)  # the signal may have interrupted a print

    if threading.current_thread() is not threading.main_thread():  # no handler can be set there
        yield stop_event
        return
    try:
        for number in SIGNALS:
            signal.signal(number, stop)
        yield stop_event
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)
