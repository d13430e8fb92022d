"""Put phrases or mentions into groups, with a name for each."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import PassageContent, ScannedPassage
from hybrid_search.discover.clauses import normalize_rows
from hybrid_search.discover.groups import (
    NO_GROUP,
    Grouping,
    describe_groups,
    group_phrases,
)
from hybrid_search.discover.phrase_table import PhrasePlace, PhraseTable, build_table, make_key
from hybrid_search.discover.types import Occurrence, PhraseGroup
from hybrid_search.discover.word_tree import WordTree, find_words
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import UsageError, show_value
from hybrid_search.file_errors import explain_failure
from hybrid_search.parameters import check_integer, check_number, check_phrase
from hybrid_search.search.hit import TurnPlace
from hybrid_search.search.phrase_vector import query_vectors
from hybrid_search.search.pipeline import match_encoder_to_index
from hybrid_search.search.span_content import parse_layout, read_turns
from hybrid_search.text import word_codes
from hybrid_search.text.name_lists import list_names
from hybrid_search.text.types import Floats
from hybrid_search.topics.blocks import read_blocks
from hybrid_search.topics.match import Match, read_matches
from hybrid_search.topics.match_builder import fetch_sound

_log = logging.getLogger(__name__)

PhraseSource: TypeAlias = "str | Path | Iterable[str] | Iterable[Match]"
"""A file, or phrases, or matches."""

Context = tuple[ScannedPassage, PassageContent]
"""A passage with its content."""

OTHER_FORMATS = (".csv", ".parquet", ".json")
"""Endings of files that are neither JSON lines nor a phrase a line."""


def read_source(
    source: PhraseSource, topic: str | None
) -> tuple[Sequence[str], Sequence[Occurrence]]:
    """Return the phrases or the mentions of a source; one of the two is empty.

    A file whose name ends in ``.jsonl`` has matches, as ``mine`` writes them; any other file has a
    phrase on each line. With a topic, only its matches are returned.

    Raises:
        UsageError: If a line is not valid, if there is nothing to group, and for a topic of
            phrases, which have none.
    """
    if isinstance(source, str | Path):
        name, items = str(source), _read_file(Path(source))
    else:
        name, items = "the source", source
    phrases: list[str] = []
    mentions: list[Occurrence] = []
    topics: set[str] = set()
    for item in items:
        if isinstance(item, Match):
            topics.add(item.topic)
            if topic in (None, item.topic):
                place = (item.id, item.turn, item.speaker, item.start, item.end)
                mentions.append(Occurrence(*place, item.text, item.cosine))
        else:
            check_phrase("phrase", item)
            phrases.append(item)
    if phrases and topics:
        raise UsageError(f"{name} has both phrases and matches: give only one of the two")
    if phrases and topic is not None:
        raise UsageError(
            f"{name} has phrases, which belong to no topic, and the topic is {show_value(topic)}: "
            "leave it out, or name a file of matches, which ends in .jsonl"
        )
    if topics and not mentions:
        raise UsageError(
            f"{name} has no match of topic {show_value(topic)}: its topics are "
            f"{list_names(sorted(topics), topic or '')}"
        )
    if not phrases and not mentions:
        raise UsageError(f"{name} has no phrase and no match: there is nothing to put into groups")
    return phrases, mentions


def _read_file(path: Path) -> Iterable[str] | Iterable[Match]:
    if path.suffix in OTHER_FORMATS:
        raise UsageError(
            f"{path} ends in {path.suffix}, and matches are read from JSON lines: write them by "
            "mine --out matches.jsonl, or put phrases into a file of another name, as phrases.txt"
        )
    if path.suffix == ".jsonl":
        return read_matches(path)
    try:
        with explain_failure(f"{path} cannot be read", "name another file"):
            lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not text in UTF-8: convert it, or name another file"
        ) from error
    return [line.strip() for line in lines if line.strip()]


def cluster(
    backend: Backend,
    encoder: Encoder,
    index: str | None,
    phrases: Sequence[str],
    mentions: Sequence[Occurrence],
    distance: float,
    seed: int,
) -> list[PhraseGroup]:
    """Return all groups, those of a single phrase as well, that with the most places first.

    The phrases have their contexts in the index, or are encoded alone if it is None. UsageError is
    raised for a value that is not allowed, and if the index has none of the mentions; the others
    are explained at `Client.cluster`.
    """
    check_number("distance", distance, "a number from 0 to 2", 0.0, 2.0)
    check_integer("seed", seed, 0)
    table = _read_table(backend, encoder, index, phrases, mentions)
    grouping = _group_rest(group_phrases(table, distance, seed))
    if grouping.compared < len(table.texts):
        _log.warning(
            "%d of %d phrases, drawn with seed %d, were compared with each other; the others went "
            "to the nearest group",
            grouping.compared,
            len(table.texts),
            seed,
        )
    order = np.argsort(-grouping.count_places(), kind="stable")
    return list(describe_groups(grouping, order.tolist()))


def _read_table(
    backend: Backend,
    encoder: Encoder,
    index: str | None,
    phrases: Sequence[str],
    mentions: Sequence[Occurrence],
) -> PhraseTable:
    if index is None:
        return encode_alone(encoder, phrases)
    spec, _ = backend.read_head(index)
    encoder = match_encoder_to_index(encoder, index, spec)
    if phrases:
        passages = read_contexts(backend, index, spec.dimension)
        return build_table(find_phrases(passages, phrases, encoder))
    distinct = {replace(mention, cosine=1.0) for mention in mentions}
    documents = frozenset(mention.id for mention in distinct)
    passages = read_contexts(backend, index, spec.dimension, documents)
    table = build_table(_find_mentions(passages, distinct))
    missing = len(distinct) - len(table.owners)
    if not table.texts:
        raise UsageError(
            f"index {index!r} has none of {missing:,} matches: name the index that was mined, or "
            "mine it again"
        )
    if missing:
        _log.warning(
            "%d matches were left out, because index %s does not have their words any more: mine "
            "it again",
            missing,
            index,
        )
    return table


def _group_rest(grouping: Grouping) -> Grouping:
    """Return the grouping with a group of its own for each phrase that was near to none."""
    rest = np.flatnonzero(grouping.labels == NO_GROUP)
    labels = grouping.labels.copy()
    labels[rest] = len(grouping.means) + np.arange(len(rest))
    means = np.concatenate([grouping.means, grouping.table.vectors[rest]])
    return replace(grouping, labels=labels, means=means)


def read_contexts(
    backend: Backend, index: str, dimension: int, documents: frozenset[str] | None = None
) -> Iterator[Context]:
    """Yield the sound passages of these documents, all for None, with their content."""
    passages = (
        passage
        for passage in backend.scan_codes(index)
        if documents is None or passage.document_id in documents
    )
    for block in read_blocks(passages):
        contents = fetch_sound(backend, index, block.passages, set())
        for passage in block.passages:
            content = contents.get(passage.key)
            if content and word_codes.is_sound(passage.tokens, dimension):
                yield passage, content


def _find_mentions(
    passages: Iterable[Context], mentions: Iterable[Occurrence]
) -> Iterator[PhrasePlace]:
    """Yield each mention once, unless its document was deleted, or has other words there now."""
    by_document: defaultdict[str, set[Occurrence]] = defaultdict(set)
    for mention in mentions:
        by_document[mention.id].add(mention)
    for passage, content in passages:
        for mention in sorted(by_document[passage.document_id], key=lambda item: item.start):
            if _has_words(content, mention):
                by_document[passage.document_id].discard(mention)
                yield mention.text, pool_words(passage, mention.start, mention.end), mention


def find_phrases(
    passages: Iterable[Context], phrases: Sequence[str], encoder: Encoder
) -> Iterator[PhrasePlace]:
    """Yield the places of phrases in some passages; a phrase without any is encoded alone.

    Raises UsageError for a phrase without a word.
    """
    tree, found_keys = WordTree(phrases), set[str]()
    for passage, content in passages:
        for turn in read_turns(parse_layout(content)):
            for name, place in _find_places(tree, passage, content, turn):
                found_keys.add(make_key(name))
                yield name, pool_words(passage, place.start, place.end), place
    for phrase in phrases:
        if make_key(phrase) not in found_keys:
            found_keys.add(make_key(phrase))
            yield phrase, query_vectors(encoder, [phrase])[0], None


def encode_alone(encoder: Encoder, phrases: Sequence[str]) -> PhraseTable:
    """Return phrases encoded without any context. Raises UsageError for one without a word."""
    vectors = query_vectors(encoder, phrases)
    return build_table((*pair, None) for pair in zip(phrases, vectors, strict=True))


def _has_words(content: PassageContent, mention: Occurrence) -> bool:
    start, end = mention.start - content.start, mention.end - content.start
    return start >= 0 and content.text[start:end] == mention.text


def _find_places(
    tree: WordTree, passage: ScannedPassage, content: PassageContent, turn: TurnPlace
) -> Iterator[tuple[str, Occurrence]]:
    """Yield the places of phrases in the share that a passage has of a turn."""
    first = max(turn.start, content.start)
    text = content.text[first - content.start : turn.end - content.start]
    words = find_words(text)
    for names, first_word, last_word in tree.find(words):
        start, end = words[first_word].start(), words[last_word].end()
        where = (passage.document_id, turn.turn, turn.speaker, first + start, first + end)
        if _is_own(passage, first + start):
            yield names[0], Occurrence(*where, text[start:end], 1.0)


def _is_own(passage: ScannedPassage, start: int) -> bool:
    """Return whether a place begins in this passage; the words after its core are of the next."""
    tokens = passage.tokens
    word = int(np.searchsorted(tokens.words[:, 1], start - passage.start, side="right"))
    return word < len(tokens.counts) and bool(tokens.counts[word])


def pool_words(passage: ScannedPassage, start: int, end: int) -> Floats:
    """Return the unit vector of the words at a place, the mean of their tokens."""
    words = passage.tokens.words
    first = int(np.searchsorted(words[:, 1], start - passage.start, side="right"))
    after = int(np.searchsorted(words[:, 0], end - passage.start, side="left"))
    rows = passage.tokens.rows
    inside = slice(rows[first], rows[max(first, after - 1)] + 1)
    vectors = word_codes.vectors(passage.tokens)[inside]
    unit: Floats = normalize_rows(vectors.sum(axis=0, dtype=np.float32, keepdims=True))[0]
    return unit
