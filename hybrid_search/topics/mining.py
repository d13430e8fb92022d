"""Mine an index: the mentions of some topics, by an exact scan of all its word codes.

The passages of the index are read in the order of its documents and scored block by block, on all
cores or on a cluster. The mentions of a document are chosen when all its passages are scored, and
then their words are fetched. Nothing is sampled and nothing approximated: every span of every
passage is compared with every phrase. What is below a threshold is counted if that is asked for.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Position, ScannedPassage
from hybrid_search.encoder.base import Encoder, span_prior
from hybrid_search.errors import UsageError, show_value
from hybrid_search.ingest.executors import LOCAL
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.search.calibration import COSINE, SCORE, LoadCalibration
from hybrid_search.search.no_hits import describe_empty_index
from hybrid_search.search.pipeline import match_encoder_to_index
from hybrid_search.search.span_content import parse_layout, read_turns
from hybrid_search.text.filters import Condition, compile_where
from hybrid_search.text.name_lists import list_names
from hybrid_search.text.word_codes import UNREADABLE
from hybrid_search.topics.blocks import read_blocks, score_blocks
from hybrid_search.topics.match import Match
from hybrid_search.topics.match_builder import MatchBuilder
from hybrid_search.topics.mention_calibration import MentionMaps, choose_maps
from hybrid_search.topics.mention_choice import choose_mentions
from hybrid_search.topics.missed_mentions import LEAST_PROBABILITY, count_log_odds
from hybrid_search.topics.span_scores import find_candidates
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.topic_matrix import TopicMatrix, add_feedback_to_topics, build_matrix
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.types import Candidates, Mention, MinedBlock, ScannedBlock, UnlikelySpans

_log = logging.getLogger(__name__)

PROBED_PASSAGES = 100
"""Passages in which the speakers of an index are looked up."""


def mine(
    backend: Backend,
    encoder: Encoder,
    load_calibration: LoadCalibration,
    topics: Topics,
    index: str,
    after: Position = None,
    shard: Shard = ALL_DOCUMENTS,
    feedback: int = 0,
    written_since: datetime | None = None,
    engine: str = LOCAL,
    workers: int | None = None,
    *,
    count_unlikely: bool = False,
) -> Iterator[MinedBlock]:
    """Yield the matches of all topics in an index, block by block.

    `Client.mine_blocks` has the parameters. Errors of the stages pass through: IndexMissingError,
    ModelError for an index of another model, UsageError for an unknown field or a phrase without a
    word, or if the store has no times.
    """
    spec, fields = backend.read_head(index)
    encoder = match_encoder_to_index(encoder, index, spec)
    prior = span_prior(encoder)
    maps = choose_maps(
        topics, spec, load_calibration, has_prior=prior is not None, has_feedback=feedback > 0
    )
    scanned_probability = LEAST_PROBABILITY if count_unlikely else 1.0
    matrix = build_matrix(encoder, topics, maps.find, scanned_probability)
    conditions = [_compile_conditions(topic, fields) for topic in topics]
    if feedback:
        fused = load_calibration(spec.precision, spec.dimension, SCORE if prior else COSINE)
        matrix = add_feedback_to_topics(matrix, backend, index, conditions, fused, prior, feedback)
    builder = MatchBuilder(backend, index, matrix, conditions, spec.fingerprint)
    blocks = read_blocks(backend.scan_codes(index, after, written_since), shard)
    assembly = _Assembly(matrix, maps, builder, after)
    score = partial(find_candidates, matrix=matrix, prior=prior)
    for block, (candidates, damaged) in score_blocks(blocks, score, engine, workers):
        yield assembly.add(block, candidates, damaged)
    yield assembly.finish()
    if not assembly.passages and (after, written_since, shard) == (None, None, ALL_DOCUMENTS):
        _log.warning("%s", describe_empty_index(index))
    _warn_of_speakers(topics, builder)
    warn_of_damage(assembly.damaged, index)


def warn_of_damage(passages: int, index: str) -> None:
    """Warn that so many passages of a scan were left out, if any."""
    if passages:
        _log.warning(
            "%d passages were left out, because what is stored of them is damaged. To mend this: "
            "hybrid-search verify --index %s --repair",
            passages,
            index,
        )


def _warn_of_speakers(topics: Topics, builder: MatchBuilder) -> None:
    """Warn of topics whose speakers say nothing: their names may be others in the index."""
    silent = [
        topic
        for topic in topics
        if topic.speakers and not builder.speakers.keys() & set(topic.speakers)
    ]
    speakers = _list_speakers(builder) if silent else {}
    for topic in silent:
        if speakers and not speakers.keys() & set(topic.speakers):
            _log.warning(
                "topic %r: nothing was found that %s said, who is not among the speakers of the "
                "first %d passages: %s",
                topic.name,
                " or ".join(map(repr, topic.speakers)),
                PROBED_PASSAGES,
                list_names(list(speakers), topic.speakers[0]),
            )


def _list_speakers(builder: MatchBuilder) -> dict[str, None]:
    """Return the speakers of mentions and of the first passages, in their order."""
    passages = islice(builder.backend.scan_codes(builder.index), PROBED_PASSAGES)
    contents = builder.backend.fetch_contents(builder.index, [row.key for row in passages])
    turns = (turn for content in contents.values() for turn in read_turns(parse_layout(content)))
    speakers = [*builder.speakers, *(turn.speaker for turn in turns)]
    return {speaker: None for speaker in speakers if speaker}


def _compile_conditions(topic: Topic, fields: Mapping[str, str]) -> Sequence[Condition]:
    try:
        return compile_where(topic.where, fields)
    except UsageError as error:
        raise UsageError(f"topic {show_value(topic.name)}: where: {error}") from error


@dataclass(slots=True, eq=False)
class _Assembly:
    """Collects the candidates of each document until all its passages are scored.

    `position` is that of the last passage of the last document that is done; `passages` is how many
    were looked at so far.
    """

    matrix: TopicMatrix
    maps: MentionMaps
    builder: MatchBuilder
    position: Position
    _generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    passages: int = 0
    _waiting: Candidates = field(default_factory=Candidates.empty)
    _kept: dict[int, ScannedPassage] = field(default_factory=dict)
    _last: ScannedPassage | None = None
    _documents: int = 0
    _unreadable: int = 0

    @property
    def damaged(self) -> int:
        """How many passages were left out so far."""
        return self._unreadable + len(self.builder.damaged)

    def add(self, block: ScannedBlock, candidates: Candidates, damaged: int) -> MinedBlock:
        """Take the candidates of a block, and return the matches of the documents that are done."""
        open_document = int(block.documents[-1])
        self._unreadable += damaged
        self.passages += len(block.passages)
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
        sample = self._sample_conditional(unlikely)
        built = self.builder.build([*mentions, *sample], self._kept)
        counts = self._count_unlikely(unlikely, sample, built[len(mentions) :])
        self._kept = {number: self._kept[number] for number in set(self._waiting.passages.tolist())}
        return MinedBlock(
            list(filter(None, built[: len(mentions)])),
            documents,
            self.passages,
            self.damaged,
            self.position,
            counts,
            self.maps,
        )

    def _sample_conditional(self, unlikely: Sequence[Mention]) -> list[Mention]:
        """Return some mentions whose topics have conditions, each with its own probability.

        To look up all of them would be to read most of the index. As many as are probably missed
        say for which share of those the conditions hold.
        """
        draws = self._generator.random(len(unlikely)).tolist()
        return [
            mention
            for mention, draw in zip(unlikely, draws, strict=True)
            if draw < mention.probability and self.builder.has_conditions(mention.topic)
        ]

    def _count_unlikely(
        self,
        unlikely: Sequence[Mention],
        sample: Sequence[Mention],
        matches: Sequence[Match | None],
    ) -> dict[str, UnlikelySpans]:
        """Return the counts of each topic; `matches` are those of the sample."""
        checked = Counter(mention.topic for mention in sample)
        held = Counter(
            mention.topic for mention, match in zip(sample, matches, strict=True) if match
        )
        probabilities: dict[int, list[float]] = {}
        for mention in unlikely:
            probabilities.setdefault(mention.topic, []).append(mention.probability)
        counts: dict[str, UnlikelySpans] = {}
        for number, row in sorted(probabilities.items()):
            by_log_odds = count_log_odds(np.array(row))
            name = self.matrix.topics[number].name
            counts[name] = UnlikelySpans(by_log_odds, checked[number], held[number])
        return counts
