"""Short codes on servers: what they estimate, what they save, and indexes that lack them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pybase64
import pytest

from hybrid_search.backends.server import (
    first_pass,
    passage_codec,
    short_codes,
)
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.backends.types import Request
from hybrid_search.client import Client
from hybrid_search.observability.traffic import count_traffic, note_answer
from hybrid_search.text import word_codes
from hybrid_search.text.types import Floats, WordCodes
from tests.helpers import live_servers
from tests.helpers.random_codes import pack_words
from tests.helpers.server_index import GRAPH
from tests.helpers.tiny_encoder import make_entries, make_prior, make_spec

WORDS = 40


def make_tokens(dimension: int, seed: int = 0, words: int = WORDS) -> WordCodes:
    """Return the codes of one turn of words of one token each, with random vectors."""
    vectors = np.random.default_rng(seed).normal(size=(words, dimension)).astype(np.float32)
    counts = np.minimum(words - np.arange(words), 20).astype(np.uint8)
    return pack_words(vectors, counts)


def unit(vector: Floats) -> Floats:
    normalized: Floats = vector / np.linalg.norm(vector)
    return normalized


def with_boundaries(tokens: WordCodes, seed: int = 0) -> WordCodes:
    """Return word codes with random probabilities of clause boundaries; the first is certain."""
    probabilities = np.random.default_rng(seed).integers(0, 256, len(tokens.words), np.uint8)
    probabilities[:1] = 255
    return replace(tokens, boundaries=probabilities)


@pytest.mark.parametrize("boundaries", [False, True])
def test_short_codes_are_read_as_they_were_written(*, boundaries: bool) -> None:
    tokens = with_boundaries(make_tokens(288)) if boundaries else make_tokens(288)
    written = short_codes.shorten(tokens)
    read = short_codes.read(short_codes.to_bytes(written))
    assert read is not None
    assert np.array_equal(read.codes, written.codes)
    assert np.array_equal(read.lengths, written.lengths)
    assert np.array_equal(read.counts, tokens.counts)
    assert np.array_equal(read.inverse_norms, written.inverse_norms)
    assert (read.boundaries is None) is not boundaries
    assert short_codes.to_bytes(read) == short_codes.to_bytes(written)
    # a header of 13 bytes; for each word 288 numbers of 2 bits, a length, a count, and a boundary;
    # and for each span a length: 20 begin at each of the first 21 words, then 19, 18, ... 1
    spans = 21 * 20 + 19 * 20 // 2
    expected = 13 + WORDS * (72 + 2 + boundaries) + spans
    assert len(short_codes.to_bytes(written)) == expected


@pytest.mark.parametrize("damage", [b"", b"HSS3", b"x" * 100])
def test_what_is_no_short_codes_is_not_read(damage: bytes) -> None:
    assert short_codes.read(damage) is None
    whole = short_codes.to_bytes(short_codes.shorten(make_tokens(16)))
    assert short_codes.read(whole[:-1]) is None
    assert short_codes.read(whole + damage + b"1") is None


def test_short_codes_with_other_counts_than_spans_are_not_read() -> None:
    written = short_codes.shorten(make_tokens(16))
    counts = written.counts.copy()
    counts[0] -= 1
    assert short_codes.read(short_codes.to_bytes(replace(written, counts=counts))) is None


@pytest.mark.parametrize("dimension", [16, 64, 288])
def test_estimates_are_near_the_best_cosine_of_a_span(dimension: int) -> None:
    """Two bits lose .1175 of a vector's square (Max 1960).

    So a product is .94 of what it was, and off by sqrt(.1175 * .8825 / dimension) (standard
    deviation); divided by .94 * .94 the error is sqrt(.1175 / .8825 / dimension). The best of the
    600 spans of a passage is off by no more than four of these. The two rounded lengths add 1.1%
    each.
    """
    passages = [make_tokens(dimension, seed) for seed in range(20)]
    query = unit(np.random.default_rng(99).normal(size=dimension).astype(np.float32))
    estimates = short_codes.estimate_best_spans(query, list(map(short_codes.shorten, passages)))
    exact = np.array([word_codes.cosines(query, tokens).max() for tokens in passages])
    tolerance = 4 * np.sqrt(0.1175 / 0.8825 / dimension) + 0.022
    assert np.abs(estimates.cosines - exact).max() < tolerance
    assert np.corrcoef(estimates.cosines, exact)[0, 1] > 0.6  # of 16 numbers it is .66
    assert np.array_equal(estimates.scores, estimates.cosines)


def test_an_estimated_score_has_the_prior_of_the_same_spans() -> None:
    """With certain boundaries around each word and a prior for these, they are all 2 apart.

    A span of n words has 2 ends, and n - 1 boundaries inside, which cost 1 each: words are best.
    """
    prior = replace(make_prior(), ends=1.0, inside=1.0, length=0.0)
    tokens = make_tokens(64)
    certain = replace(tokens, boundaries=np.full(WORDS, 255, np.uint8))
    query = unit(np.random.default_rng(99).normal(size=64).astype(np.float32))
    estimates = short_codes.estimate_best_spans(query, [short_codes.shorten(certain)], prior)
    words = np.cumsum(tokens.counts) - tokens.counts
    exact = word_codes.cosines(query, tokens)[words].max() + 2
    assert estimates.scores[0] == pytest.approx(
        exact, abs=4 * np.sqrt(0.1175 / 0.8825 / 64) + 0.022
    )


def test_estimated_scores_rank_passages_as_exact_scores_do() -> None:
    prior = make_prior()
    passages = [with_boundaries(make_tokens(288, seed), seed) for seed in range(40)]
    query = unit(np.random.default_rng(99).normal(size=288).astype(np.float32))
    shortened = list(map(short_codes.shorten, passages))
    estimates = short_codes.estimate_best_spans(query, shortened, prior)
    exact = [
        (word_codes.cosines(query, tokens) + prior.score_spans(tokens)).max() for tokens in passages
    ]
    assert np.corrcoef(estimates.scores, exact)[0, 1] > 0.9


@pytest.mark.parametrize("dimension", [32, 64, 128, 288, 384])
def test_most_estimates_are_off_by_less_than_is_reckoned(dimension: int) -> None:
    """Between one and two standard deviations are reckoned with, whatever the dimension is."""
    passages = [make_tokens(dimension, seed) for seed in range(200)]
    query = unit(np.random.default_rng(1).normal(size=dimension).astype(np.float32))
    estimates = short_codes.estimate_best_spans(query, list(map(short_codes.shorten, passages)))
    exact = [float(word_codes.cosines(query, passage).max()) for passage in passages]
    deviation = float(np.std(estimates.cosines - exact))
    error = first_pass.build_estimating_pass(Request("", np.zeros(dimension, np.float32), 1)).error
    assert deviation < error < 2 * deviation


def test_short_codes_that_are_damaged_or_of_another_dimension_are_not_compared() -> None:
    """Such passages are scored exactly, as are those without short codes."""
    query = unit(np.ones(32, np.float32))
    hits = [make_hit(0, 32), make_hit(1, 64), make_hit(2, 32)]
    written = pybase64.b64decode(hits[2]["fields"]["short_codes"][0])
    hits[2]["fields"]["short_codes"] = [pybase64.b64encode_as_string(b"    " + written[4:])]
    hits.append(make_hit(3, None))
    request = Request("phrase", query, 100)
    estimating_pass = first_pass.build_estimating_pass(request)
    best_spans = estimating_pass.read_spans(hits, request)
    assert [key for key, best in best_spans.items() if best is None] == ["d1#0", "d2#0", "d3#0"]
    estimates = short_codes.estimate_best_spans(query, [short_codes.shorten(make_tokens(32, 0))])
    assert best_spans["d0#0"] is not None
    assert best_spans["d0#0"].score == pytest.approx(estimates.scores[0])
    # without boundaries nothing is known of clauses
    with_prior = estimating_pass.read_spans(hits, replace(request, prior=make_prior()))
    assert with_prior["d0#0"] is None


def make_hit(seed: int, dimension: int | None) -> dict[str, Any]:
    """Return a hit with short codes of this dimension, or with none."""
    key = {"document_id": [f"d{seed}"], "ordinal": [0]}
    if dimension is None:
        return {"fields": key}
    encoded = passage_codec.encode_short_codes(make_tokens(dimension, seed))
    return {"fields": {**key, "short_codes": [encoded]}}


def test_a_passage_without_a_span_is_estimated_at_the_least() -> None:
    passages = [short_codes.shorten(make_tokens(16, words=words)) for words in (0, 3, 0)]
    query = unit(np.ones(16, np.float32))
    estimates = short_codes.estimate_best_spans(query, passages)
    assert (estimates.cosines == -1).tolist() == [True, False, True]
    assert short_codes.estimate_best_spans(query, []).cosines.tolist() == []


def test_a_span_never_reaches_into_the_next_passage() -> None:
    """Estimated together or alone, a passage has the same estimate, but for float32 sums."""
    tokens = [with_boundaries(make_tokens(64, seed, words=5), seed) for seed in range(8)]
    passages, prior = list(map(short_codes.shorten, tokens)), make_prior()
    query = unit(np.random.default_rng(1).normal(size=64).astype(np.float32))
    alone = [short_codes.estimate_best_spans(query, [passage], prior) for passage in passages]
    together = short_codes.estimate_best_spans(query, passages, prior)
    cosines = np.concatenate([estimates.cosines for estimates in alone])
    scores = np.concatenate([estimates.scores for estimates in alone])
    assert together.cosines == pytest.approx(cosines, abs=1e-5)
    assert together.scores == pytest.approx(scores, abs=1e-5)


def test_short_codes_of_other_token_codes_are_noticed() -> None:
    tokens, other = make_tokens(64), make_tokens(64, seed=1)
    assert short_codes.belong_to(short_codes.shorten(tokens), tokens)
    assert not short_codes.belong_to(short_codes.shorten(other), tokens)
    assert not short_codes.belong_to(short_codes.shorten(make_tokens(64, words=3)), tokens)
    assert not short_codes.belong_to(short_codes.shorten(with_boundaries(tokens)), tokens)


def test_answers_are_counted_while_somebody_counts() -> None:
    note_answer(5)
    with count_traffic() as traffic:
        note_answer(7)
        note_answer(8)
    assert traffic.answer_bytes == 15


# on real servers


def make_documents(count: int) -> list[dict[str, Any]]:
    """Return documents of 60 words, the second and third of which are within one token."""
    rows = [[f"w{number * step % 911}" for step in range(60)] for number in range(1, count + 1)]
    return [
        {"id": f"call-{number}", "text": f"{row[0]} {row[1]}/{' '.join(row[2:])}"}
        for number, row in enumerate(rows, 1)
    ]


def overwrite_passage(client: Client, index: str, source: dict[str, Any]) -> None:
    """Put `source` in the place of the only passage of ``call-1``, without covering spans."""
    assert isinstance(client.backend, ServerBackend)
    client.backend.server.request(
        "PUT",
        f"/{index}-000001/_doc/call-1%230",
        params={"refresh": True},
        body={**source, "spans": [], "span_count": 0},
    )


def check_damage_is_told(client: Client, index: str) -> None:
    """Check that the damage of ``call-1`` is told, and that another document takes its place."""
    for alpha in (0.0, 0.5, 1.0):
        result = client.query("w1 w2 w3", index=index, alpha=alpha)  # the words of call-1
        (warning,) = result.plan["warnings"]
        assert "damaged" in warning
        assert len(result.hits) == 10


@pytest.fixture
def client(tiny_encoder: None, url: str) -> Iterator[Client]:
    with live_servers.open_client(url, "elasticsearch") as connected:
        yield connected


@pytest.mark.parametrize("url", live_servers.URLS)
def test_short_codes_that_cannot_be_read_cost_a_warning_until_they_are_written_anew(
    client: Client, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_servers.unique_index_name(url) as index:
        with monkeypatch.context() as damage:
            damage.setattr(short_codes, "_MAGIC", b"\0\0\0\0")
            client.ingest(make_documents(150), index=index)
        before = client.query("w7 w14 w21", index=index)
        (warning,) = before.plan["warnings"]
        assert f"hybrid-search reindex --index {index}" in warning
        client.reindex(index=index)
        after = client.query("w7 w14 w21", index=index)
        assert "warnings" not in after.plan
        assert [hit.id for hit in after] == [hit.id for hit in before]
        assert [hit.cosine for hit in after] == pytest.approx([hit.cosine for hit in before])
        assert client.verify(index=index, full=True).is_sound


@pytest.mark.parametrize("url", live_servers.URLS)
def test_a_query_says_how_many_bytes_came(client: Client, url: str) -> None:
    """Of 162 passages all but the twelve that say it are told by their short codes alone."""
    near = [{"id": f"near-{number}", "text": "I want my money back."} for number in range(12)]
    far = [{"id": f"far-{number}", "text": f"w{number}"} for number in range(150)]
    with live_servers.unique_index_name(url) as index:
        client.ingest([*near, *far], index=index)
        few = client.query("money back", index=index, size=1, alpha=1.0)
        every = client.query("money back", index=index, size=100, alpha=1.0)
        assert 0 < few.plan["answer_bytes"] < every.plan["answer_bytes"]
        assert few.hits[0].id == every.hits[0].id
        assert few.hits[0].score == pytest.approx(every.hits[0].score)


@pytest.mark.parametrize("url", live_servers.URLS)
def test_another_document_takes_the_place_of_one_with_damaged_token_codes(
    client: Client, url: str
) -> None:
    """Its short codes are sound, so only the word codes tell."""
    documents = make_documents(150)
    with live_servers.unique_index_name(url) as index:
        client.ingest(documents, index=index)
        (entry,) = make_entries(documents[0])
        source = passage_codec.build_source(entry, make_spec(), "2026-01-01T00:00:00+00:00", GRAPH)
        source["tokens"] = pybase64.b64encode_as_string(b"abc")
        overwrite_passage(client, index, source)
        check_damage_is_told(client, index)


@pytest.mark.parametrize("url", live_servers.URLS)
def test_verify_notices_short_codes_of_another_passage(client: Client, url: str) -> None:
    documents = make_documents(3)
    with live_servers.unique_index_name(url) as index:
        client.ingest(documents, index=index)
        first, second = (make_entries(document)[0] for document in documents[:2])
        source = passage_codec.build_source(first, make_spec(), "2026-01-01T00:00:00+00:00", GRAPH)
        source["short_codes"] = passage_codec.encode_short_codes(second.tokens)
        overwrite_passage(client, index, source)
        (finding,) = client.verify(index=index, full=True, sample=0).findings
        assert (finding.kind, finding.document_id) == ("vectors", "call-1")
        assert client.verify(index=index, repair=True).is_sound
