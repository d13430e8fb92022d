"""The contract of a store of passages: `Backend`, its `Writer` and `IndexVersion`.

`backends/types.py` has what they take and return. `backends/memory.py` is the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

from hybrid_search.backends.types import (
    FoundPassages,
    Head,
    IndexInfo,
    IndexSpec,
    Key,
    ListedPassage,
    PassageContent,
    Position,
    Refusal,
    RejectedDocument,
    Request,
    ScannedPassage,
    StoredPassage,
)
from hybrid_search.errors import IndexStoreError, UsageError
from hybrid_search.text.filters import Scalar, leaves
from hybrid_search.text.stems import find_matches
from hybrid_search.text.types import Document, Entry

T = TypeVar("T")

CONTENTS = 256
"""Passages whose contents are fetched together."""


class Writer(AbstractContextManager["Writer"], Protocol):
    """Writes documents into one index.

    Leaving the ``with`` block makes durable what was written, and closes the writer.

    Queries see the new passages when the writer is closed, or earlier. In a store without
    transactions a query may for a moment see passages of both versions of a document that is being
    replaced, and after an exception it may see a state that is some seconds old.
    """

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """Return the source hashes of those documents of `ids` that are completely indexed.

        A document counts if it was complete when the writer was opened or has been completed since.
        """

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Write passages, and return the documents that the store refused.

        The passages of a document are consecutive. They replace its earlier version when its last
        passage is written.

        If the last of `entries` is the last passage of its document, everything is committed when
        this method returns: a process that is killed afterwards loses nothing.
        """

    def abandon(self) -> None:
        """Forget the unfinished document, if there is one; its earlier version stays."""

    def delete(self, ids: Sequence[str]) -> int:
        """Remove documents, and return how many of `ids` existed."""

    def note(self, rejected: Sequence[RejectedDocument]) -> None:
        """Record rejected documents beside the index, if the store has a place for such notes."""
        del rejected


class Writable(Protocol):
    """A place for documents: a store, or a version of one of its indexes."""

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Open `index` for writing."""


class IndexVersion(Writable, Protocol):
    """The next version of an index (blue-green), invisible to queries until it is published.

    `keeps_old` says whether the current version can be kept under a name of its own.
    """

    keeps_old: bool

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Open this version of `index` for writing; raise ModelError for another spec."""

    def copy(self, rehash: Callable[[str, IndexSpec], str], report: Callable[[int], None]) -> None:
        """Copy every passage of the current version with its word codes; only servers do.

        `rehash` turns a document's source hash into its hash under the new spec, and `report` is
        called with the number of passages copied so far.

        Raises:
            UsageError: If a copy would change nothing.
        """
        del rehash, report
        raise UsageError(
            "this index has nothing that a copy would change: name the files of all documents, "
            "which are ingested into the new version"
        )

    def check(self, expected_documents: int) -> None:
        """Raise IndexStoreError unless this version holds so many documents, which are whole."""

    def publish(self, *, keep: bool) -> None:
        """Replace the current version, and remove that one unless `keep` is set."""

    def discard(self) -> None:
        """Remove this version, unless it was published after all."""


