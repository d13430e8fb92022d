"""Redactions: words that are masked before a document is hashed, encoded or stored.

A document carries them as ``redactions``, or a recogniser finds them. Each masked character becomes
one `REDACTED`, so that all offsets stay true. That is no word: BM25 has no term of it, no span
begins or ends in it, and the encoder reads a run of it as one unknown token.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from pkgutil import resolve_name
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)

from hybrid_search.errors import InputError, UsageError, put_plainly

REDACTED = "█"
"""Stands for each character that was masked."""

KEY = "redactions"
"""The key of a document that has them."""

Recogniser = Callable[[str], Iterable[tuple[int, int, str]]]
"""Returns start, end and type of what must go from a text, in code points."""


class Redaction(BaseModel):
    """A range of a document's text that is masked, in code points, and what it is."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: Annotated[StrictInt, Field(ge=0)]
    end: Annotated[StrictInt, Field(ge=1)]
    type: Annotated[StrictStr, Field(min_length=1, max_length=100)]


_REDACTIONS = TypeAdapter(list[Redaction])


def parse_redactions(values: Any) -> list[Redaction]:
    """Return redactions by their starts; InputError says what is wrong with one of them."""
    try:
        redactions = sorted(_REDACTIONS.validate_python(values), key=lambda item: item.start)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, (KEY, *first["loc"])))
        reason = f"one of {KEY} is not {{start, end, type}}: {put_plainly(first['msg'])}"
        raise InputError(reason, place) from error
    for item in redactions:
        if item.start >= item.end:
            raise InputError(
                f"one of {KEY} ends where it starts or before: end is behind its last character",
                f"{item.start}:{item.end}",
            )
    for one, next_ in pairwise(redactions):
        if next_.start < one.end:
            raise InputError(
                f"two {KEY} overlap: give one for both",
                f"{one.start}:{one.end} and {next_.start}:{next_.end}",
            )
    return redactions


def mask_document(
    raw: dict[str, Any], texts: Sequence[str], redactions: Iterable[Redaction]
) -> dict[str, Any]:
    """Return a document with `redactions` of its text masked; they are sorted and do not overlap.

    `texts` are those of its turns, which joined by newlines are its text, or that alone.

    Raises:
        InputError: If a redaction is outside the text, or of more than one turn.
    """
    ranges: list[list[tuple[int, int]]] = [[] for _ in texts]
    ends = [end - 1 for end in accumulate(len(text) + 1 for text in texts)]
    for item in redactions:
        if item.end > ends[-1]:
            raise InputError(
                f"one of {KEY} reaches beyond the text: count the characters of the text, that of "
                "turns joined by newlines",
                f"{item.start}:{item.end} of {ends[-1]}",
            )
        number = bisect_left(ends, item.start)
        if item.end > ends[number]:
            raise InputError(
                f"one of {KEY} goes beyond its turn: give one for each turn",
                f"{item.start}:{item.end}, and turn {number} ends at {ends[number]}",
            )
        start = ends[number] - len(texts[number])
        ranges[number].append((item.start - start, item.end - start))
    return _mask_texts(raw, texts, ranges)


def mask_recognised(
    raw: dict[str, Any], texts: Sequence[str], recognise: Recogniser
) -> dict[str, Any]:
    """Return a document masked where a recogniser finds something in its text or its turns.

    What it finds may overlap.

    Raises:
        InputError: If it fails, or gives offsets outside of a text.
    """
    ranges = []
    for text in texts:
        try:
            found = [(int(start), int(end)) for start, end, _ in recognise(text)]
        except Exception as error:  # whoever wrote it
            raise InputError("the recogniser failed on a text", repr(error)) from error
        for start, end in found:
            if not 0 <= start < end <= len(text):
                reason = "the recogniser gave offsets outside of a text"
                raise InputError(reason, f"{start}:{end} of {len(text)}")
        ranges.append(found)
    return _mask_texts(raw, texts, ranges)


def load_recogniser(path: str) -> Recogniser:
    """Return the function at PACKAGE.MODULE:FUNCTION; UsageError is raised if there is none."""
    try:
        function = resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"the recogniser {path!r} cannot be imported ({error}): give PACKAGE.MODULE:FUNCTION, "
            "and set PYTHONPATH if the module is in a folder"
        ) from error
    if ":" not in path or not callable(function):
        raise UsageError(f"the recogniser {path!r} is no function: give PACKAGE.MODULE:FUNCTION")
    recogniser: Recogniser = function
    return recogniser


def _mask_texts(
    raw: dict[str, Any], texts: Sequence[str], ranges: Sequence[Sequence[tuple[int, int]]]
) -> dict[str, Any]:
    """Return a document with ranges of its texts masked; without any it is `raw`."""
    if not any(ranges):
        return raw
    masked = [_mask(text, own) for text, own in zip(texts, ranges, strict=True)]
    if not raw.get("turns"):
        return {**raw, "text": masked[0]}
    turns = [
        {**turn, "text": text} if isinstance(turn, dict) else text
        for turn, text in zip(raw["turns"], masked, strict=True)
    ]
    return {**raw, "turns": turns}


def _mask(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    characters = list(text)
    for start, end in ranges:
        characters[start:end] = REDACTED * (end - start)
    return "".join(characters)
