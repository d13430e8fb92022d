"""A store that only counts: what is left of an ingest is reading, encoding and shaping."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from hybrid_search.backends.types import IndexSpec, Refusal, RejectedDocument
from hybrid_search.text.types import Entry


class CountingStore:
    """Takes every passage and keeps none. It is its own writer."""

    def __init__(self) -> None:
        self.passages = 0

    def writer(self, index: str, spec: IndexSpec) -> Self:  # noqa: ARG002
        """Itself."""
        return self

    def read_source_hashes(self, ids: Sequence[str]) -> dict[str, str]:  # noqa: ARG002
        """Nothing is known."""
        return {}

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Count them."""
        self.passages += len(entries)
        return []

    def abandon(self) -> None:
        """Nothing was begun."""

    def delete(self, ids: Sequence[str]) -> int:  # noqa: ARG002
        """None was there."""
        return 0

    def note(self, rejected: Sequence[RejectedDocument]) -> None:
        """Nobody looks here."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None
