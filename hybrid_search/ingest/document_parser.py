"""Parser of one JSON line into a `Document`, with messages about what is invalid."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, NoReturn, Self

import numpy as np
import regex
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from hybrid_search.backends.settings_digest import settings_digest
from hybrid_search.backends.types import IndexSpec
from hybrid_search.errors import InputError, put_plainly, show_value
from hybrid_search.ingest import column_names, redactions
from hybrid_search.ingest.cleaning import NOTHING, Cleaning
from hybrid_search.ingest.document_language import name_language
from hybrid_search.ingest.redactions import Recogniser
from hybrid_search.text.filters import leaves
from hybrid_search.text.languages import FIELD
from hybrid_search.text.types import Document, Turn, WordTime

MAX_TEXT_BYTES = 10 * 1024 * 1024
MAX_ID_BYTES = 500
"""A server's ``_id`` has at most 512 bytes; a passage's is a document's with ``#`` and a number."""

MAX_DEPTH = 20
"""Levels of nested objects and lists; servers take as many (``index.mapping.depth.limit``)."""
TOO_DEEP = (
    f"nested too deeply: at most {MAX_DEPTH} objects and lists inside one another are allowed"
)

MAX_PARSED_DEPTH = 200
"""Levels that are read before they are refused: Python's parser calls itself for each, and the
garbage collector needs some of the interpreter's thousand calls as well.
"""

LOOKED_THROUGH = "redacted-"
"""Begins the source hash of a document that had redactions, or that a recogniser has read."""

KINDS: dict[type, str] = {str: "a text", list: "a list", dict: "an object"}
"""Names of types, for messages that must not quote a value."""

_NUL = regex.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_WORD = regex.compile(r"\w(?:.*\w)?", regex.DOTALL)
_JSON_STRING = regex.compile(rb'"(?:[^"\\]|\\.)*+"', regex.DOTALL)