class Backend(Writable, Protocol):
    """The contract of every store of indexes.

    A query needs three calls: `answer_by_head`, which gives it the head of the index, `find` for
    each phrase, and `fetch_contents` of the hits that are shown, which are known only after fusion.
    `find_highlights` and `count_facets` are one more each, if requested. Stores fetch many passages
    in batches.

    Calls on an index that does not exist raise IndexMissingError, unless they create it. What few
    stores can do has a body here: stores inherit from this class.
    """

    has_query_language: ClassVar[bool] = False
    """Whether requests may have a `filter` in the store's own language."""

    def writer(self, index: str, spec: IndexSpec) -> Writer:
        """Open `index` for writing.

        If it does not exist it is created, and is gone at the end if no document was written.

        Raises:
            ModelError: If the index was written with another model or policy.
            IndexBusyError: If the store allows one writer and another process is writing.
        """

    def create_index(self, index: str, spec: IndexSpec, options: Mapping[str, str]) -> None:
        """Create an empty `index`, unless it exists.

        Raises:
            UsageError: If the store does not have one of `options`.
            ModelError: If the index exists and was written with another model or policy.
        """

    def read_head(self, index: str) -> tuple[IndexSpec, Mapping[str, str]]:
        """Return the spec of `index` and its metadata fields (dotted name -> type)."""

    def describe_index(self, index: str) -> IndexInfo:
        """Return the spec and fields of `index`, and count its documents, passages and spans."""

    def list_indexes(self) -> list[str]:
        """Return the names of all indexes, sorted."""

    def iterate_passages(self, index: str, *, full: bool = False) -> Iterator[ListedPassage]:
        """Yield every passage; those of a document are consecutive and in their order.

        With `full` all word codes are read, and what is derived from them is compared with them.

        In a store without snapshots, a document that is written meanwhile may be listed with
        passages of both versions.
        """

    def list_passages(self, index: str, document_id: str) -> list[Key]:
        """Return the passages of a document in their order; none if there is no such document."""

    def scan_codes(
        self, index: str, after: Position = None, written_since: datetime | None = None
    ) -> Iterator[ScannedPassage]:
        """Yield every passage with its word codes; those of a document follow one another.

        A scan begins behind `after`, the position of a passage that an earlier one listed. With
        `written_since`, for servers only, it lists the documents that were taken up for writing
        then or later, by the clock of the computer that did.

        There is no snapshot: a document that is replaced meanwhile may be listed in both versions,
        and is never missed.
        """

    def count_commits(self, index: str) -> tuple[str, int] | None:
        """Return what tells an index from others of its name, and how often it was committed.

        None if the store does not count. One that does scans passages in the order of writing: what
        is written after a scan is behind its last position.
        """
        del index
        return None

    def answer_by_head(self, index: str, answer: Callable[[Head], T]) -> T:
        """Return the answer to a query, which `answer` gives by the head of `index`.

        A store may let few queries in at once. One that remembers heads calls `answer` again if the
        head turns out to be outdated.
        """
        return answer(self.read_head(index))

    def find(self, index: str, request: Request) -> FoundPassages:
        """Return the best passages of both legs, each with its BM25 score and word codes.

        A leg that was not requested finds nothing, but scores what the other one finds.
        """

    def read_passages(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> list[StoredPassage]:
        """Return the passages of `keys` in order, each with its BM25 score and word codes.

        The score is 0 where no term matches. Passages that have been deleted are left out, but not
        those whose codes are damaged.
        """

    def find_quoting(self, index: str, quotation: str) -> Mapping[Key, str]:
        """Return the passages that may contain a quotation, with the id of each one's document.

        None is missed in which the words of the quotation stand, compared by `stems.fold_words`.
        """

    def fetch_contents(self, index: str, keys: Sequence[Key]) -> dict[Key, PassageContent]:
        """Return what a hit shows of each passage of `keys` that still exists."""

    def find_highlights(
        self, index: str, request: Request, keys: Sequence[Key]
    ) -> dict[Key, list[tuple[int, int]]]:
        """Return the start and end, in the passage's text, of the words that BM25 matched.

        Passages without such a word are left out.
        """
        return find_highlights(self.fetch_contents(index, keys), request)

    def count_facets(
        self, index: str, request: Request, fields: Sequence[str]
    ) -> dict[str, dict[Scalar, int]]:
        """Return for each metadata field how many matching documents have each value.

        A document matches if it fulfils the conditions and contains a term of the phrase.
        """

    def create_next_version(
        self, index: str, spec: IndexSpec, options: Mapping[str, str]
    ) -> IndexVersion:
        """Create a new index beside `index`, to be filled and published in its place.

        `options` not given here are those of the current version. UsageError is raised if an option
        or the policy is unknown, or the store has no versions.
        """

    def drop_index(self, index: str) -> None:
        """Remove `index` and everything in it."""

    def purge(self, index: str) -> None:
        """Remove what is left of deleted and replaced documents, and wait until it is gone.

        Raises:
            IndexBusyError: If the store allows one writer and another process is writing.
            IndexStoreError: If something is still left when the patience is over.
        """

    def list_remains(self, index: str) -> list[str]:
        """Return what is left of deleted and replaced documents, in words; none after `purge`."""
        del index
        return []

    def iterate_stored(self, index: str) -> Iterator[tuple[str, str]]:
        """Yield everything that is stored of each passage, with the id of its document."""
        rows = self.iterate_passages(index)
        while block := list(islice(rows, CONTENTS)):
            contents = self.fetch_contents(index, [row.key for row in block])
            for row in block:
                content = contents[row.key]
                parts = (row.document_id, content.text, content.layout, content.metadata)
                yield row.document_id, "\n".join(parts)

    def iterate_files(self, index: str) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the bytes of each file of an index that is on this machine."""
        del index
        return iter(())

    def close(self) -> None:
        """Close connections and files; the next call opens them again."""

    def build_request_bodies(
        self, index: str, request: Request
    ) -> list[tuple[str, dict[str, Any]]]:
        """Return path and body of each request that `find` sends for the two legs."""
        del index, request
        return []


def find_highlights(
    contents: Mapping[Key, PassageContent], request: Request
) -> dict[Key, list[tuple[int, int]]]:
    """Return the start and end of the words of a phrase in each passage that has any."""
    return {
        key: ranges
        for key, content in contents.items()
        if (ranges := find_matches(content.text, request.phrase, content.language))
    }


def find_field_user(documents: Iterable[Document], name: str, kind: str) -> str | None:
    """Return the id of a document that has a value of a field, or in it if `kind` is object."""
    for document in documents:
        for path, _, value in leaves(document.metadata):
            is_used = path.startswith(f"{name}.") if kind == "object" else path == name
            if is_used and value is not None:
                return document.id
    return None


def check_counts(
    documents: int, expected_documents: int, passages: int, expected_passages: int
) -> None:
    """Raise IndexStoreError if a new version of an index does not hold what was sent."""
    if (documents, passages) != (expected_documents, expected_passages):
        raise IndexStoreError(
            f"the new index has {documents} documents of {expected_documents} and "
            f"{passages} passages of {expected_passages}. "
            "Nothing was changed; run the same command again"
        )


def refuse_options(options: Mapping[str, str]) -> None:
    """Raise UsageError if there are any options: only servers have them."""
    if options:
        raise UsageError(
            f"an index on this machine has no {', '.join(options)}: "
            "that is for an index on a server (--url opensearch+https://...)"
        )


def refuse_times(written_since: datetime | None) -> None:
    """Raise UsageError if a time is given: only servers have those of documents."""
    if written_since is not None:
        raise UsageError("only a server knows when documents were written: leave out written_since")
