"""Topics: names for what people talk about, each with the phrases that mean it.

The forms that a user writes are validated in `topic_file`; the objects here are always valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

from hybrid_search.errors import UsageError


@dataclass(frozen=True, slots=True)
class Topic:
    """What is looked for: a name, the phrases that mean it, and conditions on a mention.

    Attributes:
        name: Names the topic in matches; no other topic of the file has it.
        phrases: Ways of saying it. A span is as near to the topic as to the nearest of them.
        not_phrases: What is not meant. A span that is nearer to one of them is no mention.
        speakers: Only what these speakers say counts; empty for all.
        where: Only documents with this metadata count, as in `hybrid_search.query`.
        threshold: The least probability of a mention, 0..1; None for the default.
        precision: The share of mentions that shall be right, 0..1; None if it is not given.
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

    >>> topics = hybrid_search.Topics.load([{"name": "refund", "phrases": ["refund request"]}])
    >>> [topic.name for topic in topics]
    ['refund']
    """

    topics: tuple[Topic, ...]

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.topics)

    def __len__(self) -> int:
        return len(self.topics)

    def select(self, names: Sequence[str]) -> Self:
        """Return the topics of these names.

        Raises:
            UsageError: If there is no such topic.
        """
        unknown = sorted(set(names) - {topic.name for topic in self})
        if unknown:
            existing = ", ".join(topic.name for topic in self)
            raise UsageError(f"there is no topic {unknown[0]!r}: the topics are {existing}")
        return type(self)(tuple(topic for topic in self if topic.name in names))

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
        from hybrid_search.phrases import topic_file  # pydantic and YAML, for those who use them

        if isinstance(source, str | Path):
            return cls(topic_file.read_topics(Path(source)))
        return cls(topic_file.parse_topics(list(source), "topics"))


TopicSource: TypeAlias = "Topics | str | Path | Iterable[Mapping[str, Any]]"
"""Topics, or what `Topics.load` reads them from."""
