"""The backend seam: what a store of passages must do. A query is three round trips, whatever the store: `candidates`, `complete`, and `contents` of
the hits that are shown.

`backends/memory.py` scores every span of every passage and is the reference that judges the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.errors import ModelError
from hybrid_search.filters import Condition, Scalar
from hybrid_search.types import Document, Entry, Floats, TokenCodes

SCHEMA = 1
"""Version of what an index stores. An index of another version is refused, with the remedy: ingest again."""

Key = Any
"""What names a passage in its store: hashable, and of no meaning to anybody else."""

FACETS = 100
"""Values of a field that are counted, at most: the most frequent ones."""


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What an index was made for. Written once, at its first ingest; a query by another model is refused."""

    model: str
    fingerprint: str
    dimension: int
    precision: str
    context: str
    policy: str
    schema: int = SCHEMA

    @classmethod
    def of(cls, info: EncoderInfo, policy: str) -> IndexSpec:
        """The spec of an index that a model of this `info` writes under `policy`."""
        return cls(info.name, info.fingerprint, info.dimension, info.precision, info.context, policy)


def check_spec(index: str, held: IndexSpec, asked: IndexSpec) -> None:
    """Raise ModelError unless vectors made for `asked` may be written into, or compared with, an index made for `held`.

    The precision may differ: it is not part of the fingerprint.
    """
    for name in ("schema", "fingerprint", "dimension", "context", "policy"):
        there, here = getattr(held, name), getattr(asked, name)
        if there != here:
            raise ModelError(
                f"index {index!r} was written with {name} {there!r} (model {held.model}), and this is {name} {here!r} (model {asked.model}). "
                "Use the model and settings of the index, or ingest into a new index."
            )


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What an index holds: its spec, its metadata fields (dotted name -> type), and how much of everything."""

    spec: IndexSpec
    fields: Mapping[str, str]
    documents: int
    passages: int
    spans: int


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One query to a store: the phrase for BM25 and its unit vector, float32 ``[dimension]``; `window` passages are asked of each leg."""

    phrase: str
    vector: Floats
    window: int
    conditions: tuple[Condition, ...] = ()
    lexical: bool = True
    semantic: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What the legs found, best first, with what they know of it already: `lexical` passages with their BM25 score, `semantic` ones with their
    token codes. `method` says how the span leg was run, `codes` are those of other passages that came along."""

    lexical: Mapping[Key, float] = field(default_factory=dict)
    semantic: Mapping[Key, TokenCodes] = field(default_factory=dict)
    method: str = "not asked"
    codes: Mapping[Key, TokenCodes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """All of a passage that its score is made of."""

    key: Key
    document_id: str
    ordinal: int
    bm25: float
    tokens: TokenCodes


@dataclass(frozen=True, slots=True)
class Content:
    """What is shown of a passage, which begins at `start` of its document. `layout` and `metadata` are JSON."""

    start: int
    text: str
    layout: str
    metadata: str


Kind = Literal["missing", "orphan", "version", "text", "offsets", "codes", "vectors"]
"""What can be wrong with a passage of an index."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a passage, in words."""

    kind: Kind
    found: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A passage as a walk through an index comes by it, one of `passages` of its document's version `source_hash`, and what the store alone can see
    is wrong with it. A document that lost all its passages is listed once, with ordinal -1; what has lost its document has an empty `document_id`.
    """

    key: Key
    document_id: str
    ordinal: int
    passages: int
    source_hash: str
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A document that the store did not take, and why. It is the very object that was written: one run may hold two of the same id."""

    document: Document
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A note of a refused document: where it came from and why, not what is in it."""

    source: str
    line: int
    reason: str
    document_id: str | None = None


class Writer(Protocol):
    """Writes one index, alone. Leaving the ``with`` block makes what was written durable and closes the writer.

    Queries see what was written when the writer is closed, or earlier. A store without transactions may for a moment show a document that is
    being replaced with passages of both versions, and what it shows after an exception may be some seconds old.
    """

    def known(self, ids: Sequence[str]) -> dict[str, str]:
        """The source hash of each of `ids` that was wholly indexed when the writer was opened, or has been since; never of half a document."""
        ...

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Write passages. Those of a document follow each other and replace all that it had when its last one is written.

        Where the last of `entries` is the last of its document, everything is committed when this returns: a process that is then killed loses none.
        """
        ...

    def abandon(self) -> None:
        """Forget the document whose last passage has not come, and will not: what it had before stays. Nothing where there is no such one."""
        ...

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents; how many there were."""
        ...

    def note(self, refused: Sequence[Refused]) -> None:
        """Keep notes of refused documents beside the index, for those who look there; a store without such a place does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class Writable(Protocol):
    """Where an index can be written."""

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Open `index` for writing, and make it if it is not there. Raises ModelError if it is of another model or policy."""
        ...


class Version(Writable, Protocol):
    """The next version of an index (blue-green): nobody sees it before it is published."""

    def copy(self, rehash: Callable[[str, IndexSpec], str], report: Callable[[int], None]) -> None:
        """Copy every passage with its token codes; `rehash` gives a source hash for the new spec, `report` is told how many there are so far."""
        ...

    def check(self, documents_: int) -> None:
        """Raise IndexStoreError unless so many documents are there, each whole."""
        ...

    def publish(self, *, keep: bool) -> None:
        """Put it in the place of the old one, which is removed unless it is to be kept."""
        ...

    def discard(self) -> None:
        """Remove it, unless it was published after all."""
        ...


class Backend(Writable, Protocol):
    """A place where indexes live."""

    def create(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Make an empty `index`, if there is none. Raises UsageError for options that this store does not have, ModelError."""
        ...

    def next_version(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> Version:
        """A new index for `index`, to be filled and put in its place. Raises IndexMissingError, and UsageError where there are no versions."""
        ...

    def head(self, index: str) -> tuple[IndexSpec, Mapping[str, str]]:
        """What `index` was made for, and its metadata fields (dotted name -> type). Raises IndexMissingError."""
        ...

    def describe(self, index: str) -> IndexInfo:
        """What `index` holds, counted. Raises IndexMissingError."""
        ...

    def indexes(self) -> list[str]:
        """The names of all indexes, sorted."""
        ...

    def walk(self, index: str) -> Iterator[Listed]:
        """Every passage, those of a document one after the other by their ordinals. Raises IndexMissingError.

        Where the store has no snapshots, a document that is written meanwhile may be listed with passages of both versions."""
        ...

    def candidates(self, index: str, request: Request) -> Candidates:
        """Both legs in one round trip; a leg that was not asked for is empty."""
        ...

    def complete(self, index: str, request: Request, keys: Sequence[Key], found: Candidates | None = None) -> list[Stored]:
        """The passages of `keys` with their BM25 score (0 where no term matches) and token codes, in order; vanished ones left out.

        What `found` holds of a passage is not asked for again.
        """
        ...

    def contents(self, index: str, keys: Sequence[Key]) -> dict[Key, Content]:
        """What is shown of each passage of `keys` that is there."""
        ...

    def highlights(self, index: str, request: Request, keys: Sequence[Key]) -> dict[Key, list[tuple[int, int]]]:
        """Start and end, in the passage's text, of the words that made its BM25 score, for each of `keys` that has any."""
        ...

    def facets(self, index: str, request: Request, fields: Sequence[str]) -> dict[str, dict[Scalar, int]]:
        """Of each metadata field, how many documents have each value, among those in which a term of the phrase matches and the conditions hold."""
        ...

    def hybrid(self, index: str, request: Request, alpha: float, technique: str) -> dict[Key, float] | None:
        """Passages and scores of the store's own fusion of both legs (min_max, l2, z_score or rrf); None where it has none."""
        ...

    def bodies(self, index: str, request: Request, alpha: float, technique: str | None, size: int, offset: int) -> list[tuple[str, dict[str, Any]]]:
        """Path and body of what is sent for a query: both legs, or by `technique` the store's own fusion. Raises UsageError where nothing is sent."""
        ...

    def drop(self, index: str) -> None:
        """Remove `index` and all in it. Raises IndexMissingError."""
        ...

    def close(self) -> None:
        """Close what is open; the next call may open it again."""
        ...
