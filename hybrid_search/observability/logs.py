"""Show log records on standard error: lines for people, or JSON for programs."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from hybrid_search.observability.escapes import escape_controls, escape_json, escape_lines

STANDARD_ATTRIBUTES = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {
    "message",
    "asctime",
    "taskName",
}
"""The attributes of every record; all others are extras."""

_log = logging.getLogger("hybrid_search")


class Format(StrEnum):
    """The format of log records."""

    text = "text"
    json = "json"


class Level(StrEnum):
    """The lowest level that is written."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


class TextFormatter(logging.Formatter):
    """Formats a record as one line for people, and its exception, if any, as lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 # the library's name
        """Return the line, with characters that a terminal would obey escaped."""
        return escape_controls(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as lines."""
        record.exc_text = None  # as another handler may have formatted it
        return super().format(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802
        """Return the lines of an exception, escaped likewise."""
        return escape_lines(super().formatException(ei))


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON.

    It has the time (ISO 8601, UTC), level, logger, message and extras, and the exception if any.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line of JSON."""
        timestamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": timestamp,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {
            name: value
            for name, value in vars(record).items()
            if name not in STANDARD_ATTRIBUTES and name not in line
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return escape_json(_format_json(line))


def _format_json(line: Mapping[str, Any]) -> str:
    """Return a record as JSON; values that JSON cannot hold, such as NaN, become texts."""
    try:
        return _dump(line)
    except ValueError:
        return _dump({name: _replace_unfit(value) for name, value in line.items()})


def _replace_unfit(value: Any) -> Any:
    try:
        _dump(value)
    except ValueError:
        return str(value)
    return value


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)


@contextmanager
def configure_logging(format: Format = Format.text, level: Level | None = None) -> Iterator[None]:
    """Write records of at least `level` to standard error during the block.

    The default level is warning for text and info for JSON. With neither option given, a program
    that has set up its own logging is left alone.
    """
    root = logging.getLogger()
    if root.handlers and format is Format.text and level is None:
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    is_json = format is Format.json
    text_formatter = TextFormatter("%(levelname)s: %(message)s")
    handler.setFormatter(JsonFormatter() if is_json else text_formatter)
    root_level, package_level = root.level, _log.level
    if level is None:
        root.setLevel(logging.INFO if is_json else logging.WARNING)
    else:
        handler.setLevel(level.upper())
        # Client libraries stay at INFO or above: at DEBUG they log what they send.
        root.setLevel(max(logging.getLevelNamesMapping()[level.upper()], logging.INFO))
        _log.setLevel(level.upper())
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(root_level)
        _log.setLevel(package_level)


def is_structured() -> bool:
    """Return True if records are written as JSON, so that nothing else may stand between them."""
    handlers = logging.getLogger().handlers
    return any(isinstance(handler.formatter, JsonFormatter) for handler in handlers)


def log_or_print(
    text: str, level: int = logging.INFO, extra: Mapping[str, Any] | None = None
) -> None:
    """Show lines on standard error, or as one record if records are JSON.

    An error is one line.
    """
    if is_structured():
        _log.log(level, text, extra=extra)
        return
    is_error = level >= logging.ERROR
    line = f"error: {escape_controls(text)}" if is_error else escape_lines(text)
    print(line, file=sys.stderr, flush=True)
