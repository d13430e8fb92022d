"""How this process's log records are shown: lines for people, or JSON for programs, on standard
error.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

STANDARD_ATTRIBUTES = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {
    "message",
    "asctime",
    "taskName",
}
"""What every record has; all else in one is an extra."""

_log = logging.getLogger("hybrid_search")


class Format(StrEnum):
    """How records are written."""

    text = "text"
    json = "json"


class Level(StrEnum):
    """The least that is written."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON: time (ISO 8601, UTC), level, logger, message, its extras, and
    the exception where there is one.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
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
        return json.dumps(line, ensure_ascii=False, default=str)


@contextmanager
def configure_logging(format: Format = Format.text, level: Level | None = None) -> Iterator[None]:
    """Records of at least `level` (default: warnings as text, what is worth knowing as JSON) on
    standard error during the block.

    Without a wish, a program that has set up its logging is left alone.
    """
    root = logging.getLogger()
    if root.handlers and format is Format.text and level is None:
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter()
        if format is Format.json
        else logging.Formatter("%(levelname)s: %(message)s")
    )
    root_level, package_level = root.level, _log.level
    if level is None:
        root.setLevel(logging.INFO if format is Format.json else logging.WARNING)
    else:
        handler.setLevel(level.upper())
        root.setLevel(
            max(logging.getLevelNamesMapping()[level.upper()], logging.INFO)
        )  # at DEBUG client libraries log what they send
        _log.setLevel(level.upper())
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(root_level)
        _log.setLevel(package_level)


def is_structured() -> bool:
    """Whether records are written as JSON, so that nothing else should stand between them."""
    return any(
        isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers
    )


def log_or_print(
    text: str, level: int = logging.INFO, extra: Mapping[str, Any] | None = None
) -> None:
    """A line for whoever watches: on standard error as it is, or as a record where records are
    JSON.
    """
    if is_structured():
        _log.log(level, text, extra=extra)
    else:
        print(f"error: {text}" if level >= logging.ERROR else text, file=sys.stderr, flush=True)