def stringify_number(value: Any) -> Any:
    """Return an integral number as text, 17 and 17.0 as "17"; any other value unchanged."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _read_text(value: object) -> str:
    text = stringify_number(value)
    if not isinstance(text, str):
        raise ValueError("must be a text or a whole number")
    return text


def _read_milliseconds(value: object) -> object:
    """Return a number, or a numeric string, as whole milliseconds."""
    try:
        number = float(value) if isinstance(value, (str, float)) else value
    except ValueError:
        number = True
    if isinstance(number, bool):
        raise ValueError("must be a number of milliseconds")
    return round(number) if isinstance(number, float) and math.isfinite(number) else number


_Text = Annotated[StrictStr, BeforeValidator(_read_text)]
_Count = Annotated[int, Field(ge=0, lt=2**53)]
_Milliseconds = Annotated[int, BeforeValidator(_read_milliseconds), Field(ge=0, lt=2**53)]


class _Turn(BaseModel):
    model_config = ConfigDict(extra="allow")

    text: _Text
    speaker: _Text | None = None
    start_ms: _Milliseconds | None = None
    end_ms: _Milliseconds | None = None
    word_times: list[tuple[_Count, _Count, _Count, _Count]] = []

    @model_validator(mode="before")
    @classmethod
    def _wrap_text(cls, value: object) -> object:
        return {"text": value} if isinstance(value, str) else value

    @field_validator("word_times", mode="before")
    @classmethod
    def _replace_null(cls, value: object) -> object:
        return [] if value is None else value

    @model_validator(mode="after")
    def _check_word_times(self) -> Self:
        """Check that the words are in order and inside the text."""
        position = 0
        for start, end, start_ms, end_ms in self.word_times:
            if not (position <= start < end <= len(self.text) and start_ms <= end_ms):
                raise ValueError(
                    "word_times must have [start, end, start_ms, end_ms] of each word, in order "
                    "and within the text"
                )
            position = end
        return self


class _Document(BaseModel):
    model_config = ConfigDict(extra="allow")

    id: _Text
    text: _Text | None = None
    turns: list[_Turn] | None = None


def parse(
    data: bytes,
    cleaning: Cleaning = NOTHING,
    language: str | None = None,
    recogniser: Recogniser | None = None,
) -> tuple[Document, str]:
    """Return the cleaned and masked document of a line, and its canonical form (for its hash).

    `language` is a setting of `document_language.name_language`. Of a document that was looked
    through for words that must go, the canonical form begins with `LOOKED_THROUGH`.

    Raises:
        InputError: If the line is not a valid document; the message says why.
    """
    raw = load_object(data)
    if "id" not in raw:
        raise InputError(_explain_missing("no id", raw), f"the keys are {_shorten(sorted(raw))}")
    _check_depth(raw)
    mark = LOOKED_THROUGH if redactions.KEY in raw or recogniser else ""
    if redactions.KEY in raw:
        given = redactions.parse_redactions(raw.pop(redactions.KEY) or [])
        raw = redactions.mask_document(raw, _list_texts(_validate(raw)), given)
    raw = cleaning.clean_document(raw)
    if recogniser:
        raw = redactions.mask_recognised(raw, _list_texts(_validate(raw)), recogniser)
    canonical = _canonical_json(raw)
    validated = _validate(raw)
    _check_size("id", validated.id, MAX_ID_BYTES)
    if validated.text is None and validated.turns is None:
        raise InputError(_explain_missing("neither of text and turns", raw))
    document = _build_document(validated)
    _check_size("text", document.text, MAX_TEXT_BYTES, ": split the document")
    for _ in leaves(document.metadata):  # raises InputError for a value that no backend can store
        pass
    if "Infinity" in canonical:  # in a turn: metadata was looked at
        _check_numbers(raw)
    named = name_language(document, language)
    if named is not document:
        canonical = _canonical_json({**raw, FIELD: named.metadata[FIELD]})
    return named, mark + canonical


def _validate(raw: dict[str, Any]) -> _Document:
    try:
        return _Document.model_validate(raw)
    except ValidationError as error:
        raise InputError(*_describe_mistake(error, raw)) from error


def _list_texts(validated: _Document) -> list[str]:
    """Return the texts of its turns, or the one text of a document without turns."""
    return [turn.text for turn in validated.turns or ()] or [validated.text or ""]


def _describe_mistake(error: ValidationError, raw: dict[str, Any]) -> tuple[str, str]:
    """Return why the first invalid value is not allowed there, and the value."""
    first = error.errors()[0]
    steps, value = first["loc"], first["input"]
    field = ".".join(step for step in steps if isinstance(step, str))
    name = field if isinstance(steps[-1], str) else f"one of {field}"
    detail = f"{'.'.join(map(str, steps))} is {_shorten(value)}"
    reason = f"{name} {put_plainly(first['msg'])}"
    if first["type"] == "value_error" and name != field:  # of several values, which it names
        return f"{field}: {put_plainly(first['msg'])}", detail
    if first["type"] == "missing" and name == field:
        return _explain_missing(reason, raw), detail
    is_constant = value is None or isinstance(value, bool)
    shown = json.dumps(value) if is_constant else KINDS.get(type(value))
    return (f"{reason}, and is {shown}" if shown else reason), detail


def read_id(data: bytes) -> str | None:
    """Return the id in a line of JSON, valid or not; None without an id."""
    if _nests_deeply(data):
        return None
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except ValueError:
        return None
    document_id = stringify_number(document.get("id") if isinstance(document, dict) else None)
    return document_id if isinstance(document_id, str) else None


def find_valid_id(data: bytes) -> str | None:
    """Return the id of a refused line, None if it has no valid id."""
    document_id = read_id(data) or ""
    try:
        _check_size("id", document_id, MAX_ID_BYTES)
    except (InputError, UnicodeEncodeError):
        return None
    return None if "\0" in document_id else document_id


def source_hash(canonical: str, spec: IndexSpec) -> str:
    """Return a digest of the document and one of the settings of its index, joined by a dot.

    No digest is of words that were masked: of a few digits it would give them away.
    """
    mark = LOOKED_THROUGH if canonical.startswith(LOOKED_THROUGH) else ""
    digest = hashlib.sha256(canonical.encode()).hexdigest()[: 40 - len(mark)]
    return f"{mark}{digest}.{settings_digest(spec)}"


def is_looked_through(source_hash: str) -> bool:
    """Return whether the document was looked through for words that must go."""
    return source_hash.startswith(LOOKED_THROUGH)


def rehash_source(old_hash: str, spec: IndexSpec) -> str:
    """Return the source hash of the same document in an index of `spec`."""
    return f"{old_hash.partition('.')[0]}.{settings_digest(spec)}"


def load_object(data: bytes) -> dict[str, Any]:
    """Return the object in a line of JSON; InputError says why there is none."""
    if _nests_deeply(data):
        raise InputError(TOO_DEEP)
    try:
        raw = json.loads(
            data.decode("utf-8-sig"),
            parse_constant=_read_constant,
            object_pairs_hook=build_object,
        )
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8", f"byte 0x{data[error.start]:02x} at {error.start}") from error
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg}", f"at character {error.pos}") from error
    except ValueError as error:
        raise InputError("not readable JSON", str(error)) from error
    if not isinstance(raw, dict):
        raise InputError(f"not an object: a JSON {type(raw).__name__}")
    return raw


def _check_numbers(value: Any, name: str = "") -> None:
    """Raise InputError for an infinite number at any depth."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(
            f"{show_value(name)} is infinite, which JSON cannot hold: give a finite number"
        )
    for key, item in value.items() if isinstance(value, dict) else ():
        _check_numbers(item, f"{name}.{key}".lstrip("."))
    for item in value if isinstance(value, list) else ():
        _check_numbers(item, name)


