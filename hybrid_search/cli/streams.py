"""Standard output and error that may be full, or closed by their reader.

A full standard output is one error. A reader that has left early, as ``| head`` does, is none, but
the exit status says that not all was written. Messages on a standard error that takes none are
dropped: what is worked on goes on.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO, cast

EXIT_READER_LEFT = 141
"""Exit status of a program whose reader has left, as shells report it: 128 and SIGPIPE's number."""


class OutputError(Exception):
    """Standard output takes no more; `is_closed` says that its reader has left."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"standard output cannot be written ({error.strerror}): "
            "free space, or send it somewhere else, and run the same command again"
        )
        self.is_closed = error.errno == errno.EPIPE


class _Stream:
    """Passes on to a stream, which is None if the process was started with a closed one."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `text`, and return how much of it was taken."""
        if text == "":  # click asks in this way whether the stream takes text
            return 0
        with self._handle_errors():
            if self._stream is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write out what is buffered."""
        with self._handle_errors():
            if self._stream is not None:
                self._stream.flush()

    def isatty(self) -> bool:
        """Return whether this is a terminal."""
        return self._stream is not None and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _handle_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            _send_to_nowhere(self._stream)
            self._report(error)

    def _report(self, error: OSError) -> None:
        """Ignore that a message was not written: there is no other place to say so."""


class _Output(_Stream):
    """Standard output; its errors are told apart from those of other files."""

    def _report(self, error: OSError) -> None:
        raise OutputError(error) from error


@contextmanager
def guard_messages() -> Iterator[None]:
    """Drop messages of a block that standard error does not take."""
    _occupy_closed_descriptors()
    with redirect_stderr(cast("TextIO", _Stream(sys.stderr))):
        yield


@contextmanager
def guard_output() -> Iterator[None]:
    """Let a block write to standard output, with an `OutputError` if not all of it is taken."""
    with redirect_stdout(cast("TextIO", _Output(sys.stdout))):
        try:
            yield
        finally:
            sys.stdout.flush()


def _send_to_nowhere(stream: TextIO | None) -> None:
    """Drop what is buffered and what follows: the interpreter would complain at its end."""
    with suppress(OSError, AttributeError):  # a stream of a test, or none, has no descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, cast("TextIO", stream).fileno())
        os.close(nowhere)


def _occupy_closed_descriptors() -> None:
    """Open /dev/null in place of closed standard streams.

    Otherwise a file of an index could get such a number, and messages of a library go into it.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
