"""Suggestions of columns for the keys of a document that are missing."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

WORDS: dict[str, tuple[str, ...]] = {
    "id": ("id", "ids", "uuid", "guid", "nid", "docid", "callid", "ticketid"),
    "text": (
        *("text", "transcript", "transcription", "utterance", "body", "content", "message"),
        *("description", "comment", "dialogue", "conversation", "sentence"),
    ),
    "turns": (
        *("turns", "utterances", "segments", "messages", "phrases", "comments", "transcript"),
        *("conversation", "dialogue", "entries"),
    ),
    "speaker": ("speaker", "role", "participant", "who", "author", "sender", "party"),
    "start": ("start", "begin", "starttime", "offset"),
    "end": ("end", "stop", "endtime"),
}
"""For each key the words of likely column names, likeliest first."""

OWNERS = ("call", "conversation", "ticket", "contact", "interaction", "case", "document")
"""Prefixes of the id of a document; other ids may identify agents or customers."""

EXAMPLE = "--columns id=call_id,text=body"
LONGEST_NAME = 60
"""Longer keys are not suggested as columns."""

MAX_LEVELS = 3
"""Levels of nested objects whose keys are considered."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def propose_columns(fields: Mapping[str, Any]) -> str:
    """Return the options that name the right keys of an object, or an example if none fits."""
    names = dict(_flatten(fields))
    scalars = [name for name, value in names.items() if not isinstance(value, (dict, list))]
    for turns_name in _rank_names("turns", list(names)):
        turns = names[turns_name]
        first = turns[0] if isinstance(turns, list) and turns else None
        inner = list(dict(_flatten(first))) if isinstance(first, dict) else []
        if _find_name("text", inner):
            found = {key: _find_name(key, inner) for key in ("text", "speaker", "start", "end")}
            return _format_option({"id": _find_id(scalars), "turns": turns_name, **found})
    return _format_option({"id": _find_id(scalars), "text": _find_name("text", scalars)})


def propose_for_header(header: Sequence[str]) -> str:
    """Return the options that name the right columns of a table, or an example if none fits.

    A table with a speaker in each row is taken to have one turn per row.
    """
    found = {"id": _find_id(header), "text": _find_name("text", header)}
    turn_keys = {key: _find_name(key, header) for key in ("speaker", "start", "end")}
    if turn_keys["speaker"]:
        return f"{_format_option({**found, **turn_keys})} --rows turn"
    return _format_option(found)


def looks_like_header(header: Sequence[str]) -> bool:
    """Return whether column names look like an id and a text."""
    return bool(_find_id(header) and _find_name("text", header))


def _format_option(found: Mapping[str, str | None]) -> str:
    pairs = [f"{key}={name}" for key, name in found.items() if name and name != key]
    if not (pairs and found["id"] and found["text"]):
        return EXAMPLE
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(pairs)
    value = line.getvalue()
    is_plain = re.fullmatch(r"[\w =,.-]+", value)  # in double quotes every shell takes it
    quoted = f'"{value}"' if is_plain and " " in value else shlex.quote(value)
    return f"--columns {quoted}"


def _flatten(fields: Mapping[str, Any], levels: int = MAX_LEVELS) -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        if len(name) <= LONGEST_NAME:
            yield name, value
            inner = _flatten(value, levels - 1) if isinstance(value, Mapping) and levels > 1 else ()
            yield from ((f"{name}.{inner_name}", item) for inner_name, item in inner)


def _find_id(names: Sequence[str]) -> str | None:
    """Return the name that looks most like the id of a document."""

    def rank(name: str) -> tuple[bool, int]:
        *owners, _ = _words(name)
        is_owned = not owners or owners[-1] in OWNERS
        return not is_owned, name.count(".")

    return min(filter(_is_id, names), key=rank, default=None)


def _is_id(name: str) -> bool:
    words = _words(name)
    return bool(words) and words[-1] in WORDS["id"]


def _find_name(key: str, names: Sequence[str]) -> str | None:
    """Return the name that looks most like `key`."""
    return next(iter(_rank_names(key, names)), None)


def _rank_names(key: str, names: Sequence[str]) -> list[str]:
    likely_words = WORDS[key]
    ranked = [
        (likely_words.index(word), name.count("."), position, name)
        for position, name in enumerate(names)
        for word in _words(name)
        if word in likely_words and not _is_id(name)
    ]
    return [name for *_, name in sorted(ranked)]


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
