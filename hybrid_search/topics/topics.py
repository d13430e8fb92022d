"""`Topics`: some topics, always valid. It is imported with the package, so it stays light."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

from hybrid_search.errors import UsageError
from hybrid_search.topics.topic import Topic


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
    def load(cls, source: TopicSource) -> Topics:
        """Return the topics of a file, or of a list of dicts with the same keys.

        Args:
            source: A file whose name ends in ``.yaml``, ``.yml``, ``.json`` or ``.jsonl``, or the
                topics themselves; `Topics` are returned as they are. A topic has ``name`` and
                ``phrases``, and may have ``not``, ``speaker``, ``where``, ``threshold`` or
                ``precision``, and ``notes``.

        If the file cannot be read, or a topic is not valid, UsageError names the first mistake, and
        how many more there are.
        """
        if isinstance(source, Topics):
            return source
        from hybrid_search.topics import topic_file  # pydantic and YAML, if they are needed

        if isinstance(source, str | Path):
            path = Path(source)
            return cls(topic_file.read_topics(path), path.with_suffix(".tuned.json"))
        return cls(topic_file.parse_topics(list(source), "topics"))


TopicSource: TypeAlias = "Topics | str | Path | Iterable[Mapping[str, Any]]"
"""Topics, or what `Topics.load` reads them from."""
