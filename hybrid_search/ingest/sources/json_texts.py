"""JSON documents from lines, and from lists and objects that span lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import BinaryIO, TextIO

from hybrid_search.ingest.sources.records import Record
from hybrid_search.ingest.sources.streams import as_text

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line or object cannot be a document: JSON needs six bytes at most for each of 10 MB."""
CHUNK = 256 * 1024
"""Characters read at first; doubled each time that an object is incomplete."""
EXCERPT = 1000
"""Characters kept of unreadable input."""
GOES_ON = "; reading goes on at the next line that opens an object"
NEAR_END = 16
"""Characters at the end of the buffer where an error may be due to missing input."""

_VALUE = re.compile(r"[^ \t\r\n\[\],\ufeff]")  # lists are flattened


def read_lines(file: BinaryIO) -> Iterator[Record]:
    """Yield the lines of a file; for a line that is too long, only its start and a fault."""
    number = 0
    while data := file.readline(MAX_LINE_BYTES):
        number += 1
        is_complete = len(data) < MAX_LINE_BYTES or data.endswith(b"\n")
        remainder = b"" if is_complete else data
        while remainder and not remainder.endswith(b"\n"):
            remainder = file.readline(MAX_LINE_BYTES)
        if is_complete:
            yield Record(number, data)
        else:
            fault = f"the line is over {MAX_LINE_BYTES} bytes long"
            yield Record(number, data[:EXCERPT], fault=fault)


def read_values(file: BinaryIO) -> Iterator[Record]:
    """Yield the objects of a JSON text, and the objects in its lists, each verbatim.

    They are numbered from 1. Only one object is in memory at a time. After an error, reading
    resumes at the next line that starts with an object.
    """
    with as_text(file) as opened:
        text, number = _Text(opened), 0
        while text.find_value():
            number += 1
            value, fault = text.take_value()
            yield Record(number, value.encode("utf-8", "surrogateescape"), fault=fault)
            if fault and not text.find_object_line():
                return


class _Text:
    """A text that is read in pieces, and the current position."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._decoder = file, json.JSONDecoder()
        self.buffer, self.position = "", 0
        self._is_over = False

    def find_value(self) -> bool:
        """Move to the next object or other value; return False at the end."""
        while not (match := _VALUE.search(self.buffer, self.position)):
            self.position = len(self.buffer)
            if not self._read():
                return False
        self.position = match.start()
        return True

    def take_value(self) -> tuple[str, str | None]:
        """Return the value that starts here, or part of it and why it cannot be read."""
        while True:
            fault, may_be_cut = None, True
            try:
                _, end = self._decoder.raw_decode(self.buffer, self.position)
            except json.JSONDecodeError as error:
                fault = f"not JSON: {error.msg}"
                is_at_end = error.pos >= len(self.buffer) - NEAR_END
                may_be_cut = is_at_end or error.msg.startswith("Unterminated")
            except RecursionError:
                fault, may_be_cut = "nested too deeply", False
            else:
                if end < len(self.buffer) or not self._read():
                    value, self.position = self.buffer[self.position : end], end
                    return value, None
                continue
            if len(self.buffer) - self.position > MAX_LINE_BYTES:
                fault, may_be_cut = f"an object is over {MAX_LINE_BYTES} characters long", False
            if not (may_be_cut and self._read()):
                excerpt = self.buffer[self.position : self.position + EXCERPT]
                return excerpt, f"{fault}{GOES_ON}"

    def find_object_line(self) -> bool:
        """Move to the next line that starts with an object; return False if there is none."""
        while True:
            begin = self.buffer.find("\n{", self.position)
            if begin >= 0:
                self.position = begin + 1
                return True
            self.position = max(self.position, len(self.buffer) - 1)
            if not self._read():
                return False

    def _read(self) -> bool:
        """Read as much again as is left of the buffer; False at the end of the file."""
        if self._is_over:
            return False
        self.buffer, self.position = self.buffer[self.position :], 0
        piece = self._file.read(max(CHUNK, len(self.buffer)))
        self.buffer += piece
        self._is_over = not piece
        return bool(piece)
