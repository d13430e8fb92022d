"""Look up the words, turns and speakers of chosen spans, and which of them meet the conditions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Key, PassageContent, ScannedPassage
from hybrid_search.discover.types import ChosenSpans, Occurrence
from hybrid_search.search.span_content import parse_layout, parse_metadata, read_turns
from hybrid_search.text.filters import Condition, matches_condition


@dataclass(frozen=True, slots=True, eq=False)
class SpanReader:
    """Reads the spans of one index.

    Attributes:
        backend: The store that holds the index.
        index: The index.
        speakers: Only spans of these speakers count; empty for all.
        conditions: Conditions on the metadata of the documents.
        damaged: The keys of passages that were left out because they are damaged.
    """

    backend: Backend
    index: str
    speakers: frozenset[str] = frozenset()
    conditions: Sequence[Condition] = ()
    damaged: set[Key] = field(default_factory=set)

    def read(
        self, passages: Sequence[ScannedPassage], spans: ChosenSpans
    ) -> Iterator[tuple[int, Occurrence]]:
        """Yield the row of each span that meets the conditions, with its words and place.

        Spans in a passage that was deleted since are left out.

        Args:
            passages: The passages of the block.
            spans: Spans in them, passage by passage.
        """
        rows: dict[int, list[int]] = {}
        for row, passage in enumerate(spans.passages.tolist()):
            rows.setdefault(passage, []).append(row)
        keys = [passages[number].key for number in rows]
        contents = self.backend.fetch_contents(self.index, keys) if keys else {}
        for number, own_rows in rows.items():
            content = contents.get(passages[number].key)
            if content is None:
                continue
            if content.fault:
                self.damaged.add(passages[number].key)
            elif self._is_wanted(passages[number].document_id, content):
                yield from self._read_passage(passages[number], content, spans, own_rows)

    def _read_passage(
        self,
        passage: ScannedPassage,
        content: PassageContent,
        spans: ChosenSpans,
        rows: Sequence[int],
    ) -> Iterator[tuple[int, Occurrence]]:
        turns = read_turns(parse_layout(content))
        turn_starts = [turn.start for turn in turns]
        for row in rows:
            start, end = int(spans.starts[row]), int(spans.ends[row])
            position = bisect_right(turn_starts, start) - 1
            text = content.text[start - content.start : end - content.start]
            if position < 0 or end > turns[position].end or len(text) != end - start:
                self.damaged.add(passage.key)
                return
            turn = turns[position]
            if self.speakers and turn.speaker not in self.speakers:
                continue
            cosine = float(spans.cosines[row])
            place = (passage.document_id, turn.turn, turn.speaker, start, end)
            yield row, Occurrence(*place, text, cosine)

    def _is_wanted(self, document_id: str, content: PassageContent) -> bool:
        if not self.conditions:
            return True
        metadata = parse_metadata(self.index, document_id, content)
        return all(
            matches_condition(condition, document_id, metadata) for condition in self.conditions
        )
