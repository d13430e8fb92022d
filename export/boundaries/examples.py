"""The sets of marked examples that the weights are fitted on, as written and as recognised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

from export.boundaries import composed, corpora, marked_turns, natural
from export.boundaries.encoded import Progress, encode_texts
from export.boundaries.gaps import RECOGNISED, WRITTEN
from export.boundaries.marked import MarkedExample, mark_place, recognise
from export.boundaries.marked_turns import MarkedTurn
from export.boundaries.weights import EncodedExample
from hybrid_search.encoder import Encoder
from hybrid_search.search.phrase_vector import query_vectors

COMPOSED = {"clinc150": 600, "banking77": 600}
WOVEN_COUNT, ANSWER_COUNT, NATURAL_COUNT = 500, 300, 1500
WRITTEN_COUNT = 2500
NATURAL_SGD = 4000
"""How many turns of SGD stand beside the requests of banking77, to draw natural turns from."""

Sets = dict[str, list[MarkedExample]]


def read_marked_sets(encoder: Encoder, data: Path, seed: int, progress: Progress) -> Sets:
    """Return the sets of marked examples, by name and form.

    Args:
        encoder: Chooses the clauses of natural turns, with vectors in full.
        data: The folder of data sets.
        seed: Of all draws.
        progress: Is told how many clauses are encoded.
    """
    sets: Sets = {
        f"turns of {name}": composed.compose_turns(
            corpora.read_requests(data, name), count, corpora.make_random(seed, name)
        )
        for name, count in COMPOSED.items()
    }
    sets["woven sentences"] = composed.weave_sentences(
        corpora.read_triples(data, "wiki_split"),
        corpora.read_positives(data, "squad"),
        WOVEN_COUNT,
        corpora.make_random(seed, "woven"),
    )
    sets["answers"] = composed.mark_answers(
        corpora.read_answers(data), ANSWER_COUNT, corpora.make_random(seed, "answers")
    )
    sets["natural turns"] = _read_natural_turns(
        encoder, data, corpora.make_random(seed, "natural"), progress
    )
    topics = marked_turns.read_turns(data, encoder.info.languages)
    sets |= _mark_turns(topics, data, corpora.make_random(seed, "turns"))
    written = {f"{name}, {WRITTEN}": examples for name, examples in sets.items()}
    recognised = {f"{name}, {RECOGNISED}": recognise(sets[name]) for name in sets}
    return {name: examples for name, examples in (written | recognised).items() if examples}


def _mark_turns(topics: Sequence[MarkedTurn], data: Path, random: Random) -> Sets:
    """Return marked turns of written topics, each by any phrasing, and the marked requests."""
    turns = random.sample(topics, min(WRITTEN_COUNT, len(topics)))
    examples = {
        name: [
            mark_place(random.choice(turn.phrases), turn.text, *turn.clause, turn.core)
            for turn in group
        ]
        for name, group in (
            ("written topics", turns),
            ("marked requests", marked_turns.read_requests(data)),
        )
    }
    return {name: [item for item in group if item] for name, group in examples.items()}


def _read_natural_turns(
    encoder: Encoder, data: Path, random: Random, progress: Progress
) -> list[MarkedExample]:
    turns = corpora.read_sgd_requests(data)
    random.shuffle(turns)
    requests = [*corpora.read_requests(data, "banking77"), *turns[:NATURAL_SGD]]
    return natural.mark_nearest_clauses(encoder, requests, NATURAL_COUNT, random, progress)


def encode_sets(
    encoder: Encoder, sets: Sets, progress: Progress
) -> dict[str, list[EncodedExample]]:
    """Return the sets with their texts and queries encoded in full; a query by itself."""
    examples = [example for examples in sets.values() for example in examples]
    texts = encode_texts(encoder, [example.text for example in examples], progress)
    queries = list({example.query: None for example in examples})
    vectors = dict(zip(queries, query_vectors(encoder, queries), strict=True))
    encoded = iter(texts)
    return {
        name: [
            EncodedExample(example, next(encoded), vectors[example.query]) for example in examples
        ]
        for name, examples in sets.items()
    }
