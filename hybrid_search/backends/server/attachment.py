"""An index of another program that has spans beside it: where its texts are, and how it is asked.

Its spans are in an index of ours, the sidecar: passages without a word of text. `Attachment` stands
in the ``_meta`` of its mapping. The texts themselves are read from the other index, by the login of
whoever asks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from hybrid_search.backends.types import Request
from hybrid_search.errors import UsageError, show_value
from hybrid_search.text.filters import ID, Condition, Range
from hybrid_search.text.types import Entry

SUFFIX = ".spans"
"""Ends the name of the sidecar of an index."""

PHRASE = "{{phrase}}"
"""Stands for the phrase in a template."""

TEXT_TYPES = {"text", "match_only_text", "search_as_you_type", "annotated_text"}
"""The types of fields that BM25 searches."""

TYPES = {
    **dict.fromkeys(("keyword", "constant_keyword", "wildcard", "ip", "version"), "string"),
    **dict.fromkeys(("long", "integer", "short", "byte", "unsigned_long"), "number"),
    **dict.fromkeys(("double", "float", "half_float", "scaled_float"), "number"),
    **dict.fromkeys(("date", "date_nanos"), "date"),
    "boolean": "boolean",
}
"""The types of the fields of any index that conditions may be on: the server's names and ours."""

Source = Mapping[str, Any]
Properties = Mapping[str, Mapping[str, Any]]


class Version(NamedTuple):
    """Which write of a document it is: the last in its index, by what the server counts."""

    index_name: str
    primary_term: int
    seq_no: int

    @classmethod
    def from_hit(cls, hit: Source) -> Self:
        """Return the version of a hit of a search."""
        return cls(hit["_index"], hit["_primary_term"], hit["_seq_no"])

    def __str__(self) -> str:
        return f"{self.index_name}:{self.primary_term}:{self.seq_no}"


