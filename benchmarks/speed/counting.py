"""A store that only counts: what is left of an ingest is reading, encoding and shaping."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from hybrid_search.backends.base import IndexSpec, Refusal, Refused
from hybrid_search.types import Entry


class Counting:
    """Takes every passage and keeps none. It is its own writer."""

    def __init__(self) -> None:
        self.passages = 0

    def writer(self, index: str, spec: IndexSpec) -> Self:  # noqa: ARG002 (as the protocol has it)
        """Itself."""
        return self

    def known(self, ids: Sequence[str]) -> dict[str, str]:  # noqa: ARG002 (as the protocol has it)
        """Nothing is known."""
        return {}

    def write(self, entries: Sequence[Entry]) -> list[Refusal]:
        """Count them."""
        self.passages += len(entries)
        return []

    def abandon(self) -> None:
        """Nothing was begun."""

    def delete(self, ids: Sequence[str]) -> int:  # noqa: ARG002 (as the protocol has it)
        """None was there."""
        return 0

    def note(self, refused: Sequence[Refused]) -> None:
        """Nobody looks here."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None
