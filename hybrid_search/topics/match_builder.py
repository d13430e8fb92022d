"""Turn mentions into matches: their words, turns and metadata, if their topics' conditions hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Key, PassageContent, ScannedPassage
from hybrid_search.search.span_content import build_span, find_turn, parse_layout, parse_metadata
from hybrid_search.search.types import Place
from hybrid_search.text.filters import Condition, matches_condition
from hybrid_search.topics.match import Match
from hybrid_search.topics.topic_matrix import TopicMatrix
from hybrid_search.topics.types import Mention


def fetch_sound(
    backend: Backend, index: str, passages: Sequence[ScannedPassage], damaged: set[Key]
) -> dict[Key, PassageContent]:
    """Return what passages hold, without those deleted since; adds damaged ones to `damaged`."""
    contents = backend.fetch_contents(index, [row.key for row in passages]) if passages else {}
    damaged.update(key for key, content in contents.items() if content.fault)
    return {key: content for key, content in contents.items() if not content.fault}


@dataclass(frozen=True, slots=True, eq=False)
class MatchBuilder:
    """Builds the matches of one index.

    Attributes:
        backend: The store that holds the index.
        index: The index.
        matrix: The topics and their phrases.
        conditions: The conditions of each topic on a document's metadata.
        model: The fingerprint of the model.
        damaged: The keys of passages that were left out because they are damaged.
        speakers: The number of mentions of each speaker, before conditions are checked.
    """

    backend: Backend
    index: str
    matrix: TopicMatrix
    conditions: Sequence[Sequence[Condition]]
    model: str
    damaged: set[Key] = field(default_factory=set)
    speakers: Counter[str | None] = field(default_factory=Counter)

    def build(
        self, mentions: Sequence[Mention], passages: Mapping[int, ScannedPassage]
    ) -> list[Match | None]:
        """Return the match of each mention, or None.

        None if a condition of its topic does not hold, or if its passage is damaged or was deleted
        since. `passages` maps numbers in the run to passages.
        """
        numbers = dict.fromkeys(mention.passage for mention in mentions)
        wanted = [passages[number] for number in numbers]
        contents = fetch_sound(self.backend, self.index, wanted, self.damaged)
        metadata = {
            passage.key: parse_metadata(self.index, passage.document_id, contents[passage.key])
            for passage in wanted
            if passage.key in contents
        }
        matches: list[Match | None] = []
        for mention in mentions:
            passage, match = passages[mention.passage], None
            if passage.key in contents:
                content, fields = contents[passage.key], metadata[passage.key]
                match = self._build_match(mention, passage, content, fields)
            matches.append(match)
        return matches

    def has_conditions(self, topic: int) -> bool:
        """Return whether not all speakers and documents count for a topic."""
        return bool(self.matrix.topics[topic].speakers or self.conditions[topic])

    def _build_match(
        self,
        mention: Mention,
        passage: ScannedPassage,
        content: PassageContent,
        metadata: dict[str, Any],
    ) -> Match | None:
        """Return the match, or None if a condition of its topic does not hold."""
        turn = find_turn(content, parse_layout(content), mention.start, mention.end)
        if turn is None:
            self.damaged.add(passage.key)
            return None
        topic = self.matrix.topics[mention.topic]
        span = build_span(content, turn, Place(0, mention.start, mention.end, mention.cosine))
        self.speakers[span.speaker] += 1
        if topic.speakers and span.speaker not in topic.speakers:
            return None
        conditions = self.conditions[mention.topic]
        if not all(matches_condition(row, passage.document_id, metadata) for row in conditions):
            return None
        return Match(
            topic=topic.name,
            phrase=self.matrix.phrases[mention.phrase],
            id=passage.document_id,
            turn=span.turn,
            speaker=span.speaker,
            start=span.start,
            end=span.end,
            text=span.text,
            cosine=span.cosine,
            probability=mention.probability,
            start_ms=span.start_ms,
            end_ms=span.end_ms,
            metadata=metadata,
            model=self.model,
            times=span.times,
        )