class SourceText(NamedTuple):
    """The text of a document as `text.types.Document` has it, and the speaker of each turn."""

    text: str
    speakers: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class Attachment:
    """How an index of another program is read and asked.

    Attributes:
        index: Its name, or that of an alias or data stream.
        columns: The field of the text, or of the turns, and the keys in a turn, as `ReadOptions`
            has them.
        is_nested: Whether the turns have the type ``nested``.
        template: The query for the words of a phrase, in which `PHRASE` stands for it; None is a
            ``match`` on the text.
        names: The name in searches of each field that conditions may be on.
    """

    index: str
    columns: Mapping[str, str]
    is_nested: bool = False
    template: Mapping[str, Any] | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def sidecar(self) -> str:
        """The name of the index with its spans."""
        return f"{self.index}{SUFFIX}"

    @property
    def text_field(self) -> str:
        """The field that has the words."""
        turns, text = self.columns.get("turns"), self.columns.get("text", "text")
        return f"{turns}.{text}" if turns else text

    def to_meta(self) -> dict[str, Any]:
        """Return what the mapping of the sidecar says."""
        return {
            "index": self.index,
            "columns": dict(self.columns),
            "is_nested": self.is_nested,
            # as text, since a server may bring objects into another order
            "template": None if self.template is None else json.dumps(self.template),
        }

    @classmethod
    def from_meta(cls, meta: Source, names: Mapping[str, str]) -> Self:
        """Return what the mapping of a sidecar says."""
        template = meta.get("template")
        return cls(
            meta["index"],
            meta["columns"],
            meta["is_nested"],
            None if template is None else json.loads(template),
            names,
        )

    # What its documents have

    def read_text(self, source: Source) -> SourceText | None:
        """Return the text of a document; None if there is none, or this login may not see it."""
        turns = find_value(source, self.columns.get("turns", ""))
        if "turns" not in self.columns:
            text = find_value(source, self.columns["text"])
            if isinstance(text, str):
                return SourceText(text, [None])
            turns = text
        if not isinstance(turns, list) or not turns:
            return None
        read = [self._read_turn(turn) for turn in turns]
        texts = [text for text, _ in read if isinstance(text, str)]
        if len(texts) < len(turns):
            return None
        return SourceText("\n".join(texts), [speaker for _, speaker in read])

    def _read_turn(self, turn: Any) -> tuple[Any, str | None]:
        """Return text and speaker of a turn."""
        if not isinstance(turn, Mapping):
            return turn, None
        has_own_key = "turns" in self.columns
        text = find_value(turn, self.columns.get("text", "text") if has_own_key else "text")
        speaker = find_value(turn, self.columns.get("speaker", "speaker"))
        return text, None if speaker is None else str(speaker)

    def read_metadata(self, source: Source) -> dict[str, Any]:
        """Return all of a document but its text."""
        return drop_value(source, self.columns.get("turns") or self.columns["text"])

    # How it is asked

    def build_match(self, phrase: str) -> dict[str, Any]:
        """Return the query for the words of a phrase: BM25 by the analyzer of the index itself."""
        if self.template is not None:
            filled: dict[str, Any] = _fill(self.template, phrase)
            return filled
        query = {"match": {self.text_field: {"query": phrase}}}
        return self._nest(query)

    def build_exists(self) -> dict[str, Any]:
        """Return the query for all documents with a text."""
        return self._nest({"exists": {"field": self.text_field}})

    def _nest(self, query: dict[str, Any]) -> dict[str, Any]:
        if not self.is_nested:
            return query
        path = self.columns["turns"]
        return {"nested": {"path": path, "query": query, "score_mode": "max"}}

    def build_filters(self, request: Request) -> list[dict[str, Any]]:
        """Return the conditions of a request in the query DSL of the index."""
        filters = [self._build_filter(condition) for condition in request.conditions]
        return [*filters, *([dict(request.filter)] if request.filter else [])]

    def _build_filter(self, condition: Condition) -> dict[str, Any]:
        tests = [self._build_range(condition.field, limits) for limits in condition.ranges]
        if condition.values or not tests:
            name = "_id" if condition.field == ID else self.names[condition.field]
            tests.append({"terms": {name: list(condition.values)}})
        test = tests[0] if len(tests) == 1 else {"bool": {"should": tests}}
        return {"bool": {"must_not": [test]}} if condition.is_negated else test

    def _build_range(self, name: str, limits: Range) -> dict[str, Any]:
        if name == ID:
            raise UsageError(
                f"the ids of {self.index!r} have no order on the server: name the ids themselves"
            )
        if not limits.bounds:
            return {"exists": {"field": self.names[name]}}
        if limits.form == "dates":  # microseconds
            bounds = {key: int(bound) // 1000 for key, bound in limits.bounds}
            return {"range": {self.names[name]: {**bounds, "format": "epoch_millis"}}}
        return {"range": {self.names[name]: dict(limits.bounds)}}


def parse_text_option(text: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns for a text of the form ``FIELD`` or ``turns=LIST.FIELD``.

    `columns` name the keys of a turn.

    Raises:
        UsageError: If it has another form, or a column is none of a turn.
    """
    key, equals, path = text.rpartition("=")
    turns, dot, inner = path.rpartition(".")
    if not path or key not in ("", "turns") or (equals and not (turns and dot and inner)):
        raise UsageError(
            f"text is {show_value(text)}: give a field, as in transcript, or the field of a turn, "
            "as in turns=utterances.text"
        )
    unknown = sorted(set(columns) - {"speaker", "start", "end"})
    if unknown:
        raise UsageError(
            f"columns has {', '.join(unknown)}: for an attached index it names speaker, start and "
            "end of a turn, and the id is the _id"
        )
    own = {"turns": turns, "text": inner} if equals else {"text": path}
    return {**own, **columns}


def check_template(template: Mapping[str, Any] | None) -> None:
    """Raise UsageError if a template has no place for the phrase."""
    if template is not None and PHRASE not in json.dumps(template):
        raise UsageError(f'the template has no "{PHRASE}": say where the phrase belongs')


def check_text_field(attachment: Attachment, properties: Properties) -> None:
    """Raise UsageError unless the text is in a field that the index can search."""
    name = attachment.text_field
    kinds = dict(_flatten(properties))
    kind = kinds.get(name, {}).get("type")
    if kind not in TEXT_TYPES or kinds[name].get("index") is False:
        texts = [key for key, value in kinds.items() if value.get("type") in TEXT_TYPES]
        described = f"is a {kind} that is not searched" if kind else "is not in its mapping"
        raise UsageError(
            f"field {show_value(name)} of {attachment.index!r} {described}: its texts are "
            f"{', '.join(sorted(texts)) or 'none'}"
        )


def is_nested(properties: Properties, name: str) -> bool:
    """Return whether a field of a mapping has the type ``nested``."""
    return dict(_flatten(properties)).get(name, {}).get("type") == "nested"


def merge_properties(mappings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of several indexes; of one name the last."""
    merged: dict[str, Any] = {}
    for mapping in mappings:
        merged |= mapping.get("properties", {})
    return merged


def read_fields(properties: Properties) -> tuple[dict[str, str], dict[str, str]]:
    """Return type and name in searches of each field that conditions may be on, sorted."""
    types: dict[str, str] = {}
    names: dict[str, str] = {}
    for name, kind in sorted(_flatten(properties, into_nested=False)):
        exact = {key: part for key, part in kind.get("fields", {}).items() if part["type"] in TYPES}
        if kind.get("type") in TYPES:
            types[name], names[name] = TYPES[kind["type"]], name
        elif exact:  # a text with a keyword beside it
            key = min(exact)
            types[name], names[name] = TYPES[exact[key]["type"]], f"{name}.{key}"
    return types, names


def _flatten(
    properties: Properties, prefix: str = "", *, into_nested: bool = True
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, kind in properties.items():
        yield f"{prefix}{key}", kind
        if into_nested or kind.get("type") != "nested":
            inner = kind.get("properties", {})
            yield from _flatten(inner, f"{prefix}{key}.", into_nested=into_nested)


def _fill(node: Any, phrase: str) -> Any:
    """Return a template with the phrase in its place, always as a value."""
    if isinstance(node, Mapping):
        return {key: _fill(inner, phrase) for key, inner in node.items()}
    if isinstance(node, list):
        return [_fill(inner, phrase) for inner in node]
    return node.replace(PHRASE, phrase) if isinstance(node, str) else node


def find_value(source: Source, path: str) -> Any:
    """Return the value under a dotted name, or None."""
    if source.get(path) is not None:
        return source[path]
    first, dot, rest = path.partition(".")
    inner = source.get(first)
    return find_value(inner, rest) if dot and isinstance(inner, Mapping) else None


def drop_value(source: Source, path: str) -> dict[str, Any]:
    """Return a document without what is under a dotted name."""
    rest = {key: value for key, value in source.items() if key != path}
    first, dot, inner_path = path.partition(".")
    inner = rest.get(first)
    if dot and isinstance(inner, Mapping):
        rest[first] = drop_value(inner, inner_path)
    return rest


def hash_text(text: str) -> str:
    """Return a digest of a text or a name, which is not kept itself."""
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def describe_passage(entry: Entry) -> dict[str, Any]:
    """Return the fields of a passage in a sidecar that do not follow from its word codes."""
    turns = entry.document.turns
    layout = [
        {
            "turn": part.turn,
            "start": turns[part.turn].start,
            "end": turns[part.turn].end,
            "start_ms": turns[part.turn].start_ms,
            "end_ms": turns[part.turn].end_ms,
        }
        for part in entry.passage.parts
    ]
    speakers = [(first, None if name is None else hash_text(name)) for first, name in entry.turns]
    return {
        "document_id": entry.document.id,
        "ordinal": entry.passage.ordinal,
        "passages": entry.passages,
        "source_hash": entry.source_hash,
        "start": entry.passage.start,
        "end": entry.passage.end,
        "text_hash": hash_text(entry.text),
        "layout": json.dumps(layout, separators=(",", ":")),
        "turn_speakers": [
            f"{first}" if name is None else f"{first}:{name}" for first, name in speakers
        ],
        "speakers": sorted({name for _, name in speakers if name}),
    }
