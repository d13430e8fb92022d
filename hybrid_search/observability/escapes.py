r"""Characters that a terminal obeys, in texts of others, are shown as escapes such as ``\x1b``.

Ids, names of files and the words of a server may hold them, by accident or on purpose: they could
clear the screen, forge a line of a log, or turn the direction of the text around.
"""

from __future__ import annotations

import re

_UNSAFE = (
    "\x7f-\x9f"  # the second set of control characters
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directions
    "\u2028\u2029"  # ends of lines and paragraphs
    "\ud800-\udfff"  # halves of characters, which no terminal can be sent
)
_CONTROLS = re.compile(f"[\x00-\x1f{_UNSAFE}]")
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")  # the last four are full-width letters
_OUTSIDE_ASCII = re.compile(f"[{_UNSAFE}]")


def escape_controls(text: str) -> str:
    """Return one line of text for a terminal or a log; ends of lines are escaped too."""
    return _CONTROLS.sub(_escape, text)


def escape_lines(text: str) -> str:
    """Return lines of text for a terminal, which stay lines."""
    return "\n".join(map(escape_controls, text.split("\n")))


def escape_json(line: str) -> str:
    """Return the same JSON without the characters that JSON allows and terminals obey."""
    return _OUTSIDE_ASCII.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def blank_controls(text: str) -> str:
    """Return a text in which each such character is a blank, so that all offsets stay the same.

    Ends of lines and tabs stay.
    """
    return _CONTROLS.sub(lambda match: match[0] if match[0] in "\t\n" else " ", text)


def defuse_cell(value: object) -> object:
    """Return a value of a CSV file; text that a spreadsheet would run as a formula gets a quote.

    Spreadsheets run text that begins with ``=``, ``+``, ``-`` or ``@``, also after blanks.
    """
    is_formula = isinstance(value, str) and _FORMULA.match(value)
    return f"'{value}" if is_formula else value


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
