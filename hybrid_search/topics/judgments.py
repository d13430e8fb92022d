"""Judgments: what people said of spans, one JSON object a line, in a file that any tool may write.

A line is ``{"topic", "phrase", "id", "start", "end", "text", "answer", "model", "at"}``, where
`answer` is ``yes`` or ``no``. The last line about a span of a topic holds: so an answer is taken
back by giving another one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from hybrid_search.errors import UsageError
from hybrid_search.private_files import append_to_file, flush_to_disk, write_all

ANSWERS = ("yes", "no")


@dataclass(frozen=True, slots=True)
class Judgment:
    """What somebody said of a span: that it is a mention of a topic, or that it is not.

    Attributes:
        topic: The topic's name.
        phrase: The phrase of the topic that was looked for.
        id: The document's id.
        start: Where the span begins in the document's text, in code points.
        end: Where it ends.
        text: The words.
        answer: ``yes`` or ``no``.
        model: The fingerprint of the model that proposed the span.
        at: When it was said, in ISO 8601 with a time zone.
    """

    topic: str
    phrase: str
    id: str
    start: int
    end: int
    text: str
    answer: str
    model: str
    at: str

    @property
    def is_mention(self) -> bool:
        """True if the answer is yes."""
        return self.answer == "yes"

    @property
    def place(self) -> tuple[str, str, int, int]:
        """What was judged: topic, document, start and end."""
        return self.topic, self.id, self.start, self.end

    def to_dict(self) -> dict[str, Any]:
        """Return the judgment as it stands in JSON."""
        return asdict(self)


TEXTS = tuple(attribute.name for attribute in fields(Judgment) if attribute.type == "str")


def current_time() -> str:
    """Return the time of a judgment that is made now."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def append_judgments(path: Path, judgments: Iterable[Judgment]) -> None:
    """Add judgments to a file, which is made if it is not there, and wait for the disk.

    A last line that was cut off by a kill is removed first.

    Raises:
        UsageError: If the file cannot be written.
    """
    lines = "".join(
        json.dumps(judgment.to_dict(), ensure_ascii=False) + "\n" for judgment in judgments
    )
    try:
        with FileIO(append_to_file(path), "ab") as file:
            _end_last_line(path, file)
            write_all(file, lines.encode())
            flush_to_disk(file)
    except OSError as error:
        raise UsageError(
            f"judgments cannot be written to {path} ({error.strerror}): free space, or name "
            "another file"
        ) from error


def remove_judgment(path: Path, judgment: Judgment) -> bool:
    """Cut the last line off a file of judgments, if it is this one, and wait for the disk.

    Returns:
        Whether it was: if another program has written since, nothing is changed.

    Raises:
        UsageError: If the file cannot be written.
    """
    try:
        complete, _, last_line = path.read_bytes().removesuffix(b"\n").rpartition(b"\n")
        if not _is_judgment(last_line, judgment):
            return False
        with FileIO(append_to_file(path), "ab") as file:
            file.truncate(len(complete) + 1 if complete else 0)
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written ({error.strerror}): the last answer is still in it"
        ) from error
    return True


def read_judgments(path: Path) -> list[Judgment]:
    """Return the judgments that hold, in the order in which their spans were first judged.

    Unknown keys are passed over. A last line that was cut off by a kill is passed over, too.

    Raises:
        UsageError: If the file cannot be read, or a line is not a judgment.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}): name a file of judgments"
        ) from error
    judgments = {judgment.place: judgment for judgment in _parse_lines(data, path)}
    return list(judgments.values())


def _parse_lines(data: bytes, path: Path) -> Iterator[Judgment]:
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _parse(line)
        except (ValueError, LookupError, TypeError) as error:
            if number == len(lines):  # without a newline: its writer was killed
                return
            raise UsageError(
                f"{path}:{number} is not a judgment ({error}): "
                f"it needs {', '.join(Judgment.__slots__)}"
            ) from error


def _parse(line: bytes) -> Judgment:
    """Return the judgment in a line. ValueError, LookupError or TypeError say that it is none."""
    values = json.loads(line)
    judgment = Judgment(**{name: values[name] for name in Judgment.__slots__})
    for name in TEXTS:
        if not isinstance(getattr(judgment, name), str):
            raise TypeError(f"{name} is not a string")
    if judgment.answer not in ANSWERS:
        raise ValueError(f"answer is not {' or '.join(ANSWERS)}")
    if not _is_place(judgment.start, judgment.end):
        raise ValueError("start and end are not places in a text")
    return judgment


def _is_judgment(line: bytes, judgment: Judgment) -> bool:
    try:
        return _parse(line) == judgment
    except (ValueError, LookupError, TypeError):
        return False


def _is_place(start: object, end: object) -> bool:
    are_integers = type(start) is int and type(end) is int
    return are_integers and 0 <= start < end  # type: ignore[operator]


def _end_last_line(path: Path, file: FileIO) -> None:
    """Complete the last line of a file that is open for appending, or remove it if it is cut."""
    data = path.read_bytes()
    complete, _, rest = data.rpartition(b"\n")
    if not rest:
        return
    try:
        _parse(rest)
        file.write(b"\n")
    except (ValueError, LookupError, TypeError):
        file.truncate(len(complete) + 1 if complete else 0)