def _explain_missing(reason: str, raw: dict[str, Any]) -> str:
    """Return `reason` with a suggested option that names the keys of the document."""
    only_value = next(iter(raw.values()), None) if len(raw) == 1 else None
    if isinstance(only_value, list) and isinstance(next(iter(only_value), None), dict):
        return f"{reason}: if the list in the object has the documents, take it out: jq '.[]' FILE"
    proposed = column_names.propose_columns(raw)
    return f"{reason}: if other keys have them, name these, as in {proposed}"


def _nests_deeply(data: bytes) -> bool:
    """Return whether a line nests more than `MAX_PARSED_DEPTH` levels; it need not be valid."""
    if data.count(b"[") + data.count(b"{") <= MAX_PARSED_DEPTH:
        return False
    structure = np.frombuffer(_JSON_STRING.sub(b"", data), np.uint8)
    opened = (structure == ord("[")) | (structure == ord("{"))
    closed = (structure == ord("]")) | (structure == ord("}"))
    depths = np.cumsum(opened.astype(np.int8) - closed.astype(np.int8), dtype=np.int32)
    return int(depths.max(initial=0)) > MAX_PARSED_DEPTH


def _check_depth(raw: dict[str, Any]) -> None:
    level: list[Any] = [raw]
    for _ in range(MAX_DEPTH):
        containers, level = level, []
        for container in containers:
            children = container.values() if isinstance(container, dict) else container
            level += [child for child in children if isinstance(child, (dict, list))]
    if level:
        raise InputError(TOO_DEEP)


def _read_constant(name: str) -> float | None:
    """Return None for NaN, which data tools write for a missing value."""
    return None if name == "NaN" else float(name)  # infinities are refused later, with their field


def build_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise InputError if a key occurs twice, as a value would be lost."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise InputError(f"the key {show_value(key)} stands twice in one object: keep one of them")
    return fields


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and the infinities by a ValueError: Python accepts them, but JSON has none."""
    raise ValueError(f"{name} is not JSON")


def _canonical_json(raw: dict[str, Any]) -> str:
    try:
        canonical = json.dumps(raw, ensure_ascii=False, sort_keys=True)
        canonical.encode()
    except UnicodeEncodeError as error:
        surrogate = f"U+{ord(error.object[error.start]):04X}"
        raise InputError("a lone surrogate, which UTF-8 cannot encode", surrogate) from error
    if _NUL.search(canonical):
        raise InputError("a NUL character (U+0000)")
    return canonical


def _check_size(name: str, text: str, most: int, remedy: str = "") -> None:
    if not text.strip():
        raise InputError(f"the {name} is empty")
    size = len(text.encode())
    if size > most:
        raise InputError(f"the {name} has more than {most} bytes{remedy}", f"it has {size} bytes")


def _build_document(validated: _Document) -> Document:
    if validated.text and validated.turns:
        raise InputError("both of text and turns: give one of them")
    metadata = dict(validated.model_extra or {})
    if not validated.turns:
        text = validated.text or ""
        return Document(validated.id, text, (Turn(text),), metadata)
    turns, start = [], 0
    for turn in validated.turns:
        extra, word_times = dict(turn.model_extra or {}), tuple(_trim_word_times(turn))
        times = turn.start_ms, turn.end_ms
        turns.append(Turn(turn.text, start, turn.speaker, *times, extra, word_times))
        start += len(turn.text) + 1
    return Document(validated.id, "\n".join(turn.text for turn in turns), tuple(turns), metadata)


def _trim_word_times(turn: _Turn) -> Iterator[WordTime]:
    """Yield the times of the words, without punctuation that recognisers leave on them."""
    for start, end, start_ms, end_ms in turn.word_times:
        if word := _WORD.search(turn.text, start, end):
            yield word.start(), word.end(), start_ms, end_ms


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
