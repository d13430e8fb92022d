"""Standard output and error that may be full or closed by their reader.

A full standard output is reported as one error. A reader that closed the pipe early, such as ``|
head``, is not an error, but the exit status shows that the output is incomplete. Messages that
standard error does not accept are dropped, and work continues.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO, cast

EXIT_READER_LEFT = 141
"""Exit status of a program whose reader has gone, as in shells: 128 plus SIGPIPE's number."""


class OutputError(Exception):
    """Standard output failed; `is_closed` if its reader has gone."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"standard output cannot be written ({error.strerror}): "
            "free space, or send it somewhere else, and run the same command again"
        )
        self.is_closed = error.errno == errno.EPIPE


class _Stream:
    """A wrapper of standard output or error, None if the process was started with it closed."""

    def __init__(self, stream: TextIO | None, *, is_output: bool) -> None:
        self._stream, self._is_output = stream, is_output

    def write(self, text: str) -> int:
        """Write `text`, and return how many characters were written."""
        if text == "":  # click uses this to test whether the stream accepts text
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
            if self._is_output:  # an error of messages can be reported nowhere
                raise OutputError(error) from error


@contextmanager
def guard_messages() -> Iterator[None]:
    """Drop messages of a block that standard error does not accept."""
    _occupy_closed_descriptors()
    with redirect_stderr(cast("TextIO", _Stream(sys.stderr, is_output=False))):
        yield


@contextmanager
def guard_output() -> Iterator[None]:
    """Raise `OutputError` if standard output does not accept everything that the block writes."""
    with redirect_stdout(cast("TextIO", _Stream(sys.stdout, is_output=True))):
        try:
            yield
        finally:
            sys.stdout.flush()


def _send_to_nowhere(stream: TextIO | None) -> None:
    """Drop buffered and further output, which would cause an error at exit."""
    with suppress(OSError, AttributeError):  # a test's stream may have no descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, cast("TextIO", stream).fileno())
        os.close(nowhere)


def _occupy_closed_descriptors() -> None:
    """Open /dev/null in place of closed standard streams.

    Otherwise an index file could get such a descriptor, and messages of a library would go into it.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
