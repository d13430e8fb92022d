"""Mining finds what comparing every span by hand finds, on each backend."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid_search import Match, Topics
from hybrid_search.backends.base import Backend
from hybrid_search.backends.embedded.backend import EmbeddedBackend
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.backends.types import IndexSpec
from hybrid_search.client import Client
from hybrid_search.config import DEFAULT_POLICY
from hybrid_search.encoder.base import EncoderInfo
from hybrid_search.encoder.passage_codes import encode_passages
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.ingest.document_parser import parse
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.search.calibration import Calibration
from hybrid_search.search.phrase_vector import query_vector
from hybrid_search.text import spans, word_codes
from hybrid_search.text.boundaries import BoundaryModel, join_probabilities
from hybrid_search.text.passages import split
from hybrid_search.text.span_prior import SpanPrior
from hybrid_search.text.types import Document, WordCodes
from hybrid_search.topics import mining
from hybrid_search.topics.types import MinedBlock
from tests.helpers.source_lines import make_lines
from tests.helpers.tiny_encoder import DIMENSION, FINEST, TinyEncoder

CALIBRATION = Calibration(midpoint=0.8, slope=10.0)
TOPICS: list[dict[str, Any]] = [
    {"name": "refund", "phrases": ["refund money", "money back now"], "threshold": 0.3},
    {"name": "hold", "phrases": ["on hold"], "not": ["hold on", "card order"], "threshold": 0.4},
    {"name": "staff", "phrases": ["late order", "card"], "speaker": "agent"},
    {"name": "shop", "phrases": ["late order", "card"], "where": {"sector": "shop"}},
]
SPOKEN = ["refund", "money", "back", "hold", "on", "card", "order", "late", "now"]
SEEDS = range(6)


class ClauseEncoder(TinyEncoder):
    """The tiny encoder with a model of clauses, whose weights are random numbers."""

    info = EncoderInfo("clauses", "clauses-fingerprint", DIMENSION, "float32", "turn")

    def load_prior(self, dimension: int) -> SpanPrior:
        generator = np.random.default_rng(3)
        boundaries = BoundaryModel(
            generator.standard_normal((2 * dimension, 4)).astype(np.float32),
            np.zeros(4, np.float32),
            generator.standard_normal(4).astype(np.float32),
            -0.5,
        )
        return SpanPrior(boundaries, 0.1, 0.02, 0.05)


ENCODERS = {"clauses": ClauseEncoder(), "plain": TinyEncoder()}


def spell(number: int) -> str:
    """Return a number in letters: a word with a digit is none of what is discovered."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def make_documents(seed: int) -> list[dict[str, Any]]:
    """Return documents of random words; one has a turn that is cut into several passages.

    No word comes twice in a turn: no two spans that exclude each other are equally good.
    """
    generator = np.random.default_rng(seed)
    vocabulary = [*SPOKEN, *(f"w{spell(number)}" for number in range(600))]
    weights = np.array([8] * len(SPOKEN) + [1] * 600)
    documents = []
    for number in range(7):
        lengths = generator.integers(1, 40, size=generator.integers(1, 9)).tolist()
        turns = [
            {
                "speaker": str(generator.choice(["agent", "customer"])),
                "text": " ".join(
                    generator.choice(vocabulary, length, replace=False, p=weights / weights.sum())
                ),
                "start_ms": 100 * place,
            }
            for place, length in enumerate([*lengths, 500] if number == 3 else lengths)
        ]
        sector = str(generator.choice(["shop", "bank"]))
        documents.append({"id": f"call-{number}", "turns": turns, "sector": sector})
    return [*documents, {"id": "dots", "text": "...", "sector": "bank"}]


def fill(backend: Backend, encoder: TinyEncoder, documents: Sequence[Mapping[str, Any]]) -> None:
    options = IngestOptions("calls", Path("rejected.jsonl"), codes=FINEST)
    summary = ingest(make_lines(documents), backend, encoder, options)
    assert summary.documents == len(documents)


def mine_blocks(
    backend: Backend, encoder: TinyEncoder, topics: Any = TOPICS, **options: Any
) -> list[MinedBlock]:
    loaded = Topics.load(topics)
    blocks = mining.mine(backend, encoder, lambda *_: CALIBRATION, loaded, "calls", **options)
    return list(blocks)


def list_matches(blocks: Sequence[MinedBlock]) -> list[Match]:
    return [match for block in blocks for match in block.matches]


def show(matches: Sequence[Match]) -> list[tuple[Any, ...]]:
    """Return what tells matches apart, without numbers that are rounded."""
    return sorted((m.topic, m.id, m.start, m.end, m.phrase, m.turn) for m in matches)


# The reference: plain loops over every span


