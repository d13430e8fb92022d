"""The backend seam: what a store of passages must do.

A query is three round trips, whatever the store: `candidates`, `complete`, and `contents` of the
hits that are shown.

`backends/memory.py` scores every span of every passage and is the reference that judges the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from hybrid_search.backends.types import (
    Candidates,
    IndexInfo,
    IndexSpec,
    Key,
    ListedPassage,
    PassageContent,
    Refusal,
    RejectedDocument,
    Request,
    StoredPassage,
)
from hybrid_search.text.filters import Scalar
from hybrid_search.text.types import Entry


class Writer(Protocol):
    """Writes one index, alone.

    Leaving the ``with`` block makes what was written durable and closes the writer.

    Queries see what was written when the writer is closed, or earlier. A store without transactions
    may for a moment show a document that is being replaced with passages of both versions, and what
    it shows after an exception may be some seconds old.
    """

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """The source hash of each of `ids` that was wholly indexed when the writer was opened, or
        has been since; never of half a document.
        """
        ...

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Write passages.

        Those of a document follow each other and replace all that it had when its last one is
        written.

        Where the last of `entries` is the last of its document, everything is committed when this
        returns: a process that is then killed loses none.
        """
        ...

    def abandon(self) -> None:
        """Forget the document whose last passage has not come, and will not: what it had before
        stays.

        Nothing where there is no such one.
        """
        ...

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents; how many there were."""
        ...

    def note(self, rejected: Sequence[RejectedDocument]) -> None:
        """Keep notes of refused documents beside the index, for those who look there; a store
        without such a place does nothing.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Writable(Protocol):
    """Where an index can be written."""

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Open `index` for writing, and make it if it is not there.

        Raises ModelError if it is of another model or policy.
        """
        ...


class IndexVersion(Writable, Protocol):
    """The next version of an index (blue-green): nobody sees it before it is published."""

    def copy(self, rehash: Callable[[str, IndexSpec], str], report: Callable[[int], None]) -> None:
        """Copy every passage with its token codes; `rehash` gives a source hash for the new spec,
        `report` is told how many there are so far.
        """
        ...

    def check(self, expected_documents: int) -> None:
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

    def create_index(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Make an empty `index`, if there is none.

        Raises UsageError for options that this store does not have, ModelError.
        """
        ...

    def create_next_version(
        self, index: str, spec: IndexSpec, options: Mapping[str, str]
    ) -> IndexVersion:
        """A new index for `index`, to be filled and put in its place.

        Raises IndexMissingError, and UsageError where there are no versions.
        """
        ...

    def read_head(self, index: str) -> tuple[IndexSpec, Mapping[str, str]]:
        """What `index` was made for, and its metadata fields (dotted name -> type).

        Raises IndexMissingError.
        """
        ...

    def describe_index(self, index: str) -> IndexInfo:
        """What `index` holds, counted. Raises IndexMissingError."""
        ...

    def list_indexes(self) -> list[str]:
        """The names of all indexes, sorted."""
        ...

    def iterate_passages(self, index: str) -> Iterator[ListedPassage]:
        """Every passage, those of a document one after the other by their ordinals.

        Raises IndexMissingError.

        Where the store has no snapshots, a document that is written meanwhile may be listed with
        passages of both versions.
        """
        ...

    def find_candidates(self, index: str, request: Request) -> Candidates:
        """Both legs in one round trip; a leg that was not asked for is empty."""
        ...

    def complete_candidates(
        self,
        index: str,
        request: Request,
        keys: Sequence[Key],
        candidates: Candidates | None = None,
    ) -> list[StoredPassage]:
        """The passages of `keys` with their BM25 score (0 where no term matches) and token codes,
        in order; vanished ones left out.

        What `found` holds of a passage is not asked for again.
        """
        ...

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """What is shown of each passage of `keys` that is there."""
        ...

    def find_highlights(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> dict[Key, list[tuple[int, int]]]:
        """Start and end, in the passage's text, of the words that made its BM25 score, for each of
        `keys` that has any.
        """
        ...

    def count_facets(
        self, index: str, request: Request, fields: Sequence[str]
    ) -> dict[str, dict[Scalar, int]]:
        """Of each metadata field, how many documents have each value, among those in which a term
        of the phrase matches and the conditions hold.
        """
        ...

    def fetch_hybrid_scores(
        self, index: str, request: Request, alpha: float, technique: str
    ) -> dict[Key, float] | None:
        """Passages and scores of the store's own fusion of both legs (min_max, l2, z_score or rrf);
        None where it has none.
        """
        ...

    def build_request_bodies(
        self,
        index: str,
        request: Request,
        alpha: float,
        technique: str | None,
        size: int,
        offset: int,
    ) -> list[tuple[str, dict[str, Any]]]:
        """Path and body of what is sent for a query: both legs, or by `technique` the store's own
        fusion.

        Raises UsageError where nothing is sent.
        """
        ...

    def drop_index(self, index: str) -> None:
        """Remove `index` and all in it. Raises IndexMissingError."""
        ...

    def close(self) -> None:
        """Close what is open; the next call may open it again."""
        ...
