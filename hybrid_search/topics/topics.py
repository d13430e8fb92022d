"""`Topic`: a name with its phrases, and `Topics`: some of them.

This module is imported with the package, so it stays light. The forms that a user writes are
validated in `topic_file`; the objects here are always valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

from hybrid_search.errors import UsageError


@dataclass(frozen=True, slots=True)
class Topic:
    """A name with the phrases that mean it, and conditions on a mention.

    Attributes:
        name: Names the topic in matches; no other topic of the file has it.
        phrases: Ways of saying it. A span is as near to the topic as to the nearest of them.
        not_phrases: Phrases that are not meant. A span that is nearer to one of them is no mention.
        speakers: Only spans of these speakers count; empty for all.
        where: Only documents with this metadata count, as in `hybrid_search.query`.
        threshold: The least probability of a mention, 0..1; None for the default.
        precision: The wanted share of mentions that are right, 0..1; None if a threshold is used.
        notes: For people.
    """

    name: str
    phrases: tuple[str, ...]
    not_phrases: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict, hash=False)
    threshold: float | None = None
    precision: float | None = None
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Topics:
    """Some topics with different names, in their order; iterates over them.

    Attributes:
        topics: The topics.
        tuning_file: Where their tuned probabilities lie, if they have any; None if they were not
            read from a file.

    >>> topics = hybrid_search.Topics.load([{"name": "refund", "phrases": ["refund request"]}])
    >>> [topic.name for topic in topics]
    ['refund']
    """

    topics: tuple[Topic, ...]
    tuning_file: Path | None = None

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.topics)

    def __len__(self) -> int:
        return len(self.topics)

    def select(self, names: Sequence[str]) -> Self:
        """Return the topics of these names.

        Raises:
            UsageError: If there is no such topic.
        """
        existing = [topic.name for topic in self]
        unknown = sorted(set(names) - set(existing))
        if unknown:
            raise UsageError(
                f"there is no topic {unknown[0]!r}: the topics are {', '.join(existing)}"
            )
        selected = tuple(topic for topic in self if topic.name in names)
        return type(self)(selected, self.tuning_file)

    @classmethod
    def load(cls, source: str | Path | Iterable[Mapping[str, Any]]) -> Self:
        """Return the topics of a file, or of a list of dicts with the same keys.

        Args:
            source: A file whose name ends in ``.yaml``, ``.yml``, ``.json`` or ``.jsonl``, or the
                topics themselves. A topic has ``name`` and ``phrases``, and may have ``not``,
                ``speaker``, ``where``, ``threshold`` or ``precision``, and ``notes``.

        If the file cannot be read, or a topic is not valid, UsageError names the first mistake, and
        how many more there are.
        """
        from hybrid_search.topics import topic_file  # pydantic and YAML, for those who use them

        if isinstance(source, str | Path):
            path = Path(source)
            return cls(topic_file.read_topics(path), path.with_suffix(".tuned.json"))
        return cls(topic_file.parse_topics(list(source), "topics"))


TopicSource: TypeAlias = "Topics | str | Path | Iterable[Mapping[str, Any]]"
"""Topics, or what `Topics.load` reads them from."""
