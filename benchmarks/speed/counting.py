"""A store that only counts, so that an ingest is reading, encoding and shaping alone."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.backends.types import IndexSpec, Refusal, RejectedDocument
from hybrid_search.text.types import Entry


class CountingStore(MemoryBackend):
    """Takes every passage and stores none; it is its own writer."""

    def __init__(self) -> None:
        self.passages = 0

    def writer(self, index: str, spec: IndexSpec) -> Self:  # noqa: ARG002
        """Return itself."""
        return self

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:  # noqa: ARG002
        """Return nothing: no document was written before."""
        return {}

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Count the entries."""
        self.passages += len(entries)
        return []

    def abandon(self) -> None:
        """Do nothing: no document was begun."""

    def delete(self, ids: Sequence[str]) -> int:  # noqa: ARG002
        """Return 0: there is no document to delete."""
        return 0

    def note(self, rejected: Sequence[RejectedDocument]) -> None:
        """Do nothing: rejected documents are not looked at here."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None
