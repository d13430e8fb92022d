"""`Topics`: some topics, always valid. It is imported with the package, so it stays light."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

from hybrid_search.errors import UsageError
from hybrid_search.topics.rule import Rule
from hybrid_search.topics.topic import Topic


@dataclass(frozen=True, slots=True)
class Topics:
    """Some topics with different names, in their order, and rules over them; iterates over topics.

    Attributes:
        topics: The topics with phrases.
        tuning_file: Where their tuned probabilities lie, if they have any; None if they were not
            read from a file.
        rules: The rules.

    >>> topics = hybrid_search.Topics.load([{"name": "refund", "phrases": ["refund request"]}])
    >>> [topic.name for topic in topics]
    ['refund']
    """

    topics: tuple[Topic, ...]
    tuning_file: Path | None = None
    rules: tuple[Rule, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of all topics, and then of all rules."""
        return [*(topic.name for topic in self.topics), *(rule.name for rule in self.rules)]

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.topics)

    def __len__(self) -> int:
        return len(self.topics)

    def list_denied(self) -> set[str]:
        """Return the names of the topics that a rule has under ``not``."""
        return {name for rule in self.rules for name in rule.rule.list_denied()}

    def select(self, names: Sequence[str]) -> Self:
        """Return the topics of these names, without rules.

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
                ``precision``, and ``notes``. A rule has ``name`` and ``rule``, and may have
                ``threshold`` and ``notes``.

        If the file cannot be read, or a topic is not valid, UsageError names the first mistake, and
        how many more there are.
        """
        if isinstance(source, Topics):
            return source
        from hybrid_search.topics import topic_file  # pydantic and YAML, if they are needed

        if isinstance(source, str | Path):
            path = Path(source)
            topics, rules = topic_file.read_topics(path)
            return cls(topics, path.with_suffix(".tuned.json"), rules)
        topics, rules = topic_file.parse_topics(list(source), "topics")
        return cls(topics, rules=rules)


TopicSource: TypeAlias = "Topics | str | Path | Iterable[Mapping[str, Any]]"
"""Topics, or what `Topics.load` reads them from."""