def list_near_spans(
    encoder: TinyEncoder, document: Document, topic: Mapping[str, Any], limit: float
) -> Iterator[tuple[float, int, int, int, int, str]]:
    """Yield score, start, end, bounds of the clauses, and phrase of each span that is near."""
    prior = encoder.load_prior(DIMENSION) if isinstance(encoder, ClauseEncoder) else None
    passages = list(split(document))
    phrases = [*topic["phrases"], *topic.get("not", [])]
    vectors = [query_vector(encoder, phrase) for phrase in phrases]
    for passage, codes in zip(
        passages, encode_passages(encoder, document, passages, FINEST), strict=True
    ):
        cosines = np.array([word_codes.cosines(vector, codes) for vector in vectors])
        scores = cosines.max(axis=0) + (prior.score_spans(codes) if prior else 0.0)
        first_words, last_words = spans.bounds(codes.counts)
        for number in np.flatnonzero(scores >= limit).tolist():
            first, last = int(first_words[number]), int(last_words[number])
            low, high = find_clause(codes, prior, first, last) if prior else (first, last)
            yield (
                float(scores[number]),
                passage.start + int(codes.words[first, 0]),
                passage.start + int(codes.words[last, 1]),
                passage.start + int(codes.words[low, 0]),
                passage.start + int(codes.words[high, 1]),
                phrases[int(cosines[:, number].argmax())],
            )


def find_clause(codes: WordCodes, prior: SpanPrior, first: int, last: int) -> tuple[int, int]:
    """Return the first word of the clause of `first`, and the last word of that of `last`."""
    probabilities = np.append(join_probabilities([codes]), 1)
    while first > 0 and probabilities[first] < 0.5:
        first -= 1
    while last + 1 < len(codes.words) and probabilities[last + 1] < 0.5:
        last += 1
    return first, last


