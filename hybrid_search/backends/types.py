"""The frozen types that a backend takes and returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.errors import ModelError
from hybrid_search.text.filters import Condition
from hybrid_search.text.types import Document, Floats, TokenCodes

SCHEMA = 1
"""Version of what an index stores. An index of another version is refused, with the remedy: ingest
again.
"""

Key = Any
"""What names a passage in its store: hashable, and of no meaning to anybody else."""

FaultKind = Literal["missing", "orphan", "version", "text", "offsets", "codes", "vectors"]
"""What can be wrong with a passage of an index."""

FACETS = 100
"""Values of a field that are counted, at most: the most frequent ones."""


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What an index was made for.

    Written once, at its first ingest; a query by another model is refused.
    """

    model: str
    fingerprint: str
    dimension: int
    precision: str
    context: str
    policy: str
    schema: int = SCHEMA

    @classmethod
    def from_encoder(cls, info: EncoderInfo, policy: str) -> IndexSpec:
        """The spec of an index that a model of this `info` writes under `policy`."""
        return cls(
            info.name, info.fingerprint, info.dimension, info.precision, info.context, policy
        )


def check_spec(index: str, index_spec: IndexSpec, requested_spec: IndexSpec) -> None:
    """Raise ModelError unless vectors made for `asked` may be written into, or compared with, an
    index made for `held`.

    The precision may differ: it is not part of the fingerprint.
    """
    for name in ("schema", "fingerprint", "dimension", "context", "policy"):
        index_value, requested_value = getattr(index_spec, name), getattr(requested_spec, name)
        if index_value != requested_value:
            raise ModelError(
                f"index {index!r} was written with {name} {index_value!r} (model {index_spec.model}), and this is {name} {requested_value!r} (model {requested_spec.model}). "
                "Use the model and settings of the index, or ingest into a new index."
            )


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What an index holds: its spec, its metadata fields (dotted name -> type), and how much of
    everything.
    """

    spec: IndexSpec
    fields: Mapping[str, str]
    documents: int
    passages: int
    spans: int


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One query to a store: the phrase for BM25 and its unit vector, float32 ``[dimension]``;
    `window` passages are asked of each leg.
    """

    phrase: str
    vector: Floats
    window: int
    conditions: tuple[Condition, ...] = ()
    lexical: bool = True
    semantic: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What the legs found, best first, with what they know of it already: `lexical` passages with
    their BM25 score, `semantic` ones with their token codes.

    `method` says how the span leg was run, `codes` are those of other passages that came along.
    """

    lexical: Mapping[Key, float] = field(default_factory=dict)
    semantic: Mapping[Key, TokenCodes] = field(default_factory=dict)
    method: str = "not asked"
    codes: Mapping[Key, TokenCodes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class StoredPassage:
    """All of a passage that its score is made of."""

    key: Key
    document_id: str
    ordinal: int
    bm25: float
    tokens: TokenCodes


@dataclass(frozen=True, slots=True)
class PassageContent:
    """What is shown of a passage, which begins at `start` of its document.

    `layout` and `metadata` are JSON.
    """

    start: int
    text: str
    layout: str
    metadata: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a passage, in words."""

    kind: FaultKind
    description: str


@dataclass(frozen=True, slots=True)
class ListedPassage:
    """A passage as a walk through an index comes by it, one of `passages` of its document's version
    `source_hash`, and what the store alone can see is wrong with it.

    A document that lost all its passages is listed once, with ordinal -1; what has lost its
    document has an empty `document_id`.
    """

    key: Key
    document_id: str
    ordinal: int
    passages: int
    source_hash: str
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A document that the store did not take, and why.

    It is the very object that was written: one run may hold two of the same id.
    """

    document: Document
    reason: str


@dataclass(frozen=True, slots=True)
class RejectedDocument:
    """A note of a refused document: where it came from and why, not what is in it."""

    source: str
    line: int
    reason: str
    document_id: str | None = None
