"""Mine an index: the mentions of some topics, by an exact scan of all its word codes.

The passages of the index are read in the order of its documents and scored block by block, on all
cores or on a cluster. The mentions of a document are chosen when all its passages are scored, and
then their words are fetched. Nothing is sampled and nothing approximated: every span of every
passage is compared with every phrase. What is below a threshold is counted if that is asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Position
from hybrid_search.encoder.base import Encoder, span_prior
from hybrid_search.errors import UsageError, show_value
from hybrid_search.ingest.executors import LOCAL
from hybrid_search.ingest.shards import ALL_DOCUMENTS, Shard
from hybrid_search.search.calibration import COSINE, SCORE, LoadCalibration
from hybrid_search.search.no_hits import describe_empty_index
from hybrid_search.search.open_document import read_document
from hybrid_search.search.pipeline import match_encoder_to_index
from hybrid_search.search.span_content import parse_layout, read_turns
from hybrid_search.text.filters import Condition, compile_where
from hybrid_search.text.name_lists import list_names
from hybrid_search.topics.blocks import read_blocks, score_blocks
from hybrid_search.topics.call_counts import CallGroups
from hybrid_search.topics.match_builder import MatchBuilder
from hybrid_search.topics.mention_calibration import choose_maps
from hybrid_search.topics.missed_mentions import LEAST_PROBABILITY
from hybrid_search.topics.rule_builder import RuleBuilder
from hybrid_search.topics.span_scores import find_candidates
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.topic_matrix import add_feedback_to_topics, build_matrix
from hybrid_search.topics.topics import Topics
from hybrid_search.topics.types import MinedBlock

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
    groups: CallGroups | None = None,
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
    scanned_probability = 1.0 if groups is None else LEAST_PROBABILITY
    matrix = build_matrix(encoder, topics, maps.find, scanned_probability)
    conditions = [_compile_conditions(topic, fields) for topic in topics]
    if feedback:
        fused = load_calibration(spec.precision, spec.dimension, SCORE if prior else COSINE)
        matrix = add_feedback_to_topics(matrix, backend, index, conditions, fused, prior, feedback)
    builder = MatchBuilder(
        backend,
        index,
        matrix,
        conditions,
        spec.fingerprint,
        maps,
        after,
        groups,
        denied=topics.list_denied(),
    )
    rules = RuleBuilder(topics.rules, partial(read_document, backend, index))
    blocks = read_blocks(backend.scan_codes(index, after, written_since), shard)
    score = partial(find_candidates, matrix=matrix, prior=prior)
    for block, (candidates, damaged) in score_blocks(blocks, score, engine, workers):
        yield rules.add(builder.add(block, candidates, damaged))
    yield rules.add(builder.finish())
    if not builder.passages and (after, written_since, shard) == (None, None, ALL_DOCUMENTS):
        _log.warning("%s", describe_empty_index(index))
    _warn_of_speakers(topics, builder)
    _warn_of_times(rules)
    warn_of_damage(builder.damaged, index)


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
    wanted = [(topic.name, topic.speakers) for topic in topics]
    wanted += [(rule.name, part.speakers) for rule in topics.rules for part in rule.rule.walk()]
    silent = [
        (name, speakers)
        for name, speakers in wanted
        if speakers and not builder.speakers.keys() & set(speakers)
    ]
    existing = _list_speakers(builder) if silent else {}
    for name, speakers in silent:
        if existing and not existing.keys() & set(speakers):
            _log.warning(
                "topic %r: nothing was found that %s said, who is not among the speakers of the "
                "first %d passages: %s",
                name,
                " or ".join(map(repr, speakers)),
                PROBED_PASSAGES,
                list_names(list(existing), speakers[0]),
            )


def _warn_of_times(rules: RuleBuilder) -> None:
    """Warn of rules that ask for seconds where turns have no times."""
    for name, documents in rules.untimed.items():
        _log.warning(
            "rule %r asks for seconds: it cannot hold in %d documents with its topics, whose turns "
            "have no times. Use turns or words instead",
            name,
            documents,
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