def mine_naively(
    encoder: TinyEncoder, documents: Sequence[Mapping[str, Any]], topic: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Return what `show` should return for one topic."""
    threshold = topic.get("threshold", 0.5)
    limit = 0.8 + math.log(threshold / (1 - threshold)) / 10
    mentions = []
    for raw in documents:
        document, _ = parse(json.dumps(raw).encode())
        near = list(list_near_spans(encoder, document, topic, limit))
        near.sort(key=lambda row: (-row[0], row[1:3]))
        taken: list[tuple[int, int]] = []
        for _, start, end, low, high, phrase in near:
            if any(low < other_high and other_low < high for other_low, other_high in taken):
                continue
            taken.append((low, high))
            turn = next(
                number
                for number, turn in enumerate(document.turns)
                if turn.start <= start and end <= turn.end
            )
            speaker = topic.get("speaker", document.turns[turn].speaker)
            sector = topic.get("where", {}).get("sector", raw["sector"])
            is_wanted = speaker == document.turns[turn].speaker and sector == raw["sector"]
            if phrase in topic["phrases"] and is_wanted:
                mentions.append((topic["name"], document.id, start, end, phrase, turn))
    return sorted(mentions)


@pytest.fixture(params=["memory", "embedded"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    backend = MemoryBackend() if request.param == "memory" else EmbeddedBackend(tmp_path / "store")
    yield backend
    backend.close()


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_mining_finds_exactly_what_comparing_every_span_finds(
    store: Backend, seed: int, name: str
) -> None:
    encoder, documents = ENCODERS[name], make_documents(seed)
    fill(store, encoder, documents)
    blocks = mine_blocks(store, encoder)
    matches = list_matches(blocks)
    expected = [row for topic in TOPICS for row in mine_naively(encoder, documents, topic)]
    assert show(matches) == sorted(expected)
    assert blocks[-1].documents == len(documents)
    assert blocks[-1].damaged == 0
    assert {match.topic for match in matches} == {topic["name"] for topic in TOPICS}


def test_a_match_says_where_it_is_and_how_sure_it_is(store: Backend) -> None:
    encoder, documents = ENCODERS["clauses"], make_documents(1)
    fill(store, encoder, documents)
    matches = list_matches(mine_blocks(store, encoder))
    turns = {raw["id"]: raw.get("turns", []) for raw in documents}
    for match in matches:
        turn = turns[match.id][match.turn]
        parsed, _ = parse(json.dumps(documents[int(match.id[-1])]).encode())
        assert parsed.text[match.start : match.end] == match.text
        assert match.text in turn["text"]
        assert (match.speaker, match.start_ms) == (turn["speaker"], turn["start_ms"])
        assert match.metadata == {"sector": documents[int(match.id[-1])]["sector"]}
        assert match.model == "clauses-fingerprint"
        assert match.probability >= 0.3
    assert list(matches[0].to_dict()) == [
        *("topic", "phrase", "id", "turn", "speaker", "start", "end", "text", "cosine"),
        *("probability", "start_ms", "end_ms", "metadata", "model", "times", "evidence"),
    ]


def test_a_probability_is_the_logistic_of_cosine_and_prior(store: Backend) -> None:
    """Without a prior: 1 / (1 + exp(-10 * (cosine - 0.8)))."""
    encoder = ENCODERS["plain"]
    fill(store, encoder, make_documents(2))
    matches = list_matches(mine_blocks(store, encoder))
    expected = [1 / (1 + math.exp(-10 * (match.cosine - 0.8))) for match in matches]
    assert [match.probability for match in matches] == pytest.approx(expected, abs=1e-5)


def test_a_run_that_goes_on_behind_any_block_finds_the_rest_once(
    store: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid_search.topics.blocks.BLOCK_PASSAGES", 2)
    encoder = ENCODERS["clauses"]
    fill(store, encoder, make_documents(4))
    blocks = mine_blocks(store, encoder)
    matches = list_matches(blocks)
    positions = [block.position for block in blocks]
    assert len(set(positions)) > 5
    for number, position in enumerate(positions):
        rest = list_matches(mine_blocks(store, encoder, after=position))
        joined = list_matches(blocks[: number + 1]) + rest
        # blocks of other passages are other products, which some processors add in another order
        for field in ("cosine", "probability"):
            numbers = [getattr(match, field) for match in joined]
            assert numbers == pytest.approx([getattr(match, field) for match in matches], abs=1e-6)
        assert [replace(match, cosine=0.0, probability=0.0) for match in joined] == [
            replace(match, cosine=0.0, probability=0.0) for match in matches
        ]


def test_a_damaged_passage_is_left_out_and_counted(
    store: Backend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = ENCODERS["clauses"]
    fill(store, encoder, make_documents(6))
    matches = list_matches(mine_blocks(store, encoder))
    damaged_key = next(
        passage.key for passage in store.scan_codes("calls") if passage.document_id == "call-3"
    )
    read = store.scan_codes

    def scan_damaged(*arguments: Any) -> Iterator[Any]:
        from dataclasses import replace

        for passage in read(*arguments):
            if passage.key == damaged_key:
                passage = replace(passage, tokens=word_codes.UNREADABLE)
            yield passage

    monkeypatch.setattr(store, "scan_codes", scan_damaged)
    blocks = mine_blocks(store, encoder)
    assert blocks[-1].damaged == 1
    assert "1 passages were left out" in caplog.text
    remaining = show(list_matches(blocks))
    assert [row for row in remaining if row[1] != "call-3"] == [
        row for row in show(matches) if row[1] != "call-3"
    ]
    assert len(remaining) < len(matches)


def test_an_index_without_documents_has_no_matches(store: Backend) -> None:
    encoder = ENCODERS["clauses"]
    store.create_index("calls", IndexSpec.from_encoder(encoder.info, DEFAULT_POLICY), {})
    topics = [{"name": "refund", "phrases": ["refund"]}]
    (block,) = mine_blocks(store, encoder, topics)
    assert (list(block.matches), block.documents, block.position) == ([], 0, None)


def test_what_cannot_be_mined_is_an_error(store: Backend) -> None:
    encoder = ENCODERS["clauses"]
    with pytest.raises(IndexMissingError):
        mine_blocks(store, encoder)
    fill(store, encoder, make_documents(0))
    with pytest.raises(UsageError, match="topic 'a': where: cannot filter on 'colour'"):
        mine_blocks(store, encoder, [{"name": "a", "phrases": ["b"], "where": {"colour": "red"}}])
    with pytest.raises(UsageError, match="has no word"):
        mine_blocks(store, encoder, [{"name": "a", "phrases": ["..."]}])


# The shipped model, on every backend

REFUND = [{"name": "refund", "phrases": ["I want my money back"], "threshold": 0.05}]


def test_every_backend_finds_the_same_mentions_in_the_sample(
    client: Client, sample: Client, calls: list[dict[str, Any]], _remembered_batches: None
) -> None:
    client.ingest(calls, rejects="rejected.jsonl")
    assert show(list(client.mine(REFUND))) == show(list(sample.mine(REFUND)))


def test_the_best_mentions_are_the_words_that_a_query_shows(sample: Client) -> None:
    result = sample.query("I want my money back", alpha=1, size=3, spans=1)
    expected = [(hit.id, hit.spans[0].text) for hit in result]
    topics = [{"name": "refund", "phrases": ["I want my money back"], "threshold": 0.005}]
    matches = sorted(sample.mine(topics), key=lambda match: -match.probability)
    assert [(match.id, match.text) for match in matches[:3]] == expected
    by_place = {(match.id, match.start): match.cosine for match in matches}
    for hit in result:
        assert by_place[hit.id, hit.spans[0].start] == pytest.approx(hit.spans[0].cosine, abs=1e-5)


def test_an_index_without_documents_is_told(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.ingest([{"id": "a", "text": "I want my money back."}], rejects="rejected.jsonl")
    client.delete(["a"])
    caplog.clear()
    assert not list(client.mine(REFUND))
    expected = "index 'calls' is empty: hybrid-search ingest FILE --index calls"
    assert [record.getMessage() for record in caplog.records] == [expected]


def test_a_speaker_who_says_nothing_is_told(
    store: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    encoder = ENCODERS["clauses"]
    fill(store, encoder, make_documents(1))
    misspelled = {**TOPICS[2], "speaker": "agnet"}
    assert not list_matches(mine_blocks(store, encoder, [misspelled]))
    expected = (
        "topic 'staff': nothing was found that 'agnet' said, who is not among the speakers of the "
        "first 100 passages: agent, customer"
    )
    assert [record.getMessage() for record in caplog.records] == [expected]
    caplog.clear()
    assert list_matches(mine_blocks(store, encoder, [TOPICS[2]]))
    assert not caplog.records
