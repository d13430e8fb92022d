"""Turn chosen spans into matches, with words and metadata, if their topics' conditions hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Key, PassageContent, Position, ScannedPassage
from hybrid_search.search.span_content import build_span, find_turn, parse_layout, parse_metadata
from hybrid_search.search.types import Place
from hybrid_search.text.filters import Condition, matches_condition
from hybrid_search.text.word_codes import UNREADABLE
from hybrid_search.topics.call_counts import CallCounter, CallGroups
from hybrid_search.topics.match import Match
from hybrid_search.topics.mention_calibration import MentionMaps
from hybrid_search.topics.mention_choice import choose_mentions
from hybrid_search.topics.missed_mentions import count_log_odds
from hybrid_search.topics.topic_matrix import DOUBTFUL, TopicMatrix
from hybrid_search.topics.types import (
    CallTables,
    Candidates,
    MinedBlock,
    ScannedBlock,
    UnlikelySpans,
)


def fetch_sound(
    backend: Backend, index: str, passages: Sequence[ScannedPassage], damaged: set[Key]
) -> dict[Key, PassageContent]:
    """Return what passages hold, without those deleted since; adds damaged ones to `damaged`."""
    contents = backend.fetch_contents(index, [row.key for row in passages]) if passages else {}
    damaged.update(key for key, content in contents.items() if content.fault)
    return {key: content for key, content in contents.items() if not content.fault}


@dataclass(slots=True, eq=False)
class MatchBuilder:
    """Builds the matches of each document when the candidates of all its passages are there.

    Attributes:
        backend: The store that holds the index.
        index: The index.
        matrix: The topics and their phrases.
        conditions: The conditions of each topic on a document's metadata.
        model: The fingerprint of the model.
        maps: The maps that give the probabilities.
        position: That of the last passage of the last document that is done.
        groups: How calls are counted; None if they are not.
        passages: The number of passages that were looked at so far.
        speakers: The number of mentions of each speaker, before conditions are checked.
        denied: The names of the topics that a rule has under ``not``.
    """

    backend: Backend
    index: str
    matrix: TopicMatrix
    conditions: Sequence[Sequence[Condition]]
    model: str
    maps: MentionMaps
    position: Position
    groups: CallGroups | None = None
    passages: int = 0
    speakers: Counter[str | None] = field(default_factory=Counter)
    denied: Set[str] = frozenset()
    _generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    _waiting: Candidates = field(default_factory=Candidates.empty)
    _kept: dict[int, ScannedPassage] = field(default_factory=dict)
    _last: ScannedPassage | None = None
    _documents: int = 0
    _unreadable: int = 0
    _damaged: set[Key] = field(default_factory=set)
    _counter: CallCounter | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.groups:
            self._counter = CallCounter(self.matrix.topics, self.groups, self._read_metadata)

    @property
    def damaged(self) -> int:
        """How many passages were left out so far, because they are damaged."""
        return self._unreadable + len(self._damaged)

    def add(self, block: ScannedBlock, candidates: Candidates, damaged: int) -> MinedBlock:
        """Take the candidates of a block, and return the matches of the documents that are done."""
        open_document = int(block.documents[-1])
        self._unreadable += damaged
        self.passages += len(block.passages)
        if self._counter:
            self._counter.note(block)
        for number in np.unique(candidates.passages).tolist():  # without their codes
            passage = block.passages[number - block.first_passage]
            self._kept[number] = replace(passage, tokens=UNREADABLE)
        waiting = Candidates.concatenate([self._waiting, candidates])
        is_open = waiting.documents == open_document
        self._waiting = waiting.select(is_open)
        first_open = int(np.searchsorted(block.documents, open_document))
        last_done = block.passages[first_open - 1] if first_open else self._last
        if open_document > self._documents and last_done:
            self.position = last_done.position
        self._documents, self._last = open_document, block.passages[-1]
        return self._build_block(waiting.select(~is_open), open_document)

    def finish(self) -> MinedBlock:
        """Return the matches of the last document."""
        waiting, self._waiting = self._waiting, Candidates.empty()
        if self._last:
            self.position = self._last.position
        return self._build_block(waiting, self._documents + (self._last is not None))

    def _build_block(self, done: Candidates, documents: int) -> MinedBlock:
        mentions, unlikely = choose_mentions(done, self.matrix)
        probabilities = self.matrix.probabilities(unlikely.topics, unlikely.scores)
        sample = self._sample_conditional(unlikely, probabilities)
        doubtful = self._select_doubtful(unlikely, probabilities)
        asked = unlikely.select(self._find_asked(unlikely))
        parts = (mentions, sample, doubtful, asked)
        built = self._build_matches(Candidates.concatenate(parts))
        ends = list(accumulate(map(len, parts), initial=0))
        matches, sampled, doubted, checked = (built[a:b] for a, b in pairwise(ends))
        counts = self._count_unlikely(unlikely, probabilities, sample, sampled)
        calls = self._count_calls(
            Candidates.concatenate([mentions, asked]), [*matches, *checked], unlikely, documents
        )
        self._kept = {number: self._kept[number] for number in set(self._waiting.passages.tolist())}
        return MinedBlock(
            list(filter(None, matches)),
            documents,
            self.passages,
            self.damaged,
            self.position,
            counts,
            self.maps,
            calls,
            list(filter(None, doubted)),
        )

    def _select_doubtful(
        self, unlikely: Candidates, probabilities: NDArray[np.float64]
    ) -> Candidates:
        """Return the spans that count against a ``not`` of a rule."""
        are_denied = np.array([topic.name in self.denied for topic in self.matrix.topics])
        return unlikely.select(are_denied[unlikely.topics] & (probabilities >= DOUBTFUL))

    def _find_asked(self, unlikely: Candidates) -> NDArray[np.bool_]:
        """Return which spans are of calls that were asked about: their conditions are checked."""
        if self._counter is None:
            return np.zeros(len(unlikely), dtype=np.bool_)
        return self._counter.find_asked(unlikely)

    def _count_calls(
        self,
        spans: Candidates,
        matches: Sequence[Match | None],
        unlikely: Candidates,
        documents: int,
    ) -> CallTables:
        """Return the table of the documents that are done, by the best span of each.

        Those are `spans` that are matches, and of calls that were not asked about the unlikely
        ones.
        """
        if self._counter is None:
            return {}
        are_matches = np.array([match is not None for match in matches], dtype=np.bool_)
        unasked = unlikely.select(~self._counter.find_asked(unlikely))
        counted = Candidates.concatenate([spans.select(are_matches), unasked])
        log_odds = self.matrix.log_odds(counted.topics, counted.scores)
        return self._counter.count(documents, counted, log_odds)

    def _read_metadata(self, passages: Sequence[ScannedPassage]) -> list[dict[str, Any]]:
        """Return the metadata of each passage's document; empty if it was deleted or is damaged."""
        contents = fetch_sound(self.backend, self.index, passages, self._damaged)
        return [
            parse_metadata(self.index, row.document_id, contents[row.key])
            if row.key in contents
            else {}
            for row in passages
        ]

    def _sample_conditional(
        self, unlikely: Candidates, probabilities: NDArray[np.float64]
    ) -> Candidates:
        """Return some spans whose topics have conditions, each with its own probability.

        To look up all of them would be to read most of the index. As many as are probably missed
        say for which share of those the conditions hold.
        """
        conditions = zip(self.matrix.topics, self.conditions, strict=True)
        are_conditional = np.array([bool(topic.speakers or rows) for topic, rows in conditions])
        draws = self._generator.random(len(unlikely))
        return unlikely.select((draws < probabilities) & are_conditional[unlikely.topics])

    def _count_unlikely(
        self,
        unlikely: Candidates,
        probabilities: NDArray[np.float64],
        sample: Candidates,
        matches: Sequence[Match | None],
    ) -> dict[str, UnlikelySpans]:
        """Return the counts of each topic; `matches` are those of the sample."""
        sampled: list[int] = sample.topics.tolist()
        checked = Counter(sampled)
        met = Counter(topic for topic, match in zip(sampled, matches, strict=True) if match)
        counts: dict[str, UnlikelySpans] = {}
        for number in np.unique(unlikely.topics).tolist():
            by_log_odds = count_log_odds(probabilities[unlikely.topics == number])
            name = self.matrix.topics[number].name
            counts[name] = UnlikelySpans(by_log_odds, checked[number], met[number])
        return counts

    def _build_matches(self, spans: Candidates) -> list[Match | None]:
        """Return the match of each span, or None.

        None if a condition of its topic does not hold, or if its passage is damaged or was deleted
        since.
        """
        numbers: list[int] = spans.passages.tolist()
        passages = [self._kept[number] for number in dict.fromkeys(numbers)]
        contents = fetch_sound(self.backend, self.index, passages, self._damaged)
        metadata = {
            passage.key: parse_metadata(self.index, passage.document_id, contents[passage.key])
            for passage in passages
            if passage.key in contents
        }
        columns = (
            spans.topics,
            spans.phrases,
            self.matrix.probabilities(spans.topics, spans.scores),
            spans.starts,
            spans.ends,
            spans.cosines,
        )
        rows = zip(numbers, *(column.tolist() for column in columns), strict=True)
        matches: list[Match | None] = []
        for number, topic, phrase, probability, *place in rows:
            passage, match = self._kept[number], None
            if passage.key in contents:
                match = self._build_match(
                    passage,
                    contents[passage.key],
                    metadata[passage.key],
                    topic,
                    phrase,
                    probability,
                    Place(0, *place),
                )
            matches.append(match)
        return matches

    def _build_match(
        self,
        passage: ScannedPassage,
        content: PassageContent,
        metadata: dict[str, Any],
        number: int,
        phrase: int,
        probability: float,
        place: Place,
    ) -> Match | None:
        """Return the match, or None if a condition of the topic of this number does not hold."""
        turn = find_turn(content, parse_layout(content), place.start, place.end)
        if turn is None:
            self._damaged.add(passage.key)
            return None
        topic = self.matrix.topics[number]
        span = build_span(content, turn, place)
        self.speakers[span.speaker] += 1
        if topic.speakers and span.speaker not in topic.speakers:
            return None
        conditions = self.conditions[number]
        if not all(matches_condition(row, passage.document_id, metadata) for row in conditions):
            return None
        return Match(
            topic=topic.name,
            phrase=self.matrix.phrases[phrase],
            id=passage.document_id,
            turn=span.turn,
            speaker=span.speaker,
            start=span.start,
            end=span.end,
            text=span.text,
            cosine=span.cosine,
            probability=probability,
            start_ms=span.start_ms,
            end_ms=span.end_ms,
            metadata=metadata,
            model=self.model,
            times=span.times,
        )
