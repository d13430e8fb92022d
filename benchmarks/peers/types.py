"""What a peer is given, what it answers, and the protocol of its program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage to search: its id, the id of its document, and its text."""

    id: str
    document: str
    text: str


@dataclass(frozen=True, slots=True)
class Texts:
    """The same texts twice: as documents, and cut into passages.

    What ships here takes `documents`, objects with ``id`` and ``text`` or ``turns``, and cuts them
    itself, into the same passages. The others take `passages`, which are cut for them.
    """

    documents: Sequence[dict[str, Any]]
    passages: Sequence[Passage]


@dataclass(frozen=True, slots=True)
class Target:
    """Where an index is to be made, and of what.

    Attributes:
        folder: An empty folder for an embedded index.
        url: The address of the server, or of the embedded index of what ships here.
        index: A name for the index that nothing has yet.
        weights: The folder of the model; None is the model that ships here.
    """

    folder: Path
    url: str
    index: str
    weights: Path | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A passage that was found, and the place in its document's text that is shown, if any."""

    id: str
    span: tuple[int, int] | None = None


class Program(Protocol):
    """A module of `programs`: what a user of a library writes to index passages and to search."""

    def build(self, texts: Texts, target: Target) -> Any:
        """Make the index, complete and on disk, and return what `search` needs."""
        ...

    def search(self, index: Any, phrase: str, k: int, document: str | None) -> list[Answer]:
        """Return the `k` best passages, best first; with `document`, of that document alone."""
        ...
