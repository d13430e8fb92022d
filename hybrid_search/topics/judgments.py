"""Judgments: what people said of spans, one JSON object a line, in a file that any tool may write.

A line is ``{"topic", "phrase", "id", "start", "end", "text", "answer", "model", "at"}``, where
`answer` is ``yes`` or ``no``; `call` may say the same of the whole call. The last line about a span
of a topic holds: so an answer is taken back by giving another one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from hybrid_search.errors import UsageError
from hybrid_search.file_errors import explain_failure
from hybrid_search.private_files import append_to_file, flush_to_disk, write_all

ANSWERS = ("yes", "no")


@dataclass(frozen=True, slots=True)
class Judgment:
    """An answer to whether a span is a mention of a topic.

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
        call: ``yes`` or ``no``: whether the whole call has the topic, if the call was drawn at
            random to estimate the topic's share; else empty.
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
    call: str = ""

    @property
    def is_mention(self) -> bool:
        """True if the answer is yes."""
        return self.answer == "yes"

    @property
    def place(self) -> tuple[str, str, int, int]:
        """The span that was judged: topic, document, start and end."""
        return self.topic, self.id, self.start, self.end

    def to_dict(self) -> dict[str, Any]:
        """Return the judgment as it stands in JSON."""
        return asdict(self)


REQUIRED = tuple(name for name in Judgment.__slots__ if name != "call")
TEXTS = tuple(attribute.name for attribute in fields(Judgment) if attribute.type == "str")


def current_time() -> str:
    """Return the time of a judgment that is made now."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def append_judgments(path: Path, judgments: Iterable[Judgment]) -> None:
    """Add judgments to a file, which is made if it is not there, and wait for the disk.

    A last line that was cut off by a kill is removed first. UsageError is raised if the file cannot
    be written.
    """
    lines = (json.dumps(judgment.to_dict(), ensure_ascii=False) + "\n" for judgment in judgments)
    failure, remedy = f"judgments cannot be written to {path}", "free space, or name another file"
    with explain_failure(failure, remedy), FileIO(append_to_file(path), "ab") as file:
        complete, last_line = _split_last_line(path.read_bytes())
        if _parse_or_none(last_line):
            write_all(file, b"\n")
        elif last_line:
            file.truncate(complete)
        write_all(file, "".join(lines).encode())
        flush_to_disk(file)


def remove_judgment(path: Path, judgment: Judgment) -> bool:
    """Cut the last line off a file of judgments, if it is this one, and wait for the disk.

    Returns:
        Whether it was: if another program has written since, nothing is changed. UsageError is
        raised if the file cannot be written.
    """
    with explain_failure(f"{path} cannot be written", "the last answer is still in it"):
        complete, last_line = _split_last_line(path.read_bytes().removesuffix(b"\n"))
        if _parse_or_none(last_line) != judgment:
            return False
        with FileIO(append_to_file(path), "ab") as file:
            file.truncate(complete)
            flush_to_disk(file)
    return True


def read_judgments(path: Path) -> list[Judgment]:
    """Return the judgments that hold, in the order in which their spans were first judged.

    Unknown keys are passed over. A last line that was cut off by a kill is passed over, too.
    UsageError is raised if the file cannot be read, or a line is not a judgment.
    """
    with explain_failure(f"{path} cannot be read", "name a file of judgments"):
        data = path.read_bytes()
    judgments = {judgment.place: judgment for judgment in _parse_lines(data, path)}
    return list(judgments.values())


def read_earlier(path: str | Path) -> list[Judgment]:
    """Return the judgments of a file as `read_judgments`; none if there is no such file."""
    return read_judgments(Path(path)) if Path(path).exists() else []


def _split_last_line(data: bytes) -> tuple[int, bytes]:
    """Return where the last line of some bytes begins, and the line."""
    start = data.rfind(b"\n") + 1
    return start, data[start:]


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
                f"{path}:{number} is not a judgment ({error}): it needs {', '.join(REQUIRED)}"
            ) from error


def _parse(line: bytes) -> Judgment:
    """Return the judgment in a line. ValueError, LookupError or TypeError say that it is none."""
    values = json.loads(line)
    judgment = Judgment(**{name: values[name] for name in REQUIRED}, call=values.get("call", ""))
    for name in TEXTS:
        if not isinstance(getattr(judgment, name), str):
            raise TypeError(f"{name} is not a string")
    if judgment.answer not in ANSWERS:
        raise ValueError(f"answer is not {' or '.join(ANSWERS)}")
    if judgment.call not in ("", *ANSWERS):
        raise ValueError(f"call is not {' or '.join(ANSWERS)}")
    are_integers = type(judgment.start) is int and type(judgment.end) is int
    if not are_integers or not 0 <= judgment.start < judgment.end:
        raise ValueError("start and end are not places in a text")
    return judgment


def _parse_or_none(line: bytes) -> Judgment | None:
    try:
        return _parse(line)
    except (ValueError, LookupError, TypeError):
        return None
